"""Warnings on children, on pictures taken from too near, and on eyes that are not a person's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import selfie, studio_portrait
from tests.vision.conftest import photo_of
from vision.landmarks import LandmarkDetector
from vision.photo_warnings import find_warnings
from vision.types import LABEL_COUNT, FaceLandmarks, Label, ParsingMap, PhotoWarning, Points, RgbImage

pytestmark = pytest.mark.models

ReadRgb = Callable[[Path], RgbImage]

IRISES = ((468, range(468, 473)), (473, range(473, 478)))


SHADED = photo_of(np.tile(np.arange(256, dtype=np.uint8)[:, None], (1, 256, 3)).reshape(256, 256, 3))
FLAT = photo_of(np.full((256, 256, 3), 180, dtype=np.uint8))
BARE_EYED = ParsingMap(np.zeros((LABEL_COUNT, 64, 64), dtype=np.float32), np.array([[40.0, 0, 0], [0, 40.0, 0]]))

NO_SKIN = replace(BARE_EYED, probabilities=BARE_EYED.probabilities.copy())
BARE_EYED.probabilities[Label.SKIN] = 0.9


def reasons(face: FaceLandmarks) -> set[str]:
    return {warning.reason for warning in find_warnings(SHADED, face, BARE_EYED)}


def landmarks_of(path: Path, detector: LandmarkDetector, read_rgb: ReadRgb) -> FaceLandmarks:
    return detector.find(read_rgb(path))[0]


@pytest.mark.parametrize("person", range(1, 11))
def test_adults_in_studio_portraits_earn_none(person: int, detector: LandmarkDetector, read_rgb: ReadRgb) -> None:
    assert reasons(landmarks_of(studio_portrait(person), detector, read_rgb)) == set()


def test_selfies_earn_the_perspective_warning(detector: LandmarkDetector, read_rgb: ReadRgb) -> None:
    """Not all were taken from near; none earns another warning."""
    found = [reasons(landmarks_of(selfie(person), detector, read_rgb)) for person in range(1, 11)]
    assert all(warnings <= {"PERSPECTIVE"} for warnings in found)
    assert sum("PERSPECTIVE" in warnings for warnings in found) >= 8


@pytest.mark.parametrize("name", ["synthetic_04.jpg", "synthetic_11.jpg"])
def test_children_earn_the_child_warning(
    name: str, portraits: Path, detector: LandmarkDetector, read_rgb: ReadRgb
) -> None:
    (warning,) = find_warnings(SHADED, landmarks_of(portraits / name, detector, read_rgb), BARE_EYED)
    assert warning.reason == "CHILD"
    assert warning.value is not None
    assert warning.limit is not None
    assert warning.value != warning.limit


@pytest.mark.parametrize("number", [1, 2, 3, 5, 6, 7, 8, 9, 10, 12])
def test_other_adults_earn_no_child_warning(
    number: int, portraits: Path, detector: LandmarkDetector, read_rgb: ReadRgb
) -> None:
    assert "CHILD" not in reasons(landmarks_of(portraits / f"synthetic_{number:02}.jpg", detector, read_rgb))


def with_irises(points: Points, factor: float) -> Points:
    changed = points.copy()
    for pupil, ring in IRISES:
        changed[ring] = points[pupil] + factor * (points[ring] - points[pupil])
    return changed


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_eyes_of_inhuman_size_are_not_a_photo(factor: float, detector: LandmarkDetector, read_rgb: ReadRgb) -> None:
    face = landmarks_of(studio_portrait(2), detector, read_rgb)
    assert "NOT_A_PHOTO" in reasons(replace(face, points=with_irises(face.points, factor)))
    assert reasons(replace(face, points=with_irises(face.points, 1.0))) == set()


def test_skin_of_a_single_tone_is_not_a_photo(detector: LandmarkDetector, read_rgb: ReadRgb) -> None:
    face = landmarks_of(studio_portrait(2), detector, read_rgb)
    (warning,) = find_warnings(FLAT, face, BARE_EYED)
    assert warning == PhotoWarning("NOT_A_PHOTO", 0.0, 0.03, "ratio")
    assert find_warnings(FLAT, face, NO_SKIN) == ()


def test_warnings_do_not_depend_on_the_photos_size(detector: LandmarkDetector, read_rgb: ReadRgb) -> None:
    face = landmarks_of(selfie(1), detector, read_rgb)
    larger = replace(face, points=face.points * 3, depth=np.asarray(face.depth * 3))
    assert [w.value for w in find_warnings(SHADED, larger, BARE_EYED)] == [
        w.value for w in find_warnings(SHADED, face, BARE_EYED)
    ]


@pytest.mark.parametrize(("pitch_deg", "limit"), [(-5.2, -5.0), (-4.8, None), (7.0, None), (18.8, None), (19.2, 19.0)])
def test_a_head_that_nods_far_earns_a_warning(
    pitch_deg: float, limit: float | None, detector: LandmarkDetector, read_rgb: ReadRgb
) -> None:
    face = landmarks_of(studio_portrait(2), detector, read_rgb)
    tilted = replace(face, pose=replace(face.pose, pitch_deg=pitch_deg))
    found = [warning for warning in find_warnings(SHADED, tilted, BARE_EYED) if warning.reason == "HEAD_TILTED"]
    assert found == ([] if limit is None else [PhotoWarning("HEAD_TILTED", pitch_deg, limit, "deg")])


def test_a_portrait_from_below_is_called_tilted(portraits: Path, detector: LandmarkDetector, read_rgb: ReadRgb) -> None:
    assert "HEAD_TILTED" in reasons(landmarks_of(portraits / "synthetic_10.jpg", detector, read_rgb))


def test_glasses_earn_a_warning(detector: LandmarkDetector, read_rgb: ReadRgb) -> None:
    face = landmarks_of(studio_portrait(2), detector, read_rgb)
    spectacled = replace(BARE_EYED, probabilities=BARE_EYED.probabilities.copy())
    spectacled.probabilities[Label.EYEGLASSES] = 1
    (warning,) = find_warnings(SHADED, face, spectacled)
    assert (warning.reason, warning.value) == ("GLASSES", 1.0)
