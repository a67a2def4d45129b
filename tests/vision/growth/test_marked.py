"""The picture of a marked region: the border where it was marked, the area in words, nothing written on the face."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tests.vision.annotate_faces import invented_facts
from vision.calls import GrowRegionOptions
from vision.drawing import Picture, Plate, Stroke, Text, Wash
from vision.face_labels import FaceView
from vision.growth.marked import MOST_BORDERS, draw_marked, plan_marked
from vision.growth.region import MarkedRegion, marked_region
from vision.growth.region_raster import coverage
from vision.types import Facts, Lang

SIDE_PX = 900
CORNERS = np.array([[380, 190], [520, 190], [540, 240], [450, 255], [360, 240]], dtype=np.float64)


def facts(*, with_scale: bool = True) -> Facts:
    return invented_facts(SIDE_PX, SIDE_PX, with_scale=with_scale)


def region(of: Facts) -> MarkedRegion:
    return marked_region(of.photo, GrowRegionOptions(polygon=CORNERS))


def masked(of: Facts, mask: np.typing.NDArray[np.uint8]) -> MarkedRegion:
    out = io.BytesIO()
    Image.fromarray(mask).save(out, "PNG")
    return marked_region(of.photo, GrowRegionOptions(mask=out.getvalue()))


def texts(picture: Picture) -> str:
    return "\n".join(mark.text for mark in picture.marks if isinstance(mark, Text))


@pytest.mark.parametrize("side_px", [SIDE_PX, SIDE_PX // 2])
def test_the_border_lies_where_it_was_marked(side_px: int) -> None:
    known = facts()
    picture = plan_marked(known, region(known), Lang.EN, side_px)
    (wash,) = [mark for mark in picture.marks if isinstance(mark, Wash)]
    scale = picture.photo.w / SIDE_PX
    expected = (CORNERS + 0.5) * scale - 0.5 + (picture.photo.x, picture.photo.y)
    assert np.allclose(wash.points[:5], expected, atol=0.6)
    closed = next(mark for mark in picture.marks if isinstance(mark, Stroke))
    assert np.allclose(closed.points, np.vstack([expected, expected[:1]]), atol=0.6)
    assert max(picture.width_px, picture.height_px) <= side_px


def test_the_area_is_told_in_the_language_and_unit_that_there_is() -> None:
    known, unscaled = facts(), facts(with_scale=False)
    marked = region(known)
    cm2 = marked.area_cm2(known.landmarks, known.scale.mm_per_px)
    assert cm2 is not None
    assert f"标记区域 {cm2:.1f} cm²" in texts(plan_marked(known, marked, Lang.ZH, 2048))
    assert f"Marked region {cm2:.1f} cm²" in texts(plan_marked(known, marked, Lang.EN, 2048))
    assert f"Marked region {marked.area_px2:.0f} px²" in texts(plan_marked(unscaled, marked, Lang.EN, 2048))


@pytest.mark.parametrize("lang", list(Lang))
def test_all_words_stand_below_the_face(lang: Lang) -> None:
    known = facts()
    picture = plan_marked(known, region(known), lang, 2048)
    view = FaceView(known, lang, 1.0)
    scale = picture.photo.w / SIDE_PX
    for mark in picture.marks:
        if isinstance(mark, Text | Plate):
            assert mark.rect.y >= view.face.bottom * scale + picture.photo.y


def test_a_mask_is_outlined_with_its_parts_and_holes() -> None:
    known = facts()
    ring = coverage([CORNERS], (SIDE_PX, SIDE_PX))
    ring[215:225, 440:460] = 0
    ring[600:640, 300:340] = 255
    picture = plan_marked(known, masked(known, ring), Lang.EN, 2048)
    closed = [m for m in picture.marks if isinstance(m, Stroke) and len(m.points) > 20]
    middles = sorted(tuple(np.round(stroke.points.mean(axis=0), -1)) for stroke in closed)
    assert len(closed) == 3
    assert (450, 220) in middles
    assert (320, 620) in middles


def test_of_many_parts_the_largest_are_drawn() -> None:
    known = facts()
    parts = np.zeros((SIDE_PX, SIDE_PX), dtype=np.uint8)
    parts[300:700:6, 200:700:6] = 255
    parts[200:240, 400:480] = 255
    picture = plan_marked(known, masked(known, parts), Lang.EN, 2048)
    borders = [mark.points for mark in picture.marks if isinstance(mark, Stroke)]
    assert MOST_BORDERS <= len(borders) <= MOST_BORDERS + 10
    assert max(np.ptp(border, axis=0)[0] for border in borders[:MOST_BORDERS]) > 70, "the one that is a region is there"


def test_outside_region_and_words_the_picture_is_the_photo() -> None:
    known = facts()
    image = draw_marked(known, region(known), Lang.EN, 2048)
    drawn = np.asarray(Image.open(io.BytesIO(image.data)).convert("RGB"))
    assert drawn.shape[:2] == (image.height_px, image.width_px)
    photo = known.photo.rgb
    assert np.array_equal(drawn[:170, :SIDE_PX], photo[:170])
    inside, before = drawn[200:235, 400:500].astype(int), photo[200:235, 400:500].astype(int)
    assert (inside != before).mean() > 0.5
    assert abs((inside - before).mean()) < 40, "a light wash: what lies below is still seen"
