"""What a diffusion server may send as its result."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

from tests.fakes.comfyui_server import ComfyUiServer
from tests.vision.growth.comfyui_jobs import SIDE_PX, failure, grown, job, reason
from vision.growth.backend import GrowthReason
from vision.growth.comfyui_window import Window
from vision.growth.composite import reach

R = GrowthReason


def sent_size() -> tuple[int, int]:
    """(width, height) of what is sent."""
    window = Window.around(reach(job()), SIDE_PX)
    assert window is not None
    return window.sent_width, window.sent_height


WIDTH, HEIGHT = sent_size()


@pytest.fixture
def server() -> Iterator[ComfyUiServer]:
    with ComfyUiServer() as fake:
        yield fake


def encoded(picture: Image.Image, form: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def bomb() -> bytes:
    """A PNG of 60 000 × 60 000 pixels in a few bytes."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">II5B", 60_000, 60_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<html>", id="no picture"),
        pytest.param(encoded(Image.new("RGB", (8, 8)), "GIF"), id="format that no node writes"),
        pytest.param(encoded(Image.new("RGB", (WIDTH, HEIGHT)))[:-40], id="cut off"),
        pytest.param(encoded(Image.new("RGB", (HEIGHT, WIDTH))), id="another shape"),
        pytest.param(encoded(Image.new("RGB", (4, 4))), id="tiny"),
        pytest.param(bomb(), id="bomb"),
    ],
)
def test_an_output_that_is_no_usable_picture_is_a_failure(server: ComfyUiServer, output: bytes) -> None:
    server.faults.output = output
    error = failure(server.url)
    assert error.reason is R.DIFFUSION_FAILED
    assert str(error).startswith("bad_picture")


def test_an_output_that_does_not_end_is_a_failure(server: ComfyUiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vision.growth.comfyui_client.MAX_PICTURE_BYTES", 1000)
    server.faults.output = b"\x89PNG\r\n\x1a\n" + bytes(2000)
    assert reason(server.url) is R.DIFFUSION_FAILED


@pytest.mark.parametrize(
    ("zoom", "form", "options"),
    [
        (2.0, "PNG", {}),
        (0.5, "JPEG", {"quality": 95}),
        (
            1.0,
            "WEBP",
            {"save_all": True, "append_images": [Image.new("RGB", (WIDTH, HEIGHT), "white")], "lossless": True},
        ),
    ],
    ids=["twice the size", "half the size", "animated"],
)
def test_an_output_of_another_size_is_brought_back_to_the_canvas(
    server: ComfyUiServer, zoom: float, form: str, options: dict[str, object]
) -> None:
    server.faults.output = encoded(
        Image.new("RGB", (int(WIDTH * zoom), int(HEIGHT * zoom)), (10, 20, 30)), form, **options
    )
    canvas = grown(server.url)
    assert np.abs(canvas[40:60, 30:90].astype(int) - (10, 20, 30)).max() <= 3


def test_a_picture_that_was_removed_before_it_was_fetched_is_a_failure(server: ComfyUiServer) -> None:
    server.faults.replaced["/view"] = (404, b"")
    assert reason(server.url) is R.DIFFUSION_FAILED
