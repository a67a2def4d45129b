"""Both calls with the real models: every format, every way a photo can be refused, with a parser and without."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from pillow_heif import register_heif_opener
from structlog.testing import capture_logs

import hairmesh.model_files
from edge.errors import ApiError
from edge.local.engine import JPEG_SIDE_PX, LocalEngine, load
from edge.local.findings import GivenUpError, NotLoadedError, Ticket
from edge.local.thread import load_engine
from edge.settings import LocalVision
from tests.conftest import selfie, studio_portrait
from tests.edge.rest import FEATURES, SPECIAL_POINTS, FakeMesh, serving
from tests.fakes.openai_server import OpenAiServer
from vision.describe_terms import EYES_NOT_SEEN, GLASSES, NO_HAIR, NO_PARSER
from vision.errors import ModelError
from vision.landmarks import LandmarkDetector
from vision.models import FACE_LANDMARKER, ModelFiles
from vision.runtime import OnnxParser

pytestmark = pytest.mark.models

MAX_PIXELS = 40_000_000


@pytest.fixture(scope="module")
def engine(model_files: ModelFiles) -> Iterator[LocalEngine]:
    loaded = load(model_files.face_landmarker.parent)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def blind(model_files: ModelFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    """Where nothing but the landmark model is."""
    folder = tmp_path_factory.mktemp("models")
    shutil.copy(model_files.face_landmarker, folder / FACE_LANDMARKER.name)
    with capture_logs() as lines:
        loaded = load(folder)
    assert [line["event"] for line in lines] == ["local_parser_missing"]
    yield loaded
    loaded.close()


def portrait(number: int = 1, width_px: int = 640) -> Image.Image:
    """A studio portrait, smaller."""
    return Image.open(studio_portrait(number)).convert("RGB").resize((width_px, width_px), Image.Resampling.LANCZOS)


def encoded(photo: Image.Image, form: str = "JPEG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    photo.save(buffer, form, **options)
    return buffer.getvalue()


def sixteen_bit(photo: Image.Image) -> bytes:
    _, data = cv2.imencode(".png", np.asarray(photo)[..., ::-1].astype(np.uint16) * 257)
    return bytes(data)


def heic(photo: Image.Image) -> bytes:
    register_heif_opener()
    return encoded(photo, "HEIF", quality=90)


def reason_of(engine: LocalEngine, data: bytes) -> set[str]:
    """Why both calls refuse a photo."""
    found = set()
    for ask in (
        lambda: engine.special_points(data, MAX_PIXELS, Ticket()),
        lambda: engine.describe(data, MAX_PIXELS, Ticket(), with_jpeg=True),
    ):
        with pytest.raises(ApiError) as caught:
            ask()
        found.add(caught.value.reason)
    return found


FORMATS: dict[str, Callable[[Image.Image], bytes]] = {
    "JPEG": encoded,
    "CMYK": lambda photo: encoded(photo.convert("CMYK")),
    "grey": lambda photo: encoded(photo.convert("L")),
    "WebP": lambda photo: encoded(photo, "WEBP", quality=90),
    "palette": lambda photo: encoded(photo.quantize(256), "PNG"),
    "16-bit": sixteen_bit,
    "alpha": lambda photo: encoded(photo.convert("RGBA"), "PNG"),
    "TIFF": lambda photo: encoded(photo, "TIFF"),
    "BMP": lambda photo: encoded(photo, "BMP"),
    "HEIC": heic,
}


@pytest.mark.parametrize("name", FORMATS)
def test_b88_whatever_comes_in_a_plain_jpeg_goes_out(engine: LocalEngine, name: str) -> None:
    photo = portrait()
    found = engine.describe(FORMATS[name](photo), MAX_PIXELS, Ticket(), with_jpeg=True)
    assert found.jpeg is not None
    out = Image.open(io.BytesIO(found.jpeg))
    assert (out.format, out.mode, out.size) == ("JPEG", "RGB", photo.size)
    grey = photo.convert("L").convert("RGB") if name == "grey" else photo
    assert np.abs(np.asarray(out, dtype=float) - np.asarray(grey, dtype=float)).mean() < 8


def test_b88_it_is_upright_reduced_and_holds_nothing_but_pixels(engine: LocalEngine) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F], exif[0x8769] = 6, "SENTINEL-camera", {0x9003: "2026:01:01 00:00:00"}
    lying = Image.open(studio_portrait()).transpose(Image.Transpose.ROTATE_90).resize((1500, 1500))
    data = encoded(lying, exif=exif, comment=b"SENTINEL", quality=85)
    found = engine.describe(data, MAX_PIXELS, Ticket(), with_jpeg=True)
    assert found.jpeg is not None
    out = Image.open(io.BytesIO(found.jpeg))
    assert out.size == (JPEG_SIDE_PX, JPEG_SIDE_PX)
    assert not out.getexif()
    assert set(out.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}
    assert b"SENTINEL" not in found.jpeg
    upright = portrait(width_px=JPEG_SIDE_PX)
    assert np.abs(np.asarray(out, dtype=float) - np.asarray(upright, dtype=float)).mean() < 8
    assert engine.describe(data, MAX_PIXELS, Ticket(), with_jpeg=False).jpeg is None


def test_points_lie_where_the_photo_has_them(engine: LocalEngine) -> None:
    found = engine.special_points(encoded(portrait()), MAX_PIXELS, Ticket())
    again = engine.special_points(encoded(portrait(width_px=1280)), MAX_PIXELS, Ticket())
    assert found.place.photo == {"width_px": 640, "height_px": 640, "format": "JPEG", "exif_orientation": 1}
    at = found.points
    assert at["left_pupil"][0] > at["pronasale"][0] > at["right_pupil"][0], "left is the subject's"
    assert at["glabella"][1] < at["sellion"][1] < at["subnasale"][1] < at["stomion"][1] < at["menton"][1]
    for name, (x, y) in found.points.items():
        assert np.hypot(x - again.points[name][0] / 2, y - again.points[name][1] / 2) < 4, name


@pytest.mark.parametrize(
    ("picture", "reason"),
    [
        (lambda: encoded(Image.new("RGB", (400, 400), (90, 120, 90))), "NO_FACE"),
        (lambda: encoded(portrait())[:9000], "DAMAGED_IMAGE"),
        (lambda: encoded(portrait().rotate(90)), "ROLL"),
        (lambda: encoded(portrait().rotate(180)), "UPSIDE_DOWN"),
        (lambda: encoded(portrait(width_px=200)), "FACE_TOO_SMALL"),
        (lambda: encoded(portrait().crop((0, 0, 640, 400)).resize((640, 400))), "FACE_CUT_OFF"),
        (
            lambda: encoded(Image.fromarray(np.hstack([np.asarray(portrait(1)), np.asarray(portrait(5))]))),
            "MULTIPLE_FACES",
        ),
        (lambda: b"GIF89a" + b"\0" * 500, "UNSUPPORTED_FORMAT"),
    ],
)
def test_both_calls_refuse_what_workers_refuse(
    engine: LocalEngine, blind: LocalEngine, picture: Callable[[], bytes], reason: str
) -> None:
    data = picture()
    assert reason_of(engine, data) == {reason}
    assert reason_of(blind, data) == {reason}


def test_pixels_are_bounded_before_anything_is_decoded(engine: LocalEngine) -> None:
    with pytest.raises(ApiError, match="IMAGE_TOO_MANY_PIXELS"):
        engine.special_points(encoded(portrait()), 640 * 639, Ticket())


def test_nobody_waits_nobody_works(engine: LocalEngine) -> None:
    ticket = Ticket()
    ticket.give_up()
    with pytest.raises(GivenUpError):
        engine.describe(encoded(portrait()), MAX_PIXELS, ticket, with_jpeg=False)


class Leaving(Ticket):
    """Its caller leaves at the given step."""

    def __init__(self, leaves_at: int = 1000) -> None:
        super().__init__()
        self.steps = 0
        self._leaves_at = leaves_at

    def step(self) -> None:
        self.steps += 1
        if self.steps == self._leaves_at:
            self.give_up()
        super().step()


@pytest.mark.parametrize(
    ("photo", "steps"),
    [(encoded(Image.new("RGB", (4200, 4200), (128, 100, 90)), "PNG"), 20), (encoded(portrait().rotate(180)), 6)],
    ids=["large and without a face", "upside down"],
)
def test_a_search_ends_wherever_its_caller_leaves(engine: LocalEngine, photo: bytes, steps: int) -> None:
    """Many looks at a large photo take seconds: each is a step."""
    whole = Leaving()
    with pytest.raises(ApiError):
        engine.special_points(photo, MAX_PIXELS, whole)
    assert whole.steps >= steps
    for leaves_at in range(1, whole.steps + 1, max(1, whole.steps // 5)):
        ticket = Leaving(leaves_at)
        with pytest.raises(GivenUpError):
            engine.special_points(photo, MAX_PIXELS, ticket)
        assert ticket.steps == leaves_at


def test_a_decoder_that_cannot_be_started_is_not_the_photos_fault(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert reason_of(engine, encoded(portrait(), "TIFF")) == {"EDGE_FAILED"}


def test_a_good_engine_knows_its_known_answer_and_a_broken_one_does_not(
    model_files: ModelFiles, engine: LocalEngine, blind: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.check()
    blind.check()
    monkeypatch.setattr(OnnxParser, "__call__", lambda _self, crops: np.zeros((1, 19, 16, 16), dtype=np.float32))
    with pytest.raises(ModelError, match="canary"):
        engine.check()
    blind.check()
    monkeypatch.setattr(LandmarkDetector, "detect", lambda *_: ())
    with pytest.raises(ModelError, match="canary"):
        blind.check()


def test_without_a_parser_what_it_would_see_is_null_and_the_rest_is_there(
    engine: LocalEngine, blind: LocalEngine
) -> None:
    data = encoded(portrait(3))
    seen = engine.describe(data, MAX_PIXELS, Ticket(), with_jpeg=False).description
    less = blind.describe(data, MAX_PIXELS, Ticket(), with_jpeg=False).description
    unseen = {name for name, feature in less.features.items() if feature.value is None}
    assert unseen == {"brows.thickness", "face.thirds", "hair.length", "hair.bangs", "hair.colour"}
    assert {less.features[name].reason for name in unseen} == {NO_PARSER}
    assert (less.hair_present, seen.hair_present) == (None, True)
    assert all(feature.value for feature in seen.features.values())
    for name in less.features.keys() - unseen - {"face.shape"}:
        assert less.features[name] == seen.features[name]


def test_hair_is_told_as_people_see_it(engine: LocalEngine) -> None:
    for number, length, colour in ((1, "short", "black"), (3, "long", "dark_brown"), (8, "long", "brown")):
        found = engine.describe(encoded(portrait(number)), MAX_PIXELS, Ticket(), with_jpeg=False).description.features
        assert (found["hair.length"].value, found["hair.colour"].value) == (length, colour), number
        assert found["hair.bangs"].value == "none"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("synthetic_12", {"hair.bangs": "full", "hair.colour": "dyed", "hair.length": "medium"}),
        ("synthetic_02", {"hair.colour": "red", "hair.length": "long", "eyes.opening": "wide"}),
        ("synthetic_03", {"hair.colour": "blonde"}),
        ("synthetic_05", {"hair.colour": "grey", "hair.length": "long"}),
    ],
)
def test_hair_of_other_people(engine: LocalEngine, portraits: Path, name: str, expected: dict[str, str]) -> None:
    data = (portraits / f"{name}.jpg").read_bytes()
    found = engine.describe(data, MAX_PIXELS, Ticket(), with_jpeg=False).description.features
    assert {feature: found[feature].value for feature in expected} == expected


def test_b37_a_shaved_head_has_no_hair_and_no_colour(engine: LocalEngine, portraits: Path) -> None:
    data = (portraits / "synthetic_11.jpg").read_bytes()
    found = engine.describe(data, MAX_PIXELS, Ticket(), with_jpeg=False).description
    assert found.hair_present is False
    for name in ("hair.length", "hair.bangs", "hair.colour"):
        assert (found.features[name].value, found.features[name].reason) == (None, NO_HAIR)
    assert "NaN" not in json.dumps([dict(feature.ratios) for feature in found.features.values()])


def test_b27_eyes_behind_glasses_are_unknown(engine: LocalEngine, portraits: Path) -> None:
    data = (portraits / "synthetic_09.jpg").read_bytes()
    found = engine.describe(data, MAX_PIXELS, Ticket(), with_jpeg=False)
    eyes = {name: each for name, each in found.description.features.items() if name.startswith("eyes.")}
    assert {(each.value, each.reason) for each in eyes.values()} == {(None, GLASSES)}
    assert "GLASSES" in {warning["reason"] for warning in found.warnings}


def test_b27_eyes_behind_a_black_bar_are_unknown_without_a_parser_too(engine: LocalEngine, blind: LocalEngine) -> None:
    """The mesh has eyes there all the same, and says nothing of it."""
    photo = portrait()
    points = blind.special_points(encoded(photo), MAX_PIXELS, Ticket()).points
    right, left = points["right_exocanthion"], points["left_exocanthion"]
    pixels = np.asarray(photo).copy()
    middle, half = round((right[1] + left[1]) / 2), 22
    pixels[middle - half : middle + half, round(right[0]) - 25 : round(left[0]) + 25] = 8
    for each in (engine, blind):
        found = each.describe(encoded(Image.fromarray(pixels)), MAX_PIXELS, Ticket(), with_jpeg=False)
        eyes = {each.value for name, each in found.description.features.items() if name.startswith("eyes.")}
        reasons = {each.reason for name, each in found.description.features.items() if name.startswith("eyes.")}
        assert eyes == {None}
        assert reasons <= {GLASSES, EYES_NOT_SEEN}


def test_a_selfie_is_found_as_well(engine: LocalEngine) -> None:
    found = engine.describe(selfie(3).read_bytes(), MAX_PIXELS, Ticket(), with_jpeg=False)
    assert found.description.features["hair.length"].value == "long"


def test_a_model_that_is_missing_or_wrong_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotLoadedError, match="hairmesh models fetch") as caught:
        load(tmp_path)
    assert caught.value.reason == "LOCAL_MODELS_MISSING"
    (tmp_path / FACE_LANDMARKER.name).write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(NotLoadedError, match="Git LFS pointer"):
        load(tmp_path)


def test_weights_of_ones_own_take_the_place_of_the_pinned_ones(
    model_files: ModelFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As docs/licences.md has it: made by `hairmesh models fetch --parser-weights`, known to the edge by their hash."""
    shutil.copy(model_files.face_landmarker, tmp_path / FACE_LANDMARKER.name)
    state = torch.load(model_files.parser_weights, map_location="cpu", weights_only=True)
    state["conv_out.conv_out.weight"] *= 1.5
    torch.save(state, own := tmp_path / "own.pth")
    assert hairmesh.model_files.fetch(tmp_path, weights=own) == 0
    stated = capsys.readouterr().out.split()[-1]
    files = sorted(each.name for each in tmp_path.iterdir())
    assert files == [FACE_LANDMARKER.name, "own.pth", f"parser-{stated[:16]}.onnx"]
    engine = load_engine(LocalVision(models_dir=tmp_path, parser_weights_sha256=stated.upper()))
    engine.check()
    found = engine.describe(encoded(portrait()), MAX_PIXELS, Ticket(), with_jpeg=False).description
    engine.close()
    assert found.features["hair.colour"].value == "black"
    shutil.copy(tmp_path / files[-1], tmp_path / model_files.parser_onnx.name)
    for weights_sha256, problem in ((None, "made from other weights"), ("ab" * 32, "--parser-weights FILE")):
        with capture_logs() as lines:
            blind = load(tmp_path, weights_sha256)
        blind.close()
        assert not blind.sees_hair, "never by other weights than were asked for"
        assert [problem in line["problem"] for line in lines if line["event"] == "local_parser_missing"] == [True]


def test_neither_torch_nor_onnx_is_needed(model_files: ModelFiles, tmp_path: Path) -> None:
    """Not even where the parser's form is damaged: making it anew is none of the edge's business."""
    for name in (FACE_LANDMARKER.name, model_files.parser_onnx.name):
        shutil.copy(model_files.face_landmarker.parent / name, tmp_path / name)
    (tmp_path / "photo.jpg").write_bytes(encoded(portrait()))
    code = """
import sys
from pathlib import Path
sys.modules.update(torch=None, onnx=None)
from edge.local.engine import load
from edge.local.findings import Ticket
folder = Path(sys.argv[1])
for turn in range(2):
    engine = load(folder)
    found = engine.describe((folder / "photo.jpg").read_bytes(), 10**7, Ticket(), with_jpeg=True)
    print(engine.sees_hair, found.description.features["hair.colour"].value, len(found.jpeg) > 9000)
    engine.close()
    (form,) = folder.glob("*.onnx")
    form.write_bytes(form.read_bytes()[:-1])
"""
    result = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    told = [line for line in result.stdout.splitlines() if line.startswith(("True", "False"))]
    assert told == ["True black True", "False None True"]


async def test_others_have_their_turn_while_it_computes(model_files: ModelFiles, tmp_path: Path) -> None:
    """Its work lets go of the interpreter: held, nothing else in the process would be answered meanwhile."""
    folder = {"models_dir": str(model_files.face_landmarker.parent)}
    async with serving(tmp_path, FakeMesh(), local_vision=folder) as edge:
        await edge.post(FEATURES, encoded(portrait()))  # models are loaded by then
        running = asyncio.create_task(edge.post(FEATURES, encoded(portrait(width_px=4000), quality=70)))
        answered = 0
        while not running.done():
            assert (await edge.client.get("/monitor")).status_code == 200
            answered += 1
        assert running.result().status_code == 200
    assert answered >= 10


async def test_all_of_it_over_a_real_socket_with_no_worker_online(model_files: ModelFiles, tmp_path: Path) -> None:
    folder = {"models_dir": str(model_files.face_landmarker.parent)}
    async with (
        OpenAiServer() as server,
        serving(tmp_path, FakeMesh(), local_vision=folder, features=server.settings) as edge,
    ):
        photo = encoded(portrait(), "WEBP")
        described = await edge.post(FEATURES, photo, lang="en", headers={"x-request-timeout-ms": "60000"})
        pointed = await edge.post(SPECIAL_POINTS, photo)
        assert (described.status_code, pointed.status_code) == (200, 200)
        assert described.json()["data"]["source"] == "vision_llm+geometry"
        assert pointed.json()["data"]["face"] == described.json()["data"]["face"]
        (shown,) = server.photos
        assert (shown.format, shown.mode, shown.size) == ("JPEG", "RGB", (640, 640))
        refused = await edge.post(FEATURES, encoded(portrait().rotate(180)))
        assert refused.json()["data"]["reason"] == "UPSIDE_DOWN"
        assert len(server.requests) == 1, "what is refused never leaves the house"
