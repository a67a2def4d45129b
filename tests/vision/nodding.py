"""A portrait whose head nods: no synthetic person at hand does so far enough."""

from __future__ import annotations

import cv2
import numpy as np

from vision.types import FaceLandmarks, Points, RgbImage

MESH_POINTS = 468


def nodded(rgb: RgbImage, face: FaceLandmarks, chin_down_deg: float) -> RgbImage:
    """The picture with its face mesh turned about the ears and drawn anew, triangle by triangle; the border stays."""
    mesh, depth = face.points[:MESH_POINTS], face.depth[:MESH_POINTS] - face.depth[:MESH_POINTS].mean()
    angle, middle_y = np.radians(chin_down_deg), mesh[:, 1].mean()
    moved = mesh.copy()
    moved[:, 1] = middle_y + (mesh[:, 1] - middle_y) * np.cos(angle) - depth * np.sin(angle)
    border = _border(rgb.shape[1], rgb.shape[0])
    return _warped(rgb, np.vstack([mesh, border]), np.vstack([moved, border]))


def _border(width: int, height: int) -> Points:
    x, y = np.linspace(0, width - 1, 9), np.linspace(0, height - 1, 9)
    ends = [(at, end) for at in x for end in (y[0], y[-1])] + [(end, at) for at in y[1:-1] for end in (x[0], x[-1])]
    return np.array(ends, dtype=np.float64)


def _warped(rgb: RgbImage, source: Points, target: Points) -> RgbImage:
    height, width = rgb.shape[:2]
    plane = cv2.Subdiv2D((-5, -5, width + 10, height + 10))
    corner_of = {}
    for index, (x, y) in enumerate(target.astype(np.float32)):
        plane.insert((float(x), float(y)))
        corner_of[round(float(x), 2), round(float(y), 2)] = index
    map_x, map_y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    for triangle in np.asarray(plane.getTriangleList()).reshape(-1, 3, 2):
        keys = [(round(float(x), 2), round(float(y), 2)) for x, y in triangle]
        if not all(key in corner_of for key in keys):  # a corner of the plane's own
            continue
        corners = [corner_of[key] for key in keys]
        back = cv2.getAffineTransform(triangle, source[corners].astype(np.float32))
        inside = np.zeros((height, width), dtype=np.uint8)
        cv2.fillConvexPoly(inside, np.rint(triangle).astype(np.int32), 1)
        y, x = np.nonzero(inside)
        map_x[y, x], map_y[y, x] = back @ np.vstack([x, y, np.ones_like(x)])
    return np.asarray(cv2.remap(rgb, map_x, map_y, cv2.INTER_LINEAR), dtype=np.uint8)
