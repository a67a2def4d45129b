"""Millimetres per pixel, from the irises or from a pupillary distance that the caller measured.

The horizontal visible diameter of the iris hardly differs between adults: 11.7 mm, standard deviation 0.38 mm. That
makes a half-width of 6.4 % at 95 %, which is the same in all photos of one person and stands apart from what one photo
adds: the fit of the edge (`vision.iris`), and the direction of the gaze. None of this has been validated against
callipers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vision.head import head_axes, spatial_points
from vision.iris import EyePoints, fit_iris
from vision.types import (
    FaceLandmarks,
    IntervalCauses,
    IrisFit,
    Label,
    ParsingMap,
    Photo,
    PhotoWarning,
    Scale,
    ScaleSource,
)

Array = NDArray[np.float64]

IRIS_MM = 11.7
IRIS_SD_MM = 0.38
"""Horizontal visible iris diameter of Chinese adults, mean and standard deviation, as this project was given them: the
study they come from was not named, and they have not been checked against one. Take them as unverified. Google's
MediaPipe Iris (2020) takes 11.7 ± 0.5 mm for all people; with that deviation the population's half-width were 8.4 %,
not 6.4 %. Who needs better gives the pupillary distance."""
Z95 = 1.96
POPULATION_PCT = 100 * Z95 * IRIS_SD_MM / IRIS_MM

LEFT_EYE = (473, 263, 362)
RIGHT_EYE = (468, 33, 133)
"""First of the five iris points, exocanthion, endocanthion."""

LIDS = {LEFT_EYE: (386, 374), RIGHT_EYE: (159, 145)}
"""Middles of the upper and the lower lid's margin."""
CLOSED = 0.2
"""Lids no further apart than this, in diameters of the iris the mesh believes in, show none: the eye is closed, and
whatever looks round there is a lash or a brush stroke. Narrowed eyes of the test pictures stand 0.2 to 0.4 open."""

IRIS_POINT_RATIO = 0.93
IRIS_POINT_SPREAD = 0.08
"""The fitted diameter is this share of that of the iris points, give or take (studio portraits: 0.87 to 0.97). A fit
further off has likely caught a lid or a shadow: the excess counts as its standard deviation."""

EYE_CENTRE_BEHIND_MM = 5.7
"""The eyeball turns about a point so far behind the middle of the eye's corners."""
IRIS_BEFORE_CENTRE_MM = 9.8
"""The iris lies so far in front of that point."""
GAZE_SD_DEG = 4.0
MAX_GAZE_DEG = 35.0

GLASSES_SHARE = 0.06
"""Share of an eye's surroundings parsed as glasses from which lenses are taken to be before the eye: 0.007 and less
without glasses, 0.59 with them."""
GLASSES_PCT = 4.0
"""Lenses of ±3 dioptres at 12 mm make an iris look up to so much larger or smaller than the face around them."""

MAX_TOTAL_PCT = 20.0
"""Half-width of the whole interval from which irises give no millimetres: 27 to 38 for half-closed eyes, 11 and less
for open ones. A width of the face that may be 120 or 190 mm helps nobody."""

PUPIL_POINT_SD = 0.02
"""Standard deviation of a pupil's place, in iris diameters."""
CALLER_SD_MM = 0.5
"""Of a pupillary distance as opticians measure it."""
VERGENCE_PCT = 1.5
"""Eyes that look at a near camera stand so much closer than those that look into the distance."""
DOUBTFUL_HALF_WIDTHS = 1.7
"""A caller's scale so many half-widths of the 95 % interval from the irises' (99.9 %) is named as doubtful."""


def find_scale(
    photo: Photo, landmarks: FaceLandmarks, parsing: ParsingMap, pupillary_distance_mm: float | None
) -> Scale:
    """Scale at the plane of the irises; without `mm_per_px` where they are seen too badly to tell.

    A `pupillary_distance_mm` replaces them; both are fitted in any case.
    """
    cosine, gaze_deg = _gaze(landmarks)
    left, right = (fit_iris(photo.rgb, _eye(landmarks, eye), cosine) for eye in (LEFT_EYE, RIGHT_EYE))
    left, right = _doubted(left, landmarks, LEFT_EYE), _doubted(right, landmarks, RIGHT_EYE)
    if pupillary_distance_mm is not None:
        return _from_pupils(landmarks, pupillary_distance_mm, left, right)
    fits = _usable(left, right)
    if not fits:
        return Scale(None, None, IntervalCauses(0.0, 0.0, 0.0), left, right)
    diameter, sd = combined(fits)
    fit_pct = 100 * Z95 * sd / diameter
    if glasses_share(landmarks, parsing) > GLASSES_SHARE:
        fit_pct = float(np.hypot(fit_pct, GLASSES_PCT))
    causes = IntervalCauses(population_pct=POPULATION_PCT, fit_pct=fit_pct, pose_pct=_gaze_pct(gaze_deg))
    if causes.total_pct > MAX_TOTAL_PCT:
        return Scale(None, None, causes, left, right)
    return Scale(IRIS_MM / diameter, ScaleSource.IRIS, causes, left, right)


def doubts(scale: Scale) -> tuple[PhotoWarning, ...]:
    """What the reader should know of a scale: that there is none, or that the caller's contradicts the irises."""
    if scale.mm_per_px is None:
        half_width = scale.causes.total_pct or None  # None: no iris was found at all
        return (PhotoWarning("SCALE_UNCERTAIN", half_width, MAX_TOTAL_PCT, "pct"),)
    fits = _usable(scale.left_iris, scale.right_iris)
    if scale.source is not ScaleSource.PUPILLARY_DISTANCE or not fits:
        return ()
    diameter, sd = combined(fits)
    apart_pct = 100 * (scale.mm_per_px * diameter / IRIS_MM - 1)
    limit_pct = DOUBTFUL_HALF_WIDTHS * float(
        np.hypot(np.hypot(POPULATION_PCT, 100 * Z95 * sd / diameter), scale.causes.total_pct)
    )
    if abs(apart_pct) <= limit_pct:
        return ()
    return (PhotoWarning("PUPILLARY_DISTANCE_DOUBTFUL", apart_pct, limit_pct, "pct"),)


def _usable(left: IrisFit | None, right: IrisFit | None) -> list[IrisFit]:
    return [fit for fit in (left, right) if fit is not None and fit.weight > 0]


def combined(fits: list[IrisFit]) -> tuple[float, float]:
    """Diameter and its standard deviation, in px, from one or two irises.

    They weigh by visibility and certainty. The irises of one person are of one size, so how far two differ tells an
    error that comes on top of their own; these are taken as common to both (same light, same blur, same notion of the
    limbus): two irises are no more certain than one.
    """
    diameters = np.array([fit.diameter_px for fit in fits])
    sds = np.array([fit.sd_px for fit in fits])
    weights = np.array([fit.weight for fit in fits]) / sds**2
    weights = weights / weights.sum()
    mean = float(weights @ diameters)
    return mean, float(np.sqrt((weights @ sds) ** 2 + weights @ (diameters - mean) ** 2))


def _doubted(fit: IrisFit | None, landmarks: FaceLandmarks, eye: tuple[int, int, int]) -> IrisFit | None:
    """The fit with a wider standard deviation where the iris points speak against it; none of a closed eye."""
    upper, lower = landmarks.points[list(LIDS[eye])]
    if fit is None or np.linalg.norm(upper - lower) < CLOSED * _iris_point_diameter(landmarks, eye):
        return None
    witness = IRIS_POINT_RATIO * _iris_point_diameter(landmarks, eye)
    excess = max(0.0, abs(fit.diameter_px / witness - 1) - IRIS_POINT_SPREAD)
    return IrisFit(
        centre_px=fit.centre_px,
        diameter_px=fit.diameter_px,
        sd_px=float(np.hypot(fit.sd_px, excess * witness)),
        weight=fit.weight,
    )


def _eye(landmarks: FaceLandmarks, eye: tuple[int, int, int]) -> EyePoints:
    iris, outer, inner = eye
    points = landmarks.points
    return EyePoints(iris=points[iris : iris + 5], outer_corner=points[outer], inner_corner=points[inner])


def _iris_point_diameter(landmarks: FaceLandmarks, eye: tuple[int, int, int]) -> float:
    return float(np.linalg.norm(landmarks.points[eye[0] + 1] - landmarks.points[eye[0] + 3]))


def _gaze(landmarks: FaceLandmarks) -> tuple[float, float]:
    """Cosine and angle, in degrees, of the gaze against the line of sight, to the side; mean of both eyes.

    An iris is foreshortened by the gaze, not by the head: who turns the head but looks into the camera shows a round
    iris. The eyeball's centre lies behind the corners of the eye, so it moves against them as the head turns.
    """
    points = landmarks.points
    across = points[LEFT_EYE[1]] - points[RIGHT_EYE[1]]
    across = across / np.linalg.norm(across)
    offsets = [
        float((points[iris] - (points[outer] + points[inner]) / 2) @ across)
        for iris, outer, inner in (LEFT_EYE, RIGHT_EYE)
    ]
    diameter = IRIS_POINT_RATIO * np.mean([_iris_point_diameter(landmarks, eye) for eye in (LEFT_EYE, RIGHT_EYE)])
    offset_mm = float(np.mean(offsets)) * IRIS_MM / diameter
    behind_mm = EYE_CENTRE_BEHIND_MM * np.sin(np.radians(landmarks.pose.yaw_deg))
    limit = np.sin(np.radians(MAX_GAZE_DEG))
    sine = float(np.clip((offset_mm + behind_mm) / IRIS_BEFORE_CENTRE_MM, -limit, limit))
    return float(np.sqrt(1 - sine**2)), float(np.degrees(np.arcsin(sine)))


def _gaze_pct(gaze_deg: float) -> float:
    """Half-width that an error of the gaze makes in a cosine."""
    error = Z95 * np.radians(GAZE_SD_DEG)
    return float(100 * (np.tan(np.radians(abs(gaze_deg))) * error + error**2 / 2))


def glasses_share(landmarks: FaceLandmarks, parsing: ParsingMap) -> float:
    """Share of the surroundings of both eyes that parses as glasses."""
    to_map = parsing.map_from_photo
    shares = []
    for _, outer, inner in (LEFT_EYE, RIGHT_EYE):
        corners = landmarks.points[[outer, inner]] @ to_map[:, :2].T + to_map[:, 2]
        width = float(np.linalg.norm(corners[0] - corners[1]))
        low = np.maximum(0, (corners.mean(axis=0) - width).astype(int))
        high = (corners.mean(axis=0) + width).astype(int) + 1
        part = parsing.probabilities[Label.EYEGLASSES, low[1] : high[1], low[0] : high[0]]
        shares.append(float(part.mean()) if part.size else 0.0)
    return max(shares)


def _from_pupils(
    landmarks: FaceLandmarks, pupillary_distance_mm: float, left: IrisFit | None, right: IrisFit | None
) -> Scale:
    mesh = spatial_points(landmarks)
    distance_px = float((mesh[LEFT_EYE[0]] - mesh[RIGHT_EYE[0]]) @ head_axes(landmarks.pose).lateral)
    diameter = _iris_point_diameter(landmarks, LEFT_EYE)
    pupils = np.sqrt(2) * PUPIL_POINT_SD * diameter / distance_px
    fit_pct = 100 * Z95 * float(np.hypot(pupils, CALLER_SD_MM / pupillary_distance_mm))
    return Scale(
        mm_per_px=pupillary_distance_mm / distance_px,
        source=ScaleSource.PUPILLARY_DISTANCE,
        causes=IntervalCauses(population_pct=0.0, fit_pct=fit_pct, pose_pct=VERGENCE_PCT),
        left_iris=left,
        right_iris=right,
    )
