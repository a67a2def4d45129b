"""The same face once more: smaller, compressed, turned in the picture plane, cropped, mirrored."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import cv2
import numpy as np

from vision.types import Box, RgbImage

ROTATION_DEG = 8.0
JPEG_QUALITY = 60
CROP_ABOVE, CROP_AROUND = 0.75, 0.35
"""Of the mesh's box, which ends below the hairline: what a crop leaves above, and on the other sides."""


def half(rgb: RgbImage, _face: Box) -> RgbImage:
    """Half the size."""
    size = (rgb.shape[1] // 2, rgb.shape[0] // 2)
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def compressed(rgb: RgbImage, _face: Box) -> RgbImage:
    """Through JPEG."""
    _, data = cv2.imencode(".jpg", rgb[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    bgr = np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), dtype=np.uint8)
    return np.ascontiguousarray(bgr[:, :, ::-1])


def turned(degrees: float) -> Callable[[RgbImage, Box], RgbImage]:
    """Turned about the middle of the face; the border's pixels fill the corners."""

    def turn(rgb: RgbImage, face: Box) -> RgbImage:
        middle = (face.x_px + face.width_px / 2, face.y_px + face.height_px / 2)
        matrix = cv2.getRotationMatrix2D(middle, degrees, 1.0)
        size = (rgb.shape[1], rgb.shape[0])
        rotated = cv2.warpAffine(rgb, matrix, size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(rotated, dtype=np.uint8)

    return turn


def tight(rgb: RgbImage, face: Box) -> RgbImage:
    """Cropped close to the head."""
    return _cut(rgb, face, CROP_AROUND, CROP_AROUND)


def off_centre(rgb: RgbImage, face: Box) -> RgbImage:
    """Cropped so that the face lies near the left border."""
    return _cut(rgb, face, CROP_AROUND, 2.0)


def mirrored(rgb: RgbImage, _face: Box) -> RgbImage:
    """As in a mirror."""
    return np.ascontiguousarray(rgb[:, ::-1])


def _cut(rgb: RgbImage, face: Box, left: float, right: float) -> RgbImage:
    x0 = max(0, int(face.x_px - left * face.width_px))
    x1 = min(rgb.shape[1], int(face.x_px + (1 + right) * face.width_px))
    y0 = max(0, int(face.y_px - CROP_ABOVE * face.height_px))
    y1 = min(rgb.shape[0], int(face.y_px + (1 + CROP_AROUND) * face.height_px))
    return np.ascontiguousarray(rgb[y0:y1, x0:x1])


MIRROR = "mirror"
VARIANTS: Mapping[str, Callable[[RgbImage, Box], RgbImage]] = {
    "half size": half,
    f"JPEG {JPEG_QUALITY}": compressed,
    f"turned {ROTATION_DEG:.0f}° left": turned(ROTATION_DEG),
    f"turned {ROTATION_DEG:.0f}° right": turned(-ROTATION_DEG),
    "tight crop": tight,
    "off-centre crop": off_centre,
    MIRROR: mirrored,
}


def mirrored_name(name: str) -> str:
    """Where a measurement of the mirrored picture is found in the original: left is right there."""
    swap = {"left": "right", "right": "left"}
    head, dot, tail = name.partition(".")
    side, underscore, rest = tail.partition("_")
    return head + dot + swap.get(side, side) + underscore + rest
