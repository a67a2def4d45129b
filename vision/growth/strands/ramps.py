"""From 0 to 1 between two limits."""

from __future__ import annotations

import numpy as np

from vision.growth.strands.plot import Floats


def rise(values: Floats, limits: tuple[float, float]) -> Floats:
    """0 up to the first limit, 1 from the second on, straight between."""
    share: Floats = np.clip((values - np.float32(limits[0])) / np.float32(limits[1] - limits[0]), 0, 1)
    return share


def smooth_rise(values: Floats, limits: tuple[float, float]) -> Floats:
    """0 up to the first limit, 1 from the second on, smooth between."""
    share = rise(values, limits)
    smooth: Floats = share * share * (3 - 2 * share)
    return smooth
