"""From what is known of a photo to the scene and the jobs of growth, on the canvas.

Frame: that of `vision.growth.backend`. The canvas is the upright photo, reduced by averaging where it is larger than
the answer's picture may be. Pixel centres have whole-number coordinates in both, so a point moves by the half pixels
between the two corners as well: canvas = (photo + ½) · factor - ½.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import islice, takewhile
from weakref import WeakKeyDictionary

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.calls import HairlineDesign
from vision.growth.backend import GrowthJob, GrowthReason, GrowthScene, GrowthUnavailableError
from vision.growth.region_raster import coverage, outlines
from vision.types import Box, FaceLandmarks, Facts, HairlineState, Label, ParsingMap, Points, Pose

Weights = NDArray[np.float32]
"""(H, W), 0 to 1 for every pixel of the canvas."""

PUPILLARY_MM = 63.0
"""Median of adults: widths of feathers and windows are taken from it where the photo gave no scale. Nothing that is
told to anybody as millimetres is."""
_PUPILS = (468, 473)

GROUND = (Label.SKIN, Label.HAIR)
"""Where hair may grow, by the parser: the rest is brows, eyes, ears, lips, cloth, hats, background."""
SURE_HAIR = (0.75, 0.95)
"""From the first to the second of these values of `hair` less and less has to grow: what is hair stays the person's
own."""
GROUND_FROM = (0.35, 0.65)
"""Ground counts fully from the second probability on; below the first nothing grows."""
FACE_OPENINGS: tuple[tuple[int, ...], ...] = (
    (33, 246, 161, 160, 159, 158, 157, 173, 133, 155, 154, 153, 145, 144, 163, 7),
    (263, 466, 388, 387, 386, 385, 384, 398, 362, 382, 381, 380, 374, 373, 390, 249),
    (70, 63, 105, 66, 107, 55, 65, 52, 53, 46),
    (300, 293, 334, 296, 336, 285, 295, 282, 283, 276),
    (61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291, 375, 321, 405, 314, 17, 84, 181, 91, 146),
    (168, 193, 245, 188, 217, 126, 142, 129, 98, 97, 2, 326, 327, 358, 371, 355, 437, 412, 465, 417),
)
"""Eyes, brows, lips and nose as closed polygons of the mesh: never grown over, whatever the parser says."""
MARGIN_MM = 1.5
"""Around those polygons."""
SMALLEST_REGION_MM2 = 4.0
"""Where less than this is left to grow, there is nothing to grow."""
INSIDE = 0.5
"""A pixel belongs to a region, or to hair, from this weight on."""
NO_HAIR_BEYOND = 0.5
BEYOND_MM = 3.0
"""A stretch of a marked region's border is free where what lies so far beyond has less hair than that."""
BRIDGED_MM = 10.0
"""A bare strip between a marked region and the present hair, as narrow as this, is grown over as well: nobody marks
right up to the last strand."""
BRIDGED_PX_PER_MM = 2.0
"""As finely as strips are looked for."""
OTHER_BORDER_MM = 8.0
APART_MM = 3.0
MOST_OTHERS = 8
"""A free border of a region counts beside its front when it is as long and lies so far from it; the longest of them."""
MOST_OUTLINES = 500
"""Free borders are looked for on the longest of them."""


def scene_of(facts: Facts, max_output_side_px: int) -> GrowthScene:
    """The photo as canvas of at most `max_output_side_px`, never enlarged, and what is known of it there."""
    photo = facts.photo
    scale = min(1.0, max_output_side_px / max(photo.width_px, photo.height_px))
    width, height = (max(1, round(side * scale)) for side in (photo.width_px, photo.height_px))
    factor = np.array([width / photo.width_px, height / photo.height_px])
    rgb = photo.rgb
    if (width, height) != (photo.width_px, photo.height_px):
        rgb = np.asarray(cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)
    seen = [(p.x_px, p.y_px) for p in facts.hairline.points if p.state is HairlineState.OBSERVED]
    linear, offset = facts.parsing.photo_from_map[:, :2], facts.parsing.photo_from_map[:, 2]
    canvas_from_map = np.column_stack([factor[:, None] * linear, on_canvas(offset, factor)])
    return GrowthScene(
        rgb=rgb,
        scale=scale,
        landmarks=on_canvas(facts.landmarks.points, factor),
        parsing=ParsingMap(facts.parsing.probabilities, canvas_from_map),
        hairline=on_canvas(np.array(seen), factor) if facts.hairline.trichion is not None else None,
        mm_per_px=None if facts.scale.mm_per_px is None else facts.scale.mm_per_px / scale,
        roll_deg=facts.landmarks.pose.roll_deg,
    )


def on_canvas(points: Points, factor: NDArray[np.float64] | float) -> Points:
    """Points (..., 2) of the photo on a canvas that is `factor` (one, or one for x and y) times as large."""
    moved: Points = (points + 0.5) * factor - 0.5
    return moved


def px_per_mm(scene: GrowthScene) -> float:
    """Canvas pixels per mm; by the distance of the pupils where the photo gave no scale."""
    if scene.mm_per_px is not None:
        return 1.0 / scene.mm_per_px
    right, left = scene.landmarks[list(_PUPILS)]
    return float(np.linalg.norm(left - right)) / PUPILLARY_MM


def landmarks_of(scene: GrowthScene) -> FaceLandmarks:
    """What the parser needs to know of the face, on the canvas: its points and its roll."""
    low, high = scene.landmarks.min(axis=0), scene.landmarks.max(axis=0)
    return FaceLandmarks(
        points=scene.landmarks,
        depth=np.zeros(len(scene.landmarks)),
        transform=np.eye(4),
        pose=Pose(yaw_deg=0.0, pitch_deg=0.0, roll_deg=scene.roll_deg),
        box=Box(float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1])),
        faces_found=1,
    )


def probability(parsing: ParsingMap, labels: Sequence[int], shape: tuple[int, int]) -> Weights:
    """(H, W), probability of any of `labels`; 0 beyond the parser's raster. `shape` is that of the canvas."""
    plane = parsing.probabilities[list(labels)].sum(axis=0)
    height, width = shape
    warped = cv2.warpAffine(plane, parsing.photo_from_map, (width, height), flags=cv2.INTER_LINEAR)
    return np.clip(np.asarray(warped, dtype=np.float32), 0, 1)


def _found_once(find: Callable[[GrowthScene], Weights]) -> Callable[[GrowthScene], Weights]:
    """For planes that all steps of a call ask for: kept as long as the scene is, and not to be written to."""
    planes: WeakKeyDictionary[GrowthScene, Weights] = WeakKeyDictionary()

    @wraps(find)
    def found(scene: GrowthScene) -> Weights:
        plane = planes.get(scene)
        if plane is None:
            plane = planes[scene] = find(scene)
            plane.flags.writeable = False
        return plane

    return found


@_found_once
def hair(scene: GrowthScene) -> Weights:
    """How far it is hair rather than skin in the photo as it is.

    Deep in hair the parser says hair with no more than 0.85, the rest is spread over what is no part of a face: so the
    two are weighed against each other. 0 where it is neither.
    """
    is_hair, is_skin = (probability(scene.parsing, (label,), canvas_shape(scene)) for label in (Label.HAIR, Label.SKIN))
    either: Weights = is_hair / np.maximum(is_hair + is_skin, np.float32(1e-6))
    return either * ramp(is_hair + is_skin, *GROUND_FROM)


def canvas_shape(scene: GrowthScene) -> tuple[int, int]:
    """(height, width)."""
    return scene.rgb.shape[0], scene.rgb.shape[1]


@_found_once
def growable(scene: GrowthScene) -> Weights:
    """1 on skin and hair of the head, 0 on the openings of the face with their margin, ears, cloth and background."""
    ground = ramp(probability(scene.parsing, GROUND, canvas_shape(scene)), *GROUND_FROM)
    reach_px = MARGIN_MM * px_per_mm(scene)
    openings = coverage([scene.landmarks[list(opening)] for opening in FACE_OPENINGS], canvas_shape(scene))
    size = 2 * round(reach_px) + 1
    widened = cv2.dilate(openings, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)))
    return ground * (1 - weights(np.asarray(widened, dtype=np.uint8)))


def ramp(values: Weights, low: float, high: float) -> Weights:
    """0 up to `low`, 1 from `high` on, smooth between."""
    t = np.clip((values - np.float32(low)) / np.float32(high - low), 0, 1)
    smooth: Weights = t * t * (3 - 2 * t)
    return smooth


def mask_on_canvas(scene: GrowthScene, mask: NDArray[np.uint8]) -> Weights:
    """A mask (H, W) of the photo, 255 inside, on the canvas."""
    height, width = canvas_shape(scene)
    reduced = cv2.resize(mask, (width, height), interpolation=cv2.INTER_AREA)
    return weights(np.asarray(reduced, dtype=np.uint8))


def weights(mask: NDArray[np.uint8]) -> Weights:
    """A mask (H, W) of which 255 is all."""
    return mask.astype(np.float32) / np.float32(255)


def job_for_design(scene: GrowthScene, design: HairlineDesign, seed: int, timeout_s: float | None) -> GrowthJob:
    """What a design wants filled: its regions, less what is hair already.

    Raises `GrowthUnavailableError` (NOTHING_TO_GROW) where the present hair reaches the design.
    """
    polygons = [on_canvas(polygon, scene.scale) for polygon in design.regions]
    region = _to_grow(scene, weights(coverage(polygons, canvas_shape(scene))))
    return GrowthJob(scene, region, on_canvas(design.curve, scene.scale), seed, timeout_s)


def job_for_region(scene: GrowthScene, mask: NDArray[np.uint8], seed: int, timeout_s: float | None) -> GrowthJob:
    """What a user marked, less what is hair already, and the strip of up to `BRIDGED_MM` between the two.

    `mask` is (H, W) of the photo, 255 inside.

    Its front is the longest stretch of its border beyond which no hair lies; None where hair is all around.
    Raises `GrowthUnavailableError` (NOTHING_TO_GROW) where hair fills it.
    """
    marked = _bridged(scene, mask_on_canvas(scene, mask))
    region = _to_grow(scene, marked)
    borders = free_borders(scene, marked)
    return GrowthJob(scene, region, borders[0] if borders else None, seed, timeout_s)


def _bridged(scene: GrowthScene, marked: Weights) -> Weights:
    """`marked` (H, W) with the bare strips that part it from the present hair."""
    height, width = canvas_shape(scene)
    scale = min(px_per_mm(scene), BRIDGED_PX_PER_MM)
    factor = scale / px_per_mm(scene)
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    present, wanted = (
        np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA)) >= INSIDE for plane in (hair(scene), marked)
    )
    either = (present | wanted).astype(np.uint8)
    # Closed by a disc as wide as the strip: what lies between the two, and not merely beside one of them.
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * round(BRIDGED_MM * scale / 2) + 1,) * 2)
    closed = np.asarray(cv2.morphologyEx(either, cv2.MORPH_CLOSE, disc))
    strip = (closed > 0) & (either == 0)
    for side in (present, wanted):
        away = cv2.distanceTransform((~side).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
        strip &= np.asarray(away) <= BRIDGED_MM * scale
    # With what it touches of both: nothing is left bare between.
    joined = closed * cv2.dilate(strip.astype(np.uint8), np.ones((3, 3), np.uint8))
    strips = cv2.resize(joined.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    bridged: Weights = np.maximum(marked, strips)
    return bridged


def _to_grow(scene: GrowthScene, wanted: Weights) -> Weights:
    region: Weights = wanted * growable(scene) * (1 - ramp(hair(scene), *SURE_HAIR))
    if np.count_nonzero(region >= INSIDE) < SMALLEST_REGION_MM2 * px_per_mm(scene) ** 2:
        raise GrowthUnavailableError(GrowthReason.NOTHING_TO_GROW)
    return region


def free_borders(scene: GrowthScene, wanted: Weights) -> list[Points]:
    """Runs of border points of `wanted` (H, W) with no hair beyond, the longest first.

    Each is (N, 2), from the viewer's left to the right.
    """
    reach = BEYOND_MM * px_per_mm(scene)
    size = 2 * round(reach) + 1
    outside = (wanted < 0.5).astype(np.float32)
    kernel = (size, size)
    # What lies beyond a border point: the mean hair of the outside around it.
    beyond = cv2.blur(hair(scene) * outside, kernel) / np.maximum(cv2.blur(outside, kernel), 1e-6)
    runs: list[Points] = []
    for outline in islice(outlines((wanted * 255).astype(np.uint8)), MOST_OUTLINES):
        x, y = np.rint(outline).astype(int).T
        runs += _runs(outline, beyond[y, x] < NO_HAIR_BEYOND)
    runs.sort(key=length_px, reverse=True)
    return [run if run[0, 0] <= run[-1, 0] else run[::-1] for run in runs]


def other_borders(job: GrowthJob) -> list[Points]:
    """Free borders of the job's region beside its front, as `free_borders` finds them."""
    scale = px_per_mm(job.scene)
    elsewhere = np.ones(job.region.shape, dtype=np.uint8)
    if job.front is not None:
        cv2.polylines(elsewhere, [np.rint(job.front).astype(np.int32)], isClosed=False, color=0)
    away = np.asarray(cv2.distanceTransform(elsewhere, cv2.DIST_L2, cv2.DIST_MASK_PRECISE))

    def is_apart(border: Points) -> bool:
        x, y = np.rint(border).astype(int).T
        return job.front is None or float(np.median(away[y, x])) > APART_MM * scale

    long = takewhile(lambda run: length_px(run) >= OTHER_BORDER_MM * scale, free_borders(job.scene, job.region))
    return list(islice(filter(is_apart, long), MOST_OTHERS))


def length_px(line: Points) -> float:
    """Of a line (N, 2)."""
    return float(np.hypot(*np.diff(line, axis=0).T).sum())


def _runs(closed: Points, wanted: NDArray[np.bool_]) -> list[Points]:
    """Maximal runs of wanted points of a closed line (N, 2); the whole of it where all are."""
    if wanted.all():
        return [np.vstack([closed, closed[:1]])]
    start = int(np.argmin(wanted))  # an unwanted point: no run goes on across it
    turned, flags = np.roll(closed, -start, axis=0), np.roll(wanted, -start)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [turned[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a > 1]
