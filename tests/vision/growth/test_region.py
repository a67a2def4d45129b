"""The region a user marks: what is taken, and each way in which it is refused."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from tests.vision.conftest import photo_of
from tests.vision.growth.painted_heads import SIDE_PX, painted_facts
from vision.calls import DesignOptions, GrowRegionOptions, HairlineHeight
from vision.designs import design_hairlines
from vision.errors import DetailValue, PhotoError, Reason
from vision.growth.region import MarkedRegion, check_region, marked_region, meeting_edges, without_spikes
from vision.growth.scene import scene_of
from vision.types import Photo, Points

WIDTH, HEIGHT = 120, 80
PHOTO = photo_of(np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8))
BOX = [(20, 10), (60, 10), (60, 50), (20, 50)]


def polygon(corners: Sequence[tuple[float, float]], photo: Photo = PHOTO) -> MarkedRegion:
    return marked_region(photo, GrowRegionOptions(polygon=np.array(corners, dtype=np.float64).reshape(-1, 2)))


def refused(make: Callable[[], object]) -> tuple[Reason, Mapping[str, DetailValue]]:
    with pytest.raises(PhotoError) as error:
        make()
    return error.value.reason, error.value.details


# Polygons.


@st.composite
def stars(draw: st.DrawFn) -> Points:
    """Corners around a middle: they never cross."""
    count = draw(st.integers(3, 24))
    radii = np.array(draw(st.lists(st.floats(8, 38), min_size=count, max_size=count)))
    angles = np.linspace(0, 2 * np.pi, count, endpoint=False) + draw(st.floats(0, 6))
    unit = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.asarray(unit * radii[:, None] + (60, 40))


@given(corners=stars(), start=st.integers(0, 23), backwards=st.booleans(), closed=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_region_is_the_same_wherever_and_whichever_way_round_it_begins(
    corners: Points, start: int, backwards: bool, closed: bool
) -> None:
    x, y = corners.T
    area = abs(float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum())) / 2
    again = np.roll(corners, start, axis=0)[:: -1 if backwards else 1]
    again = np.vstack([again, again[:1], again[:1]]) if closed else again
    region = marked_region(PHOTO, GrowRegionOptions(polygon=again))
    assert region.area_px2 == pytest.approx(area, rel=0.01)
    assert region.mask.sum() / 255 == pytest.approx(area, rel=0.1)
    assert np.array_equal(region.mask > 100, marked_region(PHOTO, GrowRegionOptions(polygon=corners)).mask > 100)


def share_a_point(a: Points, b: Points, c: Points, d: Points) -> bool:
    """Two segments of whole numbers, by solving for the place on each."""
    ab, cd, ac = b - a, d - c, c - a
    turn = int(ab[0] * cd[1] - ab[1] * cd[0])
    if turn:
        along, across = (Fraction(int(ac[0] * v[1] - ac[1] * v[0]), turn) for v in (cd, ab))
        return 0 <= along <= 1 and 0 <= across <= 1
    if ab[0] * ac[1] != ab[1] * ac[0]:
        return False  # parallel
    axis = int(abs(ab[1]) > abs(ab[0]))
    return bool(max(min(a[axis], b[axis]), min(c[axis], d[axis])) <= min(max(a[axis], b[axis]), max(c[axis], d[axis])))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=7))
@settings(max_examples=400)
def test_edges_that_meet_are_found_exactly(corners: list[tuple[int, int]]) -> None:
    """On a coarse grid, where nearly everything touches, lies on one line or comes twice."""
    clean = without_spikes(np.array(corners, dtype=np.int64))
    count = len(clean)
    for i in range(count if count > 2 else 0):
        there, back = clean[i] - clean[i - 1], clean[(i + 1) % count] - clean[i]
        assert there.any(), "no corner twice in a row"
        assert there[0] * back[1] != there[1] * back[0] or there @ back > 0, "no way there and back"
    pairs = [
        (i, j)
        for i in range(count)
        for j in range(i + 2, count - (i == 0))
        if share_a_point(clean[i], clean[i + 1], clean[j], clean[(j + 1) % count])
    ]
    assert meeting_edges(clean) == (pairs[0] if pairs else None)


@pytest.mark.parametrize(
    ("corners", "reason", "detail"),
    [
        ([(30, 20), (90, 60), (90, 20), (30, 60)], Reason.REGION_SELF_CROSSING, {"x": 30.0, "y": 20.0}),
        ([(20, 10), (60, 10), (60, 50), (40, 10), (20, 50)], Reason.REGION_SELF_CROSSING, {}),  # touches its own edge
        ([(20, 10), (60, 10)], Reason.REGION_EMPTY, {"corners": 1, "min": 3}),
        ([(20, 10), (60, 10), (60, 10), (20, 10)], Reason.REGION_EMPTY, {"min": 3}),
        ([(20, 10), (40, 10), (60, 10)], Reason.REGION_EMPTY, {"min": 3}),
        ([], Reason.REGION_EMPTY, {"corners": 0, "min": 3}),
        ([(20, 10), (24, 10), (24, 15), (20, 15)], Reason.REGION_EMPTY, {"area_px2": 20.0, "min_px2": 25.0}),
        ([(20, 10), (121, 10), (60, 50)], Reason.REGION_OUTSIDE_IMAGE, {"x": 121.0, "photo_width": 120}),
        ([(20, -2), (60, 10), (60, 50)], Reason.REGION_OUTSIDE_IMAGE, {"y": -2.0, "photo_height": 80}),
        ([(20, 10), (60, float("nan")), (60, 50)], Reason.INVALID_PARAMETER, {}),
    ],
)
def test_a_polygon_is_refused_by_name_with_what_was_measured(
    corners: list[tuple[float, float]], reason: Reason, detail: Mapping[str, DetailValue]
) -> None:
    found, details = refused(lambda: polygon(corners))
    assert found is reason
    assert {"field": "region", **detail}.items() <= details.items()


def test_who_counts_from_the_corners_of_pixels_may_mark_the_whole_picture() -> None:
    region = polygon([(0, 0), (WIDTH, 0), (WIDTH, HEIGHT), (0, HEIGHT)])
    assert region.area_px2 == pytest.approx((WIDTH - 0.5) * (HEIGHT - 0.5))
    assert region.mask[1:, 1:].min() == 255


def test_jitter_of_a_finger_is_no_crossing() -> None:
    plain = polygon(BOX)
    jittered = polygon([BOX[0], (70, 10), BOX[1], BOX[2], BOX[2], (40, 50), (45, 50), BOX[3], (20, 60), BOX[3]])
    assert jittered.area_px2 == plain.area_px2 == 1600


def test_an_area_is_that_of_the_head_as_a_design_tells_it() -> None:
    """The same part of the forehead, designed and marked."""
    facts = painted_facts()
    scale = facts.scale.mm_per_px
    assert scale is not None
    for design in design_hairlines(facts, DesignOptions(height=HairlineHeight.LOW)):
        marked = [polygon(region.tolist(), facts.photo) for region in design.regions]
        told = [region.area_cm2(facts.landmarks, scale) for region in marked]
        assert None not in told
        assert design.area_cm2 is not None
        flat_cm2 = sum(region.area_px2 for region in marked) * scale**2 / 100
        assert design.area_cm2 == pytest.approx(sum(filter(None, told)), rel=0.03)
        assert design.area_cm2 > 1.2 * flat_cm2


def test_an_area_in_square_centimetres_needs_a_scale() -> None:
    facts = painted_facts()
    region = polygon([(350, 150), (450, 150), (400, 200)], facts.photo)
    assert region.area_cm2(facts.landmarks, None) is None


def test_an_area_grows_with_the_square_of_the_scale_and_by_its_parts() -> None:
    facts = painted_facts()
    left, right, whole = (
        polygon([(low, 150), (high, 150), (high, 200), (low, 200)], facts.photo).area_cm2(facts.landmarks, 0.5)
        for low, high in ((350, 400), (400, 450), (350, 450))
    )
    assert left is not None
    assert right is not None
    assert whole is not None
    assert whole == pytest.approx(left + right, rel=0.01)
    again = polygon([(350, 150), (450, 150), (450, 200), (350, 200)], facts.photo).area_cm2(facts.landmarks, 1.0)
    assert again == pytest.approx(4 * whole)


# Mask files.

INSIDE = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
INSIDE[10:50, 20:60] = 255


def encoded(image: Image.Image, form: str = "PNG", **how: object) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **how)
    return out.getvalue()


def mask(data: bytes) -> MarkedRegion:
    return marked_region(PHOTO, GrowRegionOptions(mask=data))


def strokes(colour: tuple[int, int, int]) -> Image.Image:
    """Painted in one colour on a ground that is transparent, as drawing programs export it."""
    rgba = np.zeros((HEIGHT, WIDTH, 4), dtype=np.uint8)
    rgba[INSIDE > 0] = (*colour, 255)
    return Image.fromarray(rgba)


def on_its_side() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(Image.fromarray(np.rot90(INSIDE).copy()), exif=exif)


@pytest.mark.parametrize(
    "data",
    [
        encoded(Image.fromarray(INSIDE)),
        encoded(Image.fromarray(INSIDE), "WEBP", lossless=True),
        encoded(Image.fromarray(INSIDE), "BMP"),
        encoded(Image.fromarray(np.where(INSIDE > 0, 140, 120).astype(np.uint8))),
        encoded(Image.fromarray(INSIDE > 0)),
        encoded(Image.fromarray(INSIDE.astype(np.uint16) * 257)),
        encoded(Image.fromarray(INSIDE).convert("RGB").quantize(4)),
        encoded(strokes((255, 255, 255))),
        encoded(strokes((255, 255, 255)), "TIFF"),
        on_its_side(),
    ],
    ids=["grey", "webp", "bmp", "half", "1-bit", "16-bit", "palette", "alpha", "alpha in TIFF", "EXIF"],
)
def test_a_mask_is_read_in_every_form(data: bytes) -> None:
    region = mask(data)
    assert region.name == "mask"
    assert np.array_equal(region.mask, INSIDE)
    assert region.area_px2 == 1600


@pytest.mark.parametrize(("width", "height"), [(WIDTH, HEIGHT + 1), (HEIGHT, WIDTH), (4000, 4000)])
def test_a_mask_of_another_size_is_refused_with_both_sizes(width: int, height: int) -> None:
    reason, details = refused(lambda: mask(encoded(Image.new("L", (width, height), 255))))
    assert reason is Reason.MASK_SIZE_DIFFERS
    sizes = {"width": width, "height": height, "photo_width": WIDTH, "photo_height": HEIGHT}
    assert details == {"field": "mask", **sizes}


@pytest.mark.parametrize("data", [b"", b"GIF89a....", encoded(Image.fromarray(INSIDE))[:80]])
def test_what_is_no_picture_is_no_mask(data: bytes) -> None:
    reason, details = refused(lambda: mask(data))
    assert reason is Reason.MASK_UNREADABLE
    assert details["field"] == "mask"


SIDE = 400
LARGE = photo_of(np.zeros((SIDE, SIDE, 3), dtype=np.uint8))


def pattern(kind: str) -> NDArray[np.uint8]:
    inside = np.zeros((SIDE, SIDE), dtype=np.uint8)
    if kind == "dots":
        inside[::3, ::3] = 255
    elif kind == "holes":
        inside[...] = 255
        inside[::3, ::3] = 0
    elif kind == "stripes":
        inside[:, ::3] = 255
    elif kind == "noise":
        inside[...] = np.random.default_rng(1).integers(0, 2, inside.shape) * 255
    elif kind == "comb":
        inside[:20] = 255
        inside[:, ::4] = 255
    return inside


@pytest.mark.parametrize("kind", ["dots", "holes", "stripes", "noise", "comb"])
def test_a_mask_of_dust_is_refused_with_the_length_of_its_borders(kind: str) -> None:
    """12 kB of dots over 40 MP took a worker out of rotation, and then the next one."""
    data = encoded(Image.fromarray(pattern(kind)))
    reason, details = refused(lambda: marked_region(LARGE, GrowRegionOptions(mask=data)))
    assert reason is Reason.REGION_TOO_FINE
    most = 20 * 4 * SIDE
    assert {"field": "mask", "max_px": most}.items() <= details.items()
    assert most < int(details["border_px"]) <= 2 * SIDE**2


def test_what_a_hand_or_another_program_marks_is_not_too_fine() -> None:
    painted = np.zeros((SIDE, SIDE), dtype=np.uint8)
    for row in range(60, 340, 8):
        cv2.line(painted, (60, row), (340, row + 5), 255, 4)  # hatched by hand, with gaps
    data = encoded(Image.fromarray(painted), "JPEG", quality=30)
    region = marked_region(LARGE, GrowRegionOptions(mask=data))
    assert region.area_px2 > 20_000


@pytest.mark.parametrize("picture", [Image.new("L", (WIDTH, HEIGHT)), strokes((0, 0, 0))])
def test_a_mask_without_anything_bright_is_empty(picture: Image.Image) -> None:
    reason, details = refused(lambda: mask(encoded(picture)))
    assert reason is Reason.REGION_EMPTY
    assert details == {"field": "mask", "area_px2": 0.0, "min_px2": 25.0}


# On the head.


def on_head(corners: Sequence[tuple[float, float]], side_px: int) -> None:
    facts = painted_facts()
    check_region(polygon(corners, facts.photo), scene_of(facts, side_px))


@pytest.mark.parametrize("side_px", [SIDE_PX, SIDE_PX // 2])
def test_a_region_must_lie_on_the_head_and_be_smaller_than_the_face(side_px: int) -> None:
    forehead = [(330, 230), (470, 230), (470, 270), (330, 270)]
    on_head(forehead, side_px)
    reason, details = refused(lambda: on_head([(10, 10), (60, 10), (60, 60), (10, 60)], side_px))
    assert reason is Reason.REGION_OFF_SCALP
    assert details == {"field": "region", "area_px2": 2500, "on_scalp_px2": 0, "min_px2": 500}
    reason, details = refused(lambda: on_head([(200, 80), (600, 80), (600, 650), (200, 650)], side_px))
    assert reason is Reason.REGION_TOO_LARGE
    assert details["field"] == "region"
    assert float(details["area_px2"]) == 400 * 570 > float(details["max_px2"]) > 40_000


def around(points: Sequence[int], by_px: float) -> list[tuple[float, float]]:
    """A box around points of the mesh, so much larger."""
    found = painted_facts().landmarks.points[list(points)]
    (left, top), (right, bottom) = found.min(axis=0) - by_px, found.max(axis=0) + by_px
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


EYE, NOSE, MOUTH, CHEEK = (33, 160, 158, 133, 153, 144), (4, 98, 327), (61, 291, 0, 17), (50, 101, 205)


@pytest.mark.parametrize("part", [EYE, NOSE, MOUTH, CHEEK], ids=["eye", "nose", "mouth", "cheek"])
@pytest.mark.parametrize("by_px", [0.0, 12.0])
def test_no_hair_of_the_head_grows_on_the_face(part: Sequence[int], by_px: float) -> None:
    """It cost a whole growth, and its answer showed a marked eye."""
    reason, details = refused(lambda: on_head(around(part, by_px), SIDE_PX))
    assert reason is Reason.REGION_OFF_SCALP
    assert float(details["area_px2"]) > float(details["min_px2"]) > float(details["on_scalp_px2"])


def test_a_forehead_marked_generously_and_a_sideburn_are_taken() -> None:
    facts = painted_facts()
    temple, jaw = facts.landmarks.points[[127, 172]]
    on_head([(320, 200), (480, 200), (480, 350), (320, 350)], SIDE_PX)  # down over the brows
    sideburn = [(temple[0] - 12, temple[1]), (temple[0] + 8, temple[1]), (jaw[0], temple[1] + 60)]
    on_head([(float(x), float(y)) for x, y in sideburn], SIDE_PX)
