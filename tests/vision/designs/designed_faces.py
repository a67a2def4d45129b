"""Facts of faces whose present hairline is where a test wants it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tests.vision.annotate_faces import invented_photo
from tests.vision.measured_faces import laid, scale_of
from vision.anthropometry import measure_face
from vision.designs.forehead import Forehead
from vision.types import (
    FaceLandmarks,
    Facts,
    Hairline,
    HairlinePoint,
    HairlineState,
    ParsingMap,
    Photo,
    Scale,
)

Radius = Callable[[NDArray[np.float64]], NDArray[np.float64]]
ANGLES_DEG = np.arange(-78.0, 78.1, 2.0)
MM_PER_PX = 0.19
EDGE_SD_PX = 2.0


def receded(angle_deg: NDArray[np.float64]) -> NDArray[np.float64]:
    """High in the middle, higher at the temples: 75 mm above the glabella, in face coordinates."""
    recess = 0.28 * np.sin(np.radians(2 * angle_deg)) ** 2
    return np.asarray(1.62 + recess - 0.25 * (angle_deg / 78) ** 4, dtype=np.float64)


def full(angle_deg: NDArray[np.float64]) -> NDArray[np.float64]:
    """Low and round all along."""
    return np.full(angle_deg.shape, 1.15)


def facts_of(
    landmarks: FaceLandmarks | None = None,
    radius: Radius = receded,
    *,
    scale: Scale | None = None,
    state: HairlineState = HairlineState.OBSERVED,
    hidden: range = range(0),
    edge_sd_px: float = EDGE_SD_PX,
    side_px: int = 600,
) -> Facts:
    """A face whose hair begins at `radius` (angle) from the glabella; points number `hidden` are occluded."""
    landmarks = landmarks or laid()
    angles = np.radians(ANGLES_DEG)
    face = radius(ANGLES_DEG)[:, None] * np.column_stack([np.sin(angles), np.cos(angles)])
    places = Forehead(landmarks).to_photo(face)
    points = tuple(
        HairlinePoint(float(x), float(y), HairlineState.OCCLUDED if i in hidden else state, 0.9)
        for i, (x, y) in enumerate(places)
    )
    middle = points[len(points) // 2]
    seen = middle.state is HairlineState.OBSERVED
    hairline = Hairline(points, middle.state, middle if seen else None, edge_sd_px if seen else 0.0)
    scale = scale or scale_of(MM_PER_PX)
    return Facts(
        photo=Photo(invented_photo(side_px, side_px), "JPEG", 1),
        landmarks=landmarks,
        parsing=ParsingMap(np.zeros((19, 2, 2), np.float32), np.eye(2, 3)),
        hairline=hairline,
        scale=scale,
        measurements=measure_face(landmarks, hairline, scale),
        face_shape=None,
    )


def without_scale(facts: Facts) -> Facts:
    """The same with irises too small to tell."""
    return replace(facts, scale=scale_of(None))
