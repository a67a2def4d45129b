"""Does the parser see the features of a face where the mesh has put them? Tells upside-down faces, and no faces at all.

MediaPipe fits an upright mesh to many upside-down faces, and to some things that are no face. The parser is not fooled:
over 33 upright portraits its probability of lips at the mesh's mouth was 0.88 or more, over the 14 upside-down ones on
which a mesh was found 0.01 or less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vision.errors import PhotoError, Reason
from vision.gates import LIMITS
from vision.types import FaceLandmarks, Label, ParsingMap

SEEN = 0.25
"""From this probability on a feature counts as seen."""

_RIGHT_PUPIL, _LEFT_PUPIL, _NOSE_TIP, _MOUTH = 468, 473, 4, 13
_EYE_LABELS = (Label.LEFT_EYE, Label.RIGHT_EYE, Label.EYEGLASSES)
_NOSE_LABELS = (Label.NOSE,)
_MOUTH_LABELS = (Label.MOUTH, Label.UPPER_LIP, Label.LOWER_LIP)


@dataclass(frozen=True, slots=True)
class Features:
    """Probability, 0 to 1, of each feature where the mesh has it."""

    eyes: float
    """The better of the two; glasses count as eyes."""
    nose: float
    mouth: float

    @property
    def whole(self) -> bool:
        """Nose and mouth both seen. An upside-down face has them elsewhere; its eyes often lie where the mesh has put
        them.
        """
        return self.nose >= SEEN and self.mouth >= SEEN


def see_features(landmarks: FaceLandmarks, parsing: ParsingMap) -> Features:
    """Read the parsing at the mesh's pupils, nose tip and mouth."""
    map_from_photo = parsing.map_from_photo
    side = parsing.probabilities.shape[-1]

    def at(point: int, labels: tuple[int, ...]) -> float:
        x, y = map_from_photo[:, :2] @ landmarks.points[point] + map_from_photo[:, 2]
        column, row = (int(np.clip(round(value), 0, side - 1)) for value in (x, y))
        return float(parsing.probabilities[list(labels), row, column].sum())

    return Features(
        eyes=max(at(_RIGHT_PUPIL, _EYE_LABELS), at(_LEFT_PUPIL, _EYE_LABELS)),
        nose=at(_NOSE_TIP, _NOSE_LABELS),
        mouth=at(_MOUTH, _MOUTH_LABELS),
    )


def check_features(seen: Features, look_upside_down: Callable[[], Features | None]) -> None:
    """Raise `PhotoError` UPSIDE_DOWN or NO_FACE where the features contradict the mesh.

    `look_upside_down` finds and parses the face of the photo turned by 180 degrees (None: there is none); it is called
    only when nose and mouth are not both seen, so that a face with a covered mouth costs more and goes on.
    """
    if seen.whole:
        return
    refuse_upside_down(look_upside_down())
    if max(seen.eyes, seen.nose, seen.mouth) < SEEN:
        raise PhotoError(Reason.NO_FACE)


def refuse_upside_down(turned: Features | None) -> None:
    """Raise `PhotoError` UPSIDE_DOWN when the photo turned by 180 degrees has a whole face."""
    if turned is not None and turned.whole:
        raise PhotoError(Reason.UPSIDE_DOWN, {"roll_deg": 180, "max": LIMITS.roll_max_deg})
