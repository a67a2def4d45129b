"""Whether new hair is made of strands as the person's own is: how fine, how strong, how straight, and which way.

Pure functions of lightness (CIELAB, 0 to 100) and of planes that say how much each pixel counts. Unlike the distances
of `vision.growth.texture` these have a sign: blur is less fine, paint has no locks, noise no direction, a barcode too
much of it; hair upside down lies across the flow of the hair it adjoins.

Frame: any canvas; x right, y down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

FINEST_PX, FINE_PX, LOCKS_PX = 0.7, 1.4, 5.6
"""Scales of the gradients (standard deviations): the finest that a picture shows, strands, locks."""
DIRECTION_PX = 1.0
TENSOR_PX_PER_MM = 2.0
"""Structure tensors are averaged down to so many pixels first."""
TOGETHER_MM = 2.0
"""Over so much (standard deviation) strands have to keep together to be coherent."""
FLOW_MM = 6.0
"""Over so much the flow of the own hair is smoothed and carried on into the region."""
BESIDE_MM = 6.0
"""Own hair so near to the new is what the person's own turning is measured on, by the flow of the hair beyond."""
LEAST_MM2 = 4.0
NOTHING = 1e-6


@dataclass(frozen=True, slots=True)
class Strands:
    """New hair against the person's own of the same depth behind the edge. 0 is the same but for `coherence`: 1."""

    fineness: float
    """Octaves by which the share of the finest gradients differs: blur is negative."""
    contrast: float
    """Octaves by which strands stand out more."""
    locks: float
    """Octaves by which locks, eight times as wide, stand out more."""
    coherence: float
    """Part of all gradients that lies along the common direction, divided by the same of the own hair."""
    turned_deg: float
    """Angle of the strands to the flow of the adjoining own hair, less that of the own hair beside the region to the
    flow of what is beyond it; 0 where too little lies beside it."""


def strands(before: Floats, after: Floats, grown: Floats, own: Floats, px_per_mm: float) -> Strands:
    """`after` is the finished picture, `before` the photo, both (H, W).

    `grown` and `own` (H, W) say how much each pixel of the one and the other counts, and have to count somewhere.
    """
    new = [_strength(after, sigma, grown) for sigma in (FINEST_PX, FINE_PX, LOCKS_PX)]
    old = [_strength(before, sigma, own) for sigma in (FINEST_PX, FINE_PX, LOCKS_PX)]
    finest, fine, locks = (np.log2((a + NOTHING) / (b + NOTHING)) for a, b in zip(new, old, strict=True))
    new_flow, own_flow = _Flow.of(after, grown, px_per_mm), _Flow.of(before, own, px_per_mm)
    return Strands(
        fineness=float(finest - fine),
        contrast=float(fine),
        locks=float(locks),
        coherence=new_flow.coherence() / max(own_flow.coherence(), NOTHING),
        turned_deg=_turned_deg(new_flow, own_flow),
    )


def _gradient(lightness: Floats, sigma_px: float) -> tuple[Floats, Floats]:
    blurred = cv2.GaussianBlur(lightness, (0, 0), sigma_px)
    across, down = (cv2.Sobel(blurred, cv2.CV_32F, dx, 1 - dx, ksize=3, scale=1 / 8) for dx in (1, 0))
    return np.asarray(across, dtype=np.float32), np.asarray(down, dtype=np.float32)


def _strength(lightness: Floats, sigma_px: float, weight: Floats) -> float:
    """Root mean square of the gradients, such that edges count the same in all scales."""
    across, down = _gradient(lightness, sigma_px)
    return float(sigma_px * np.sqrt(((across**2 + down**2) * weight).sum(dtype=np.float64) / weight.sum()))


@dataclass(frozen=True, slots=True)
class _Flow:
    """Directions of strands on a coarse raster, as structure tensors."""

    tensor: Floats
    """(h, w, 3): the double angle's cosine and sine, and the energy, all weighed."""
    weight: Floats
    """(h, w)."""

    @classmethod
    def of(cls, lightness: Floats, weight: Floats, px_per_mm: float) -> Self:
        across, down = _gradient(lightness, DIRECTION_PX)
        planes = np.dstack([across**2 - down**2, 2 * across * down, across**2 + down**2]) * weight[..., None]
        factor = min(1.0, TENSOR_PX_PER_MM / px_per_mm)
        size = [max(1, round(side * factor)) for side in lightness.shape[::-1]]
        tensor, weighed = (cv2.resize(each, size, interpolation=cv2.INTER_AREA) for each in (planes, weight))
        return cls(np.asarray(tensor, dtype=np.float32), np.asarray(weighed, dtype=np.float32))

    def coherence(self) -> float:
        """0 (as much along every direction) to 1 (all along one)."""
        smooth = _smooth(self.tensor, TOGETHER_MM)
        along, whole = np.hypot(smooth[..., 0], smooth[..., 1]), smooth[..., 2]
        return float((along * self.weight).sum() / max((whole * self.weight).sum(), NOTHING))

    def kept(self, where: NDArray[np.bool_]) -> _Flow:
        """That on a part of the raster alone."""
        return _Flow(self.tensor * where[..., None], self.weight * where)

    def turned_deg(self, others: _Flow) -> float:
        """Mean angle to the flow of others, the more a place counts the nearer they are and the clearer both flows."""
        here, flow = _smooth(self.tensor, TOGETHER_MM / 2), _smooth(others.tensor, FLOW_MM)
        near = _smooth((others.weight > 0).astype(np.float32), FLOW_MM)
        clear = np.hypot(flow[..., 0], flow[..., 1]) / np.maximum(flow[..., 2], NOTHING)
        counts = np.hypot(here[..., 0], here[..., 1]) * clear * near * self.weight
        apart = np.arctan2(here[..., 1], here[..., 0]) - np.arctan2(flow[..., 1], flow[..., 0])
        apart = np.abs((apart + np.pi) % (2 * np.pi) - np.pi) / 2
        return float(np.degrees((apart * counts).sum() / max(counts.sum(), NOTHING)))


def _turned_deg(new: _Flow, own: _Flow) -> float:
    if not (new.weight > 0).any():
        return 0.0
    to_new = cv2.distanceTransform((new.weight <= 0).astype(np.uint8), cv2.DIST_L2, 3) / TENSOR_PX_PER_MM
    is_beside = np.asarray(to_new) < BESIDE_MM
    beside, beyond = own.kept(is_beside), own.kept(~is_beside)
    least = LEAST_MM2 * TENSOR_PX_PER_MM**2
    if min(np.count_nonzero(part.weight) for part in (beside, beyond)) < least:
        return 0.0
    return new.turned_deg(own) - beside.turned_deg(beyond)


def _smooth(tensor: Floats, sigma_mm: float) -> Floats:
    return np.asarray(cv2.GaussianBlur(tensor, (0, 0), sigma_mm * TENSOR_PX_PER_MM), dtype=np.float32)
