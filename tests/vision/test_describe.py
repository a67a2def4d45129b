"""Faces in words: classes from ratios, sure only where the ratio is clear, and reasons where nothing is seen."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import studio_portrait
from tests.vision.conftest import photo_of, resized
from tests.vision.measured_faces import UPRIGHT, hairline_of, laid, landmarks_of, turned
from vision.anthropometry import face_shape, measure_face
from vision.describe import describe
from vision.describe_hair import ANCHORS, DYED_CHROMA_MIN, hair_features, name_colour
from vision.describe_ratios import ROWS, SURE, classify, features_of_mesh, probability_below
from vision.describe_terms import CLASSES, EYES_NOT_SEEN, HAT, NO_HAIR, NO_PARSER, Feature, in_words
from vision.landmarks import LandmarkDetector
from vision.parsing import RASTER_PX
from vision.steady_mesh import find_face
from vision.types import (
    FaceLandmarks,
    FaceShapeClass,
    HairlineState,
    IntervalCauses,
    Label,
    ParsingMap,
    Photo,
    RgbImage,
    Scale,
)

SIDE = 2 * RASTER_PX
NO_SCALE = Scale(None, None, IntervalCauses(0, 0, 0), None, None)


def grey_photo(side_px: int = 2000) -> Photo:
    return photo_of(np.full((side_px, side_px, 3), 120, dtype=np.uint8))


def parsed(face: FaceLandmarks, *regions: tuple[int, float, float, float, float]) -> ParsingMap:
    """A face of skin with rectangles of other classes: left, top, right, bottom in mesh heights from the chin."""
    top, chin = face.points[10], face.points[152]
    scale = float(np.linalg.norm(top - chin)) / RASTER_PX
    corner = chin - scale * np.array([SIDE / 2, 1.5 * RASTER_PX])
    labels = np.full((SIDE, SIDE), Label.SKIN)
    for label, left, upper, right, lower in regions:
        columns = slice(*(round(SIDE / 2 + each * RASTER_PX) for each in (left, right)))
        rows = slice(*(max(0, round((1.5 + each) * RASTER_PX)) for each in (upper, lower)))
        labels[rows, columns] = label
    probabilities = np.zeros((19, SIDE, SIDE), dtype=np.float32)
    np.put_along_axis(probabilities, labels[None], 1.0, axis=0)
    return ParsingMap(probabilities, np.column_stack([scale * np.eye(2), corner]))


CROWN = (Label.HAIR, -0.5, -1.45, 0.5, -1.15)


# --- ratios and classes


def test_terms_and_rows_are_of_one_mind() -> None:
    for name, row in ROWS.items():
        assert tuple(CLASSES[name]) == row.classes
        assert row.low < row.high
        assert row.noise_sd > 0
    assert set(CLASSES["face.shape"]) == {shape.value for shape in FaceShapeClass}
    assert set(CLASSES["hair.colour"]) == {*ANCHORS, "dyed"}


@pytest.mark.parametrize("name", ROWS)
def test_the_class_follows_the_ratio(name: str) -> None:
    row = ROWS[name]
    middle = (row.low + row.high) / 2
    far = 4 * row.noise_sd
    assert [classify(name, value, {}).value for value in (row.low - far, middle, row.high + far)] == list(row.classes)
    assert classify(name, row.low - far, {}).sure
    assert classify(name, row.high + far, {}).sure
    assert not classify(name, row.low, {}).sure, "on the border nobody is sure"
    assert not classify(name, row.high, {}).sure


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("name", ROWS)
def test_on_either_side_of_a_border_the_same_is_said(name: str, lang: str) -> None:
    row = ROWS[name]
    for border, lower, upper in ((row.low, *row.classes[:2]), (row.high, *row.classes[1:])):
        step = 0.01 * row.noise_sd
        below, above = classify(name, border - step, {}), classify(name, border + step, {})
        assert (below.value, below.borderline_with) == (lower, upper)
        assert (above.value, above.borderline_with) == (upper, lower)
        said = {in_words(name, str(each.value), each.borderline_with, lang) for each in (below, above)}
        assert len(said) == 1
        (words,) = said
        assert all(CLASSES[name][each].of(lang) in words for each in (lower, upper))


@given(name=st.sampled_from(sorted(ROWS)), value=st.floats(-200, 200))
def test_confidence_is_a_probability(name: str, value: float) -> None:
    feature = classify(name, value, {})
    assert 0 <= feature.confidence <= 1
    assert feature.confidence >= 0.3, "no other class is much more likely than the one given"
    assert feature.sure == (feature.confidence >= SURE)
    assert feature.ratios == {ROWS[name].ratio: value}
    if feature.borderline_with is not None:
        places = [ROWS[name].classes.index(each) for each in (str(feature.value), feature.borderline_with)]
        assert abs(places[0] - places[1]) == 1, "borderline with a neighbour"


def test_probability_below() -> None:
    assert probability_below(math.inf, 0, 1) == 1
    assert probability_below(-math.inf, 0, 1) == 0
    assert probability_below(1.0, 1.0, 1) == 0.5


@given(size=st.floats(0.3, 3), roll_deg=st.floats(-25, 25))
def test_a_description_hangs_on_neither_size_nor_roll(size: float, roll_deg: float) -> None:
    base, moved = features_of_mesh(laid()), features_of_mesh(laid(size, roll_deg))
    for name, feature in base.items():
        for ratio, value in feature.ratios.items():
            assert moved[name].ratios[ratio] == pytest.approx(value, abs=1e-6), name


@pytest.mark.parametrize(("yaw_deg", "pitch_deg"), [(15, 7), (-15, 7), (0, -10), (0, 22), (12, 16)])
def test_a_turned_head_is_described_as_a_frontal_one(yaw_deg: float, pitch_deg: float) -> None:
    frontal, seen = features_of_mesh(turned(0, 7)), features_of_mesh(turned(yaw_deg, pitch_deg))
    for name in frontal.keys() - {"eyes.opening"}:  # who turns the head and looks at the camera turns no iris
        (ratio, value), (_, other) = (next(iter(each[name].ratios.items())) for each in (frontal, seen))
        assert other == pytest.approx(value, abs=0.6 * ROWS[name].noise_sd), (name, ratio)


def moved(*shifts: tuple[tuple[int, ...], tuple[float, float]]) -> FaceLandmarks:
    """The usual face with some of its points elsewhere, in pixels of a face 700 px wide."""
    spatial = UPRIGHT + 1000.0 * np.array([1, 1, 0])
    for indices, shift in shifts:
        spatial[list(indices), :2] += shift
    return landmarks_of(spatial, turned(0, 7).pose)


@pytest.mark.parametrize(
    ("name", "lower", "higher"),
    [
        ("jaw.width", moved(((172,), (25, 0)), ((397,), (-25, 0))), moved(((172,), (-25, 0)), ((397,), (25, 0)))),
        ("nose.width", moved(((64,), (25, 0)), ((294,), (-25, 0))), moved(((64,), (-25, 0)), ((294,), (25, 0)))),
        ("lips.width", moved(((61,), (40, 0)), ((291,), (-40, 0))), moved(((61,), (-40, 0)), ((291,), (40, 0)))),
        ("lips.thickness", moved(((17,), (0, -20))), moved(((17,), (0, 30)))),
        ("eyes.spacing", moved(((133,), (15, 0)), ((362,), (-15, 0))), moved(((133,), (-15, 0)), ((362,), (15, 0)))),
        ("eyes.opening", moved(((159, 386), (0, 12))), moved(((159, 386), (0, -18)))),
        ("eyes.shape", moved(((159, 386), (0, 12))), moved(((159, 386), (0, -18)))),
        ("eyes.tilt", moved(((33, 263), (0, 14))), moved(((33, 263), (0, -14)))),
        ("brows.tilt", moved(((70, 46, 300, 276), (0, 25))), moved(((70, 46, 300, 276), (0, -25)))),
        (
            "brows.shape",
            moved(((63, 105, 53, 52, 293, 334, 283, 282), (0, 10))),
            moved(((105, 52, 334, 282), (0, -10))),
        ),
        ("nose.length", moved(((2,), (0, -25))), moved(((2,), (0, 25)))),
    ],
)
def test_each_feature_hangs_on_its_own_points(name: str, lower: FaceLandmarks, higher: FaceLandmarks) -> None:
    classes = ROWS[name].classes
    found = [classes.index(str(features_of_mesh(face)[name].value)) for face in (lower, higher)]
    assert found[0] < found[1]


# --- hair


@pytest.mark.parametrize(("lowest", "length"), [(-0.6, "short"), (-0.1, "medium"), (0.4, "long")])
def test_length_is_how_far_hair_comes_down(lowest: float, length: str) -> None:
    face = laid()
    parsing = parsed(face, CROWN, (Label.HAIR, -0.6, -1.3, -0.45, lowest), (Label.HAIR, 0.45, -1.3, 0.6, lowest))
    present, found = hair_features(grey_photo(), face, parsing)
    assert present is True
    assert found["hair.length"].value == length


def test_a_stray_strand_makes_no_long_hair() -> None:
    face = laid()
    strand = (Label.HAIR, 0.5, -1.3, 0.512, 0.45)
    _, found = hair_features(grey_photo(), face, parsed(face, CROWN, strand))
    assert found["hair.length"].value == "short"


@pytest.mark.parametrize(("lower", "bangs"), [(-1.05, "none"), (-0.93, "partial"), (-0.62, "full")])
def test_bangs_are_hair_on_the_forehead(lower: float, bangs: str) -> None:
    face = laid()
    _, found = hair_features(grey_photo(), face, parsed(face, (Label.HAIR, -0.6, -1.45, 0.6, lower)))
    assert found["hair.bangs"].value == bangs


def test_b37_no_hair_is_no_error_and_no_colour() -> None:
    face = laid()
    present, found = hair_features(grey_photo(), face, parsed(face))
    assert present is False
    assert {(each.value, each.reason) for each in found.values()} == {(None, NO_HAIR)}


def test_under_a_hat_nobody_knows() -> None:
    face = laid()
    present, found = hair_features(grey_photo(), face, parsed(face, (Label.HAT, -0.6, -1.5, 0.6, -1.0)))
    assert present is None
    assert {each.reason for each in found.values()} == {HAT}
    sides = (Label.HAIR, 0.45, -0.9, 0.75, -0.2)
    present, found = hair_features(grey_photo(), face, parsed(face, (Label.HAT, -0.6, -1.5, 0.6, -1.0), sides))
    assert present is True
    assert (found["hair.length"].reason, found["hair.bangs"].reason) == (HAT, HAT)
    assert found["hair.colour"].value is not None


def test_colour_is_that_of_the_hair_and_of_nothing_else() -> None:
    face = laid()
    rgb: RgbImage = np.zeros((2000, 2000, 3), dtype=np.uint8)
    rgb[:] = (30, 60, 200)
    parsing = parsed(face, CROWN)
    (left, top), (right, bottom) = (
        parsing.photo_from_map @ (column, row, 1)
        for column, row in ((SIDE / 2 - 0.5 * RASTER_PX, 0), (SIDE / 2 + 0.5 * RASTER_PX, 0.4 * RASTER_PX))
    )
    rgb[max(0, int(top)) : int(bottom), max(0, int(left)) : int(right)] = (92, 60, 40)
    _, found = hair_features(photo_of(rgb), face, parsing)
    assert found["hair.colour"].value == "brown"


@pytest.mark.parametrize(("lab", "name"), [((46, -4.5, -9.2), "dyed"), ((40, -12, 10), "dyed"), ((50, 8, -2), "grey")])
def test_hues_that_do_not_grow_are_dyed(lab: tuple[float, float, float], name: str) -> None:
    assert name_colour(*lab).value == name


def test_a_colour_on_the_border_of_two_is_borderline_with_the_other() -> None:
    lab = np.array([ANCHORS["brown"], ANCHORS["light_brown"]])
    darker, lighter = (name_colour(*(share @ lab)) for share in (np.array([0.51, 0.49]), np.array([0.49, 0.51])))
    assert (darker.value, darker.borderline_with) == ("brown", "light_brown")
    assert (lighter.value, lighter.borderline_with) == ("light_brown", "brown")


@pytest.mark.parametrize(("chroma", "value"), [(0.99, "grey"), (1.01, "dyed")])
def test_hardly_any_colour_is_borderline_with_dyed(chroma: float, value: str) -> None:
    found = name_colour(46, -0.6 * DYED_CHROMA_MIN * chroma, -0.8 * DYED_CHROMA_MIN * chroma)
    assert {found.value, found.borderline_with} == {"grey", "dyed"}
    assert found.value == value


@pytest.mark.parametrize("name", ANCHORS)
def test_a_typical_colour_has_its_name(name: str) -> None:
    feature = name_colour(*ANCHORS[name])
    assert (feature.value, feature.confidence, feature.sure) == (name, 1.0, True)


# --- the whole


@pytest.mark.models
def test_ten_people_are_described_alike_whatever_the_size_of_their_photo(
    detector: LandmarkDetector, read_rgb: Callable[[Path], RgbImage]
) -> None:
    """A class may differ only where both photos say that they lie on the border of the two."""
    for number in range(1, 11):
        rgb = read_rgb(studio_portrait(number))
        large, small = (
            describe(photo, find_face(photo, detector), None, None).features
            for photo in (photo_of(rgb), photo_of(resized(rgb, rgb.shape[1] // 2)))
        )
        for name, feature in large.items():
            other = small[name]
            if feature.value != other.value:
                assert (other.value, feature.value) == (feature.borderline_with, other.borderline_with), (number, name)


def test_every_feature_is_there_whatever_is_known() -> None:
    face = laid()
    assert set(describe(grey_photo(), face, None, None).features) == set(CLASSES)
    whole = describe(grey_photo(), face, parsed(face, CROWN), hairline_of(face))
    assert set(whole.features) == set(CLASSES)
    for feature in whole.features.values():
        assert (feature.value is None) == bool(feature.reason)


def test_the_shape_is_that_of_the_measure_call() -> None:
    face = laid()
    measured = face_shape(measure_face(face, hairline_of(face), NO_SCALE))
    found = describe(grey_photo(), face, parsed(face, CROWN), hairline_of(face)).features["face.shape"]
    assert measured is not None
    assert (found.value, found.confidence) == (measured.shape.value, measured.confidence)


def test_without_a_hairline_there_is_a_shape_and_no_thirds() -> None:
    face = laid()
    alone = describe(grey_photo(), face, None, None).features
    assert alone["face.shape"].value is not None
    assert alone["face.thirds"].reason == NO_PARSER
    hidden = hairline_of(face, hidden=range(41), state=HairlineState.OCCLUDED)
    thirds = describe(grey_photo(), face, parsed(face, CROWN), hidden).features["face.thirds"]
    assert (thirds.value, thirds.reason) == (None, "HAIRLINE_OCCLUDED")


@pytest.mark.parametrize(("height", "thirds"), [(0.25, "short_upper"), (0.75, "long_upper")])
def test_thirds_name_the_one_that_is_off(height: float, thirds: str) -> None:
    face = laid()
    found = describe(grey_photo(), face, parsed(face, CROWN), hairline_of(face, height=height)).features["face.thirds"]
    assert found.value == thirds
    assert sum(found.ratios.values()) == pytest.approx(1)
    assert found.sure


def test_thirds_on_the_border_of_two_are_borderline_with_the_other() -> None:
    face = laid()
    parsing = parsed(face, CROWN)

    def thirds(height: float) -> Feature:
        found = describe(grey_photo(400), face, parsing, hairline_of(face, height=height))
        return found.features["face.thirds"]

    borders = set()
    for low, high in itertools.pairwise(np.linspace(0.3, 0.75, 10)):
        left, right = float(low), float(high)
        if thirds(left).value == thirds(right).value:
            continue
        while right - left > 1e-4:
            middle = (left + right) / 2
            left, right = (middle, right) if thirds(middle).value == thirds(left).value else (left, middle)
        one, other = thirds(left), thirds(right)
        assert (one.value, other.value) == (other.borderline_with, one.borderline_with)
        borders.add(frozenset([one.value, other.value]))
    assert len(borders) >= 2


def test_thirds_that_are_nearly_equal_are_balanced() -> None:
    face = laid()
    mesh = face.points
    middle, lower = mesh[2, 1] - mesh[9, 1], mesh[152, 1] - mesh[2, 1]
    equal = hairline_of(face, height=float((middle + lower) / 2 / (middle + lower)))
    found = describe(grey_photo(), face, parsed(face, CROWN), equal).features["face.thirds"]
    assert (found.value == "balanced") == (max(abs(share - 1 / 3) for share in found.ratios.values()) <= 0.03)


def test_eyes_that_no_iris_shows_are_unknown() -> None:
    """A grey picture has no eyes, wherever the mesh puts them."""
    found = describe(grey_photo(), laid(), None, None).features
    assert {found[name].reason for name in found if name.startswith("eyes.")} == {EYES_NOT_SEEN}
