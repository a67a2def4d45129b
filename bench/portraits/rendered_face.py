"""A real portrait as cameras at known distances would have seen it.

The portrait's own mesh gives every pixel a depth, so that its face stands in space; a pinhole camera looks at it from
another distance, with such a lens that the plane of the eyes keeps its size in the picture. Seen from `d`, what lies
`z` behind that plane is smaller by d / (d + z): near cameras make noses large and ears small. The face is real (its
skin, light and hair are the photo's), the perspective is exact for the shape the mesh gives it.

Assumed: the portrait was taken from `TAKEN_AT_MM`; beyond the mesh the head falls back by `FALL` of the distance from
it, by `DEEPEST_MM` at most. Nothing is hidden or laid open by the change of place.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.types import FaceLandmarks, RgbImage

TAKEN_AT_MM = 1500.0
FALL = 0.5
DEEPEST_MM = 60.0
GRID = 128
"""Cells along the longer side of the raster on which depth is made."""
ROUNDS = 20
DAMPING = 0.8
PUPILS = (468, 473)
SHEPARD_POWER = 4


def seen_from(rgb: RgbImage, landmarks: FaceLandmarks, mm_per_px: float, distance_mm: float) -> RgbImage:
    """The portrait (H, W, 3) as a camera `distance_mm` before the eyes sees it, at the same size of the eyes' plane."""
    depth = mm_per_px * depth_behind_eyes(rgb, landmarks)
    depth = np.minimum(depth, DEEPEST_MM + mm_per_px * float(np.ptp(landmarks.depth)))
    # From pixels to millimetres at the distance the photo was taken from, and back to pixels at the other one.
    growth = (TAKEN_AT_MM + depth) / TAKEN_AT_MM * distance_mm / (distance_mm + depth)
    centre = landmarks.points[list(PUPILS)].mean(axis=0)
    y, x = np.mgrid[: rgb.shape[0], : rgb.shape[1]].astype(np.float32)
    away = np.dstack([x, y]) - centre.astype(np.float32)
    source = away.copy()
    for _ in range(ROUNDS):  # which pixel of the photo lands here: its own depth says how far it moves
        at = source + centre.astype(np.float32)
        moved = cv2.remap(growth, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        source += DAMPING * (away / moved[..., None] - source)
    at = source + centre.astype(np.float32)
    drawn = cv2.remap(rgb, at[..., 0], at[..., 1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(drawn, dtype=np.uint8)


def depth_behind_eyes(rgb: RgbImage, landmarks: FaceLandmarks) -> NDArray[np.float32]:
    """(H, W), depth of every pixel behind the plane of the pupils, in pixels: the mesh's, and the head beyond it."""
    step = max(rgb.shape[:2]) / GRID
    y, x = (np.mgrid[: int(rgb.shape[0] / step), : int(rgb.shape[1] / step)].astype(np.float32) + 0.5) * step - 0.5
    points = landmarks.points.astype(np.float32)
    known = (landmarks.depth - landmarks.depth[list(PUPILS)].mean()).astype(np.float32)
    weighed, weights = np.zeros_like(x), np.zeros_like(x)
    for point, value in zip(points, known, strict=True):
        weight = ((x - point[0]) ** 2 + (y - point[1]) ** 2 + step**2) ** (-SHEPARD_POWER / 2)
        weighed += weight * value
        weights += weight
    hull = cv2.convexHull(np.round((points + 0.5) / step - 0.5).astype(np.int32))
    outside = np.ones(x.shape, dtype=np.uint8)
    cv2.fillConvexPoly(outside, hull, 0)
    beyond, nearest = cv2.distanceTransformWithLabels(
        outside, cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    inside = outside == 0
    at_label = np.zeros(int(nearest.max()) + 1, dtype=np.float32)
    at_label[nearest[inside]] = (weighed / weights)[inside]
    smooth = cv2.GaussianBlur(at_label[nearest] + np.float32(FALL * step) * beyond, (0, 0), 1.0)
    size = (rgb.shape[1], rgb.shape[0])
    return np.asarray(cv2.resize(smooth, size, interpolation=cv2.INTER_CUBIC), dtype=np.float32)
