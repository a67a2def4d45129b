"""Faces rendered from known distances: the drawing, and what the real detector makes of it."""

from __future__ import annotations

from contextlib import closing

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from bench.portraits.rendered_face import TAKEN_AT_MM, depth_behind_eyes, seen_from
from tests.conftest import studio_portrait
from tests.vision.measured_faces import hairline_of, laid, scale_of
from vision.anthropometry import measure_face
from vision.decode import decode
from vision.landmarks import LandmarkDetector
from vision.models import ModelFiles
from vision.perspective import NEAR_MM, as_in_portrait, camera_mm
from vision.types import FaceLandmarks, RgbImage

MM_PER_PX = 0.5
PUPILS = [468, 473]
SIDE_PX = 600


@pytest.fixture(scope="module")
def dotted() -> tuple[RgbImage, FaceLandmarks]:
    """Black, with a white dot on the outline of the face, on its nose tip and on both pupils."""
    face = laid(0.4, at=(300.0, 300.0))
    rgb = np.zeros((SIDE_PX, SIDE_PX, 3), dtype=np.uint8)
    for point in (454, 4, *PUPILS):
        cv2.circle(rgb, face.points[point].round().astype(int).tolist(), 4, (255, 255, 255), -1)
    return rgb, face


def brightest_near(rgb: RgbImage, place: NDArray[np.float64], reach: int = 40) -> NDArray[np.float64]:
    x, y = place.round().astype(int)
    part = rgb[y - reach : y + reach, x - reach : x + reach, 0].astype(float)
    rows, columns = np.mgrid[: part.shape[0], : part.shape[1]]
    middle: NDArray[np.float64] = np.array([(columns * part).sum(), (rows * part).sum()]) / part.sum() + [
        x - reach,
        y - reach,
    ]
    return middle


def test_from_where_it_was_taken_a_face_looks_as_it_did(dotted: tuple[RgbImage, FaceLandmarks]) -> None:
    rgb, face = dotted
    same = seen_from(rgb, face, MM_PER_PX, TAKEN_AT_MM)
    assert np.abs(same.astype(int) - rgb).max() <= 1


@pytest.mark.parametrize("distance_mm", [300.0, 700.0])
def test_what_lies_behind_the_eyes_shrinks_as_a_pinhole_camera_shows_it(
    dotted: tuple[RgbImage, FaceLandmarks], distance_mm: float
) -> None:
    rgb, face = dotted
    drawn = seen_from(rgb, face, MM_PER_PX, distance_mm)
    centre = face.points[PUPILS].mean(axis=0)
    depth = MM_PER_PX * depth_behind_eyes(rgb, face)
    for pupil in PUPILS:
        assert brightest_near(drawn, face.points[pupil], 12) == pytest.approx(face.points[pupil], abs=1.5)
    x, y = face.points[454].round().astype(int)
    behind = float(depth[y, x])
    assert behind > 10
    factor = (TAKEN_AT_MM + behind) / TAKEN_AT_MM * distance_mm / (distance_mm + behind)
    expected = centre + factor * (face.points[454] - centre)
    assert brightest_near(drawn, expected, 30) == pytest.approx(expected, abs=3)


def test_the_head_falls_back_beyond_the_mesh(dotted: tuple[RgbImage, FaceLandmarks]) -> None:
    rgb, face = dotted
    depth = depth_behind_eyes(rgb, face)
    x, y = face.points[454].round().astype(int)
    assert depth[y, SIDE_PX - 5] > depth[y, x] + 10
    nose_x, nose_y = face.points[4].round().astype(int)
    assert depth[nose_y, nose_x] < 0


@pytest.mark.models
@pytest.mark.parametrize("person", [4, 6])
def test_the_real_detector_tells_near_cameras_and_their_ratios_are_mended(person: int, model_files: ModelFiles) -> None:
    portrait = decode(studio_portrait(person).read_bytes()).rgb
    rgb = cv2.resize(portrait, (768, 768), interpolation=cv2.INTER_AREA)
    small = np.asarray(rgb, dtype=np.uint8)
    with closing(LandmarkDetector(model_files.face_landmarker)) as detector:
        before = detector.find(small)[0]
        mm_per_px = 60.0 / float(np.linalg.norm(before.points[468] - before.points[473]))
        seen = {
            distance_mm: detector.find(seen_from(small, before, mm_per_px, distance_mm))[0]
            for distance_mm in (250.0, 350.0, TAKEN_AT_MM)
        }

    def height_to_width(face: FaceLandmarks, distance_mm: float) -> float:
        """Glabella to menton over the width: no hairline is needed, and the two answer differently to a near camera."""
        measured = measure_face(face, hairline_of(face), scale_of())
        middle, lower, width = (
            as_in_portrait(name, length_px, distance_mm)
            for name in ("thirds.middle", "thirds.lower", "face_width")
            if (length_px := measured[name].px) is not None
        )
        return (middle + lower) / width

    far = seen.pop(TAKEN_AT_MM)
    truth = height_to_width(far, TAKEN_AT_MM)
    assert camera_mm(far) > NEAR_MM
    for near in seen.values():
        assert camera_mm(near) < NEAR_MM
        assert abs(height_to_width(near, TAKEN_AT_MM) / truth - 1) > 0.05
        assert height_to_width(near, camera_mm(near)) == pytest.approx(truth, rel=0.05)
