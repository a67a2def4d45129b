"""Which way up a face is, told by whether its mesh stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.conftest import selfie, studio_portrait
from tests.vision.conftest import photo_of, resized
from tests.vision.measured_faces import UPRIGHT, landmarks_of
from vision.errors import PhotoError, Reason
from vision.landmarks import LandmarkDetector
from vision.steady_mesh import find_face, slip
from vision.types import FaceLandmarks, RgbImage

SIDE = 1000


class Nobody:
    """A detector that finds nothing, and counts how often it looked."""

    def __init__(self) -> None:
        self.passes = 0

    def find(self, rgb: RgbImage, step: Callable[[], None]) -> tuple[FaceLandmarks, ...]:
        return self.detect(rgb)

    def detect(self, rgb: RgbImage) -> tuple[FaceLandmarks, ...]:
        self.passes += 1
        return ()


def test_a_picture_without_a_face_is_turned_once_and_refused_as_such() -> None:
    nobody = Nobody()
    with pytest.raises(PhotoError) as caught:
        find_face(photo_of(np.zeros((SIDE, SIDE, 3), dtype=np.uint8)), nobody)
    assert caught.value.reason is Reason.NO_FACE
    assert nobody.passes == 2


class Slipping:
    """A detector of one face, laid in the middle, whose mesh slips in every view but the first."""

    def __init__(self, slips_px: float) -> None:
        self._face = landmarks_of(0.5 * UPRIGHT + np.array([SIDE / 2, SIDE / 2, 0.0]))
        self._slips_px = slips_px

    @property
    def face(self) -> FaceLandmarks:
        return self._face

    def find(self, rgb: RgbImage, step: Callable[[], None]) -> tuple[FaceLandmarks, ...]:
        return (self._face,)

    def detect(self, rgb: RgbImage) -> tuple[FaceLandmarks, ...]:
        return (replace(self._face, points=self._face.points + self._slips_px),)


def test_slip_grows_with_what_the_mesh_moves() -> None:
    blank = np.zeros((SIDE, SIDE, 3), dtype=np.uint8)
    slips = [slip(blank, Slipping(each).face, Slipping(each)) for each in (100.0, 200.0)]
    assert 1 < slips[0] < slips[1]


# With the real model.

pictures = pytest.mark.parametrize(
    "path", [studio_portrait(1), studio_portrait(5), selfie(4), selfie(10)], ids=lambda path: path.parts[-3] + path.stem
)


@pytest.mark.models
@pictures
def test_upright_people_are_found(detector: LandmarkDetector, read_rgb: Callable[[Path], RgbImage], path: Path) -> None:
    rgb = resized(read_rgb(path), 800)
    face = find_face(photo_of(rgb), detector)
    assert abs(face.pose.roll_deg) < 15


@pytest.mark.models
@pictures
def test_upside_down_people_are_refused(
    detector: LandmarkDetector, read_rgb: Callable[[Path], RgbImage], path: Path
) -> None:
    rgb = cv2.rotate(resized(read_rgb(path), 800), cv2.ROTATE_180)
    with pytest.raises(PhotoError) as caught:
        find_face(photo_of(np.asarray(rgb, dtype=np.uint8)), detector)
    assert caught.value.reason is Reason.UPSIDE_DOWN


@pytest.mark.models
def test_a_fit_mesh_stays_and_one_of_an_upside_down_face_slips(
    detector: LandmarkDetector, read_rgb: Callable[[Path], RgbImage]
) -> None:
    rgb = resized(read_rgb(selfie(10)), 800)
    turned = np.asarray(cv2.rotate(rgb, cv2.ROTATE_180), dtype=np.uint8)
    (upright,), (hung,) = detector.find(rgb), detector.find(turned)
    assert slip(rgb, upright, detector) < 0.8
    assert slip(turned, hung, detector) > 1.2
