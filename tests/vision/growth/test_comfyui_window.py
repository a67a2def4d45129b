"""What of the canvas is sent, and where the answer goes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vision.growth.comfyui_jobs import photo, region
from vision.growth.comfyui_window import MULTIPLE_PX, Window
from vision.types import RgbImage


def gradient(height: int, width: int) -> RgbImage:
    """(height, width, 3), each pixel's colour tells its place."""
    rgb = np.zeros((height, width, 3), dtype=np.uint8)
    rgb[..., 0] = np.linspace(0, 255, width)[None, :]
    rgb[..., 1] = np.linspace(0, 255, height)[:, None]
    return rgb


@given(st.integers(16, 300), st.integers(16, 300), st.integers(64, 512), st.tuples(*[st.floats(0, 1, width=32)] * 4))
def test_a_window_holds_its_region_and_comes_back_to_its_place(
    height: int, width: int, side_px: int, corners: tuple[float, ...]
) -> None:
    (left, right), (top, bottom) = sorted(corners[:2]), sorted(corners[2:])
    mask = np.zeros((height, width), dtype=np.float32)
    mask[int(top * (height - 1)) : int(bottom * (height - 1)) + 1, int(left * (width - 1)) : int(right * width) + 1] = 1
    window = Window.around(mask, side_px)
    assert window is not None
    outside = np.ones((height, width), dtype=bool)
    outside[window.top : window.top + window.height, window.left : window.left + window.width] = False
    assert not mask[outside].any()
    assert 0 <= window.left <= window.left + window.width <= width
    assert 0 <= window.top <= window.top + window.height <= height
    assert window.sent_width % MULTIPLE_PX == window.sent_height % MULTIPLE_PX == 0
    zooms = (window.sent_width / window.width, window.sent_height / window.height)
    exact = side_px / (window.width * window.height) ** 0.5
    for zoom, side in zip(zooms, (window.width, window.height), strict=True):
        assert abs(zoom - exact) * side <= MULTIPLE_PX
    canvas = gradient(height, width)
    sent = window.cut(canvas)
    assert sent.shape == (window.sent_height, window.sent_width, 3)
    back = window.pasted(canvas, sent)
    assert np.array_equal(back[outside], canvas[outside])
    pixels_per_sent = max(window.width / window.sent_width, window.height / window.sent_height, 1.0)
    slope = 255 / (min(height, width) - 1)
    assert np.abs(back.astype(int) - canvas).max() <= 2 + 1.5 * slope * pixels_per_sent


def test_the_canvas_itself_is_not_painted_on() -> None:
    canvas = photo()
    window = Window.around(region(), 64)
    assert window is not None
    window.pasted(canvas, np.zeros((64, 64, 3), dtype=np.uint8))
    assert np.array_equal(canvas, photo())


def test_the_mask_is_white_where_hair_is_to_grow() -> None:
    window = Window.around(region(), 128)
    assert window is not None
    mask = window.cut_mask(region())
    assert mask.shape == (window.sent_height, window.sent_width)
    area = mask.astype(float).mean() / 255 * window.width * window.height
    assert area == pytest.approx(region().sum(), rel=0.02)
    rows, columns = (slice(side // 2 - 3, side // 2 + 4) for side in mask.shape)
    assert (mask[rows, columns] == 255).all()
    assert not mask[0].any()
    assert not mask[-1].any()


def test_hair_above_and_face_below_are_in_the_window() -> None:
    window = Window.around(region(), 128)
    assert window is not None
    assert window.top <= 40 - 20
    assert window.top + window.height >= 60 + 20


def test_an_empty_region_has_no_window() -> None:
    assert Window.around(np.zeros((20, 20), dtype=np.float32), 64) is None
