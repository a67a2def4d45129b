"""The region a user marks for hair to grow in: a polygon or a mask file, checked before anything is computed from it.

What is refused, and by which reason; each carries the `field` at fault, what was measured and the limit it broke:

    fewer than three different corners, next to no area      REGION_EMPTY
    hardly any of it on scalp or forehead: on the face, the  REGION_OFF_SCALP
    neck, clothes or the background
    a corner beyond the photo                                REGION_OUTSIDE_IMAGE
    edges that cross or touch each other                     REGION_SELF_CROSSING
    larger than the face                                     REGION_TOO_LARGE
    a mask of dust, stripes or noise                         REGION_TOO_FINE
    a mask of another size than the upright photo            MASK_SIZE_DIFFERS
    a mask that is no picture we read                        MASK_UNREADABLE

A region may go beyond scalp and forehead: over eyes, brows, nose or lips hair does not grow
(`vision.growth.scene.growable`). `area_px2` is what was marked, everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.calls import GrowRegionOptions
from vision.decode import decode
from vision.errors import DetailValue, PhotoError, Reason
from vision.forehead_surface import ForeheadSurface
from vision.growth.backend import GrowthScene
from vision.growth.region_raster import HALF, border_px, coverage
from vision.growth.scene import FACE_OPENINGS, Weights, canvas_shape, growable, mask_on_canvas, weights
from vision.raster import Limits
from vision.types import FaceLandmarks, Photo, Points

MIN_AREA_PX2 = 25.0
"""Of the upright photo: a slip of the finger is smaller, and no hair could be seen in it."""
MAX_FACES = 1.0
"""In areas of the face's mesh, brows to chin: the scalp that a frontal photo of a bald head shows has about half."""
MAX_BORDERS = 20.0
"""Length of a mask's borders, in borders of the photo. Strokes of a brush, and a mask that was a JPEG, have less than
two. Dots of one pixel on a third of it have thousands, and would take minutes to outline.
"""
CELLS_PER_UNIT = 16
"""Side of the cells by which an area is added up, in `ForeheadSurface.unit_px`: about 2.5 mm."""
LEAST_ON_SCALP = 0.2
"""So much of a region has to lie on scalp or forehead: who marks a forehead generously has eyes and nose in it too, who
marks an eye has a rim of brow."""
JAW = (152, 172, 397)
"""Chin and both angles of the jaw: with eyes, brows, nose and lips the corners of the face, where no hair of the head
grows. Sideburns lie beside it."""
TOLERANCE_PX = 0.5
"""Beyond the outer edges of the outermost pixels: clients that count from corners instead of centres send as much."""
GRID = 256
"""Corners are kept to this part of a pixel: on whole numbers it is decided exactly whether edges meet."""


@dataclass(frozen=True, slots=True)
class MarkedRegion:
    """A region that can be grown in, in pixels of the upright photo."""

    name: str
    """`region` or `mask`: which parameter it came by."""
    mask: NDArray[np.uint8] = field(repr=False)
    """(H, W), 255 inside."""
    polygon: Points | None
    """(N, 2), the corners, where it came as a polygon."""
    area_px2: float

    def area_cm2(self, landmarks: FaceLandmarks, mm_per_px: float | None) -> float | None:
        """On the head of these landmarks, as designs tell theirs, not of its picture; None without a scale."""
        if mm_per_px is None:
            return None
        surface = ForeheadSurface(landmarks)
        left, top, width, height = cv2.boundingRect(self.mask)
        across, down = (max(1, round(CELLS_PER_UNIT * side / surface.unit_px)) for side in (width, height))
        x, y = np.meshgrid(*(np.linspace(0, *ends) for ends in ((width, across + 1), (height, down + 1))))
        seen = surface.seen_at(np.column_stack([x.ravel() + left - 0.5, y.ravel() + top - 0.5]))
        nodes = mm_per_px * seen.reshape(*x.shape, 3)
        cells_mm2 = (
            np.linalg.norm(np.cross(nodes[1:, 1:] - nodes[:-1, :-1], nodes[1:, :-1] - nodes[:-1, 1:]), axis=-1) / 2
        )
        inside = self.mask[top : top + height, left : left + width].astype(np.float32) / 255
        shares = cv2.resize(inside, (across, down), interpolation=cv2.INTER_AREA)
        return float((cells_mm2 * np.asarray(shares).reshape(down, across)).sum()) / 100


def marked_region(photo: Photo, options: GrowRegionOptions) -> MarkedRegion:
    """The region that `options` mark on `photo`; raises `PhotoError` as above."""
    if options.polygon is not None:
        return _from_polygon(photo, options.polygon)
    if options.mask is not None:
        return _from_mask(photo, options.mask)
    raise _refusal(Reason.INVALID_PARAMETER, "region")


def check_region(region: MarkedRegion, scene: GrowthScene) -> None:
    """Whether hair can grow there, on the photo's `scene`.

    Raises `PhotoError`: REGION_TOO_LARGE when the region is larger than the face, REGION_OFF_SCALP when it misses the
    scalp.
    """
    per_px2 = scene.scale**2
    limit = MAX_FACES * cv2.contourArea(cv2.convexHull(scene.landmarks.astype(np.float32))) / per_px2
    if region.area_px2 > limit:
        raise _refusal(Reason.REGION_TOO_LARGE, region.name, area_px2=round(region.area_px2), max_px2=round(limit))
    on_scalp_px2 = float((mask_on_canvas(scene, region.mask) * scalp(scene)).sum()) / per_px2
    least_px2 = max(MIN_AREA_PX2, LEAST_ON_SCALP * region.area_px2)
    if on_scalp_px2 < least_px2:
        raise _refusal(
            Reason.REGION_OFF_SCALP,
            region.name,
            area_px2=round(region.area_px2),
            on_scalp_px2=round(on_scalp_px2),
            min_px2=round(least_px2),
        )


def scalp(scene: GrowthScene) -> Weights:
    """(H, W), 1 where hair of the head can grow: what is growable, but for the face from the brows to the chin."""
    corners = scene.landmarks[sorted({*JAW, *(point for opening in FACE_OPENINGS for point in opening)})]
    face = cv2.convexHull(corners.astype(np.float32))[:, 0].astype(np.float64)
    return growable(scene) * (1 - weights(coverage([face], canvas_shape(scene))))


def _refusal(reason: Reason, name: str, **details: DetailValue) -> PhotoError:
    return PhotoError(reason, {"field": name, **details})


def _check_area(name: str, area_px2: float) -> None:
    if area_px2 < MIN_AREA_PX2:
        raise _refusal(Reason.REGION_EMPTY, name, area_px2=round(area_px2, 1), min_px2=MIN_AREA_PX2)


def _from_polygon(photo: Photo, corners: Points) -> MarkedRegion:
    if not np.isfinite(corners).all():
        raise _refusal(Reason.INVALID_PARAMETER, "region")
    far = np.array([photo.width_px, photo.height_px]) - 0.5
    beyond_px = np.maximum(-0.5 - corners, corners - far).max(axis=1, initial=0.0)
    if beyond_px.max(initial=0.0) > TOLERANCE_PX:
        x, y = (round(value, 1) for value in corners[beyond_px.argmax()].tolist())
        raise _refusal(
            Reason.REGION_OUTSIDE_IMAGE, "region", x=x, y=y, photo_width=photo.width_px, photo_height=photo.height_px
        )
    grid = without_spikes(np.rint(np.clip(corners, -0.5, far) * GRID).astype(np.int64))
    if len(grid) < 3:
        raise _refusal(Reason.REGION_EMPTY, "region", corners=len(grid), min=3)
    meeting = meeting_edges(grid)
    if meeting is not None:
        x, y = (round(value, 1) for value in (grid[meeting[0]] / GRID).tolist())
        raise _refusal(Reason.REGION_SELF_CROSSING, "region", x=x, y=y)
    area_px2 = abs(doubled_area(grid)) / 2 / GRID**2
    _check_area("region", area_px2)
    polygon = grid / GRID
    return MarkedRegion("region", coverage([polygon], photo.rgb.shape[:2]), polygon, area_px2)


def _from_mask(photo: Photo, data: bytes) -> MarkedRegion:
    try:
        # Nobody has painted where a mask is transparent.
        picture = decode(data, Limits(max_pixels=photo.width_px * photo.height_px, min_side_px=1), ground="black")
    except PhotoError as error:
        if error.reason is Reason.IMAGE_TOO_MANY_PIXELS:
            raise _differs(photo, error.details["width"], error.details["height"]) from error
        raise _refusal(Reason.MASK_UNREADABLE, "mask", **error.details) from error
    if picture.rgb.shape != photo.rgb.shape:
        raise _differs(photo, picture.width_px, picture.height_px)
    grey = cv2.cvtColor(picture.rgb, cv2.COLOR_RGB2GRAY)
    mask = np.where(grey >= HALF, 255, 0).astype(np.uint8)
    area_px2 = float(np.count_nonzero(mask))
    _check_area("mask", area_px2)
    border, most = border_px(mask), round(MAX_BORDERS * 2 * sum(mask.shape))
    if border > most:
        raise _refusal(Reason.REGION_TOO_FINE, "mask", border_px=border, max_px=most)
    return MarkedRegion("mask", mask, None, area_px2)


def _differs(photo: Photo, width: DetailValue, height: DetailValue) -> PhotoError:
    wanted = {"photo_width": photo.width_px, "photo_height": photo.height_px}
    return _refusal(Reason.MASK_SIZE_DIFFERS, "mask", width=width, height=height, **wanted)


# Exact geometry of closed polygons whose corners are whole numbers, (N, 2) int64: for pictures of 40 million pixels
# every product stays below 2^63.


def without_spikes(corners: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same border without corners that repeat and without edges that run back on themselves."""
    kept: list[NDArray[np.int64]] = []
    for corner in corners:
        kept.append(corner)
        while _ends_in_spike(kept):
            kept.pop(-2)
    # The same where the end meets the beginning.
    while len(kept) > 1 and (_ends_in_spike([*kept, kept[0]]) or _ends_in_spike([kept[-1], *kept[:2]])):
        kept.pop(-1) if _ends_in_spike([*kept, kept[0]]) else kept.pop(0)
    return np.array(kept, dtype=np.int64).reshape(-1, 2)


def _ends_in_spike(line: list[NDArray[np.int64]]) -> bool:
    """Whether the last corner but one is the last again, or the tip of a line there and back."""
    if len(line) > 1 and (line[-1] == line[-2]).all():
        return True
    if len(line) < 3:
        return False
    there, back = line[-2] - line[-3], line[-1] - line[-2]
    return bool(there[0] * back[1] == there[1] * back[0] and there @ back < 0)


def doubled_area(corners: NDArray[np.int64]) -> int:
    """Twice the area, positive where the corners run clockwise as seen (y points down)."""
    x, y = corners.T
    # Python's whole numbers: the sum may leave 64 bits where no single product does.
    return sum((x * np.roll(y, -1) - np.roll(x, -1) * y).tolist())


def meeting_edges(corners: NDArray[np.int64]) -> tuple[int, int] | None:
    """The first two edges, by the index of their first corner, that share a point without being neighbours.

    Touching counts: which side is inside is not told where a border touches itself.
    """
    count = len(corners)
    start, end = corners, np.roll(corners, -1, axis=0)
    low, high = np.minimum(start, end), np.maximum(start, end)
    for i in range(count - 2):
        others = np.arange(i + 2, count - (i == 0))
        near = others[((low[others] <= high[i]) & (high[others] >= low[i])).all(axis=1)]
        a, b = start[i], end[i]
        c, d = start[near], end[near]
        # With overlapping boxes two segments meet unless one lies wholly on one side of the other's line.
        apart = (_side(a, b, c) * _side(a, b, d) > 0) | (_side(c, d, a) * _side(c, d, b) > 0)
        if not apart.all():
            return i, int(near[~apart][0])
    return None


def _side(a: NDArray[np.int64], b: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sign of where `at` lies to the line from `a` to `b`; 0 on it."""
    along, to = b - a, at - a
    side: NDArray[np.int64] = np.sign(along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0])
    return side
