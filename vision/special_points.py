"""Named anatomical points of a face, from its mesh.

Left and right are the subject's; indices are those of MediaPipe's mesh. The trichion is not among them: the mesh ends
about a third of the middle court below the hairline (its topmost point, 10, lies on the bare forehead), so only the
measure call, which looks at the hair, can tell it. Nor is the tragion: the mesh has no ears.

| point | index | where it is |
|---|---|---|
| glabella | 9 | between the brows, on the midline |
| sellion | 168 | deepest point of the root of the nose |
| pronasale | 4 | tip of the nose |
| subnasale | 2 | where the septum meets the upper lip |
| labrale_superius, labrale_inferius | 0, 17 | borders of the upper and the lower lip, on the midline |
| stomion | 13, 14 | where the lips meet; between them when the mouth is open |
| menton | 152 | lowest point of the chin |
| …_endocanthion, …_exocanthion | 133 and 362, 33 and 263 | inner and outer corner of the eye |
| …_palpebrale_superius, …_inferius | 159 and 386, 145 and 374 | middle of the upper and the lower lid's margin |
| …_pupil | 468, 473 | centre of the iris |
| …_brow_head, …_brow_tail | 107 55 and 336 285, 70 46 and 300 276 | ends of the brow: between upper and lower margin |
| …_brow_peak | 63 105 66 and 293 334 296 | of these the farthest from the line between the ends |
| …_alare | 64, 294 | most lateral point of the wing of the nose |
| …_crista_philtri | 37, 267 | peak of Cupid's bow |
| …_cheilion | 61, 291 | corner of the mouth |
| …_temple | 127, 356 | outline of the face at the height of the eyes |
| …_zygion | 234, 454 | widest point of the cheekbones |
| …_gonion | 172, 397 | corner of the jaw |

All are where the mesh takes them to be, be they hidden or not: it knows no visibility.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vision.face_points import MESH_POINTS
from vision.types import FaceLandmarks, Points


@dataclass(frozen=True, slots=True)
class SpecialPoint:
    """A named point, in pixels of the upright photo; beyond it where the face sticks out of the photo."""

    x_px: float
    y_px: float


_OF_MEASURING = ("glabella", "subnasale", "pronasale", "menton")
_PAIRS_OF_MEASURING = ("zygion", "gonion", "temple", "exocanthion", "endocanthion", "pupil", "alare", "cheilion")
"""Points of `MESH_POINTS` that have a name of anatomy."""

SOURCES: Mapping[str, tuple[int, ...]] = {
    **{name: (MESH_POINTS[name],) for name in _OF_MEASURING},
    **{name: (MESH_POINTS[name],) for each in _PAIRS_OF_MEASURING for name in (f"right_{each}", f"left_{each}")},
    "sellion": (168,),
    "labrale_superius": (0,),
    "stomion": (13, 14),
    "labrale_inferius": (17,),
    "right_palpebrale_superius": (159,),
    "left_palpebrale_superius": (386,),
    "right_palpebrale_inferius": (145,),
    "left_palpebrale_inferius": (374,),
    "right_crista_philtri": (37,),
    "left_crista_philtri": (267,),
    "right_brow_head": (107, 55),
    "left_brow_head": (336, 285),
    "right_brow_tail": (70, 46),
    "left_brow_tail": (300, 276),
}
"""By name: the point of the mesh, or those whose middle it is. Peaks of the brows are chosen, see `BROW_PEAKS`."""

BROW_PEAKS: Mapping[str, tuple[int, ...]] = {"right_brow_peak": (63, 105, 66), "left_brow_peak": (293, 334, 296)}
"""The upper margin between the ends, outwards to inwards."""


def special_points(landmarks: FaceLandmarks) -> Mapping[str, SpecialPoint]:
    """Every point by name; none is ever left out."""
    mesh = landmarks.points
    at = {name: mesh[list(indices)].mean(axis=0) for name, indices in SOURCES.items()}
    for name, indices in BROW_PEAKS.items():
        head, tail = (at[name.replace("peak", end)] for end in ("head", "tail"))
        at[name] = farthest(mesh[list(indices)], head, tail)
    return {name: SpecialPoint(float(x), float(y)) for name, (x, y) in sorted(at.items())}


def farthest(candidates: Points, start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """(2,): the one of the candidates (N, 2) that lies farthest from the line through `start` and `end`."""
    along = end - start
    offsets = candidates - start
    distances = np.abs(along[0] * offsets[:, 1] - along[1] * offsets[:, 0])
    chosen: NDArray[np.float64] = candidates[int(distances.argmax())]
    return chosen
