"""What others reported of face parsing (group c of the field reports), each tried here; the ids are the reports'."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from bench.portraits.bald import make_bald
from bench.portraits.face import Face
from bench.portraits.hats import Hat, HatKind, put_on
from tests.conftest import studio_portrait
from tests.vision.conftest import photo_of, resized
from tests.vision.faces import face
from vision.calls import FacePart, MaskOptions
from vision.canary import drawn_face
from vision.decode import decode
from vision.hair_mask import hair_alpha
from vision.landmarks import LandmarkDetector
from vision.masks import make_masks
from vision.models import ModelFiles
from vision.onnx_export import load_network
from vision.parsing import normalized, parse
from vision.pipeline import Pipeline
from vision.runtime import OnnxParser
from vision.types import LABEL_COUNT, Facts, Label, MeasureOptions, NoProgress, ParsingMap, RgbImage

Mask = NDArray[np.bool_]


def mapped(parsing: ParsingMap, label: int, rgb: RgbImage) -> Mask:
    """(H, W): where the photo's pixels have the class."""
    probability = cv2.warpAffine(parsing.probabilities[label], parsing.photo_from_map, rgb.shape[1::-1])
    return np.asarray(probability > 0.5)


def overlap(first: Mask, second: Mask) -> float:
    return float((first & second).sum() / (first | second).sum())


def seventeen_above_thirteen(crops: NDArray[np.float32]) -> NDArray[np.float32]:
    """A network that sees class 17 in the upper third of the crop, 13 in the lower, skin between."""
    logits = np.full((len(crops), LABEL_COUNT, 64, 64), -9.0, dtype=np.float32)
    logits[:, 17, :21] = 5
    logits[:, Label.SKIN, 21:43] = 5
    logits[:, 13, 43:] = 5
    return logits


def test_b32_hair_is_class_17_and_nothing_else() -> None:
    """B32: the annotators' list has hair at 13, where this network has the lower lip."""
    rgb = np.full((600, 600, 3), 128, dtype=np.uint8)
    parsing = parse(photo_of(rgb), face(height=300), seventeen_above_thirteen, lambda: None)
    hair = hair_alpha(rgb, parsing) > 0.5
    rows = np.argwhere(hair)[:, 0]
    assert rows.size > 1000
    assert rows.max() < 300, "above the eyes, never at the mouth"


@pytest.mark.models
@pytest.mark.parametrize("mirrored", [False, True])
def test_b32_black_hair_and_red_lips(
    detector: LandmarkDetector, parser: OnnxParser, studio_rgb: RgbImage, mirrored: bool
) -> None:
    """B32 with the real network, and in a mirror: the subject's left stays on the viewer's right."""
    rgb = np.ascontiguousarray(studio_rgb[:, ::-1]) if mirrored else studio_rgb
    landmarks = detector.find(rgb)[0]
    parsing = parse(photo_of(rgb), landmarks, parser, lambda: None)
    hair, lip = mapped(parsing, Label.HAIR, rgb), mapped(parsing, Label.LOWER_LIP, rgb)
    assert rgb[hair].mean() < 60
    assert rgb[lip][:, 0].mean() > 1.2 * rgb[lip][:, 1].mean()
    assert np.argwhere(hair)[:, 0].mean() < landmarks.points[[468, 473], 1].mean() < np.argwhere(lip)[:, 0].mean()
    left, right = (np.argwhere(mapped(parsing, eye, rgb))[:, 1].mean() for eye in (Label.LEFT_EYE, Label.RIGHT_EYE))
    assert left > right


@pytest.mark.models
@pytest.mark.parametrize(("width", "height"), [(640, 360), (360, 640), (333, 1001)])
def test_b33_width_and_height_change_places_nowhere(
    detector: LandmarkDetector, parser: OnnxParser, studio_rgb: RgbImage, width: int, height: int
) -> None:
    """B33: on pictures that are not square the mask is that of the same picture padded to a square."""
    side, small = max(width, height), resized(studio_rgb, 300)
    square = np.full((side, side, 3), 128, dtype=np.uint8)
    top, left = (side - height) // 2, (side - width) // 2
    square[top + 20 : top + 320, left + 15 : left + 315] = small
    rgb = np.ascontiguousarray(square[top : top + height, left : left + width])
    alpha = {}
    for name, picture in (("square", square), ("cut", rgb)):
        landmarks = detector.find(picture)[0]
        parsing = parse(photo_of(picture), landmarks, parser, lambda: None)
        assert parsing.labels.max() < LABEL_COUNT
        alpha[name] = hair_alpha(picture, parsing)
        assert alpha[name].shape == picture.shape[:2]
    reference = alpha["square"][top : top + height, left : left + width]
    assert overlap(alpha["cut"] > 0.5, reference > 0.5) > 0.95


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a model is asked of the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.models
@pytest.mark.usefixtures("no_network")
def test_b34_weights_load_safely_and_ask_no_network(
    model_files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B34: with an empty torch cache, by the loader that runs no code, and the backbone is not fetched beside it."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    safe: list[object] = []
    load = torch.load

    def watched(*args: object, **kwargs: object) -> object:
        safe.append(kwargs.get("weights_only"))
        return load(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(torch, "load", watched)
    files = ModelFiles(
        model_files.face_landmarker, model_files.parser_weights, model_files.parser_weights_sha256, tmp_path
    )
    logits = OnnxParser(files)(normalized(drawn_face()))
    assert np.isfinite(logits).all()
    assert safe == [True]
    assert [path.name for path in tmp_path.iterdir()] == [files.parser_onnx.name]


FRAMES = {
    "in the middle": (610, 190),
    "in a corner": (1210, 370),
}
"""Where the portrait lies in a frame of 1920 × 1080: left, top."""


@pytest.mark.models
@pytest.mark.parametrize("person", [1, 3, 5])
@pytest.mark.parametrize("place", FRAMES)
def test_b36_a_loose_frame_leaves_the_hair_as_it_was(
    detector: LandmarkDetector, parser: OnnxParser, read_rgb: Callable[[Path], RgbImage], person: int, place: str
) -> None:
    """B36: the face covers 8 % of the frame, or fills the picture."""
    small = resized(read_rgb(studio_portrait(person)), 700)
    border = np.asarray(cv2.blur(small[[0, -1], :].astype(np.float32), (201, 1)).mean(axis=(0, 1)))
    frame = np.full((1080, 1920, 3), border, dtype=np.uint8)
    left, top = FRAMES[place]
    frame[top : top + 700, left : left + 700] = small
    areas = []
    for rgb in (small, frame):
        landmarks = detector.find(rgb)[0]
        parsing = parse(photo_of(rgb), landmarks, parser, lambda: None)
        areas.append(float(hair_alpha(rgb, parsing).sum()))
    assert areas[1] == pytest.approx(areas[0], rel=0.1)


@pytest.mark.models
def test_b36_half_precision_has_no_nan(model_files: ModelFiles, parser: OnnxParser, studio_rgb: RgbImage) -> None:
    """B36: in half precision every logit is a number, and the labels are those of single precision."""
    crop = normalized(resized(studio_rgb, 128))  # CPUs are slow in half precision
    with torch.inference_mode():
        half = load_network(model_files.parser_weights).half()(torch.from_numpy(crop).half()).float().numpy()
    assert np.isfinite(half).all()
    assert (half.argmax(axis=1) == parser(crop).argmax(axis=1)).mean() > 0.995


@cache
def _person(detector: LandmarkDetector, parser: OnnxParser, path: Path) -> Face:
    rgb = resized(decode(path.read_bytes()).rgb, 1024)
    landmarks = detector.find(rgb)[0]
    return Face(rgb, landmarks, parse(photo_of(rgb), landmarks, parser, lambda: None))


@pytest.fixture
def hairless(detector: LandmarkDetector, parser: OnnxParser) -> Callable[[str], RgbImage]:
    """A bald head, a head whose hair is all under a hat."""

    def picture(kind: str) -> RgbImage:
        person = _person(detector, parser, studio_portrait(6))
        rng = np.random.default_rng(3)
        made = make_bald(person, rng) if kind == "bald" else put_on(person, Hat(HatKind.BEANIE, (0.3, 0.1, 0.1)), rng)
        return np.clip(255 * made, 0, 255).astype(np.uint8)

    return picture


@pytest.mark.models
@pytest.mark.parametrize(("kind", "most"), [("bald", 0.001), ("hat", 0.2)])
def test_b37_heads_without_hair_are_answered(
    pipeline: Pipeline, hairless: Callable[[str], RgbImage], kind: str, most: float
) -> None:
    """B37: no crash, no NaN; `most` is the hair's share of the skin's area (at the ears it shows under a hat)."""
    facts = pipeline.facts(photo_of(hairless(kind)), MeasureOptions(), NoProgress())
    area = {mask.part: mask.area_px2 for mask in make_masks(facts, MaskOptions())}
    assert all(np.isfinite(value) for value in area.values())
    assert area[FacePart.HAIR] <= most * area[FacePart.SKIN]


@pytest.mark.models
def test_b37_a_black_picture_has_no_parts(parser: OnnxParser) -> None:
    """B37: a mesh on nothing at all."""
    rgb = np.zeros((600, 600, 3), dtype=np.uint8)
    parsing = parse(photo_of(rgb), face(height=250), parser, lambda: None)
    alpha = hair_alpha(rgb, parsing)
    assert np.isfinite(alpha).all()


def facts_with(facts: Facts, parsing: ParsingMap) -> Facts:
    """The same face, parsed otherwise."""
    return Facts(
        facts.photo, facts.landmarks, parsing, facts.hairline, facts.scale, facts.measurements, facts.face_shape
    )


@pytest.mark.models
def test_b37_a_face_of_which_no_class_but_skin_is_seen(pipeline: Pipeline, studio_rgb: RgbImage) -> None:
    """B37: the classes are absent, not rare."""
    facts = pipeline.facts(photo_of(studio_rgb), MeasureOptions(), NoProgress())
    probabilities = np.zeros_like(facts.parsing.probabilities)
    probabilities[Label.SKIN] = 1
    masks = make_masks(facts_with(facts, ParsingMap(probabilities, facts.parsing.photo_from_map)), MaskOptions())
    with_area = {mask.part for mask in masks if mask.area_px2 > 0}
    assert with_area == {FacePart.SKIN, FacePart.FOREHEAD}
    assert all(mask.area_mm2 == 0 for mask in masks if mask.part not in with_area)
