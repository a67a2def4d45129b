"""Colours as people see them differ: CIELAB and CIEDE2000."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.types import RgbImage

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Lab = NDArray[np.float32]
"""(..., 3), CIELAB under D65: lightness 0 to 100, a, b."""


def lab_of(rgb: RgbImage) -> Lab:
    """CIELAB of an sRGB picture (H, W, 3)."""
    scaled = rgb.astype(np.float32) / np.float32(255)
    return np.asarray(cv2.cvtColor(scaled, cv2.COLOR_RGB2Lab), dtype=np.float32)


DEPTHS_MM = (3.0, 5.0, 8.0, 12.0)
"""Hair gets fuller and darker from its edge inwards: colours are compared within these depths and beyond the last."""
BESIDE_MM = 12.0
"""With hair about so far away (standard deviation): hair on one side of a head, or in one lock, has another colour than
on the other."""
SHRINK_TO = 5.0
"""Neighbourhoods are averaged on a raster on which that is so many pixels."""
LEAST_KNOWN = 1e-4
"""Share of a neighbourhood that is own hair of that depth, below which nothing is compared."""
LEAST_MM2 = 20.0
"""Grown hair of one depth that is looked at by itself."""


@dataclass(frozen=True, slots=True)
class Depths:
    """Hair and how far behind its edge it lies, (H, W)."""

    lab: Lab
    hair: Mask
    depth_mm: Floats


def colour_distance(grown: Depths, own: Depths, px_per_mm: float) -> float:
    """CIEDE2000 between the mean colour of grown hair and that of the own hair beside it, where it differs most.

    Both at the same depth behind their edges: a band of skin, or of the old hairline, would be lost in a mean over all.
    Where no depth has enough hair of both, between the means of what there is; without own hair of any such depth near
    by, between the means of all.
    """
    shrink = max(1, int(BESIDE_MM * px_per_mm / SHRINK_TO))
    height, width = grown.hair.shape
    size, sigma = (-(-width // shrink), -(-height // shrink)), BESIDE_MM * px_per_mm / shrink
    bins, own_bins = np.digitize(grown.depth_mm, DEPTHS_MM), np.digitize(own.depth_mm, DEPTHS_MM)
    found: list[Lab] = []
    expected: list[Lab] = []
    for depth in np.unique(bins[grown.hair]):
        like = (own.hair & (own_bins == depth)).astype(np.float32)
        sums = np.dstack([own.lab * like[..., None], like])
        near = cv2.GaussianBlur(cv2.resize(sums, size, interpolation=cv2.INTER_AREA), (0, 0), sigma)
        y, x = np.nonzero(grown.hair & (bins == depth))
        beside = near[y // shrink, x // shrink]
        known = beside[:, 3] > LEAST_KNOWN
        found.append(grown.lab[y, x][known])
        expected.append(np.asarray(beside[known, :3] / beside[known, 3:], dtype=np.float32))
    enough = LEAST_MM2 * px_per_mm**2
    by_depth = [_between(*both) for both in zip(found, expected, strict=True) if len(both[0]) >= enough]
    if by_depth:
        return max(by_depth)
    if not sum(map(len, found)):
        return _between(grown.lab[grown.hair], own.lab[own.hair])
    return _between(np.concatenate(found), np.concatenate(expected))


def _between(found: Lab, expected: Lab) -> float:
    """CIEDE2000 between the means of colours (N, 3)."""
    return ciede2000(found.mean(axis=0), expected.mean(axis=0))


def ciede2000(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    """CIEDE2000 between two Lab colours (3,), all weights 1; 1 is about what can just be seen.

    After Sharma, Wu, Dalal, "The CIEDE2000 color-difference formula", Color Res. Appl. 30 (2005), whose names are kept.
    """
    (l1, a1, b1), (l2, a2, b2) = first.tolist(), second.tolist()
    c_mean7 = ((np.hypot(a1, b1) + np.hypot(a2, b2)) / 2) ** 7
    g = 0.5 * (1 - np.sqrt(c_mean7 / (c_mean7 + 25.0**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    grey = c1 * c2 == 0
    turn = 0.0 if grey else (h2 - h1 + 180) % 360 - 180
    delta_h = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    l_mean, c_mean = (l1 + l2) / 2, (c1 + c2) / 2
    h_mean = h1 + h2 if grey else (h1 + turn / 2) % 360
    t = (
        1
        - 0.17 * np.cos(np.radians(h_mean - 30))
        + 0.24 * np.cos(np.radians(2 * h_mean))
        + 0.32 * np.cos(np.radians(3 * h_mean + 6))
        - 0.20 * np.cos(np.radians(4 * h_mean - 63))
    )
    s_l = 1 + 0.015 * (l_mean - 50) ** 2 / np.sqrt(20 + (l_mean - 50) ** 2)
    s_c = 1 + 0.045 * c_mean
    s_h = 1 + 0.015 * c_mean * t
    r_c = 2 * np.sqrt(c_mean**7 / (c_mean**7 + 25.0**7))
    r_t = -np.sin(np.radians(60 * np.exp(-(((h_mean - 275) / 25) ** 2)))) * r_c
    in_l, in_c, in_h = (l2 - l1) / s_l, (c2 - c1) / s_c, delta_h / s_h
    return float(np.sqrt(in_l**2 + in_c**2 + in_h**2 + r_t * in_c * in_h))
