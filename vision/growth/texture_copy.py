"""Whether new hair is the photo once more, a shift away: a copy shows each parting and each lock twice.

Frame: any canvas; x right, y down.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

DETAIL_MM = 0.5
"""What is smoother than this (standard deviation) is no strand: it may lie on the photo's own anywhere."""
PX_PER_MM = 4.0
"""As much is looked at."""
SHORTEST_SHIFT_MM = 2.0
"""Nearer, hair lies on itself: it was there before."""
SMALLEST_OVERLAP = 0.25
SMALLEST_OVERLAP_MM2 = 40.0
"""Part of the new hair, and area, that must lie on hair of the photo after a shift for the shift to count."""
FLAT = 1e-3


def copied(before: Floats, after: Floats, grown: Mask, own: Mask, px_per_mm: float) -> float:
    """How far the hair in `grown` of the finished picture is that in `own` of the photo, shifted: 0 to 1.

    The highest correlation over all shifts, of lightness and masks (H, W). Hair that is drawn to its place along rays,
    or laid in patches, is no such copy.
    """
    factor = min(1.0, PX_PER_MM / px_per_mm)
    scale = px_per_mm * factor
    size = [max(1, round(side * factor)) for side in grown.shape[::-1]]

    def reduced(plane: NDArray[np.generic]) -> Floats:
        return np.asarray(cv2.resize(plane.astype(np.float32), size, interpolation=cv2.INTER_AREA), dtype=np.float32)

    new_mask, own_mask = (np.where(reduced(mask) > 0.5, 1.0, 0.0) for mask in (grown, own))
    if not new_mask.any():
        return 0.0
    new, old = (
        _detail(reduced(lightness), mask, DETAIL_MM * scale)
        for lightness, mask in ((after, new_mask), (before, own_mask))
    )
    shape = [cv2.getOptimalDFTSize(2 * side) for side in new.shape]

    def correlated(first: Array, second: Array) -> Array:
        """By shifts, both ways."""
        product = np.fft.rfft2(first, shape) * np.conj(np.fft.rfft2(second, shape))
        return np.asarray(np.fft.irfft2(product, shape), dtype=np.float64)

    overlap = correlated(new_mask, own_mask)
    energies = [
        np.maximum(correlated(*pair), FLAT * whole + 1e-6)
        for pair, whole in (((new**2, own_mask), (new**2).sum()), ((new_mask, old**2), (old**2).sum()))
    ]
    alike = correlated(new, old) / np.sqrt(energies[0] * energies[1])
    enough = max(SMALLEST_OVERLAP * new_mask.sum(), SMALLEST_OVERLAP_MM2 * scale**2)
    far = np.hypot(*np.meshgrid(*(_shifts(side) for side in shape), indexing="ij")) >= SHORTEST_SHIFT_MM * scale
    return float(np.clip(alike[(overlap >= enough) & far].max(initial=0.0), 0, 1))


def _shifts(side: int) -> Array:
    """Of each row or column of a transform, in pixels."""
    return np.asarray(np.fft.fftfreq(side, 1 / side), dtype=np.float64)


def _detail(lightness: Floats, mask: Array, sigma_px: float) -> Array:
    """What stands out of its surroundings inside the mask."""

    def smooth(values: Array) -> Array:
        return np.asarray(cv2.GaussianBlur(values, (0, 0), sigma_px), dtype=np.float64)

    return np.asarray((lightness - smooth(lightness * mask) / np.maximum(smooth(mask), 1e-3)) * mask, dtype=np.float64)
