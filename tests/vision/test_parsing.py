"""Crops, fusion and the raster: by a parser that labels by colour, then by the real one."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.vision.conftest import photo_of, resized
from tests.vision.faces import FRONTAL, face
from vision.landmarks import LandmarkDetector
from vision.parsing import CROPS, normalized, parse, sample
from vision.runtime import OnnxParser
from vision.types import LABEL_COUNT, FaceLandmarks, Label, ParsingMap, RgbImage

RED_LEVEL = float(normalized(np.full((1, 1, 3), (200, 0, 0), dtype=np.uint8))[0, 0, 0, 0])


def red_is_hair(crops: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, 3, 512, 512) to logits: hair where the crop is red, skin elsewhere; an exact network of no depth."""
    cells = np.round(np.arange(64) * 511 / 63).astype(int)
    red = crops[:, 0][:, cells][:, :, cells] > RED_LEVEL / 2
    logits = np.full((len(crops), LABEL_COUNT, 64, 64), -9.0, dtype=np.float32)
    logits[:, Label.SKIN] = 3
    logits[:, Label.HAIR] = np.where(red, 6, -9)
    return logits


class Steps:
    """Counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def picture(width: int, height: int, *red: tuple[int, int, int, int]) -> RgbImage:
    """Black, with red rectangles (left, top, right, bottom)."""
    rgb = np.zeros((height, width, 3), dtype=np.uint8)
    for left, top, right, bottom in red:
        rgb[top:bottom, left:right] = (200, 0, 0)
    return rgb


def in_photo(parsing: ParsingMap, label: int, width: int, height: int) -> NDArray[np.bool_]:
    """Mask of a label on the photo's own pixels."""
    probability = cv2.warpAffine(
        parsing.probabilities[label], parsing.photo_from_map, (width, height), flags=cv2.INTER_LINEAR
    )
    return np.asarray(probability > 0.5)


def overlap(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    return float((first & second).sum() / (first | second).sum())


@pytest.mark.parametrize(("width", "height"), [(640, 360), (360, 640), (333, 1001), (600, 600)])
@pytest.mark.parametrize("roll_deg", [0.0, 20.0])
def test_the_map_lies_where_the_photo_says(width: int, height: int, roll_deg: float) -> None:
    """Heights and widths change places in no step: a rectangle comes back as it was."""
    angle = np.radians(roll_deg)
    up = np.array([np.sin(angle), -np.cos(angle)])
    centre = np.array([width / 2, height / 2])
    landmarks = replace(
        face(pose=replace(FRONTAL, roll_deg=roll_deg)),
        points=np.array([centre + 70 * up if index == 10 else centre - 70 * up for index in range(478)]),
    )
    left, top = int(centre[0] - 60), int(centre[1] - 50)
    rgb = picture(width, height, (left, top, left + 110, top + 50))
    hair = in_photo(parse(photo_of(rgb), landmarks, red_is_hair, Steps()), Label.HAIR, width, height)
    assert overlap(hair, rgb[..., 0] > 0) > 0.88, "a cell of the logits is 4 px wide here"
    assert np.abs(centroid(hair) - centroid(rgb[..., 0] > 0)).max() < 2.5


def test_probabilities_add_up() -> None:
    parsing = parse(photo_of(picture(600, 600, (200, 100, 400, 200))), face(height=200), red_is_hair, Steps())
    assert parsing.probabilities.dtype == np.float32
    assert np.allclose(parsing.probabilities.sum(axis=0), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("hair", "crops"),
    [
        pytest.param((250, 150, 350, 200), 1, id="short"),
        pytest.param((250, 40, 350, 200), 2, id="high"),
        pytest.param((250, 250, 350, 520), 2, id="to the shoulders"),
        pytest.param((250, 250, 350, 700), 3, id="to the waist"),
    ],
)
def test_a_wider_crop_is_parsed_only_where_hair_goes_on(hair: tuple[int, int, int, int], crops: int) -> None:
    steps = Steps()
    rgb = picture(900, 900, hair)
    parsing = parse(photo_of(rgb), face(height=200), red_is_hair, steps)
    assert steps.count == crops
    assert parsing.probabilities.shape[1:] == (CROPS[crops - 1].side_px,) * 2
    assert overlap(in_photo(parsing, Label.HAIR, 900, 900), rgb[..., 0] > 0) > 0.9


@pytest.mark.parametrize("roll_deg", [0.0, -30.0])
def test_where_the_crops_overlap_they_lie_on_each_other(roll_deg: float) -> None:
    """A line through all three crops is straight in the fused map."""
    landmarks = face(height=160, pose=replace(FRONTAL, roll_deg=roll_deg))
    up = np.array([np.sin(np.radians(roll_deg)), -np.cos(np.radians(roll_deg))])
    landmarks.points[:] += 150
    landmarks.points[10], landmarks.points[152] = (450, 450) + 80 * up, (450, 450) - 80 * up
    rgb = picture(900, 900, (0, 0, 450, 900))
    steps = Steps()
    hair = in_photo(parse(photo_of(rgb), landmarks, red_is_hair, steps), Label.HAIR, 900, 900)
    assert steps.count == 3
    edge_px = hair[330:700, 390:510].sum(axis=1) + 390
    assert np.abs(edge_px - 450).max() < 10, "a cell of the widest crop's logits"


def test_hair_that_ends_with_the_photo_does_not_go_on() -> None:
    """The crop reaches beyond the photo; the hair cannot."""
    steps = Steps()
    rgb = picture(600, 600, (200, 0, 400, 200))[100:500, 100:500]
    parse(photo_of(rgb), replace(face(height=300), points=face(height=300).points - 100), red_is_hair, steps)
    assert steps.count == 1


def test_both_crops_agree_in_the_fused_map() -> None:
    """No seam where the narrow crop hands over to the wide one."""
    rgb = picture(1200, 1200, (0, 0, 600, 1200))
    landmarks = replace(face(height=200), points=face(height=200).points + 300)
    parsing = parse(photo_of(rgb), landmarks, red_is_hair, Steps())
    boundary = in_photo(parsing, Label.HAIR, 1200, 1200)[330:870].sum(axis=1) / 1.0
    assert boundary.max() - boundary.min() < 8


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.7, 9.0])
def test_samples_are_centred_whatever_the_reduction(scale: float) -> None:
    """A ramp sampled at any scale has the value of the place it was asked for."""
    ramp = np.tile(np.linspace(0, 255, 2000)[None, :, None], (300, 1, 3)).astype(np.uint8)
    to_photo = np.array([[scale, 0, 700.0], [0, scale, 20.0]])
    crop = sample(ramp, to_photo, 24)
    expected = (700 + scale * np.arange(24)) * 255 / 1999
    assert np.abs(crop[12, :, 0] - expected).max() < 1.5


def test_outside_the_photo_is_black() -> None:
    white = np.full((50, 50, 3), 255, dtype=np.uint8)
    assert sample(white, np.array([[1.0, 0, 200], [0, 1.0, 0]]), 16).max() == 0
    assert sample(white, np.array([[1.0, 0, 40], [0, 1.0, 0]]), 16)[5, 15].max() == 0


def real_map(rgb: RgbImage, detector: LandmarkDetector, parser: OnnxParser) -> tuple[ParsingMap, FaceLandmarks]:
    (landmarks,) = detector.find(rgb)
    return parse(photo_of(rgb), landmarks, parser, Steps()), landmarks


def centroid(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.asarray(np.argwhere(mask).mean(axis=0)[::-1])


@pytest.mark.models
def test_labels_lie_where_they_belong(detector: LandmarkDetector, parser: OnnxParser, studio_rgb: RgbImage) -> None:
    parsing, landmarks = real_map(studio_rgb, detector, parser)
    at = {
        label: centroid(in_photo(parsing, label, 1024, 1024))
        for label in (Label.HAIR, Label.LEFT_EYE, Label.RIGHT_EYE, Label.UPPER_LIP, Label.NOSE)
    }
    assert at[Label.HAIR][1] < at[Label.LEFT_EYE][1] < at[Label.NOSE][1] < at[Label.UPPER_LIP][1]
    assert np.linalg.norm(at[Label.LEFT_EYE] - landmarks.points[473]) < 12
    assert np.linalg.norm(at[Label.RIGHT_EYE] - landmarks.points[468]) < 12


@pytest.mark.models
def test_left_and_right_are_not_swapped_in_a_mirror(
    detector: LandmarkDetector, parser: OnnxParser, studio_rgb: RgbImage
) -> None:
    mirrored = np.ascontiguousarray(studio_rgb[:, ::-1])
    parsing, _ = real_map(mirrored, detector, parser)
    left, right = (centroid(in_photo(parsing, eye, 1024, 1024)) for eye in (Label.LEFT_EYE, Label.RIGHT_EYE))
    assert left[0] > right[0], "the subject's left is on the viewer's right, in a mirror too"


@pytest.mark.models
def test_loose_framing_leaves_the_hair_as_it_was(
    detector: LandmarkDetector, parser: OnnxParser, studio_rgb: RgbImage
) -> None:
    """The same head filling a portrait, and covering 8 % of a picture of 1920 × 1080."""
    small = resized(studio_rgb, 700)
    frame = np.full((1080, 1920, 3), 128, dtype=np.uint8)
    frame[200:900, 900:1600] = small
    shares = []
    for rgb in (small, frame):
        parsing, landmarks = real_map(rgb, detector, parser)
        hair = in_photo(parsing, Label.HAIR, rgb.shape[1], rgb.shape[0]).sum()
        shares.append(hair / (landmarks.box.width_px * landmarks.box.height_px))
    assert shares[1] == pytest.approx(shares[0], rel=0.1)


@pytest.mark.models
def test_roll_leaves_the_hair_as_it_was(detector: LandmarkDetector, parser: OnnxParser, studio_rgb: RgbImage) -> None:
    matrix = cv2.getRotationMatrix2D((512, 512), -25, 1)
    leaning = np.asarray(cv2.warpAffine(studio_rgb, matrix, (1024, 1024), borderMode=cv2.BORDER_REPLICATE), np.uint8)
    upright_hair = in_photo(real_map(studio_rgb, detector, parser)[0], Label.HAIR, 1024, 1024)
    leaning_hair = in_photo(real_map(leaning, detector, parser)[0], Label.HAIR, 1024, 1024)
    turned_back = cv2.warpAffine(
        leaning_hair.astype(np.float32), matrix, (1024, 1024), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    )
    assert overlap(np.asarray(turned_back > 0.5), upright_hair) > 0.95


@pytest.mark.models
def test_a_picture_without_hair_is_no_trouble(parser: OnnxParser) -> None:
    """A mesh on nothing at all: every probability is a number."""
    parsing = parse(photo_of(picture(600, 600)), face(height=250), parser, Steps())
    assert np.isfinite(parsing.probabilities).all()
    assert parsing.labels.max() < LABEL_COUNT
