"""The real models and the local growth behind a real socket: every call once, and reports from the field."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import grpc
import numpy as np
import psutil
import pytest
import pytest_asyncio
from hair.analysis.v1 import common_pb2, growth_pb2, hairlines_pb2, masks_pb2, measure_pb2
from hair.worker.v1 import worker_service_pb2 as pb
from PIL import Image
from structlog.testing import capture_logs

from hairmesh.wire import ANALYZE_SERVICE
from tests.conftest import studio_portrait
from tests.fakes.comfyui_server import ComfyUiServer
from tests.vision.growth.comfyui_jobs import EXAMPLE, nothing_left
from tests.worker.harness import PATIENCE_S, SERVING, TOKEN, Client, kinds, refused, running, whole
from tests.worker.processes import process, write_config
from vision.canary import drawn_face
from vision.models import ModelFiles, default_cache_dir
from vision.torch_parser import cuda_available
from worker.settings import Settings
from worker.thresholds import Thresholds
from worker.warmup import real_pipeline

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

T = TypeVar("T")

SMALL = common_pb2.CallOptions(lang=common_pb2.LANGUAGE_EN, max_output_side_px=400)
GREY = (128, 128, 128)


def portrait(side_px: int = 640, number: int = 5) -> Image.Image:
    return Image.open(studio_portrait(number)).convert("RGB").resize((side_px, side_px), Image.Resampling.BOX)


def scene(width_px: int, height_px: int, *people: tuple[Image.Image, int, int]) -> Image.Image:
    """People on grey, each with its place."""
    canvas = Image.new("RGB", (width_px, height_px), GREY)
    for person, x, y in people:
        canvas.paste(person, (x, y))
    return canvas


def sent(picture: Image.Image) -> common_pb2.Image:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=95)
    return common_pb2.Image(data=file.getvalue())


def decoded(image: common_pb2.Image) -> np.ndarray[Any, np.dtype[np.uint8]]:
    picture = Image.open(io.BytesIO(image.data))
    assert (picture.format, image.media_type, picture.size) == ("PNG", "image/png", (image.width_px, image.height_px))
    return np.asarray(picture)


def configured(**changes: object) -> Settings:
    plain: dict[str, object] = {"accept_passwords": ["x"], "models": {"dir": default_cache_dir()}}
    return Settings.model_validate({**plain, **changes})


WALL = sent(Image.new("RGB", (400, 400), GREY))


class Calls:
    """All calls, on one photo each; a worker that is busy is asked again."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._stub = client.analyze

    async def measure(self, photo: common_pb2.Image, **fields: Any) -> measure_pb2.MeasureResponse:
        request = measure_pb2.MeasureRequest(photo=photo, options=SMALL, **fields)
        return await self._again(lambda: self._stub.Measure(request, metadata=TOKEN, timeout=PATIENCE_S))

    async def design(self, photo: common_pb2.Image, **fields: Any) -> hairlines_pb2.DesignHairlinesResponse:
        request = hairlines_pb2.DesignHairlinesRequest(photo=photo, options=SMALL, **fields)
        return await self._again(lambda: self._stub.DesignHairlines(request, metadata=TOKEN, timeout=PATIENCE_S))

    async def segment(self, photo: common_pb2.Image, **fields: Any) -> masks_pb2.SegmentFaceResponse:
        request = masks_pb2.SegmentFaceRequest(photo=photo, options=SMALL, **fields)
        return await self._again(lambda: self._stub.SegmentFace(request, metadata=TOKEN, timeout=PATIENCE_S))

    async def grow_styles(self, photo: common_pb2.Image, **fields: Any) -> list[growth_pb2.GrowStylesResponse]:
        return await whole(self.client.grow_styles(photo.data, timeout_s=100, options=SMALL, **fields))

    async def grow_region(self, photo: common_pb2.Image, **fields: Any) -> list[growth_pb2.GrowRegionResponse]:
        return await whole(self.client.grow_region(photo.data, timeout_s=100, options=SMALL, **fields))

    async def _again(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:  # the test's own timeout ends it
            try:
                return await call()
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                    raise
            await self.client.until_slot(pb.SLOT_STATE_FREE)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def calls(model_files: ModelFiles) -> AsyncIterator[Calls]:
    """Of one worker for all tests."""
    assert model_files.face_landmarker.is_file()
    async with running(real_pipeline(configured()), thresholds=Thresholds()) as (_worker, client):
        yield Calls(client)


async def test_measurements_and_picture(calls: Calls) -> None:
    assert await calls.client.check(ANALYZE_SERVICE) == SERVING
    answer = await calls.measure(sent(portrait()))
    assert max(decoded(answer.annotated_image).shape) == 400
    height = answer.measurements.face_height
    assert 140 < height.mm < 230
    assert height.interval_mm.low < height.interval_same_person_mm.low < height.mm
    assert answer.hairline.status == measure_pb2.HAIRLINE_STATE_OBSERVED
    assert answer.scale.source == measure_pb2.SCALE_SOURCE_IRIS
    assert answer.model_versions["face_landmarker"]
    status = await calls.client.status()
    models = next(check for check in status.checks if check.name == "models")
    assert models.evidence["canary_ms"] > 0
    assert {"hairmesh", "face_landmarker", "parser"} <= set(status.versions)


async def test_designs(calls: Calls) -> None:
    answer = await calls.design(sent(portrait()), styles=["widows_peak", "round"], sex=common_pb2.SEX_MALE)
    assert [design.style for design in answer.hairline_images] == ["widows_peak", "round"]
    for design in answer.hairline_images:
        assert max(decoded(design.image).shape) == 400
        assert 40 < design.height.mm < 110
        assert len(design.curve) > 20
        assert design.rules


async def test_masks(calls: Calls) -> None:
    answer = await calls.segment(sent(portrait()), parts=[masks_pb2.FACE_PART_HAIR, masks_pb2.FACE_PART_LIPS])
    hair, lips = answer.masks
    assert (hair.part, lips.part) == (masks_pb2.FACE_PART_HAIR, masks_pb2.FACE_PART_LIPS)
    assert hair.area_px2 > 5 * lips.area_px2 > 0
    assert hair.area_mm2 > 5 * lips.area_mm2 > 0
    mask = decoded(hair.image)
    assert mask.shape == (400, 400)
    assert (mask > 127).mean() == pytest.approx(hair.area_px2 / 640**2, rel=0.1)


async def test_growth_to_a_style(calls: Calls) -> None:
    photo = portrait()
    with capture_logs() as lines:
        messages = await calls.grow_styles(sent(photo), styles=["round", "m"], seed=3)
    assert kinds(messages) == ["result", "result", "summary"]
    assert any(message.HasField("progress") for message in messages)
    (line,) = [line for line in lines if line["event"] == "call"]
    assert {"parsing", "drawing", "growing", "proving"} <= set(line["stage_ms"])
    assert (messages[-1].summary.backend, messages[-1].summary.seed) == ("local", 3)
    for result in (message.result for message in messages if message.HasField("result")):
        assert result.grown_reason == ""
        assert result.proof.hair_share > 0.6
        assert result.proof.outside_changed_pixels == 0
        assert decoded(result.image).shape[1] > 100
        grown, before = decoded(result.grown_image), np.asarray(photo.resize((400, 400), Image.Resampling.BOX))
        changed = np.abs(grown.astype(int) - before).max(axis=2) > 60
        assert changed[: grown.shape[0] // 2].any(), "hair on the forehead"
        assert not changed[grown.shape[0] // 2 :].any(), "nothing below the eyes"


async def test_growth_in_a_region(calls: Calls) -> None:
    answer = await calls.measure(sent(portrait()), annotate=False)
    trichion, width = answer.hairline.trichion.point, answer.face.box.width_px
    band = ((-0.3, -0.03), (0.3, -0.03), (0.25, 0.08), (0.0, 0.1), (-0.25, 0.08))
    corners = [(trichion.x_px + x * width, trichion.y_px + y * width) for x, y in band]
    region = growth_pb2.Polygon(points=[common_pb2.Point(x_px=x, y_px=y) for x, y in corners])
    messages = await calls.grow_region(sent(portrait()), region=region, seed=3)
    assert kinds(messages) == ["result", "summary"]
    (result,) = (message.result for message in messages if message.HasField("result"))
    assert result.area_px2 == pytest.approx(0.0665 * width**2, rel=0.02)
    assert decoded(result.marked_image).shape == (400, 400, 3)
    # In so small a photo the hair is there, and its strands may be too coarse to convince: then it is not shown.
    assert result.proof.hair_share > 0.7
    assert result.proof.outside_changed_pixels == 0
    assert result.grown_reason in {"", "NOT_CONVINCING"}
    assert result.HasField("grown_image") == (result.grown_reason == "")


async def test_growth_by_a_diffusion_server(model_files: ModelFiles) -> None:
    """The whole way to it and back; what the fake one paints need not convince. When it is gone, designs remain."""
    with ComfyUiServer() as server:
        growth = {"backend": "comfyui", "comfyui_url": server.url, "workflow": str(EXAMPLE)}
        models = {"dir": str(model_files.face_landmarker.parent)}
        async with running(real_pipeline(configured(growth=growth, models=models))) as (_worker, client):
            calls, photo = Calls(client), sent(portrait())
            messages = await calls.grow_styles(photo, styles=["round"])
            (result,) = (message.result for message in messages if message.HasField("result"))
            assert result.grown_reason in {"", "NOT_CONVINCING"}
            assert result.proof.outside_changed_pixels == 0
            assert messages[-1].summary.backend == "comfyui"
            assert nothing_left(server)
            server.stop()
            messages = await calls.grow_styles(photo, styles=["round", "m"])
            results = [message.result for message in messages if message.HasField("result")]
            assert [each.grown_reason for each in results] == ["DIFFUSION_UNAVAILABLE"] * 2
            assert all(each.image.data for each in results)
            await client.until(lambda status: "growth" not in status.capabilities)


@pytest.mark.parametrize(
    ("corners", "reason"),
    [
        ([(0, 0), (300, 300), (300, 0), (0, 300)], "REGION_SELF_CROSSING"),
        ([(0, 0), (900, 0), (0, 300)], "REGION_OUTSIDE_IMAGE"),
        ([(0, 0), (1, 0), (0, 1)], "REGION_EMPTY"),
    ],
)
async def test_a_region_that_cannot_be_is_refused_before_anything_is_computed(
    calls: Calls, corners: list[tuple[float, float]], reason: str
) -> None:
    region = growth_pb2.Polygon(points=[common_pb2.Point(x_px=x, y_px=y) for x, y in corners])
    code, info, details = await refused(calls.grow_region(sent(portrait()), region=region))
    assert (code, info.reason) == (grpc.StatusCode.INVALID_ARGUMENT, reason)
    assert [at.field for at in details["BadRequest"].field_violations] == ["region"]  # type: ignore[attr-defined]


async def test_a_mask_of_another_size_is_refused_by_name(calls: Calls) -> None:
    mask = sent(Image.new("RGB", (300, 300), (255, 255, 255)))
    _code, info, details = await refused(calls.grow_region(sent(portrait()), mask=mask))
    assert info.reason == "MASK_SIZE_DIFFERS"
    assert [at.field for at in details["BadRequest"].field_violations] == ["mask"]  # type: ignore[attr-defined]


async def test_what_is_no_picture(calls: Calls) -> None:
    code, info, _details = await refused(calls.measure(common_pb2.Image(data=b"no picture at all")))
    assert (code, info.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "UNSUPPORTED_FORMAT")


async def test_a_face_that_wears_its_hair_down_to_the_brows_is_designed_for_and_not_grown(calls: Calls) -> None:
    """Nobody sees from where hair would have to grow. Designs go on from the glabella."""
    covered = np.asarray(portrait()).copy()
    answer = await calls.measure(sent(portrait()), annotate=False)
    box, trichion = answer.face.box, answer.hairline.trichion.point
    top, bottom = int(trichion.y_px) - 20, int(box.y_px + box.height_px * 0.22)
    left, right = int(box.x_px), int(box.x_px + box.width_px)
    strip = covered[top - 40 : top, left:right]
    for y in range(top, bottom, 40):
        height = min(40, bottom - y)
        covered[y : y + height, left:right] = strip[:height]
    bangs = sent(Image.fromarray(covered))
    assert (await calls.measure(bangs, annotate=False)).hairline.status == measure_pb2.HAIRLINE_STATE_OCCLUDED
    messages = await calls.grow_styles(bangs, styles=["round"])
    (result,) = (message.result for message in messages if message.HasField("result"))
    assert (result.grown_reason, result.HasField("grown_image")) == ("HAIRLINE_HIDDEN", False)
    assert result.image.data
    (design,) = (await calls.design(bangs, styles=["round"])).hairline_images
    assert not design.HasField("area_cm2")


async def test_b22_one_bad_request_never_spoils_the_next(calls: Calls) -> None:
    photo = sent(portrait())
    before = await calls.measure(photo)
    for bad in (WALL, common_pb2.Image(data=photo.data[:3000])):
        await refused(calls.measure(bad))
        assert await calls.measure(photo) == before


async def test_b23_callers_side_by_side_get_the_answer_to_their_own_photo(calls: Calls) -> None:
    """Eight of them, half with the face far left, half far right."""
    person = portrait(400)
    photos = {side: sent(scene(1100, 400, (person, x, 0))) for side, x in (("left", 0), ("right", 700))}

    async def caller(side: str) -> None:
        for _call in range(2):
            box = (await calls.measure(photos[side], annotate=False)).face.box
            assert (box.x_px < 400) is (side == "left")

    await asyncio.gather(*(caller(side) for side in ("left", "right") for _caller in range(4)))


async def test_b24_memory_of_a_worker_stays_where_it_is(model_files: ModelFiles, tmp_path: Path) -> None:
    """Shortened from two thousand requests: what leaks with each of them shows after twenty, and pictures are large."""
    photos = [sent(portrait(400, number)) for number in (1, 2, 5)]
    config = write_config(tmp_path / "w.json", models={"dir": str(model_files.face_landmarker.parent)})
    async with process("worker", "--config", str(config)) as worker:
        client = Client((await worker.event("listening"))["address"])
        await client.until_serving()
        calls = Calls(client)

        async def ask(times: int) -> int:
            for _time in range(times):
                for photo in photos:
                    await calls.measure(photo)
                await refused(calls.measure(WALL))
            return int(psutil.Process(worker.pid).memory_info().rss)

        warm = await ask(2)
        assert await ask(6) - warm < 20 * 2**20
        await client.channel.close()


@pytest.mark.parametrize("big_on_the_left", [True, False])
async def test_b26_of_two_people_the_larger_is_meant_in_every_call(calls: Calls, big_on_the_left: bool) -> None:
    """Landmarks, hair mask and design belong to one person."""
    big, small = portrait(500), portrait(170, 1)
    places = (0, 800) if big_on_the_left else (470, 0)
    photo = sent(scene(970, 500, (big, places[0], 0), (small, places[1], 200)))
    middle = places[0] + 250

    def is_hers(x_px: float) -> bool:
        return abs(x_px - middle) < 150

    measured = await calls.measure(photo, annotate=False)
    assert is_hers(measured.face.box.x_px + measured.face.box.width_px / 2)
    (hair,) = (await calls.segment(photo, parts=[masks_pb2.FACE_PART_HAIR])).masks
    mask = decoded(hair.image)
    columns = np.flatnonzero((mask > 127).any(axis=0)) * 970 / mask.shape[1]
    assert is_hers(float(np.median(columns)))
    (design,) = (await calls.design(photo, styles=["round"])).hairline_images
    assert is_hers(design.mid_point.x_px)


B28: Mapping[str, tuple[Callable[[], common_pb2.Image], set[str]]] = {
    "plain wall": (lambda: WALL, {"NO_FACE"}),
    "turned by 90 degrees": (lambda: sent(portrait(500).rotate(90)), {"ROLL"}),
    "turned by 180 degrees": (lambda: sent(portrait(360).rotate(180)), {"UPSIDE_DOWN"}),
    "cut by the edge": (lambda: sent(portrait(600).crop((300, 0, 600, 600))), {"FACE_CUT_OFF", "NO_FACE"}),
}


@pytest.mark.parametrize("name", B28)
async def test_b28_what_is_no_frontal_face_is_refused_alike_by_every_call(calls: Calls, name: str) -> None:
    make, reasons = B28[name]
    photo = make()
    region = growth_pb2.Polygon(points=[common_pb2.Point(x_px=x, y_px=y) for x, y in ((50, 50), (90, 50), (50, 90))])
    for call in (
        calls.measure(photo),
        calls.design(photo),
        calls.segment(photo),
        calls.grow_styles(photo),
        calls.grow_region(photo, region=region),
    ):
        code, info, _details = await refused(call)
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert info.reason in reasons


async def test_b28_a_cartoon_face_breaks_no_call(calls: Calls) -> None:
    photo = sent(Image.fromarray(drawn_face()).resize((512, 512), Image.Resampling.BICUBIC))
    answer = await calls.measure(photo)
    assert "NOT_A_PHOTO" in {warning.reason for warning in answer.warnings}
    assert len((await calls.segment(photo)).masks) == 9
    await calls.design(photo)


@pytest.mark.skipif(cuda_available(), reason="has a GPU")
async def test_b30_a_gpu_that_is_not_there_is_named_and_ends_nothing(model_files: ModelFiles) -> None:
    """No crash loop: the worker stays up and says what is wrong; landmarks never use the GPU."""
    assert model_files.face_landmarker.is_file()
    async with running(real_pipeline(configured(device="cuda")), warm=False) as (_worker, client):
        status = await client.until(lambda status: status.cause == "models")
        assert list(status.reasons) == ["models:the configuration asks for device cuda, and torch sees no usable GPU"]
        assert status.live
