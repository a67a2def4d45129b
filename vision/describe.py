"""A face in words: shape and thirds, brows, eyes, nose, lips, jaw, and the hair where a parser sees it.

Every class comes with the ratios it was decided by; what cannot be told has no class and a reason.
"""

from __future__ import annotations

from collections.abc import Mapping

from vision.anthropometry import face_shape, measure_face
from vision.describe_hair import brow_thickness, hair_features
from vision.describe_ratios import SURE, features_of_mesh, probability_below
from vision.describe_terms import (
    EYES_NOT_SEEN,
    GLASSES,
    NO_PARSER,
    FaceDescription,
    Feature,
)
from vision.head import GLABELLA, photo_axes
from vision.iris import EyePoints, fit_iris
from vision.scale import GLASSES_SHARE, LEFT_EYE, RIGHT_EYE, glasses_share
from vision.types import (
    FaceLandmarks,
    Hairline,
    HairlinePoint,
    HairlineState,
    IntervalCauses,
    Measurement,
    ParsingMap,
    Photo,
    Scale,
)

CANON = 1 / 3
THIRDS_LIMIT = 0.03
"""Share of the face height by which a third may differ from the canon of equal thirds and still be balanced: our own,
one and a half standard deviations of the test pictures."""
THIRDS_NOISE_SD = 0.006
TYPICAL_UPPER_THIRD = 0.31
"""Share of the upper third in the face height where the hairline is not known: the mean of the test pictures. By it
the height from glabella to menton stands for the whole face."""
SURE_OF_SHAPE = 0.35
"""How much nearer the nearest typical outline must be than the second, as a share of the latter's distance."""
IRIS_WEIGHT_MIN = 0.3
"""How well an iris must be seen, 0 to 1, for its eye to be described."""

_NO_SCALE = Scale(None, None, IntervalCauses(0.0, 0.0, 0.0), None, None)
_NO_HAIRLINE = Hairline((), HairlineState.NONE, None, 0.0)
_MENTON = 152
_OF_HAIR = ("hair.length", "hair.bangs", "hair.colour")


def describe(
    photo: Photo, landmarks: FaceLandmarks, parsing: ParsingMap | None, hairline: Hairline | None
) -> FaceDescription:
    """Every feature of the face; `parsing` and `hairline` are None where there is no parser."""
    features = features_of_mesh(landmarks)
    if reason := _why_eyes_are_hidden(photo, landmarks, parsing):
        features |= {name: Feature(None, reason=reason) for name in features if name.startswith("eyes.")}
    if parsing is None:
        present = None
        features |= {name: Feature(None, reason=NO_PARSER) for name in ("brows.thickness", *_OF_HAIR)}
    else:
        features["brows.thickness"] = brow_thickness(landmarks, parsing)
        present, of_hair = hair_features(photo, landmarks, parsing)
        features |= of_hair
    measured = measure_face(landmarks, hairline or _NO_HAIRLINE, _NO_SCALE)
    features["face.shape"] = _shape(landmarks, measured)
    features["face.thirds"] = _thirds(measured) if hairline else Feature(None, reason=NO_PARSER)
    return FaceDescription(features, present)


def _why_eyes_are_hidden(photo: Photo, landmarks: FaceLandmarks, parsing: ParsingMap | None) -> str:
    """Empty where they are seen. The mesh has eyes behind any glasses: only the photo can tell."""
    if parsing is not None and glasses_share(landmarks, parsing) > GLASSES_SHARE:
        return GLASSES
    points = landmarks.points
    fits = [
        fit_iris(
            photo.rgb, EyePoints(points[iris : iris + 5], outer_corner=points[outer], inner_corner=points[inner]), 1.0
        )
        for iris, outer, inner in (LEFT_EYE, RIGHT_EYE)
    ]
    seen = any(fit is not None and fit.weight >= IRIS_WEIGHT_MIN for fit in fits)
    return "" if seen else EYES_NOT_SEEN


def _shape(landmarks: FaceLandmarks, measured: Mapping[str, Measurement]) -> Feature:
    """The class that the measure call gives, where it gives one; else by the lower two thirds of the face."""
    shape = face_shape(measured) or face_shape(measure_face(landmarks, _typical_hairline(landmarks), _NO_SCALE))
    if shape is None:
        return Feature(None, reason=measured["face_width"].unavailable_reason)
    other = None if shape.confidence >= SURE_OF_SHAPE else shape.second.value
    return Feature(shape.shape.value, shape.confidence, other, dict(shape.ratios))


def _typical_hairline(landmarks: FaceLandmarks) -> Hairline:
    """Nothing but a trichion, so high above the glabella as it is in most faces."""
    _, down = photo_axes(landmarks)
    glabella, menton = landmarks.points[GLABELLA], landmarks.points[_MENTON]
    height_px = float((menton - glabella) @ down) * TYPICAL_UPPER_THIRD / (1 - TYPICAL_UPPER_THIRD)
    x, y = glabella - height_px * down
    trichion = HairlinePoint(float(x), float(y), HairlineState.OBSERVED, 0.0)
    return Hairline((), HairlineState.OBSERVED, trichion, 0.0)


def _thirds(measured: Mapping[str, Measurement]) -> Feature:
    """The third that differs most from the canon of equal thirds, if it differs enough."""
    shares = {name: measured[f"thirds.{name}"].ratio for name in ("upper", "middle", "lower")}
    known = {name: share for name, share in shares.items() if share is not None}
    if len(known) < len(shares):
        return Feature(None, reason=measured["thirds.upper"].unavailable_reason)
    most, next_most = sorted(known, key=lambda name: -abs(known[name] - CANON))[:2]
    off, next_off = abs(known[most] - CANON), abs(known[next_most] - CANON)
    within = probability_below(THIRDS_LIMIT, off, THIRDS_NOISE_SD)
    if off <= THIRDS_LIMIT:
        return Feature("balanced", within, None if within >= SURE else _named(most, known), known)
    # On two borders at once: that of the balanced, and that of the next third.
    other, confidence = min(
        (("balanced", 1 - within), (_named(next_most, known), probability_below(off, next_off, 2 * THIRDS_NOISE_SD))),
        key=lambda border: border[1],
    )
    return Feature(_named(most, known), confidence, None if confidence >= SURE else other, known)


def _named(third: str, shares: Mapping[str, float]) -> str:
    return f"{'long' if shares[third] > CANON else 'short'}_{third}"
