"""Reports from the field about pictures (group a) and the face mesh (group b), by their ids."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.vision.conftest import photo_of, resized
from vision.decode import decode
from vision.errors import PhotoError, Reason
from vision.models import ModelFiles
from vision.pipeline import Pipeline
from vision.types import Facts, Label, MeasureOptions, NoProgress, RgbImage

ROOT = Path(__file__).resolve().parents[2]
FRAMES = 2_000
MUCH_BYTES = 50_000_000


def stored(image: Image.Image, form: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def hair(facts: Facts) -> NDArray[np.bool_]:
    """Hair mask on the raster of the parser."""
    mask: NDArray[np.bool_] = facts.parsing.labels == Label.HAIR
    return mask


@pytest.mark.models
def test_b01_a_turned_file_is_the_upright_photo_in_everything_that_is_found_and_drawn(
    pipeline: Pipeline, studio_rgb: RgbImage
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = stored(Image.fromarray(studio_rgb).transpose(Image.Transpose.ROTATE_90), "PNG", exif=exif)
    plain = stored(Image.fromarray(studio_rgb), "PNG")
    ours, reference = (pipeline.measure(data, MeasureOptions(), NoProgress()) for data in (turned, plain))
    assert ours.facts.photo.exif_orientation == 6
    assert np.array_equal(ours.facts.landmarks.points, reference.facts.landmarks.points)
    here, there = hair(ours.facts), hair(reference.facts)
    assert (here & there).sum() > 0.99 * (here | there).sum()
    assert ours.annotated is not None
    assert reference.annotated is not None
    assert ours.annotated.data == reference.annotated.data, "drawn alike, pixel by pixel"
    picture = Image.open(io.BytesIO(ours.annotated.data))
    picture.load()
    assert not picture.getexif(), "nobody turns it once more"
    assert picture.info == {}, "nor does it say anything else of the photo"


DECODED = """
import resource, sys
from vision.decode import decode
data = open(sys.argv[1], "rb").read()
decode(open(sys.argv[2], "rb").read())  # whatever a first picture needs is there
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
photo = decode(data)
print(photo.rgb.shape, photo.rgb.min(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("form", ["WEBP", "PNG"])
def test_b08_of_thousands_of_frames_one_is_decoded(form: str, tmp_path: Path) -> None:
    """2,000 frames of 256 × 256 are 393 MB of pixels."""
    frames = [Image.new("L", (256, 256), shade) for shade in (255, 0)]
    data = stored(frames[0], form, save_all=True, append_images=(frames[1:] + frames[:1]) * (FRAMES // 2), duration=40)
    assert len(data) < 2_097_152, "it passes the limit on bodies"
    assert getattr(Image.open(io.BytesIO(data)), "n_frames", 1) >= FRAMES
    (tmp_path / "many").write_bytes(data)
    (tmp_path / "one").write_bytes(stored(frames[0], form))
    command = [sys.executable, "-c", DECODED, str(tmp_path / "many"), str(tmp_path / "one")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=100)
    shape_and_shade, _, grown_kib = result.stdout.strip().rpartition(" ")
    assert shape_and_shade == "(256, 256, 3) 255", "the first frame, white"
    assert int(grown_kib) * 1024 < MUCH_BYTES


@pytest.mark.parametrize("size", [(1, 60_000), (60_000, 1)])
def test_b11_a_line_is_no_photo(size: tuple[int, int]) -> None:
    with pytest.raises(PhotoError) as refused:
        decode(stored(Image.new("1", size), "PNG"))
    assert refused.value.reason is Reason.IMAGE_TOO_SMALL


def imported(path: Path) -> set[str]:
    """Every dotted name a source file imports or reads."""
    tree = ast.parse(path.read_text())
    names = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_b20_nothing_uses_the_face_mesh_that_is_gone() -> None:
    sources = [path for folder in ("vision", "worker", "edge", "hairmesh") for path in (ROOT / folder).rglob("*.py")]
    gone = ("mediapipe.solutions", "mp.solutions", "mediapipe.framework", "mediapipe.python.solutions")
    assert len(sources) > 50
    assert [path.name for path in sources if any(name.startswith(gone) for name in imported(path))] == []


PARTS = """
import numpy, torch, mediapipe.tasks.python.vision, onnxruntime
import grpc, grpc_health.v1.health_pb2, grpc_reflection.v1alpha.reflection, grpc_status.rpc_status
import hair.analysis.v1.analyze_service_pb2_grpc, hair.worker.v1.worker_service_pb2_grpc
assert int(numpy.__version__.split(".")[0]) >= 2
print(torch.from_numpy(numpy.ones(3)).sum().item())
"""


def test_b20_b31_all_that_a_worker_is_made_of_loads_together() -> None:
    """In one fresh process: gencode and runtime of protobuf fit, mediapipe lives with numpy 2 and torch."""
    command = [sys.executable, "-W", "error::UserWarning:google.protobuf", "-c", PARTS]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip().endswith("3.0")


WATCHED = """
import sys, numpy
from pathlib import Path
from vision.landmarks import LandmarkDetector
detector = LandmarkDetector(Path(sys.argv[1]))
picture = numpy.load(sys.argv[2])
print(sum(len(detector.find(picture)) for _ in range(3)))
detector.close()
"""


@pytest.mark.models
def test_b29_a_long_narrow_picture_is_told_of_once_at_most(
    model_files: ModelFiles, studio_rgb: RgbImage, tmp_path: Path
) -> None:
    narrow = cv2.copyMakeBorder(resized(studio_rgb, 300), 0, 0, 810, 810, cv2.BORDER_REPLICATE)
    np.save(tmp_path / "narrow.npy", np.asarray(narrow, dtype=np.uint8))
    command = [sys.executable, "-c", WATCHED, str(model_files.face_landmarker), str(tmp_path / "narrow.npy")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=100)
    assert result.stdout.strip() == "3"
    assert result.stderr.count("NORM_RECT") <= 1


@pytest.mark.models
def test_b37_a_black_picture_of_a_face_without_hair_has_no_trouble(pipeline: Pipeline, studio_rgb: RgbImage) -> None:
    """The face alone on black: the parser finds no hair, and everything goes on."""
    facts = pipeline.facts(photo_of(studio_rgb), MeasureOptions(annotate=False), NoProgress())
    outline = cv2.convexHull(facts.landmarks.points.astype(np.float32)).astype(np.int32)
    inside = cv2.fillPoly(np.zeros(studio_rgb.shape[:2], np.uint8), [outline], 1)[..., None]
    face_alone = np.asarray(studio_rgb * inside, dtype=np.uint8)
    alone = pipeline.facts(photo_of(face_alone), MeasureOptions(annotate=False), NoProgress())
    assert alone.hairline.trichion is None
    assert alone.measurements["thirds.upper"].unavailable_reason.startswith("HAIRLINE_")
    assert alone.measurements["thirds.lower"].px is not None
