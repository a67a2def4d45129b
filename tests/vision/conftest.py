"""Loaded models, once per run, and pictures as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

from tests.conftest import studio_portrait
from vision.decode import decode
from vision.landmarks import LandmarkDetector
from vision.models import ModelFiles
from vision.runtime import OnnxParser
from vision.types import Photo, RgbImage

if TYPE_CHECKING:
    from vision.pipeline import Pipeline


def photo_of(rgb: RgbImage) -> Photo:
    """A photo with these pixels."""
    return Photo(np.ascontiguousarray(rgb), "PNG", 1)


def resized(rgb: RgbImage, width_px: int) -> RgbImage:
    """The picture at that width."""
    height_px = round(rgb.shape[0] * width_px / rgb.shape[1])
    return np.asarray(cv2.resize(rgb, (width_px, height_px), interpolation=cv2.INTER_AREA), dtype=np.uint8)


@pytest.fixture(scope="session")
def read_rgb() -> Callable[[Path], RgbImage]:
    """Pixels of a picture file."""

    def read(path: Path) -> RgbImage:
        return decode(path.read_bytes()).rgb

    return read


@pytest.fixture(scope="session")
def studio_rgb(read_rgb: Callable[[Path], RgbImage]) -> RgbImage:
    """A studio portrait of 1024 × 1024: the face from (323, 275) to (702, 748)."""
    return resized(read_rgb(studio_portrait()), 1024)


@pytest.fixture(scope="session")
def detector(model_files: ModelFiles) -> Iterator[LandmarkDetector]:
    """The real landmark model."""
    loaded = LandmarkDetector(model_files.face_landmarker)
    yield loaded
    loaded.close()


@pytest.fixture(scope="session")
def parser(model_files: ModelFiles) -> OnnxParser:
    """The real parser on the CPU."""
    return OnnxParser(model_files)


@pytest.fixture(scope="session")
def pipeline(model_files: ModelFiles) -> Iterator[Pipeline]:
    """The whole pipeline on the CPU."""
    from vision.pipeline import Pipeline  # noqa: PLC0415  (tests of one stage do not load all of them)

    loaded = Pipeline.load(model_files, device="cpu")
    yield loaded
    loaded.close()
