"""Single strands: where they root, how they run, and what of the ground they cover."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.growth.strands.plot import Floats, Plot
from vision.types import Progress

Array = NDArray[np.float64]

ROOTS_PER_MM2 = 5.0
"""Where hair is dense. A scalp has 1.5 to 2.5 hairs per mm²; every second one here is a vellus hair."""
WIDTH_MM = 0.08
"""Of a strand; hairs are 0.05 to 0.1 mm."""
STEP_PX = 0.7
FAN_DEG = (12.0, 30.0)
"""How far strands leave the common direction at their root (standard deviation): in dense hair, at the very front."""
STRAIGHTENS_MM = 3.0
"""Over this length they turn into it."""
BEND_PER_MM = (0.03, 0.5)
"""Curvature of their own (standard deviation, radians): of straight hair, of tight curls."""
THIN = 0.6
"""Length and width of the foremost hairs, against dense ones."""
SPLAT_PX = 0.4
"""Blur (standard deviation) that comes from sharing a point among four pixels."""
LONGEST = 2.0
"""No strand is longer than so many times the usual length: it would leave the plot."""
STEP_EVERY = 16


@dataclass(frozen=True, slots=True)
class Strands:
    """What strands cover of the plot, (h, w)."""

    cover: Floats
    """0 to 1."""
    tone: Floats
    """Mean brightness of the strands there against that of the hair: about 1."""


def strand_noise(field: Floats, length_px: float, blur_px: float, rng: np.random.Generator) -> Floats:
    """(h, w), blurred noise drawn out along the growth field (h, w, 2): mean 0, standard deviation 1."""
    height, width = field.shape[:2]
    white = rng.standard_normal((height, width)).astype(np.float32)
    total = white.copy()
    steps = int(np.clip(length_px / 2, 2, 12))
    stride = np.float32(length_px / 2 / steps)
    column, row = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    for ahead in (stride, -stride):
        x, y = column, row
        for _ in range(steps):
            along = cv2.remap(field, x, y, cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE)
            x, y = x + ahead * along[..., 0], y + ahead * along[..., 1]
            total += cv2.remap(white, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
    smooth = np.asarray(cv2.GaussianBlur(total, (0, 0), blur_px), dtype=np.float32)
    noise: Floats = (smooth - smooth.mean()) / smooth.std()
    return noise


def draw_strands(
    plot: Plot,
    field: Floats,
    density: Floats,
    *,
    length_mm: float,
    curliness: float,
    blur_px: float,
    rng: np.random.Generator,
    progress: Progress,
) -> Strands:
    """Strands rooted with a `density` (h, w; 0 to 1), along the growth field (h, w, 2) from there.

    All advance together by a fraction of a pixel, and each leaves its part in the four pixels around it: strands are
    thinner than pixels, so nothing else would be smooth.
    """
    height, width = density.shape
    count = int(height * width * plot.mm**2 * ROOTS_PER_MM2)
    place = rng.uniform(0, (width - 1, height - 1), (count, 2)).astype(np.float32)
    dense = density[place[:, 1].astype(int), place[:, 0].astype(int)]
    rooted = rng.uniform(size=count) < dense
    place, dense = place[rooted], dense[rooted]
    count = len(place)
    stout = THIN + (1 - THIN) * dense
    length = length_mm * stout * np.minimum(rng.lognormal(0, 0.4, count), LONGEST)
    thickness = WIDTH_MM / plot.mm * stout * rng.lognormal(0, 0.3, count)
    tone = rng.lognormal(0, 0.18, count)
    fan = np.radians(FAN_DEG[1] + (FAN_DEG[0] - FAN_DEG[1]) * dense) * rng.standard_normal(count)
    bend = (BEND_PER_MM[0] + (BEND_PER_MM[1] - BEND_PER_MM[0]) * curliness) * rng.standard_normal(count)

    canvas = _Splats(height, width)
    stride_mm = STEP_PX * plot.mm
    for number in range(int(length.max(initial=0) / stride_mm) + 1):
        if number % STEP_EVERY == 0:
            progress.moved()
        gone = number * stride_mm
        alive = (gone < length) & (place >= 0).all(axis=1) & (place < (width - 1, height - 1)).all(axis=1)
        place, length, thickness, tone, fan, bend = (a[alive] for a in (place, length, thickness, tone, fan, bend))
        if not len(place):
            break
        share = gone / length
        taper = np.minimum((1 - share) / 0.6, 1) * np.minimum(0.5 + share / 0.1, 1)
        canvas.add(place, taper * thickness * STEP_PX, tone)
        along = cv2.remap(field, place[None, :, 0], place[None, :, 1], cv2.INTER_LINEAR)[0]
        turned = fan * np.exp(-gone / STRAIGHTENS_MM) + bend * gone
        cosine, sine = np.cos(turned).astype(np.float32), np.sin(turned).astype(np.float32)
        ahead = np.column_stack([cosine * along[:, 0] - sine * along[:, 1], sine * along[:, 0] + cosine * along[:, 1]])
        place = place + np.float32(STEP_PX) * ahead
    return canvas.strands(blur_px)


class _Splats:
    """What was drawn so far."""

    def __init__(self, height: int, width: int) -> None:
        self._shape = (height, width)
        self._amount = np.zeros(height * width)
        self._toned = np.zeros(height * width)

    def add(self, place: Floats, amount: Array, tone: Array) -> None:
        """Points (N, 2) inside the raster, each with its area in pixels and its tone."""
        column, row = place[:, 0].astype(np.intp), place[:, 1].astype(np.intp)
        right, below = place[:, 0] - column, place[:, 1] - row
        index = row * self._shape[1] + column
        corners = np.concatenate([index, index + 1, index + self._shape[1], index + self._shape[1] + 1])
        parts = np.concatenate([(1 - right) * (1 - below), right * (1 - below), (1 - right) * below, right * below])
        weight = parts * np.tile(amount, 4)
        np.add.at(self._amount, corners, weight)
        np.add.at(self._toned, corners, weight * np.tile(tone, 4))

    def strands(self, blur_px: float) -> Strands:
        """The sum of it, as sharp as the photo."""
        more = float(np.sqrt(max(blur_px**2 - SPLAT_PX**2, 0.01)))
        amount, toned = (
            cv2.GaussianBlur(total.reshape(self._shape), (0, 0), more) for total in (self._amount, self._toned)
        )
        tone = np.where(amount > 1e-6, toned / np.maximum(amount, 1e-6), 1)
        return Strands((1 - np.exp(-amount)).astype(np.float32), tone.astype(np.float32))
