"""The pinned answer: a small drawn face through both models, whose answers are known.

Catches what no exception tells: zeroed weights, a model file that loads but computes nonsense, a broken accelerator.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.errors import ModelError
from vision.models import FACE_PARSER
from vision.types import FaceLandmarks, RgbImage

SIDE_PX = 128
_POINTS = (4, 10, 33, 152, 263, 468, 473)
"""Nose tip, forehead, outer corners of the eyes, chin, pupils."""
_POINTS_ANSWER = np.array(
    [(64.3, 80.5), (64.3, 43.8), (46.0, 65.6), (63.7, 112.0), (82.6, 66.0), (51.6, 66.1), (76.7, 66.3)]
)
POINTS_TOLERANCE_PX = 3.0
_PARSER_ANSWERS = {
    FACE_PARSER.sha256: np.array(
        [5.9, 2.0, -2.0, -1.8, -1.6, -1.5, -1.1, 1.1, 1.1, -0.6, -0.6, -2.0, -1.7, -1.8, 1.2, -1.6, 0.3, 0.1, 4.6]
    )
}
"""Mean logit of each class, by the hash of the weights; computed by torch in single precision."""
LOGIT_TOLERANCE = 0.2
"""Room for half precision and for other CPUs; the classes differ by several units."""


def drawn_face() -> RgbImage:
    """(128, 128, 3): ellipses that MediaPipe takes for a face."""
    image = np.full((SIDE_PX, SIDE_PX, 3), (120, 140, 160), dtype=np.uint8)
    for centre, axes, colour in _ELLIPSES:
        cv2.ellipse(image, centre, axes, 0, 0, 360, colour, cv2.FILLED, cv2.LINE_AA, shift=1)
    return np.asarray(cv2.GaussianBlur(image, (0, 0), 0.75), dtype=np.uint8)


_ELLIPSES = (
    # centre and half axes in half pixels
    ((128, 110), (80, 95), (50, 35, 25)),  # hair
    ((128, 230), (30, 60), (200, 150, 125)),  # neck
    ((128, 140), (62, 82), (225, 175, 150)),  # face
    *(
        ellipse
        for x in (104, 152)
        for ellipse in (
            ((x, 118), (16, 4), (90, 60, 45)),  # brow
            ((x, 132), (12, 6), (245, 245, 245)),  # eye
            ((x, 132), (6, 6), (60, 40, 30)),  # iris
        )
    ),
    ((128, 160), (8, 14), (205, 150, 125)),  # nose
    ((128, 172), (12, 5), (190, 130, 110)),
    ((128, 192), (22, 7), (180, 70, 75)),  # lips
)


def check_landmarks(faces: tuple[FaceLandmarks, ...]) -> None:
    """Raise `ModelError` unless these are the landmarks of `drawn_face`."""
    if len(faces) != 1:
        raise ModelError(f"canary: the landmark model finds {len(faces)} faces in its test picture instead of 1")
    off_px = float(np.abs(faces[0].points[list(_POINTS)] - _POINTS_ANSWER).max())
    if not off_px <= POINTS_TOLERANCE_PX:
        raise ModelError(f"canary: landmarks are off by {off_px:.1f} px, {POINTS_TOLERANCE_PX} allowed")


def check_logits(logits: NDArray[np.float32], weights_sha256: str, reference: NDArray[np.float64]) -> None:
    """Raise `ModelError` unless these (1, 19, 16, 16) logits are those of `drawn_face`.

    `reference` holds when the weights are an operator's own, for which no answer is pinned.
    """
    expected = _PARSER_ANSWERS.get(weights_sha256, reference)
    off = float(np.abs(mean_logits(logits) - expected).max())
    if not off <= LOGIT_TOLERANCE:
        # Its file was found whole when it was loaded.
        told = f"canary: the parser's logits are off by {off:.3g}, {LOGIT_TOLERANCE} allowed"
        raise ModelError(f"{told}: this process or machine computes wrongly; restart the worker")


def mean_logits(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """(19,) from (1, 19, h, w)."""
    return np.asarray(logits[0].mean(axis=(1, 2)), dtype=np.float64)
