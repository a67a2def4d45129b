"""Face landmarks by MediaPipe's Face Landmarker (Tasks API, IMAGE mode, CPU only, no network).

One detector belongs to one thread; `close` it explicitly.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import mediapipe as mp
import numpy as np
from mediapipe.tasks.python import BaseOptions
from mediapipe.tasks.python.vision import FaceLandmarker, FaceLandmarkerOptions, FaceLandmarkerResult, RunningMode

from vision.errors import ModelError
from vision.offline import run_offline
from vision.pose import pose_of
from vision.resample import reduced_by
from vision.types import Box, FaceLandmarks, RgbImage

MAX_FACES = 4
REDUCED_SIDE_PX = 1024
"""Larger photos are first reduced by the whole number that leaves their long side at this or more. The model looks at
a face in 256 px; sampled out of a face of 900 px without averaging, its points lie 0.14 % of the face height off."""

MAX_PARTS_ALONG = 20
"""Parts side by side along the narrowest pictures, overlaps not counted: each costs 20 ms."""


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
                self._landmarker = run_offline(lambda: FaceLandmarker.create_from_options(options))
            except (RuntimeError, ValueError, OSError) as error:
                raise ModelError(f"{model.name} could not be loaded: {error}") from error
            self.detect(np.zeros((256, 256, 3), dtype=np.uint8))  # the first call builds what later ones use

    def close(self) -> None:
        """Free MediaPipe's graph. Must be called by the thread that uses the detector, before it ends."""
        self._landmarker.close()

    def find(self, rgb: RgbImage, step: Callable[[], None] = lambda: None) -> tuple[FaceLandmarks, ...]:
        """All faces of an upright picture (H, W, 3), the one that counts first; empty when there is none.

        The detector behind the model sees the whole picture in 128 px, so it misses a face that is small in it, or that
        sticks out of it. Only when it finds none, it looks again: at overlapping parts of half the size, of a narrow
        picture squares, then at the picture with a border. `step` is called before each look.
        """
        step()
        if faces := self.detect(rgb):
            return faces
        # Reduced once for all parts, and once more for the border: a large photo is never copied as it is.
        factor = max(1, _part_side(*rgb.shape[:2]) // REDUCED_SIDE_PX)
        if faces := self._find_in_parts(reduced_by(rgb, factor), step):
            return tuple(_enlarged(face, factor) for face in faces)
        step()
        factor = max(1, max(rgb.shape) // REDUCED_SIDE_PX)
        small = reduced_by(rgb, factor)
        faces = self._detect_in(small, _with_border(small.shape[1], small.shape[0]))
        return tuple(_enlarged(face, factor) for face in faces)

    def _find_in_parts(self, rgb: RgbImage, step: Callable[[], None]) -> tuple[FaceLandmarks, ...]:
        """The faces that lie inside a part, each once."""
        height, width = rgb.shape[:2]
        seen: list[tuple[float, FaceLandmarks]] = []
        for part in _parts(width, height):
            step()
            faces = ((_margin(face.box, part), face) for face in self._detect_in(rgb, part))
            seen += [(margin, face) for margin, face in faces if margin >= 0]
        distinct: list[FaceLandmarks] = []
        for _, face in sorted(seen, key=lambda entry: -entry[0]):  # of one face seen twice, the view best framed
            if not any(_same(face.box, other.box) for other in distinct):
                distinct.append(face)
        distinct.sort(key=lambda face: _rank(face.box, width, height))
        return tuple(replace(face, faces_found=len(distinct)) for face in distinct)

    def detect(self, rgb: RgbImage) -> tuple[FaceLandmarks, ...]:
        """One pass over the picture as it is.

        The order: the largest box first; of equally large ones the one nearest to the centre of the picture.
        """
        factor = max(1, max(rgb.shape) // REDUCED_SIDE_PX)
        reduced = reduced_by(rgb, factor)
        image = mp.Image(image_format=mp.ImageFormat.SRGB, data=np.ascontiguousarray(reduced))
        height, width = reduced.shape[0] * factor, reduced.shape[1] * factor
        faces = _faces(self._landmarker.detect(image), width, height)
        return tuple(sorted(faces, key=lambda face: _rank(face.box, width, height)))

    def _detect_in(self, rgb: RgbImage, window: _Window) -> tuple[FaceLandmarks, ...]:
        """Detect in a part of the picture, or in more than it has; coordinates are those of the picture."""
        return tuple(_moved(face, window.x, window.y) for face in self.detect(_cut(rgb, window)))


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


def _faces(result: FaceLandmarkerResult, width: int, height: int) -> list[FaceLandmarks]:
    """Normalized points to pixels whose centres have whole-number coordinates."""
    faces = []
    for landmarks, transform in zip(result.face_landmarks, result.facial_transformation_matrixes, strict=True):
        normalized = np.array([(point.x, point.y, point.z) for point in landmarks], dtype=np.float64)
        points = normalized[:, :2] * (width, height) - 0.5
        depth = normalized[:, 2] * width
        low, high = points.min(axis=0), points.max(axis=0)
        faces.append(
            FaceLandmarks(
                points=points,
                depth=depth,
                transform=np.asarray(transform, dtype=np.float64),
                pose=pose_of(points, depth),
                box=Box(float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1])),
                faces_found=len(result.face_landmarks),
            )
        )
    return faces


def _rank(box: Box, width: int, height: int) -> tuple[float, float]:
    off_centre = np.hypot(box.x_px + box.width_px / 2 - width / 2, box.y_px + box.height_px / 2 - height / 2)
    return (-round(box.width_px * box.height_px), float(off_centre))


@dataclass(frozen=True, slots=True)
class _Window:
    """A rectangle in pixels of the picture; may reach beyond it."""

    x: int
    y: int
    width: int
    height: int


def _part_side(width: int, height: int) -> int:
    """Long side of a part: half that of the picture, or less where the picture is narrow, so that a part is square."""
    short, long = sorted((width, height))
    return max(min(long // 2, short), long // MAX_PARTS_ALONG)


def _parts(width: int, height: int) -> list[_Window]:
    """Parts of the picture, each overlapping its neighbours by half or more."""
    side = _part_side(width, height)
    part_width, part_height = min(side, width), min(side, height)
    return [
        _Window(x, y, part_width, part_height)
        for y in _starts(height - part_height, side // 2)
        for x in _starts(width - part_width, side // 2)
    ]


def _starts(room: int, stride: int) -> list[int]:
    return [round(start) for start in np.linspace(0, room, int(np.ceil(room / stride)) + 1)]


def _with_border(width: int, height: int) -> _Window:
    border = max(width, height) // 2
    return _Window(-border, -border, width + 2 * border, height + 2 * border)


def _margin(box: Box, window: _Window) -> float:
    """How far inside the window the box lies, in pixels; negative when it reaches beyond."""
    return min(
        box.x_px - window.x,
        box.y_px - window.y,
        window.x + window.width - box.x_px - box.width_px,
        window.y + window.height - box.y_px - box.height_px,
    )


def _same(first: Box, second: Box) -> bool:
    """Whether the middles of two boxes are so near that they must be one face."""
    across = abs(first.x_px + first.width_px / 2 - second.x_px - second.width_px / 2)
    down = abs(first.y_px + first.height_px / 2 - second.y_px - second.height_px / 2)
    return max(across, down) < max(first.width_px, second.width_px) / 2


def _cut(rgb: RgbImage, window: _Window) -> RgbImage:
    """The window's pixels; those outside the picture repeat its border."""
    height, width = rgb.shape[:2]
    left, top = max(0, -window.x), max(0, -window.y)
    right, bottom = max(0, window.x + window.width - width), max(0, window.y + window.height - height)
    inside = rgb[max(0, window.y) : window.y + window.height, max(0, window.x) : window.x + window.width]
    return np.asarray(cv2.copyMakeBorder(inside, top, bottom, left, right, cv2.BORDER_REPLICATE), dtype=np.uint8)


def _enlarged(face: FaceLandmarks, factor: int) -> FaceLandmarks:
    """A face of a picture `reduced_by` this factor, in pixels of the picture itself."""
    if factor == 1:
        return face
    box, shift = face.box, (factor - 1) / 2
    return replace(
        face,
        points=face.points * factor + shift,
        depth=face.depth * factor,
        box=Box(box.x_px * factor + shift, box.y_px * factor + shift, box.width_px * factor, box.height_px * factor),
    )


def _moved(face: FaceLandmarks, x: int, y: int) -> FaceLandmarks:
    box = replace(face.box, x_px=face.box.x_px + x, y_px=face.box.y_px + y)
    return replace(face, points=face.points + np.array([x, y]), box=box)
