"""Masks on pictures whose parts are known: sizes, areas, borders, and parts that are not there."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from tests.conftest import studio_portrait
from tests.vision.conftest import photo_of
from tests.vision.measured_faces import hairline_of, laid, scale_of
from vision.calls import FaceMask, FacePart, MaskOptions
from vision.masks import make_masks
from vision.parsing import CROPS
from vision.pipeline import Pipeline
from vision.types import (
    Facts,
    Hairline,
    HairlineState,
    Label,
    MeasureOptions,
    NoProgress,
    ParsingMap,
    RgbImage,
    Scale,
)

SIDE_PX = 400
"""Of the raster: the whole photo of 1000 px, at 2.5 photo pixels each."""
PHOTO_PX = 1000
TO_PHOTO = np.array([[2.5, 0, 0.75], [0, 2.5, 0.75]])
SKIN, DARK, WALL = (200, 160, 140), (40, 30, 25), (120, 130, 140)
FACE = laid(0.5, at=(500.0, 480.0))
NO_HAIRLINE = Hairline((), HairlineState.NONE, None, 0.0)

Mask = NDArray[np.uint8]


@dataclass(frozen=True)
class Shape:
    """An ellipse of one class, in photo pixels."""

    label: int
    centre: tuple[float, float]
    axes: tuple[float, float]
    colour: tuple[int, int, int] = SKIN


HEAD = (
    Shape(Label.HAIR, (500, 400), (300, 330), DARK),
    Shape(Label.NECK, (500, 760), (110, 160)),
    Shape(Label.RIGHT_EAR, (300, 480), (30, 60)),
    Shape(Label.LEFT_EAR, (700, 480), (30, 60)),
    Shape(Label.SKIN, (500, 480), (190, 260)),
    Shape(Label.RIGHT_BROW, (420, 420), (60, 12), DARK),
    Shape(Label.LEFT_BROW, (580, 420), (60, 12), DARK),
    Shape(Label.RIGHT_EYE, (425, 470), (34, 15), DARK),
    Shape(Label.LEFT_EYE, (575, 470), (34, 15), DARK),
    Shape(Label.NOSE, (500, 540), (36, 60)),
    Shape(Label.MOUTH, (500, 650), (60, 16), DARK),
    Shape(Label.UPPER_LIP, (500, 636), (66, 10), (180, 80, 80)),
    Shape(Label.LOWER_LIP, (500, 664), (66, 12), (180, 80, 80)),
)


def drawn(shapes: Sequence[Shape], side_px: int, scale: float) -> Mask:
    """(side, side): class of each pixel of a raster `scale` times as coarse as the photo."""
    y, x = (np.mgrid[:side_px, :side_px] + 0.5) * scale - 0.5
    labels = np.zeros((side_px, side_px), dtype=np.uint8)
    for shape in shapes:
        inside = ((x - shape.centre[0]) / shape.axes[0]) ** 2 + ((y - shape.centre[1]) / shape.axes[1]) ** 2 < 1
        labels[inside] = shape.label
    return labels


def facts_of(
    shapes: Sequence[Shape] = HEAD,
    hairline: Hairline = NO_HAIRLINE,
    scale: Scale = scale_of(0.2),  # noqa: B008  (frozen)
) -> Facts:
    """A photo of these shapes, seen by a parser that is right."""
    colours = {shape.label: shape.colour for shape in shapes}
    table = np.array([colours.get(label, WALL) for label in range(19)], dtype=np.uint8)
    rgb: RgbImage = table[drawn(shapes, PHOTO_PX, 1.0)]
    labels = drawn(shapes, SIDE_PX, PHOTO_PX / SIDE_PX)
    probabilities = np.stack([labels == label for label in range(19)]).astype(np.float32)
    return Facts(photo_of(rgb), FACE, ParsingMap(probabilities, TO_PHOTO), hairline, scale, {}, None)


def opened(mask: FaceMask) -> Mask:
    """Pixels of the PNG."""
    picture = Image.open(io.BytesIO(mask.image.data))
    assert picture.mode == "L"
    assert picture.size == (mask.image.width_px, mask.image.height_px)
    return np.asarray(picture)


def masks_of(facts: Facts, options: MaskOptions = MaskOptions()) -> Mapping[FacePart, FaceMask]:  # noqa: B008
    """By part."""
    return {mask.part: mask for mask in make_masks(facts, options)}


def believed(label: int) -> NDArray[np.bool_]:
    """Where `HEAD` has a class, on the photo's pixels."""
    return np.asarray(drawn(HEAD, PHOTO_PX, 1.0) == label)


def overlap(mask: Mask, truth: NDArray[np.bool_]) -> float:
    inside = mask > 127
    return float((inside & truth).sum() / (inside | truth).sum())


def test_every_part_lies_where_it_is() -> None:
    found = {part: opened(mask) for part, mask in masks_of(facts_of()).items()}
    truth = {
        FacePart.HAIR: believed(Label.HAIR),
        FacePart.SKIN: believed(Label.SKIN) | believed(Label.NOSE),
        FacePart.BROWS: believed(Label.LEFT_BROW) | believed(Label.RIGHT_BROW),
        FacePart.EYES: believed(Label.LEFT_EYE) | believed(Label.RIGHT_EYE),
        FacePart.NOSE: believed(Label.NOSE),
        FacePart.LIPS: believed(Label.UPPER_LIP) | believed(Label.LOWER_LIP),
        FacePart.EARS: believed(Label.LEFT_EAR) | believed(Label.RIGHT_EAR),
        FacePart.NECK: believed(Label.NECK),
    }
    overlaps = {part: overlap(found[part], where) for part, where in truth.items()}
    assert {part: value for part, value in overlaps.items() if value < 0.9} == {}


def test_all_parts_come_in_the_enums_order_and_some_in_the_order_asked_for() -> None:
    facts = facts_of()
    assert [mask.part for mask in make_masks(facts, MaskOptions())] == list(FacePart)
    some = (FacePart.NECK, FacePart.HAIR)
    assert [mask.part for mask in make_masks(facts, MaskOptions(parts=some))] == list(some)


def test_areas_do_not_depend_on_the_size_of_the_picture() -> None:
    facts = facts_of()
    full, small = masks_of(facts), masks_of(facts, MaskOptions(max_output_side_px=250))
    for part, mask in full.items():
        assert (mask.image.width_px, mask.image.height_px) == (1000, 1000)
        assert (small[part].image.width_px, small[part].image.height_px) == (250, 250)
        assert small[part].area_px2 == mask.area_px2
        assert opened(mask).sum() / 255 == pytest.approx(mask.area_px2, rel=0.02)
        assert opened(small[part]).sum() / 255 * 16 == pytest.approx(mask.area_px2, rel=0.03)


def test_areas_in_millimetres_need_a_scale() -> None:
    for with_scale, without in zip(
        make_masks(facts_of(), MaskOptions()), make_masks(facts_of(scale=scale_of(None)), MaskOptions()), strict=True
    ):
        assert with_scale.area_mm2 == pytest.approx(with_scale.area_px2 * 0.04)
        assert (without.area_mm2, without.area_interval_mm2) == (None, None)


def test_intervals_of_areas_are_of_scale_and_border() -> None:
    """A wide scale counts twice; what has much border for its area is less certain; a photo's end is no border."""
    exact, rough = (scale_of(0.2, population_pct=0.0, fit_pct=fit_pct, pose_pct=0.0) for fit_pct in (0.0, 8.0))
    narrow, wide = masks_of(facts_of(scale=exact)), masks_of(facts_of(scale=rough))

    def half_width(mask: FaceMask) -> float:
        assert mask.area_mm2 is not None
        assert mask.area_interval_mm2 is not None
        low, high = mask.area_interval_mm2.low, mask.area_interval_mm2.high
        assert (low + high) / 2 == pytest.approx(mask.area_mm2) or low == 0
        return (high - mask.area_mm2) / mask.area_mm2

    for part in FacePart:
        assert np.sqrt(half_width(wide[part]) ** 2 - half_width(narrow[part]) ** 2) == pytest.approx(0.16, rel=0.01)
    assert half_width(narrow[FacePart.SKIN]) < 0.1 < half_width(narrow[FacePart.BROWS]) < 0.5
    everywhere = masks_of(facts_of([Shape(Label.HAIR, (500, 500), (2000, 2000))], scale=exact))
    assert half_width(everywhere[FacePart.HAIR]) == pytest.approx(0, abs=1e-3)


def test_hair_and_skin_share_the_pixels_between_them() -> None:
    found = masks_of(facts_of())
    hair, skin = (opened(found[part]).astype(int) for part in (FacePart.HAIR, FacePart.SKIN))
    near = [cv2.dilate((mask > 127).astype(np.uint8), np.ones((9, 9))) > 0 for mask in (hair, skin)]
    border = np.logical_and(*near)
    upper = border[:380]
    assert upper.sum() > 1000
    assert (hair + skin).max() <= 256
    assert np.mean((hair + skin)[:380][upper]) > 240, "no seam of neither"


def test_borders_are_smooth() -> None:
    """The raster's steps are 2.5 pixels each."""
    mask = opened(masks_of(facts_of())[FacePart.NECK]).astype(float) / 255
    rows = np.arange(760, 880)
    right = np.array([500 + mask[row, 500:].sum() for row in rows])
    true = 499.5 + 110 * np.sqrt(1 - ((rows - 760) / 160) ** 2)
    assert np.abs(right - true).max() < 2.0
    assert np.abs(np.diff(right - true)).max() < 0.5
    edge = mask[760, 590:630]
    assert ((edge > 0.02) & (edge < 0.98)).sum() >= 2, "antialiased"


@pytest.mark.parametrize("missing", [Label.HAIR, Label.NECK, Label.LEFT_EAR])
def test_what_is_not_there_has_a_black_mask(missing: int) -> None:
    """B37: a class that nothing belongs to."""
    gone = {missing, Label.RIGHT_EAR} if missing == Label.LEFT_EAR else {missing}
    part = {Label.HAIR: FacePart.HAIR, Label.NECK: FacePart.NECK, Label.LEFT_EAR: FacePart.EARS}[missing]
    found = masks_of(facts_of([shape for shape in HEAD if shape.label not in gone]))
    assert opened(found[part]).max() == 0
    assert (found[part].area_px2, found[part].area_mm2) == (0.0, 0.0)
    assert found[FacePart.SKIN].area_px2 > 100_000


def test_the_forehead_ends_at_the_observed_hairline() -> None:
    """Not where the parser's skin does: the line lies lower here."""
    open_above = opened(masks_of(facts_of())[FacePart.FOREHEAD])
    hairline = hairline_of(FACE, height=0.36)
    below = opened(masks_of(facts_of(hairline=hairline))[FacePart.FOREHEAD])
    assert hairline.trichion is not None
    middle = int(FACE.points[9, 0])
    top = {name: int(np.argmax(mask[:, middle] > 127)) for name, mask in (("open", open_above), ("line", below))}
    assert top["line"] == pytest.approx(hairline.trichion.y_px, abs=2)
    assert top["open"] < top["line"] - 20


def test_without_a_hairline_the_forehead_is_as_high_as_the_middle_court() -> None:
    """On a shaved head the skin goes on over the whole skull."""
    glabella, subnasale = FACE.points[9], FACE.points[2]
    shaved = [Shape(Label.SKIN, (500, 400), (300, 330)), *HEAD[1:]]
    forehead = opened(masks_of(facts_of(shaved))[FacePart.FOREHEAD]) > 127
    top = int(np.argmax(forehead[:, int(glabella[0])]))
    assert glabella[1] - top == pytest.approx(subnasale[1] - glabella[1], rel=0.03)
    low = forehead[top + 20]
    assert low.sum() < forehead.any(axis=0).sum(), "round above"


def test_the_forehead_is_open_only_where_no_hairline_is_observed() -> None:
    half = hairline_of(FACE, height=0.36, hidden=range(20, 41))
    forehead = opened(masks_of(facts_of(hairline=half))[FacePart.FOREHEAD]) > 127
    glabella = FACE.points[9]
    reach = np.array([np.argmax(forehead[:, int(glabella[0] + side)]) for side in (-60, 60)])
    assert reach[1] < reach[0] - 20, "higher on the side that is not observed"


def test_the_forehead_is_skin_above_the_brows_alone() -> None:
    found = masks_of(facts_of(hairline=hairline_of(FACE)))
    forehead, skin = (opened(found[part]).astype(int) for part in (FacePart.FOREHEAD, FacePart.SKIN))
    assert (forehead <= skin + 1).all()
    assert forehead[int(FACE.points[[70, 300], 1].max()) + 8 :].max() == 0
    assert 20_000 < found[FacePart.FOREHEAD].area_px2 < found[FacePart.SKIN].area_px2 / 2


def test_eyes_behind_glasses_are_eyes() -> None:
    glasses = [
        *(shape for shape in HEAD if shape.label not in {Label.LEFT_EYE, Label.RIGHT_EYE}),
        Shape(Label.EYEGLASSES, (425, 470), (70, 45)),
        Shape(Label.EYEGLASSES, (575, 470), (70, 45)),
    ]
    eyes = opened(masks_of(facts_of(glasses))[FacePart.EYES])
    for pupil in (468, 473):
        x, y = np.rint(FACE.points[pupil]).astype(int)
        assert eyes[y, x] == 255
    assert (eyes > 127).sum() < 8000, "eyes, not glasses"


@settings(max_examples=15, deadline=None)
@given(
    centre=st.tuples(st.floats(200, 800), st.floats(200, 800)),
    radius=st.floats(60, 150),
    scale=st.floats(0.3, 1.0),
    roll_deg=st.floats(-30, 30),
)
def test_the_area_of_a_disc_is_known(centre: tuple[float, float], radius: float, scale: float, roll_deg: float) -> None:
    """Whatever the raster's place, size and roll; what lies outside of the photo does not count."""
    facts = facts_of([Shape(Label.SKIN, (500, 500), (radius, radius))])
    angle = np.radians(roll_deg)
    turned = 2.5 * scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    to_photo = np.column_stack([turned, np.array(centre) - turned @ np.full(2, (SIDE_PX - 1) / 2)])
    radius_px = radius * scale
    skin = masks_of(replace(facts, parsing=replace(facts.parsing, photo_from_map=to_photo)))[FacePart.SKIN]
    assert skin.area_px2 == pytest.approx(np.pi * radius_px**2, rel=0.02)
    picture = opened(skin)
    assert picture.sum() / 255 == pytest.approx(skin.area_px2, rel=0.03)
    rows, columns = np.nonzero(picture > 127)
    assert (columns.mean(), rows.mean()) == pytest.approx(centre, abs=1.5)


def test_what_lies_beyond_the_photo_has_no_area() -> None:
    facts = facts_of([Shape(Label.SKIN, (500, 500), (150, 150))])
    shifted = TO_PHOTO - [[0, 0, 500], [0, 0, 0]]
    skin = masks_of(replace(facts, parsing=replace(facts.parsing, photo_from_map=shifted)))[FacePart.SKIN]
    assert skin.area_px2 == pytest.approx(np.pi * 150**2 / 2, rel=0.02)


@pytest.mark.models
def test_masks_of_a_real_portrait(pipeline: Pipeline, studio_rgb: RgbImage) -> None:
    """Sizes that a face can have, each part in its place, and the parts of a face apart from each other."""
    facts = pipeline.facts(photo_of(studio_rgb), MeasureOptions(), NoProgress())
    found = masks_of(facts)
    pixels = {part: opened(mask) > 127 for part, mask in found.items()}
    area_cm2 = {part: (mask.area_mm2 or 0) / 100 for part, mask in found.items()}
    assert 100 < area_cm2[FacePart.SKIN] < 260
    assert 30 < area_cm2[FacePart.FOREHEAD] < 90
    assert 1.5 < area_cm2[FacePart.EYES] < 6
    assert 3 < area_cm2[FacePart.LIPS] < 14
    centre = {part: np.argwhere(mask).mean(axis=0) for part, mask in pixels.items()}
    downwards = [FacePart.HAIR, FacePart.BROWS, FacePart.EYES, FacePart.NOSE, FacePart.LIPS, FacePart.NECK]
    heights = [centre[part][0] for part in downwards]
    assert heights == sorted(heights)
    apart = [part for part in FacePart if part not in {FacePart.FOREHEAD, FacePart.NOSE}]
    assert np.stack([pixels[part] for part in apart]).sum(axis=0).max() == 1


@pytest.mark.models
@pytest.mark.parametrize("parts", [(), (FacePart.LIPS, FacePart.NECK)])
def test_the_neck_goes_down_to_the_clothes(pipeline: Pipeline, parts: tuple[FacePart, ...]) -> None:
    """The parser's first crop, which is enough for this hair, cuts the neck off in a straight line above the collar."""
    data = studio_portrait(6).read_bytes()
    result = pipeline.segment(data, MaskOptions(parts, max_output_side_px=400), NoProgress())
    neck = next(mask for mask in result.masks if mask.part is FacePart.NECK)
    hair_alone = pipeline.facts(result.facts.photo, MeasureOptions(), NoProgress())
    assert neck.area_px2 > 1.07 * masks_of(hair_alone, MaskOptions(parts, 400))[FacePart.NECK].area_px2
    widths = (opened(neck) > 127).sum(axis=1)
    assert widths[np.flatnonzero(widths)[-3]] < 0.5 * widths.max(), "the collar is round"


@pytest.mark.models
def test_a_neck_nobody_asks_for_costs_nothing(pipeline: Pipeline) -> None:
    result = pipeline.segment(studio_portrait(6).read_bytes(), MaskOptions((FacePart.LIPS,)), NoProgress())
    assert result.facts.parsing.labels.shape[0] == CROPS[0].side_px
