"""Facts of invented photos: one face mesh laid anywhere, at any size and tilt, measured by the real anthropometry."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from vision.anthropometry import measure_face
from vision.types import (
    Box,
    FaceLandmarks,
    Facts,
    Hairline,
    HairlinePoint,
    HairlineState,
    IntervalCauses,
    ParsingMap,
    Photo,
    PhotoWarning,
    Points,
    Pose,
    RgbImage,
    Scale,
    ScaleSource,
)

MESH = np.loadtxt(Path(__file__).with_name("annotate_mesh.txt"))
GLABELLA, IRIS_MM, IRIS_WIDTHS = 9, 11.7, 0.083


def invented_photo(width: int, height: int) -> RgbImage:
    """A soft gradient with some grain, the same every time."""
    rng = np.random.default_rng(7)
    down, across = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    ground = np.stack([90 + 60 * across, 80 + 70 * down, 120 - 40 * across * down], axis=2)
    grain = cv2.resize(rng.normal(0, 12, (height // 8 + 1, width // 8 + 1)), (width, height))
    return np.clip(ground + grain[:, :, None], 0, 255).astype(np.uint8)


def invented_facts(
    width: int = 900,
    height: int = 900,
    *,
    face_width: float = 0.34,
    centre: tuple[float, float] = (0.5, 0.48),
    roll_deg: float = 0.0,
    hidden: HairlineState | None = None,
    with_scale: bool = True,
    warnings: tuple[str, ...] = (),
) -> Facts:
    """`face_width` in widths of the photo, `centre` (root of the nose) in widths and heights."""
    across_px = face_width * width
    roll = np.radians(roll_deg)
    turn = np.array([[np.cos(roll), np.sin(roll)], [-np.sin(roll), np.cos(roll)]])
    origin = np.array([centre[0] * width, centre[1] * height])

    def place(points: Points) -> Points:
        return np.asarray(points @ turn * across_px + origin, dtype=np.float64)

    points = place(MESH[:, :2])
    (x0, y0), (x1, y1) = points.min(axis=0), points.max(axis=0)
    landmarks = FaceLandmarks(
        points=points,
        depth=MESH[:, 2] * across_px,
        transform=np.eye(4),
        pose=Pose(0.0, 0.0, roll_deg),
        box=Box(float(x0), float(y0), float(x1 - x0), float(y1 - y0)),
        faces_found=1,
    )
    u = np.linspace(-0.44, 0.44, 41)
    v = MESH[GLABELLA, 1] - 0.52 + 2.6 * np.abs(u) ** 3 - 0.1 * np.exp(-(((np.abs(u) - 0.24) / 0.06) ** 2))
    line = tuple(
        HairlinePoint(float(x), float(y), hidden or HairlineState.OBSERVED, 0.9)
        for x, y in place(np.column_stack([u, v]))
    )
    hairline = Hairline(line, hidden or HairlineState.OBSERVED, None if hidden else line[20], 2.0)
    mm_per_px = IRIS_MM / (IRIS_WIDTHS * across_px)
    scale = Scale(
        mm_per_px=mm_per_px if with_scale else None,
        source=ScaleSource.IRIS if with_scale else None,
        causes=IntervalCauses(6.4, 2.0, 1.5),
        left_iris=None,
        right_iris=None,
    )
    return Facts(
        photo=Photo(invented_photo(width, height), "JPEG", 1),
        landmarks=landmarks,
        parsing=ParsingMap(np.zeros((19, 2, 2), np.float32), np.eye(2, 3)),
        hairline=hairline,
        scale=scale,
        measurements=measure_face(landmarks, hairline, scale),
        face_shape=None,
        warnings=tuple(PhotoWarning(reason) for reason in warnings),
    )
