"""The real models behind a real socket."""

from __future__ import annotations

import io
from pathlib import Path

import grpc
import openpeople
import pytest
from hair.analysis.v1 import common_pb2, measure_pb2
from PIL import Image

from hairmesh.wire import ANALYZE_SERVICE
from tests.worker.harness import SERVING, Client, refused, running
from vision.models import default_cache_dir
from worker.settings import Settings
from worker.thresholds import Thresholds
from worker.warmup import real_pipeline

pytestmark = pytest.mark.models


def portrait() -> bytes:
    return Path(openpeople.curated.get("P005").asset_path("studio_portrait")).read_bytes()


def wall() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (400, 400), (128, 128, 128)).save(file, "JPEG")
    return file.getvalue()


async def test_portrait_in_measurements_and_picture_out() -> None:
    loader = real_pipeline(Settings.model_validate({"accept_passwords": ["x"], "models": {"dir": default_cache_dir()}}))
    async with running(loader, thresholds=Thresholds()) as (_worker, client):
        assert await client.check(ANALYZE_SERVICE) == SERVING
        await _measures(client)
        code, info, _details = await refused(client.measure(wall(), timeout_s=60))
        assert (code, info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NO_FACE")
        code, info, _details = await refused(client.measure(b"no picture at all", timeout_s=60))
        assert (code, info.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "UNSUPPORTED_FORMAT")
        status = await client.status()
        models = next(check for check in status.checks if check.name == "models")
        assert models.evidence["canary_ms"] > 0
        assert {"hairmesh", "face_landmarker", "parser"} <= set(status.versions)


async def _measures(client: Client) -> None:
    options = common_pb2.CallOptions(lang=common_pb2.LANGUAGE_EN, max_output_side_px=800)
    answer = await client.measure(portrait(), timeout_s=60, options=options)
    picture = Image.open(io.BytesIO(answer.annotated_image.data))
    assert (picture.format, max(picture.size)) == ("PNG", 800)
    assert (answer.annotated_image.width_px, answer.annotated_image.height_px) == picture.size
    assert answer.annotated_image.media_type == "image/png"
    height = answer.measurements.face_height
    assert 140 < height.mm < 230
    assert height.interval_mm.low < height.interval_same_person_mm.low < height.mm
    assert answer.hairline.status == measure_pb2.HAIRLINE_STATE_OBSERVED
    assert answer.scale.source == measure_pb2.SCALE_SOURCE_IRIS
    assert answer.model_versions["face_landmarker"]
