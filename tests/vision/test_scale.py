"""Millimetres per pixel: rendered irises of known size, and what speaks for and against a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.portraits.eyes import IRIS_MM, IRISES, EyeLook, RenderedEyes, render
from tests.vision.measured_faces import turned
from vision.scale import MAX_TOTAL_PCT, combined, doubts, find_scale
from vision.types import IrisFit, Label, ParsingMap, Photo, Scale, ScaleSource


def scale_of(eyes: RenderedEyes, pupillary_distance_mm: float | None = None) -> Scale:
    return find_scale(eyes.photo, eyes.landmarks, eyes.parsing, pupillary_distance_mm)


def error_pct(eyes: RenderedEyes, scale: Scale) -> float:
    assert scale.mm_per_px
    return 100 * (scale.mm_per_px * eyes.look.diameter_px / IRIS_MM - 1)


@pytest.mark.parametrize("diameter_px", [18.0, 30.0, 60.0])
@pytest.mark.parametrize("colour", list(IRISES))
def test_the_edge_is_found_whatever_the_iris_points_say(diameter_px: float, colour: str) -> None:
    eyes = render(EyeLook(diameter_px, IRISES[colour]), seed=1)
    scale = scale_of(eyes)
    points = eyes.landmarks.points
    raw_px = np.mean([np.linalg.norm(points[i + 1] - points[i + 3]) for i in (468, 473)])
    assert abs(error_pct(eyes, scale)) < 2.5
    assert raw_px / diameter_px > 1.03  # the iris points alone would be wrong by more
    assert scale.source is ScaleSource.IRIS
    assert scale.left_iris
    assert scale.right_iris


@pytest.mark.parametrize(
    "look",
    [
        EyeLook(40.0, upper_lid_mm=3.0, lower_lid_mm=4.6),
        EyeLook(40.0, blur_px=1.6, noise=0.03, jpeg_quality=60),
        EyeLook(40.0, roll_deg=-14.0),
        EyeLook(40.0, gaze_deg=15.0),
        EyeLook(40.0, gaze_deg=-15.0),
        EyeLook(40.0, sclera=0.55),
    ],
    ids=["lids", "blur", "roll", "gaze left", "gaze right", "dim"],
)
def test_lids_blur_and_gaze_stay_within_the_interval(look: EyeLook) -> None:
    eyes = render(look, seed=2)
    scale = scale_of(eyes)
    assert abs(error_pct(eyes, scale)) < max(1.5, scale.causes.same_person_pct)
    assert scale.causes.total_pct < 9


def test_causes_are_kept_apart() -> None:
    causes = scale_of(render(EyeLook(50.0), seed=3)).causes
    assert causes.population_pct == pytest.approx(6.37, abs=0.01)
    assert 0.5 < causes.fit_pct < 4
    assert 0.5 < causes.pose_pct < 2
    assert causes.total_pct == pytest.approx(np.hypot(causes.population_pct, causes.same_person_pct))


def test_glasses_widen_the_interval() -> None:
    eyes = render(EyeLook(50.0), seed=3)
    probabilities = eyes.parsing.probabilities.copy()
    probabilities[Label.EYEGLASSES] = 0.5
    worn = find_scale(eyes.photo, eyes.landmarks, ParsingMap(probabilities, eyes.parsing.photo_from_map), None)
    bare = scale_of(eyes)
    assert worn.mm_per_px == bare.mm_per_px
    assert worn.causes.fit_pct == pytest.approx(np.hypot(bare.causes.fit_pct, 4.0))


def test_a_hidden_eye_leaves_the_other() -> None:
    eyes = render(EyeLook(50.0), seed=4)
    rgb = eyes.photo.rgb.copy()
    rgb[:, rgb.shape[1] // 2 :] = (200, 150, 130)
    scale = find_scale(Photo(rgb, "JPEG", 1), eyes.landmarks, eyes.parsing, None)
    assert scale.left_iris is None
    assert scale.right_iris
    assert abs(error_pct(eyes, scale)) < 1.5


def test_a_closed_eye_has_no_iris_whatever_is_drawn_there() -> None:
    eyes = render(EyeLook(50.0), seed=4)
    points = eyes.landmarks.points.copy()
    points[386] = points[374]
    scale = find_scale(eyes.photo, replace(eyes.landmarks, points=points), eyes.parsing, None)
    assert scale.left_iris is None
    assert scale.right_iris
    points[159] = points[145]
    closed = find_scale(eyes.photo, replace(eyes.landmarks, points=points), eyes.parsing, None)
    assert closed.mm_per_px is None
    assert [warning.reason for warning in doubts(closed)] == ["SCALE_UNCERTAIN"]


def test_no_scale_without_an_iris() -> None:
    eyes = render(EyeLook(50.0), seed=4)
    blank = Photo(np.full_like(eyes.photo.rgb, 150), "JPEG", 1)
    scale = find_scale(blank, eyes.landmarks, eyes.parsing, None)
    assert (scale.mm_per_px, scale.source) == (None, None)


def test_an_iris_of_a_few_pixels_is_not_measured() -> None:
    assert scale_of(render(EyeLook(8.0), seed=5)).mm_per_px is None


def test_eyes_outside_of_the_photo_are_not_measured() -> None:
    eyes = render(EyeLook(50.0), seed=5)
    outside = replace(eyes.landmarks, points=eyes.landmarks.points + 5000)
    assert find_scale(eyes.photo, outside, eyes.parsing, None).mm_per_px is None


def test_a_measured_pupillary_distance_replaces_the_iris_and_narrows_the_interval() -> None:
    face = turned(0, 7)
    eyes = render(EyeLook(50.0), seed=6)
    pupils_px = float(face.points[473, 0] - face.points[468, 0])
    scale = find_scale(eyes.photo, face, eyes.parsing, 61.0)
    assert scale.source is ScaleSource.PUPILLARY_DISTANCE
    assert scale.mm_per_px == pytest.approx(61.0 / pupils_px, rel=1e-3)
    assert scale.causes.population_pct == 0
    assert scale.causes.total_pct < 4
    turned_scale = find_scale(eyes.photo, turned(15, 7), eyes.parsing, 61.0)
    assert turned_scale.mm_per_px == pytest.approx(scale.mm_per_px, rel=1e-3)


def fit(diameter_px: float, sd_px: float = 0.5, weight: float = 1.0) -> IrisFit:
    return IrisFit((0.0, 0.0), diameter_px, sd_px, weight)


def test_two_irises_are_no_more_certain_than_one() -> None:
    assert combined([fit(50)]) == pytest.approx((50, 0.5))
    assert combined([fit(50), fit(50)]) == pytest.approx((50, 0.5))


def test_irises_that_differ_are_less_certain() -> None:
    mean, sd = combined([fit(48), fit(52)])
    assert mean == pytest.approx(50)
    assert sd == pytest.approx(np.hypot(0.5, 2))


def test_the_clearer_iris_counts_more() -> None:
    assert combined([fit(48, weight=0.2), fit(52)])[0] > 51
    assert combined([fit(48, sd_px=3), fit(52)])[0] > 51.5


def test_irises_that_tell_nothing_give_no_millimetres_and_say_so() -> None:
    eyes = render(EyeLook(24.0, upper_lid_mm=0.6, lower_lid_mm=1.2), seed=7)
    scale = scale_of(eyes)
    assert scale.mm_per_px is None
    (warning,) = doubts(scale)
    assert (warning.reason, warning.limit, warning.unit) == ("SCALE_UNCERTAIN", MAX_TOTAL_PCT, "pct")
    assert warning.value is None or warning.value > MAX_TOTAL_PCT
    assert scale_of(eyes, pupillary_distance_mm=63.0).mm_per_px is not None


def test_a_pupillary_distance_that_contradicts_the_irises_is_doubted() -> None:
    eyes = render(EyeLook(50.0), seed=8)
    iris = scale_of(eyes)
    assert iris.mm_per_px
    assert doubts(iris) == ()
    true_mm = 63.0 * iris.mm_per_px / (scale_of(eyes, 63.0).mm_per_px or 0.0)
    assert doubts(scale_of(eyes, true_mm * 1.05)) == ()
    for factor in (0.78, 1.28):
        (warning,) = doubts(scale_of(eyes, true_mm * factor))
        assert warning.reason == "PUPILLARY_DISTANCE_DOUBTFUL"
        assert warning.value == pytest.approx(100 * (factor - 1), abs=1.0)
