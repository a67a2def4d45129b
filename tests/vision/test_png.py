"""PNG files as other programs read them."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from vision.png import encode_png


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 7), (5, 1), (64, 48), (333, 1001)])
def test_a_viewer_sees_the_same_pixels(height: int, width: int) -> None:
    rgb = np.random.default_rng(height).integers(0, 256, (height, width, 3), dtype=np.uint8)
    image = encode_png(rgb)
    assert (image.width_px, image.height_px, image.media_type) == (width, height, "image/png")
    with Image.open(io.BytesIO(image.data)) as viewed:
        assert (viewed.format, viewed.mode, viewed.info) == ("PNG", "RGB", {})
        np.testing.assert_array_equal(np.asarray(viewed), rgb)
