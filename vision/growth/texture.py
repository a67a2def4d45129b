"""What hair looks like, in numbers: the directions of its strands, its fineness, and whether a piece of it repeats.

Pure functions of lightness (CIELAB, 0 to 100) and masks. Directions and gradients are taken by square cells, and each
cell is compared with the nearest cells of the person's own hair: hair on one side of a head runs another way than on
the other. Each distance has its measure: how much the hair of this person differs from itself there. For that the
region is laid over own hair near by, as if that had been grown, and compared with the hair that lies to it as the own
hair lies to the region. So both distances come from cells as full, as many and as far apart: neighbouring whole cells
are more alike than cells half filled or two cells apart, and would call any hair in a narrow or a deep region unlike.

Frame: any canvas; x right, y down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Cells = NDArray[np.int64]
"""(N, 2), row and column of a cell."""

DIRECTIONS = 12
"""Bins of the histogram of strand directions, over half a turn."""
DIRECTION_SIGMA_PX = 1.0
SPECTRUM_SIGMAS_PX = (0.7, 1.4, 2.8, 5.6)
"""Scales of the gradient spectrum, an octave apart: from single strands to locks."""
MARGIN_PX = 32
"""Around what is looked at, so that the widest scale sees the same as in the whole picture."""
NEAREST = 4
"""Cells of own hair that one cell is compared with."""
LEAST_SHARE = 0.3
"""Part of a cell that must be hair for it to count. Where a narrow region fills no cell as much, those count that hold
at least half as much as the fullest."""
FURTHEST_CELLS = 5
"""The region is laid over own hair up to so many cells away, across and down."""
PLACES = 6
"""At as many places, those where most of it lies on hair."""
FITTING = 0.5
"""None of them has less hair under it than this part of the best."""
COARSE = 4
"""Samples a cell and axis by which that is judged."""

LEAST_DISTANCE = 1e-3
"""Hair that is everywhere the same to the last bit is painted."""

SHADING_MM = 2.5
"""What is smoother than this (standard deviation) is shading: it may repeat."""
SHORTEST_PERIOD_MM = 2.0
SMALLEST_OVERLAP = 0.25
SMALLEST_OVERLAP_MM2 = 40.0
"""Part of the region, and area, that must lie on itself after a shift for the shift to count: in less, single strands
look alike by chance."""
FLAT = 1e-3
"""Of the region's whole energy: where less than this overlaps, nothing is there that could repeat."""
RAYS = 180
"""Directions of shifts that are looked at, over half a turn: the other half is the same."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How far grown hair is from the person's own: means over its cells, 0 (same) to 1."""

    orientation: float
    """Total variation between histograms of strand directions."""
    gradient: float
    """Bray–Curtis dissimilarity between the gradients' strengths over the scales."""
    own_orientation: float
    own_gradient: float
    """The same of own hair near by, as if it had been grown there: means over the places tried."""

    @property
    def orientation_ratio(self) -> float:
        """In distances between two patches of the person's own hair."""
        return self.orientation / self.own_orientation

    @property
    def gradient_ratio(self) -> float:
        """In distances between two patches of the person's own hair."""
        return self.gradient / self.own_gradient


def likeness(before: Floats, after: Floats, grown: Mask, own: Mask, cell_px: int) -> Likeness | None:
    """Of the hair in `grown` of the finished picture to that in `own` of the photo; all (H, W).

    None where the photo shows too little hair to compare with.
    """
    grown_cells = _Patches.of(after, grown, cell_px)
    own_cells = _Patches.of(before, own, cell_px)
    if not len(grown_cells.at) or len(own_cells.at) <= NEAREST:
        return None
    orientation, gradient = grown_cells.distances(own_cells)
    found, cells = [], []
    for shift in _places(grown, own, cell_px):
        here = _shifted(grown, shift) & own
        as_if_grown = _Patches.of(before, here, cell_px)
        others = _Patches.of(before, _shifted(own, shift) & own & ~here, cell_px)
        if len(as_if_grown.at) and len(others.at) > NEAREST:
            found.append(as_if_grown.distances(others))
            cells.append(len(as_if_grown.at))
    # So little hair that the region fits nowhere: all of it against itself.
    own_distances = np.average(found, axis=0, weights=cells) if found else own_cells.distances(own_cells)
    own_orientation, own_gradient = (max(float(distance), LEAST_DISTANCE) for distance in own_distances)
    return Likeness(orientation, gradient, own_orientation, own_gradient)


def _places(grown: Mask, own: Mask, cell_px: int) -> list[tuple[int, int]]:
    """Shifts down and across, whole cells in pixels, that lay most of the region over own hair."""
    every = max(1, cell_px // COARSE)
    few_grown, few_own = grown[::every, ::every], own[::every, ::every]
    reach = range(-FURTHEST_CELLS, FURTHEST_CELLS + 1)
    shifts = sorted(((down, across) for down in reach for across in reach), key=lambda shift: np.hypot(*shift))[1:]
    samples = cell_px / every
    covered = np.array(
        [
            np.count_nonzero(_shifted(few_grown, (round(down * samples), round(across * samples))) & few_own)
            for down, across in shifts
        ]
    )
    best = np.argsort(-covered, kind="stable")[:PLACES]
    fitting = best[covered[best] >= max(FITTING * covered[best[0]], 1)]
    return [(shifts[place][0] * cell_px, shifts[place][1] * cell_px) for place in fitting]


def _shifted(mask: Mask, shift: tuple[int, int]) -> Mask:
    """The mask (H, W) moved down and across; what leaves the picture is gone."""
    moved = np.zeros_like(mask)
    to, of = zip(*(_overlap(by, side) for by, side in zip(shift, mask.shape, strict=True)), strict=True)
    moved[to] = mask[of]
    return moved


def _overlap(by: int, side: int) -> tuple[slice, slice]:
    """Where things lie after a move by so many pixels, and where they lay, on an axis of length `side`."""
    return slice(max(0, by), max(0, side + min(0, by))), slice(max(0, -by), max(0, side - max(0, by)))


@dataclass(frozen=True, slots=True)
class _Patches:
    """Cells of hair and what is in them."""

    at: Cells
    directions: Array
    """(N, DIRECTIONS), adding up to 1."""
    strengths: Array
    """(N, scales), root mean square of the gradients, each scale's weighed so that edges count the same in all."""

    @classmethod
    def of(cls, lightness: Floats, hair: Mask, cell_px: int) -> Self:
        left, top, width, height = cv2.boundingRect(hair.astype(np.uint8))
        # A whole number of cells from the canvas's corner, so that the cells of two masks lie on one grid.
        x0, y0 = (max(0, low - MARGIN_PX) // cell_px * cell_px for low in (left, top))
        part = np.s_[y0 : top + height + MARGIN_PX, x0 : left + width + MARGIN_PX]
        lightness, hair = lightness[part], hair[part]
        rows, columns = (side // cell_px + 1 for side in hair.shape)
        y, x = np.nonzero(hair)
        cell = (y // cell_px) * columns + x // cell_px

        def sums(of: NDArray[np.floating], bins: int = 1, which: NDArray[np.int64] | int = 0) -> Array:
            """(cells, bins)."""
            total = np.bincount(cell * bins + which, weights=of, minlength=rows * columns * bins)
            return np.asarray(total, dtype=np.float64).reshape(rows * columns, bins)

        count = sums(np.ones(len(cell)))[:, 0]
        fullest = float(count.max(initial=0))
        chosen = np.flatnonzero((count >= min(LEAST_SHARE * cell_px**2, fullest / 2)) & (count > 0))
        across, down = _gradient(lightness, DIRECTION_SIGMA_PX)
        across, down = across[y, x], down[y, x]
        strength = np.hypot(across, down)
        angle = (np.arctan2(down, across) % np.pi) * (DIRECTIONS / np.pi)
        lower = np.floor(angle).astype(np.int64)
        upper_share = angle - lower
        directions = sums(strength * (1 - upper_share), DIRECTIONS, lower % DIRECTIONS)
        directions += sums(strength * upper_share, DIRECTIONS, (lower + 1) % DIRECTIONS)
        directions = directions[chosen]
        squares = []
        for sigma in SPECTRUM_SIGMAS_PX:
            across, down = _gradient(lightness, sigma)
            squares.append(sums(sigma**2 * (across[y, x] ** 2 + down[y, x] ** 2))[chosen, 0])
        return cls(
            at=np.column_stack([chosen // columns + y0 // cell_px, chosen % columns + x0 // cell_px]),
            directions=directions / np.maximum(directions.sum(axis=1, keepdims=True), 1e-9),
            strengths=np.sqrt(np.column_stack(squares) / count[chosen, None]),
        )

    def chosen(self, which: Mask) -> _Patches:
        """Some of them."""
        return _Patches(self.at[which], self.directions[which], self.strengths[which])

    def distances(self, others: _Patches) -> tuple[float, float]:
        """Means over these cells of the mean distance to the nearest of the others, never to the cell itself."""
        apart = np.linalg.norm(self.at[:, None] - others.at[None], axis=2)
        near = np.argsort(np.where(apart == 0, np.inf, apart), axis=1, kind="stable")[:, :NEAREST]
        directions, strengths = self.directions[:, None], self.strengths[:, None]
        variation = np.abs(directions - others.directions[near]).sum(axis=2) / 2
        unlike = np.abs(strengths - others.strengths[near]).sum(axis=2)
        unlike /= np.maximum((strengths + others.strengths[near]).sum(axis=2), 1e-9)
        return float(variation.mean()), float(unlike.mean())


def _gradient(lightness: Floats, sigma_px: float) -> tuple[Floats, Floats]:
    """Derivatives across and down of the lightness blurred by `sigma_px`, per pixel."""
    blurred = cv2.GaussianBlur(lightness, (0, 0), sigma_px)
    across, down = (cv2.Sobel(blurred, cv2.CV_32F, dx, 1 - dx, ksize=3, scale=1 / 8) for dx in (1, 0))
    return np.asarray(across, dtype=np.float32), np.asarray(down, dtype=np.float32)


def repetition(lightness: Floats, hair: Mask, px_per_mm: float) -> float:
    """How much of the hair in the mask (H, W) comes again a shift away: 0 (nothing) to 1 (a tile).

    The autocorrelation rises again where a tile meets its copy. Along a strand it only falls: the rise is taken over
    its least value on the way there, so that long straight strands are no repetition.
    """
    left, top, width, height = cv2.boundingRect(hair.astype(np.uint8))
    if not width:
        return 0.0
    part = np.s_[top : top + height, left : left + width]
    inside, detail = hair[part].astype(np.float64), lightness[part].astype(np.float64)

    def smooth(values: Array) -> Array:
        return np.asarray(cv2.GaussianBlur(values, (0, 0), SHADING_MM * px_per_mm), dtype=np.float64)

    detail = (detail - smooth(detail * inside) / np.maximum(smooth(inside), 1e-3)) * inside
    rows, columns = (cv2.getOptimalDFTSize(2 * side) for side in (height, width))

    def transformed(values: Array) -> NDArray[np.complex128]:
        return np.fft.rfft2(values, (rows, columns))

    def correlated(first: NDArray[np.complex128], second: NDArray[np.complex128]) -> Array:
        return np.fft.irfft2(first * np.conj(second), (rows, columns))

    of_detail, of_inside, of_energy = (transformed(values) for values in (detail, inside, detail**2))
    overlap = correlated(of_inside, of_inside)
    least = FLAT * float((detail**2).sum()) + 1e-6
    energies = [np.maximum(correlated(*pair), least) for pair in ((of_energy, of_inside), (of_inside, of_energy))]
    alike = correlated(of_detail, of_detail) / np.sqrt(energies[0] * energies[1])
    enough = max(SMALLEST_OVERLAP * float(inside.sum()), SMALLEST_OVERLAP_MM2 * px_per_mm**2)
    alike = np.fft.fftshift(np.where(overlap >= enough, alike, 0.0))
    reach = int(np.hypot(rows, columns) / 2)
    polar = cv2.warpPolar(
        alike.astype(np.float32),
        (reach, 2 * RAYS),
        (columns // 2, rows // 2),
        reach,
        cv2.WARP_POLAR_LINEAR | cv2.INTER_LINEAR | cv2.WARP_FILL_OUTLIERS,
    )[:RAYS]
    rises = polar - np.minimum(np.minimum.accumulate(polar, axis=1), 1.0)
    return float(np.clip(rises[:, round(SHORTEST_PERIOD_MM * px_per_mm) :].max(initial=0.0), 0, 1))
