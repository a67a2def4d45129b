"""Landmarks and pose on synthetic people."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.conftest import full_length, selfie
from tests.vision.conftest import resized
from tests.vision.nodding import nodded
from vision.errors import ModelError, PhotoError, Reason
from vision.gates import choose_face
from vision.landmarks import LandmarkDetector
from vision.models import ModelFiles
from vision.resample import reduced_by
from vision.types import FaceLandmarks, Points, RgbImage

pytestmark = pytest.mark.models

GREY = (128, 128, 128)


def only(faces: tuple[FaceLandmarks, ...]) -> FaceLandmarks:
    assert len(faces) == 1
    return faces[0]


def turned(rgb: RgbImage, clockwise_deg: float) -> RgbImage:
    height, width = rgb.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), -clockwise_deg, 1)
    return np.asarray(cv2.warpAffine(rgb, matrix, (width, height), borderValue=GREY), dtype=np.uint8)


def bordered(rgb: RgbImage, top: int, bottom: int, left: int, right: int) -> RgbImage:
    return np.asarray(
        cv2.copyMakeBorder(rgb, top, bottom, left, right, cv2.BORDER_CONSTANT, value=GREY), dtype=np.uint8
    )


def mean_shift(first: Points, second: Points) -> float:
    return float(np.linalg.norm(first - second, axis=1).mean())


def test_points_lie_on_the_face(detector: LandmarkDetector, studio_rgb: RgbImage) -> None:
    face = only(detector.find(studio_rgb))
    assert face.points.shape == (478, 2)
    assert face.depth.shape == (478,)
    assert face.faces_found == 1
    right_pupil, left_pupil, chin = face.points[468], face.points[473], face.points[152]
    assert right_pupil[0] < left_pupil[0], "the subject's right is on the viewer's left"
    assert chin[1] > right_pupil[1]
    assert studio_rgb[round(right_pupil[1]), round(right_pupil[0])].mean() < 90, "a pupil is dark"
    assert face.depth[4] < face.depth[234], "the nose is nearer than the outline"


def test_roll_is_positive_when_the_head_leans_to_the_viewers_right(
    detector: LandmarkDetector, studio_rgb: RgbImage
) -> None:
    upright = only(detector.find(studio_rgb)).pose.roll_deg
    assert only(detector.find(turned(studio_rgb, 20))).pose.roll_deg == pytest.approx(upright + 20, abs=2)
    assert only(detector.find(turned(studio_rgb, -20))).pose.roll_deg == pytest.approx(upright - 20, abs=2)


def test_yaw_is_positive_when_the_subject_turns_to_their_left(
    detector: LandmarkDetector, read_rgb: Callable[[Path], RgbImage]
) -> None:
    """This person looks to the viewer's right; in a mirror to the viewer's left."""
    rgb = resized(read_rgb(selfie(5)), 800)
    face = only(detector.find(rgb))
    nose, right_side, left_side = (face.points[point, 0] for point in (4, 234, 454))
    assert nose - right_side > left_side - nose
    assert face.pose.yaw_deg > 5
    mirrored = only(detector.find(np.ascontiguousarray(rgb[:, ::-1])))
    assert mirrored.pose.yaw_deg == pytest.approx(-face.pose.yaw_deg, abs=2)
    assert mirrored.pose.pitch_deg == pytest.approx(face.pose.pitch_deg, abs=2)


def test_pitch_is_positive_when_the_chin_goes_down(
    detector: LandmarkDetector, portraits: Path, read_rgb: Callable[[Path], RgbImage]
) -> None:
    chin_up, chin_down = (
        only(detector.find(read_rgb(path))).pose.pitch_deg for path in (portraits / "synthetic_10.jpg", selfie(3))
    )
    assert chin_up < -5 < 12 < chin_down


@pytest.mark.parametrize(
    "border", [(0, 0, 0, 600), (0, 0, 600, 0), (600, 0, 0, 0), (0, 600, 0, 0), (300, 300, 300, 300)]
)
def test_a_border_moves_neither_points_nor_pose(
    detector: LandmarkDetector, studio_rgb: RgbImage, border: tuple[int, int, int, int]
) -> None:
    plain, framed = only(detector.find(studio_rgb)), only(detector.find(bordered(studio_rgb, *border)))
    assert mean_shift(framed.points - np.array([border[2], border[0]]), plain.points) < 0.02 * plain.box.width_px
    for axis in ("yaw_deg", "pitch_deg", "roll_deg"):
        assert getattr(framed.pose, axis) == pytest.approx(getattr(plain.pose, axis), abs=1.5)


@pytest.mark.parametrize("wide", [True, False])
def test_long_narrow_pictures(detector: LandmarkDetector, studio_rgb: RgbImage, wide: bool) -> None:
    """1920 × 300 and 300 × 1920, against the same picture padded to a square."""
    small = resized(studio_rgb, 300)
    border = (0, 0, 700, 920) if wide else (700, 920, 0, 0)
    to_square = (810, 810, 0, 0) if wide else (0, 0, 810, 810)
    narrow = bordered(small, *border)
    found = only(detector.find(narrow))
    reference = only(detector.find(bordered(narrow, *to_square)))
    shift = mean_shift(found.points + np.array([to_square[2], to_square[0]]), reference.points)
    assert shift < 0.02 * reference.box.width_px


@pytest.mark.parametrize("wide", [True, False])
def test_a_face_as_wide_as_a_narrow_picture_is_found(
    detector: LandmarkDetector, studio_rgb: RgbImage, wide: bool
) -> None:
    """Eleven times as long as wide, the face in the middle and sharp: no coarser than in the square around it."""
    small = resized(studio_rgb, 600)
    narrow = bordered(small, *((0, 0, 3000, 3000) if wide else (3000, 3000, 0, 0)))
    shift = np.array([3000, 0] if wide else [0, 3000])
    found = only(detector.find(narrow))
    assert mean_shift(found.points - shift, only(detector.find(small)).points) < 0.01 * found.box.width_px


def test_the_longest_pictures_are_looked_through_in_some_looks(detector: LandmarkDetector) -> None:
    looks: list[None] = []
    assert detector.find(np.full((200, 40_000, 3), 128, dtype=np.uint8), lambda: looks.append(None)) == ()
    assert len(looks) < 50


@pytest.mark.parametrize("big_on_the_left", [True, False])
def test_the_larger_face_comes_first(detector: LandmarkDetector, studio_rgb: RgbImage, big_on_the_left: bool) -> None:
    big = resized(studio_rgb, 800)
    small = bordered(resized(studio_rgb, 500), 150, 150, 0, 0)
    faces = detector.find(np.hstack([big, small] if big_on_the_left else [small, big]))
    assert len(faces) == faces[0].faces_found == 2
    assert faces[0].box.height_px > 1.4 * faces[1].box.height_px
    assert (faces[0].box.x_px < faces[1].box.x_px) is big_on_the_left


def test_of_equal_faces_the_one_nearer_to_the_centre_comes_first(
    detector: LandmarkDetector, studio_rgb: RgbImage
) -> None:
    """The same pixels twice: whatever order the model finds them in, the answer is one and the same."""
    tile = resized(studio_rgb, 512)
    first = detector.find(np.hstack([tile, tile]))
    again = detector.find(np.hstack([tile, tile]))
    assert len(first) == 2
    assert first[0].box == again[0].box


def test_a_face_that_is_small_in_the_picture_is_found(
    detector: LandmarkDetector, read_rgb: Callable[[Path], RgbImage]
) -> None:
    rgb = read_rgb(full_length(3))
    assert detector.detect(rgb) == (), "one pass misses it: the second look is what this test is about"
    face = only(detector.find(rgb))
    assert face.box.x_px == pytest.approx(666, abs=15)
    assert face.box.y_px == pytest.approx(300, abs=25)


def test_of_several_small_faces_each_is_found_once(detector: LandmarkDetector, studio_rgb: RgbImage) -> None:
    scene = np.full((1500, 2400, 3), 128, dtype=np.uint8)
    for x, y, side in ((100, 900, 330), (1150, 600, 400), (1900, 200, 330)):
        scene[y : y + side, x : x + side] = resized(studio_rgb, side)
    assert detector.detect(scene) == (), "one pass misses them: the second look is what this test is about"
    faces = detector.find(scene)
    assert [face.faces_found for face in faces] == [3, 3, 3]
    assert faces[0].box.x_px == pytest.approx(1276, abs=20)
    assert faces[0].box.width_px > faces[1].box.width_px


def test_a_face_that_sticks_out_is_found(detector: LandmarkDetector, studio_rgb: RgbImage) -> None:
    """Cut below the mouth, tight at the sides: the chin is put where it would be, outside the picture."""
    tight = studio_rgb[270:600, 320:705]
    face = only(detector.find(tight))
    assert face.points[152, 1] > tight.shape[0]


def in_a_corner(rgb: RgbImage) -> RgbImage:
    photo = np.full((3600, 4400, 3), 128, dtype=np.uint8)
    photo[2200:3100, 3100:4000] = resized(rgb, 900)
    return photo


def tight(rgb: RgbImage) -> RgbImage:
    return np.asarray(cv2.resize(rgb[260:620, 330:700], (4440, 4320), interpolation=cv2.INTER_CUBIC), dtype=np.uint8)


@pytest.mark.parametrize("large", [in_a_corner, tight])
def test_in_a_large_photo_a_face_is_where_it_is_and_copies_are_small(
    detector: LandmarkDetector, studio_rgb: RgbImage, large: Callable[[RgbImage], RgbImage]
) -> None:
    """The second looks go over a reduced photo: with a border as it is, one of these would take 210 MB more."""
    photo = large(studio_rgb)
    assert detector.detect(photo) == (), "one pass misses it: the second look is what this test is about"
    tracemalloc.start()
    try:
        face = only(detector.find(photo))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert bool(detector._find_in_parts(reduced_by(photo, 2), lambda: None)) == (large is in_a_corner), (
        "or the border is"
    )
    half = only(detector.find(np.asarray(cv2.resize(photo, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA))))
    assert mean_shift(face.points, 2 * half.points + 0.5) < 0.01 * face.box.height_px
    assert face.box.width_px == pytest.approx(2 * half.box.width_px, rel=0.02)
    assert peak_bytes < photo.nbytes


@pytest.mark.parametrize("colour", [0, 128, 255])
def test_a_wall_has_no_face(detector: LandmarkDetector, colour: int) -> None:
    assert detector.find(np.full((300, 400, 3), colour, dtype=np.uint8)) == ()


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    path = tmp_path / "face_landmarker.task"
    path.write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"face_landmarker\.task could not be loaded"):
        LandmarkDetector(path)


def test_start_up_is_silent(model_files: ModelFiles, capfd: pytest.CaptureFixture[str]) -> None:
    LandmarkDetector(model_files.face_landmarker).close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("chin_down_deg", "sign"), [(45, 1), (-50, -1)])
def test_a_nodding_head_is_refused_by_its_pitch(
    detector: LandmarkDetector, studio_rgb: RgbImage, chin_down_deg: float, sign: int
) -> None:
    nodding = nodded(studio_rgb, only(detector.find(studio_rgb)), chin_down_deg)
    face = only(detector.find(nodding))
    assert sign * face.pose.pitch_deg > 15
    with pytest.raises(PhotoError) as refused:
        choose_face((face,), width_px=nodding.shape[1], height_px=nodding.shape[0])
    assert refused.value.reason is Reason.PITCH
