"""Where on each ray forehead skin turns into hair: the parser's border, corrected by the photo's own colours.

The parser's cells are coarse (2.4 % of the face height) and it counts baby hair as hair; the photo shows the transition
itself. Around the parser's border the colours and the grain of the person's own skin and hair are learned, every sample
is placed between the two (Fisher's discriminant) and averaged over a band of neighbouring rays: the edge is where half
of the way to full hair is gone. Baby hair and stray strands are few and hardly move it. Neither is the hairline's
course that of a parting's mouth or of a tuft: the correction of a ray is the median of those around it. Where skin and
hair hardly differ (a shaved head) this says little, and the parser's border counts more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vision.forehead_rays import ANGLE_STEP_DEG, RADII, RADIUS_STEP, Floats, ForeheadColours, Rays, sampled
from vision.head import Array

LASTING = 0.04
"""What follows the border must not be face again within this distance, in face units."""
ROW_STEP = 0.003
OFFSETS = np.arange(-0.14, 0.1401, ROW_STEP)
"""Distances from the parser's border that are looked at, outwards positive, in face units."""

HAIR_ZONE = (0.02, 0.08)
SKIN_ZONE = (-0.07, -0.03)
"""Where the colours of hair and skin are learned, from the edge known so far."""
FULL_HAIR_ZONE = (0.02, 0.14)
FULL_HAIR_QUANTILE = 0.9
"""Hair is full where the averaged profile reaches this quantile of the zone: scalp shines through short hair and roots
for a tenth of the face height."""
COLOUR_SPAN = round(17 / ANGLE_STEP_DEG)
"""Rays to either side whose colours count for one ray."""
BAND_SIGMA = 5 / ANGLE_STEP_DEG
BAND_SPAN = round(12 / ANGLE_STEP_DEG)
"""Rays over which the profile is averaged: standard deviation of the weights, and how many to either side."""
CALM_SPAN = round(10 / ANGLE_STEP_DEG)
"""Rays to either side over which the median of the correction is taken."""
COLOUR_NOISE = 4.0
"""Variance of a colour or the grain that is never less than this: keeps the discriminant finite on flat areas."""
PASSES = 2
MAX_SHIFT = 0.06
"""The colours never move the parser's border further than this."""
EQUAL_SEPARATION = 3.0
"""Separation of skin and hair, in standard deviations of their looks, at which colours and parser count the same."""
MIN_SAMPLES = 25


@dataclass(frozen=True, slots=True)
class HairEdge:
    """Per ray (N,), in face units from the glabella; NaN where the face does not end."""

    border: Array
    """Where the parser sees the face end."""
    radius: Array
    """The edge."""
    width: Array
    """Of the transition, from a quarter to three quarters of the way."""
    disagreement: Array
    """Between parser and colours."""
    separation: Array
    """Of hair and skin colours, in standard deviations; 0 where they could not be learned."""


def face_border(face: Floats) -> Array:
    """(N,), first distance from which on the face has ended for a while; NaN where it never does. Input (M, N)."""
    lead = (0.5 - face).astype(np.float64)
    ahead = sliding_window_view(lead[1:], round(LASTING / RADIUS_STEP), axis=0).mean(axis=-1)
    before, after = lead[: len(ahead)], lead[1 : len(ahead) + 1]
    starts = (before < 0) & (after >= 0) & (ahead > 0)
    rays = np.arange(lead.shape[1])
    row = np.argmax(starts, axis=0)
    below, above = before[row, rays], after[row, rays]
    share = -below / np.where(starts.any(axis=0), above - below, 1.0)
    return np.where(starts.any(axis=0), RADII[row] + RADIUS_STEP * share, np.nan)


def find_hair_edge(colours: ForeheadColours, rays: Rays, hair: Floats, face: Floats) -> HairEdge:
    """The edge on every ray. `hair` and `face` are the parser's probabilities at `RADII` (M, N)."""
    border = face_border(face)
    known = np.flatnonzero(~np.isnan(border))
    nowhere = np.full(border.shape, np.nan)
    if not known.size:
        return HairEdge(border, border, nowhere, nowhere, np.zeros(border.shape))
    guide = np.interp(np.arange(border.size), known, border[known])
    shift = np.zeros(border.size)
    for _ in range(PASSES):
        level, separation = _profile(colours, rays, hair, face, guide + shift)
        quarter, half, three_quarters = (_crossing(level, value) for value in (0.25, 0.5, 0.75))
        shift = np.clip(shift + np.nan_to_num(half), -MAX_SHIFT, MAX_SHIFT)
    separation = np.where(np.isnan(half), 0.0, separation)
    shift = _calm(shift)
    trust = separation**2 / (separation**2 + EQUAL_SEPARATION**2)
    return HairEdge(
        border=border,
        radius=border + trust * shift,
        width=np.where(np.isnan(border), np.nan, _calm(np.abs(three_quarters - quarter))),
        disagreement=np.where(np.isnan(border), np.nan, np.abs(shift)),
        separation=separation,
    )


def _calm(values: Array) -> Array:
    """(N,), median of each ray and its neighbours; NaN where most of them are."""
    near = np.sort(_near(values[None], CALM_SPAN)[0], axis=-1)  # NaN sorts behind all numbers
    return near[:, CALM_SPAN]


def _profile(colours: ForeheadColours, rays: Rays, hair: Floats, face: Floats, edge: Array) -> tuple[Array, Array]:
    """How hairy it is along each ray about the `edge` (N,), and how well colours tell hair from skin there (N,).

    (len(OFFSETS), N), from 0 (skin) to 1 (full hair), averaged over neighbouring rays as if their edges lay side by
    side; NaN where colours say nothing.
    """
    radii = edge + OFFSETS[:, None]
    looks = colours.at(rays.at(radii)).astype(np.float64)
    cells = np.stack([np.broadcast_to(np.arange(edge.size), radii.shape), (radii - RADII[0]) / RADIUS_STEP], axis=-1)
    is_hair, is_face = sampled(hair, cells), sampled(face, cells)
    hair_mean, hair_covariance, hair_count = _colours(looks, (is_hair > 0.5) & _zone(HAIR_ZONE))
    skin_mean, skin_covariance, skin_count = _colours(looks, (is_face > 0.5) & _zone(SKIN_ZONE))
    towards = hair_mean - skin_mean
    axis = np.linalg.solve((hair_covariance + skin_covariance) / 2, towards[..., None])[..., 0]
    distance = np.maximum((axis * towards).sum(axis=1), 1e-6)

    # A neighbour's sample counts by this ray's colours, not by its own: (rows, rays, neighbours).
    level = np.matmul(_near(looks, BAND_SPAN).transpose(1, 0, 3, 2), axis[:, None, :, None])[..., 0].transpose(1, 0, 2)
    level = np.clip((level - (skin_mean * axis).sum(axis=1)[:, None]) / distance[:, None], -0.5, 1.5)
    weights = np.exp(-0.5 * (np.arange(-BAND_SPAN, BAND_SPAN + 1) / BAND_SIGMA) ** 2)
    # Background and hats count for nothing, unless there is nothing else.
    weights = weights * _near(np.where(is_hair + is_face > 0.5, 1.0, 0.02), BAND_SPAN)
    averaged = (level * weights).sum(axis=2) / weights.sum(axis=2)

    skin_level = np.median(averaged[_zone(SKIN_ZONE)[:, 0]], axis=0)
    hair_level = np.quantile(averaged[_zone(FULL_HAIR_ZONE)[:, 0]], FULL_HAIR_QUANTILE, axis=0)
    span = hair_level - skin_level
    usable = (hair_count >= MIN_SAMPLES) & (skin_count >= MIN_SAMPLES) & (span > 0.2)
    profile = np.where(usable, (averaged - skin_level) / np.where(usable, span, 1.0), np.nan)
    # Along the discriminant the variance of either is the distance itself.
    return profile, np.where(usable, np.sqrt(distance), 0.0)


def _zone(limits: tuple[float, float]) -> NDArray[np.bool_]:
    """(len(OFFSETS), 1), which rows lie in a zone."""
    return ((limits[0] <= OFFSETS) & (limits[1] >= OFFSETS))[:, None]


def _near(values: Array, span: int) -> Array:
    """(M, N, ..., 2 span + 1), each ray's values with those of its neighbours; the outermost rays are repeated."""
    padded = np.pad(values, [(0, 0), (span, span)] + [(0, 0)] * (values.ndim - 2), mode="edge")
    return sliding_window_view(padded, 2 * span + 1, axis=1)


def _colours(looks: Array, chosen: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """Mean (N, C), covariance (N, C, C), count (N,) of the chosen samples (M, N, C) on each ray and its neighbours."""
    channels = looks.shape[-1]
    kept = np.where(chosen[..., None], looks, 0.0)
    second = np.einsum("mni,mnj->nij", kept, looks).reshape(-1, channels**2)
    sums = np.column_stack([chosen.sum(axis=0), kept.sum(axis=0), second])
    near = sliding_window_view(np.pad(sums, ((COLOUR_SPAN, COLOUR_SPAN), (0, 0))), 2 * COLOUR_SPAN + 1, axis=0)
    totals = near.sum(axis=-1)
    count = totals[:, 0]
    divisor = np.maximum(count, 1.0)
    mean = totals[:, 1 : 1 + channels] / divisor[:, None]
    second = totals[:, 1 + channels :].reshape(-1, channels, channels) / divisor[:, None, None]
    return mean, second - mean[:, :, None] * mean[:, None, :] + COLOUR_NOISE * np.eye(channels), count


def _crossing(level: Array, value: float) -> Array:
    """(N,), offset of the upward crossing of `value` nearest to the edge known so far; NaN without one."""
    ups = (level[:-1] < value) & (level[1:] >= value)
    row = np.argmin(np.where(ups, np.abs(OFFSETS[:-1])[:, None], np.inf), axis=0)
    rays = np.arange(level.shape[1])
    found = ups[row, rays]
    below, above = level[row, rays], level[row + 1, rays]
    share = (value - below) / np.where(found, above - below, 1.0)
    return np.where(found, OFFSETS[row] + ROW_STEP * share, np.nan)
