"""Pictures that do not compress still fit into a message."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from hairmesh.wire import MAX_MESSAGE_BYTES, MAX_OUTPUT_SIDE_PX
from vision.answer_size import PICTURES_BYTES, encode_fitting, fitting
from vision.png import encode_png
from vision.types import EncodedImage


def noise(width: int, height: int) -> NDArray[np.uint8]:
    return np.random.default_rng(5).integers(0, 256, (height, width, 3), dtype=np.uint8)


def pixels(image: EncodedImage) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(image.data)))


def test_what_fits_is_as_large_as_it_was_asked_for() -> None:
    rgb = noise(300, 200)
    assert np.array_equal(pixels(encode_fitting(rgb, 300 * 200 * 4)), rgb)


@given(width=st.integers(1, 300), height=st.integers(1, 300), most_bytes=st.integers(1000, 50_000))
def test_a_picture_of_noise_fits_and_wastes_little_room(width: int, height: int, most_bytes: int) -> None:
    whole = encode_png(noise(width, height))
    image = encode_fitting(noise(width, height), most_bytes)
    assert len(image.data) <= most_bytes
    if len(whole.data) > most_bytes:
        assert len(image.data) > 0.5 * most_bytes or min(image.width_px, image.height_px) < 10
        assert image.width_px / image.height_px == pytest.approx(width / height, rel=0.2, abs=1)
    else:
        assert (image.width_px, image.height_px) == (width, height)


def test_a_picture_that_is_reduced_is_averaged() -> None:
    rgb = noise(400, 400)
    assert pixels(encode_fitting(rgb, 40_000)).std() < 0.8 * rgb.std()


@pytest.mark.parametrize("asked_px", [4096, 300, 256])
def test_all_pictures_of_an_answer_shrink_together(asked_px: int) -> None:
    """However large the answer may be: the photo of 256 px is never enlarged."""
    tries = []

    def make(side_px: int) -> list[EncodedImage]:
        tries.append(side_px)
        side = min(side_px, 256)
        return [encode_png(noise(side, side)) for _picture in range(7)]

    made = fitting(make, lambda images: images, asked_px, 500_000)
    assert 400_000 < sum(len(image.data) for image in made) <= 500_000
    assert len({image.width_px for image in made}) == 1
    assert len(tries) == 2


def test_one_picture_of_the_largest_size_fits_whatever_it_shows() -> None:
    """The call that measures answers with one, and it is not reduced."""
    side = 600
    overhead = len(encode_png(noise(side, side)).data) / (3 * side**2)
    assert overhead < 1.01
    assert overhead * 3 * MAX_OUTPUT_SIDE_PX**2 < PICTURES_BYTES <= MAX_MESSAGE_BYTES - 2**20
