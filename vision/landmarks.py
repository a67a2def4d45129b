"""Face landmarks by MediaPipe's Face Landmarker (Tasks API, IMAGE mode, CPU only, no network).

One detector belongs to one thread; `close` it explicitly.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import cv2
import mediapipe as mp
import numpy as np
from mediapipe.tasks.python import BaseOptions
from mediapipe.tasks.python.vision import FaceLandmarker, FaceLandmarkerOptions, FaceLandmarkerResult, RunningMode
from numpy.typing import NDArray

from vision.errors import ModelError
from vision.pose import pose_of
from vision.types import Box, FaceLandmarks, Points, RgbImage

MAX_FACES = 4
DETECTION_SIDE_PX = 1280
"""Larger photos are reduced to this long side first: the model looks at a face in 256 px, and sampling them out of a
face of 2,000 px without averaging makes the points jump."""

POINT_COUNT = 478


@dataclass(frozen=True, slots=True)
class _Face:
    points: Points
    depth: NDArray[np.float64]
    transform: NDArray[np.float64]
    box: Box


class LandmarkDetector:
    """Finds faces and their 478 points."""

    def __init__(self, model: Path) -> None:
        options = FaceLandmarkerOptions(
            base_options=BaseOptions(model_asset_path=str(model), delegate=BaseOptions.Delegate.CPU),
            running_mode=RunningMode.IMAGE,
            num_faces=MAX_FACES,
            output_facial_transformation_matrixes=True,
        )
        with _without_chatter():
            try:
                self._landmarker = FaceLandmarker.create_from_options(options)
            except (RuntimeError, ValueError, OSError) as error:
                raise ModelError(f"{model.name} could not be loaded: {error}") from error
            self.detect(np.zeros((256, 256, 3), dtype=np.uint8))  # the first call builds what later ones use

    def close(self) -> None:
        """Free MediaPipe's graph. Must be called by the thread that uses the detector, before it ends."""
        self._landmarker.close()

    def detect(self, rgb: RgbImage) -> tuple[FaceLandmarks, ...]:
        """All faces of an upright picture (H, W, 3), the one that counts first.

        The rule: the largest box first; of equally large ones the one nearest to the centre of the picture.
        """
        height, width = rgb.shape[:2]
        reduced = _reduced(rgb)
        result = self._landmarker.detect(mp.Image(image_format=mp.ImageFormat.SRGB, data=np.ascontiguousarray(reduced)))
        faces = sorted(_faces(result, width, height), key=lambda face: _rank(face.box, width, height))
        return tuple(
            FaceLandmarks(
                points=face.points,
                depth=face.depth,
                transform=face.transform,
                pose=pose_of(face.points, face.depth),
                box=face.box,
                faces_found=len(faces),
            )
            for face in faces
        )


_CHATTER = re.compile(
    r"Logging before InitGoogle|FaceBlendshapesGraph acceleration|XNNPACK delegate for CPU|Feedback manager requires"
)


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Drop the four harmless lines that MediaPipe writes to standard error when it starts; no setting silences them.

    Whatever else this process writes there meanwhile follows at the end.
    """
    sys.stderr.flush()
    with tempfile.TemporaryFile() as kept:
        stderr = os.dup(2)
        os.dup2(kept.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            kept.seek(0)
            for line in kept:
                if not _CHATTER.search(line.decode(errors="replace")):
                    os.write(2, line)


def _reduced(rgb: RgbImage) -> RgbImage:
    height, width = rgb.shape[:2]
    factor = DETECTION_SIDE_PX / max(height, width)
    if factor >= 1:
        return rgb
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _faces(result: FaceLandmarkerResult, width: int, height: int) -> list[_Face]:
    """Normalized points to pixels whose centres have whole-number coordinates."""
    faces = []
    for landmarks, transform in zip(result.face_landmarks, result.facial_transformation_matrixes, strict=True):
        normalized = np.array([(point.x, point.y, point.z) for point in landmarks], dtype=np.float64)
        points = normalized[:, :2] * (width, height) - 0.5
        low, high = points.min(axis=0), points.max(axis=0)
        box = Box(float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1]))
        faces.append(_Face(points, normalized[:, 2] * width, np.asarray(transform, dtype=np.float64), box))
    return faces


def _rank(box: Box, width: int, height: int) -> tuple[float, float]:
    off_centre = np.hypot(box.x_px + box.width_px / 2 - width / 2, box.y_px + box.height_px / 2 - height / 2)
    return (-round(box.width_px * box.height_px), float(off_centre))
