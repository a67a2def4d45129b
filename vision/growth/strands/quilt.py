"""A dense cover of the person's own hair: patches of it, turned along the growth field and overlapped.

Every patch comes from where the photo shows nothing but hair. From which of many such places is decided by how well it
goes on from what lies there already (existing hair, earlier patches), by its light against that of the hair near by, by
how far it has to be turned, and by how often the place was used: nothing repeats while there is something else to take.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.growth.backend import GrowthReason, GrowthUnavailableError
from vision.growth.strands.field import spread
from vision.growth.strands.own_hair import OwnHair
from vision.growth.strands.plot import Coarse, Floats, Places, Plot, distance_mm
from vision.types import Points, Progress, RgbImage

Array = NDArray[np.float64]

RADII_MM = (6.5, 5.0, 3.5, 2.5)
"""Radius of a patch: the largest for which the photo shows `ENOUGH_PLACES_MM2` to take it from."""
ENOUGH_PLACES_MM2 = 60.0
SPACING = 0.8
"""Distance of neighbouring patches, in radii."""
JITTER = 0.15
PLACES = 3000
"""As many of them are looked at, drawn at random."""
CANDIDATES = 100
NEAR_MM = 40.0
"""Candidates come from about so far away (standard deviation), if there are any."""
SAMPLE_MM = 0.7
"""Step of the grid on which candidates are compared."""
WHOLE_TURN = 0.3
"""Hair of this coherence is turned fully; curls have no direction that they could be turned into."""
TURN_WEIGHT = 0.004
LIGHT_WEIGHT = 3.0
REPEAT_WEIGHT = 0.02
"""Costs of turning by one radian, of other light, and of a place that was used, beside the mean squared difference of
colours (0 to 1) in the overlap."""
LIGHT_EVERY = 3
"""Light is compared at every third place of the grid."""
TAKEN = 0.7
"""So much of a patch, in radii, counts as used."""
LIGHT_MM = 5.0
"""Light that varies more slowly than this is that of the hair near by, not that of the place a patch comes from."""
GAIN = (0.6, 1.35)
"""Least and greatest change of brightness by that."""
BLACK = 0.03
"""Added to both brightnesses: what is nearly black is not brightened, that would only show its noise."""
TINT = (0.85, 1.18)
"""Least and greatest change of a colour beyond that."""
SOFT = 0.3
"""Width of a patch's soft border, in radii."""
RAGGED = 0.4
"""How far strand-like noise moves that border, in its own width."""
STEP_EVERY = 8


@dataclass(frozen=True, slots=True)
class _Sources:
    """Places on the coarse raster around which there is nothing but hair."""

    places: Places
    radius_mm: float
    angle: Array
    """(N,), of the strands there, without a sign."""
    coherence: Array


class Quilt:
    """One plot being covered."""

    def __init__(self, rgb: RgbImage, coarse: Coarse, plot: Plot, own: OwnHair, rng: np.random.Generator) -> None:
        """Raises `GrowthUnavailableError` (NO_OWN_HAIR) when no place of the photo shows hair alone."""
        self._rgb = rgb
        self._coarse = coarse
        self._plot = plot
        self._sources = _find_sources(coarse, own, rng)
        self._light = spread(coarse.rgb, own.sure, coarse.mm)
        share = cv2.GaussianBlur(own.sure, (0, 0), LIGHT_MM / coarse.mm)[..., None]
        near = cv2.GaussianBlur(coarse.rgb * own.sure[..., None], (0, 0), LIGHT_MM / coarse.mm)
        self._own_light = np.asarray(near / np.maximum(share, 1e-3), dtype=np.float32)
        self._known = own.sure.copy()
        self._seen = coarse.rgb.copy()
        self._used = np.zeros_like(own.sure)
        self._covered = np.zeros_like(plot.region)
        self.light = coarse.frame.resampled(self._light, plot.frame)
        """(h, w, 3) on the plot, slowly varying colour of hair, continued over the region."""
        self._picture = self.light.copy()

    def cover(
        self, wanted: NDArray[np.bool_], field: Floats, noise: Floats, rng: np.random.Generator, progress: Progress
    ) -> Floats:
        """(h, w, 3) on the plot: hair over all that is wanted (h, w).

        `field` (h, w, 2) is the growth field on the coarse raster; `noise` (h, w) on the plot, drawn out along the
        strands, lets patches end raggedly.
        """
        for number, centre in enumerate(self._centres(wanted, rng)):
            if number % STEP_EVERY == 0:
                progress.moved()
            at = np.round(self._coarse.frame.from_canvas(self._plot.frame.to_canvas(centre))).astype(np.intp)
            at = np.clip(at, 0, np.array(self._known.shape[::-1]) - 1)
            source, turn = self._choose(at, field[at[1], at[0]], rng)
            self._lay(centre, source, turn, noise)
            self._remember(at)
            radius = max(1, round(TAKEN * self._sources.radius_mm / self._coarse.mm))
            cv2.circle(self._used, (int(source[0]), int(source[1])), radius, 1.0, cv2.FILLED)
        return self._picture

    def _centres(self, wanted: NDArray[np.bool_], rng: np.random.Generator) -> Points:
        """(N, 2) on the plot, a jittered hexagonal grid over what is wanted, from the existing hair to the front."""
        height, width = wanted.shape
        spacing = SPACING * self._sources.radius_mm / self._plot.mm
        rows, columns = np.arange(0, height + spacing, spacing * 0.87), np.arange(0, width + spacing, spacing)
        x, y = np.meshgrid(columns, rows)
        x += (np.arange(len(rows)) % 2)[:, None] * spacing / 2
        points = np.column_stack([x.ravel(), y.ravel()])
        points += rng.normal(0, JITTER * spacing, points.shape)
        cells = np.clip(np.round(points), 0, (width - 1, height - 1)).astype(np.intp)
        near = distance_mm(wanted, self._plot.mm)[cells[:, 1], cells[:, 0]] < 0.7 * SPACING * self._sources.radius_mm
        to_hair = distance_mm(self._plot.region < 0.5, self._plot.mm)
        depth = np.where(np.isfinite(self._plot.depth_mm), self._plot.depth_mm, to_hair)[cells[:, 1], cells[:, 0]]
        ordered: Points = points[near][np.argsort(-depth[near], kind="stable")]
        return ordered

    def _choose(self, at: Places, direction: Floats, rng: np.random.Generator) -> tuple[Places, float]:
        """The source (2,) that goes on best from what is known around the cell `at` (2,), and its turn in radians."""
        sources, cell_mm = self._sources, self._coarse.mm
        away_mm = np.linalg.norm(sources.places - at, axis=1) * cell_mm
        chance = np.exp(-0.5 * (away_mm / NEAR_MM) ** 2) + 1e-4
        up_to = np.cumsum(chance)
        chosen = np.searchsorted(up_to[:-1], rng.uniform(0, up_to[-1], CANDIDATES))
        places = sources.places[chosen]
        towards = np.arctan2(direction[1], direction[0])
        turn = _axial(towards - sources.angle[chosen]) * np.clip(sources.coherence[chosen] / WHOLE_TURN, 0, 1)

        samples = 2 * round(sources.radius_mm / SAMPLE_MM) + 1
        offsets = np.linspace(-1, 1, samples) * sources.radius_mm / cell_mm
        x, y = np.meshgrid(offsets, offsets)
        cosine, sine = np.cos(turn)[:, None, None], np.sin(turn)[:, None, None]
        from_x = places[:, 0, None, None] + cosine * x + sine * y
        from_y = places[:, 1, None, None] - sine * x + cosine * y
        light_there, light_here = self._own_light[places[:, 1], places[:, 0]], self._light[at[1], at[0]]
        there = _relit(_at(self._coarse.rgb, from_x, from_y), light_there[:, None, None, :], light_here)
        here, known = _at(self._seen, at[0] + x, at[1] + y), _at(self._known, at[0] + x, at[1] + y)
        known = known * (np.hypot(x, y) <= offsets[-1])
        overlap = (((there - here) ** 2).mean(axis=-1) * known).sum(axis=(1, 2)) / max(float(known.sum()), samples)
        few = np.s_[:, ::LIGHT_EVERY, ::LIGHT_EVERY]
        lit = ((_at(self._own_light, from_x[few], from_y[few]) - light_here) ** 2).mean(axis=(1, 2, 3))
        used = self._used[places[:, 1], places[:, 0]]
        best = int(np.argmin(overlap + LIGHT_WEIGHT * lit + TURN_WEIGHT * turn**2 + REPEAT_WEIGHT * used))
        return places[best], float(turn[best])

    def _lay(self, centre: Array, source: Places, turn: float, noise: Floats) -> None:
        """One patch over the picture."""
        radius = self._sources.radius_mm / self._plot.mm
        low = np.maximum(np.floor(centre - radius), 0).astype(int)
        high = np.minimum(np.ceil(centre + radius) + 1, self._picture.shape[1::-1]).astype(int)
        if (high <= low).any():
            return
        window, size = (slice(low[1], high[1]), slice(low[0], high[0])), (high - low).tolist()
        cosine, sine = np.cos(turn), np.sin(turn)
        rotation = np.array([[cosine, sine], [-sine, cosine]])
        offset = rotation @ (low - centre)
        flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
        from_canvas = np.column_stack([rotation, self._coarse.frame.to_canvas(source) + offset])
        hair = cv2.warpAffine(self._rgb, from_canvas, size, flags=flags, borderMode=cv2.BORDER_REFLECT_101)
        from_cells = np.column_stack([rotation / self._coarse.frame.step, source + offset / self._coarse.frame.step])
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        light = cv2.warpAffine(self._own_light, from_cells, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)
        relit = _relit(hair / np.float32(255), np.asarray(light, dtype=np.float32), self.light[window])

        x, y = np.arange(low[0], high[0]) - centre[0], np.arange(low[1], high[1]) - centre[1]
        inside = (1 - np.hypot(x, y[:, None]) / radius).astype(np.float32)
        over = np.clip(inside / SOFT + RAGGED * noise[window] - RAGGED, 0, 1) * (inside > 0)
        covered = self._covered[window]
        share = over / np.maximum(over + (1 - over) * covered, 1e-6)
        self._picture[window] += share[..., None] * (relit - self._picture[window])
        self._covered[window] = np.maximum(covered, over)

    def _remember(self, at: Places) -> None:
        """What the picture shows around the cell `at` (2,), for the comparison with further candidates."""
        cells = int(self._sources.radius_mm / self._coarse.mm) + 1
        low = np.maximum(at - cells, 0)
        high = np.minimum(at + cells + 1, self._known.shape[::-1])
        cell_x, cell_y = np.meshgrid(np.arange(low[0], high[0]), np.arange(low[1], high[1]))
        x, y = np.moveaxis(
            self._plot.frame.from_canvas(self._coarse.frame.to_canvas(np.stack([cell_x, cell_y], axis=-1))), -1, 0
        )
        window = (slice(low[1], high[1]), slice(low[0], high[0]))
        on_plot = (x >= 0) & (y >= 0) & (x < self._picture.shape[1]) & (y < self._picture.shape[0])
        laid = on_plot & (_at(self._covered, x, y) > 0.5)
        self._seen[window] = np.where(laid[..., None], _at(self._picture, x, y), self._seen[window])
        self._known[window] = np.maximum(self._known[window], laid)


def _find_sources(coarse: Coarse, own: OwnHair, rng: np.random.Generator) -> _Sources:
    around = distance_mm(own.sure < 0.5, coarse.mm)
    inset = np.minimum(*np.meshgrid(*(np.minimum(np.arange(n), np.arange(n)[::-1]) for n in around.shape[::-1])))
    room = np.minimum(around, inset * coarse.mm)
    for radius in RADII_MM:
        y, x = np.nonzero(room >= radius)
        if len(x) * coarse.mm**2 >= ENOUGH_PLACES_MM2:
            some = rng.choice(len(x), size=min(PLACES, len(x)), replace=False)
            y, x = y[some], x[some]
            double = own.double_angle[y, x].astype(np.float64)
            angle = np.arctan2(double[:, 1], double[:, 0]) / 2
            return _Sources(np.column_stack([x, y]), radius, angle, np.linalg.norm(double, axis=-1))
    raise GrowthUnavailableError(GrowthReason.NO_OWN_HAIR, "no place shows nothing but hair")


def _relit(hair: Floats, light: Floats, wanted: Floats) -> Floats:
    """Colours (..., 3) under another light: brighter or darker, and a little of another hue."""
    was, will = light + BLACK, wanted + BLACK
    gain = will.mean(axis=-1, keepdims=True) / was.mean(axis=-1, keepdims=True)
    relit: Floats = np.clip(hair * np.clip(gain, *GAIN) * np.clip(will / (was * gain), *TINT), 0, 1)
    return relit


def _at(values: Floats, x: Array, y: Array) -> Floats:
    """Values of a raster at places of any shape, to the nearest pixel; beyond it its border goes on."""
    column = np.clip(np.round(x), 0, values.shape[1] - 1).astype(np.intp)
    row = np.clip(np.round(y), 0, values.shape[0] - 1).astype(np.intp)
    return values[row, column]


def _axial(angle: Array) -> Array:
    """The same axes, between -90 and 90 degrees."""
    turned: Array = (angle + np.pi / 2) % np.pi - np.pi / 2
    return turned
