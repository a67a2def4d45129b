"""New hair where none of the person's can be moved to: sown along the growth field, in their texture and colours.

The growth field continues the direction of the own hair over the region (`field`). Along it a dense cover is quilted of
patches of the own hair (`quilt`). At the front the cover gives way to single strands, rooted ever more thinly in the
photo's own skin (`strokes`); at the back it ends in strands over the existing hair, so that the old front edge lies
under new hair and no seam is seen.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.growth.strands.field import growth_field, spread
from vision.growth.strands.own_hair import OwnHair
from vision.growth.strands.plot import Coarse, Floats, Plot, distance_mm
from vision.growth.strands.quilt import Quilt
from vision.growth.strands.ramps import rise, smooth_rise
from vision.growth.strands.strokes import Strands, draw_strands, strand_noise
from vision.types import Progress, RgbImage

ROOTED_MM = (-2.6, 1.6)
"""From the first to the second depth behind the free border roots get as dense as anywhere."""
ROOTED_POWER = 1.3
CLOSED_MM = (-0.2, 4.2)
"""From the first to the second depth the cover closes, so that no scalp shines through any more."""
LEAST_FULLNESS = 0.7
ROOTED_FULLNESS, CLOSED_FULLNESS = 1.0, 1.5
"""Where scalp shines through the person's own hair behind its edge, it does so through the new hair: fullness is raised
to these powers, for the density of roots and for the closed cover (hair is 0.55 to 0.95 full there)."""
THINNER, THINNER_MM = 0.45, (10.0, 35.0)
"""Far from all own hair new hair is thinner, by this share from the second distance on: on a bald crown nobody has a
full head of hair, and none that was planted is as dense."""
TEXTURED_MM = (-1.0, 1.0)
"""Before the first depth strands have the colour of the hair near by, from the second on that of the cover."""
RAGGED_MM = 0.45
RAGGED_OVER_MM = (0.6, 1.8)
"""The free border comes and goes by so much (standard deviation), over such lengths."""
JOIN_MM = 6.0
"""The cover reaches so far into the existing hair, thinning out."""
NOISE_MM = 3.0
STRAND_MM = (7.0, 4.0)
"""Length of strands: of straight hair, of tight curls."""
ROOT_SHADE = (0.0, 0.2)
ROOT_SHADE_MM = (1.0, 8.0)
"""Hair is darker near its roots, where it shades itself; at the second depth no more. The first value is for hair as
light as the skin, the second for hair darker than it by `DARKER` (of 1) or more."""
SHADE = (0.05, 0.3)
"""How much darker skin is between roots, which shade it and show through: under light and under dark hair."""
DARKER = 0.35
SHADE_MM = 0.8
SOWING_STEPS = 5
"""That `sow` reports."""


def sow(
    rgb: RgbImage,
    coarse: Coarse,
    plot: Plot,
    own: OwnHair,
    *,
    where: NDArray[np.bool_],
    rng: np.random.Generator,
    progress: Progress,
) -> Floats:
    """The plot (h, w, 3) with new hair `where` (h, w) it is wanted, made of the texture of the own hair."""
    quilt = Quilt(rgb, coarse, plot, own, rng)
    progress.step()
    coarse_field = growth_field(coarse, own)
    field = coarse.frame.resampled(coarse_field, plot.frame)
    progress.step()
    noise = strand_noise(field, NOISE_MM / plot.mm, own.blur_px, rng)
    depth_mm = plot.depth_mm + _raggedness(plot, rng)
    join = _join(plot, noise) * where
    progress.step()
    full = np.maximum(spread(own.fullness[..., None], own.edge, coarse.mm), LEAST_FULLNESS)
    full *= 1 - THINNER * smooth_rise(distance_mm(coarse.hair > 0.5, coarse.mm), THINNER_MM)[..., None]
    fullness = coarse.frame.resampled(full, plot.frame)
    strands = draw_strands(
        plot,
        field,
        rise(depth_mm, ROOTED_MM) ** ROOTED_POWER * join * fullness**ROOTED_FULLNESS,
        length_mm=_of(STRAND_MM, own.curliness),
        curliness=own.curliness,
        blur_px=own.blur_px,
        rng=rng,
        progress=progress,
    )
    progress.step()
    closed = smooth_rise(depth_mm, CLOSED_MM) * join * fullness**CLOSED_FULLNESS
    cover = 1 - (1 - strands.cover) * (1 - closed)
    dense = quilt.cover(cover > 0.02, coarse_field, noise, rng, progress)
    progress.step()
    contrast = _contrast(plot, quilt.light)
    hair = _coloured(quilt.light * strands.tone[..., None], dense, depth_mm, contrast)
    skin = _shaded(plot, strands, contrast)
    sown: Floats = skin + cover[..., None] * (hair - skin)
    return sown


def _coloured(single: Floats, dense: Floats, depth_mm: Floats, contrast: float) -> Floats:
    """Colour of the hair (h, w, 3): of strands alone at the front, of the dense cover behind, darker near its roots."""
    hair = single + smooth_rise(depth_mm, TEXTURED_MM)[..., None] * (dense - single)
    near_roots = 1 - smooth_rise(depth_mm, ROOT_SHADE_MM)
    coloured: Floats = hair * (1 - _of(ROOT_SHADE, contrast) * near_roots)[..., None]
    return coloured


def _shaded(plot: Plot, strands: Strands, contrast: float) -> Floats:
    """Colour of the skin between the roots (h, w, 3)."""
    near_hair = cv2.GaussianBlur(strands.cover, (0, 0), SHADE_MM / plot.mm)
    shaded: Floats = plot.rgb * (1 - _of(SHADE, contrast) * near_hair)[..., None]
    return shaded


def _of(limits: tuple[float, float], share: float) -> float:
    """From the first (0) to the second (1)."""
    return limits[0] + (limits[1] - limits[0]) * share


def _contrast(plot: Plot, light: Floats) -> float:
    """0 when the hair near by (h, w, 3) is as light as the skin of the region, 1 when it is much darker."""
    bare = (plot.region > 0.5) & (plot.hair < 0.5)
    skin = plot.rgb[bare if bare.any() else plot.region > 0.5].mean()
    return float(np.clip((skin - light[plot.region > 0.5].mean()) / DARKER, 0, 1))


def _raggedness(plot: Plot, rng: np.random.Generator) -> Floats:
    """(h, w), mm by which the free border lies further out or in."""
    total = np.zeros(plot.region.shape, dtype=np.float32)
    for over_mm in RAGGED_OVER_MM:
        noise = cv2.GaussianBlur(rng.standard_normal(total.shape).astype(np.float32), (0, 0), over_mm / plot.mm)
        total += noise / noise.std()
    ragged: Floats = total * np.float32(RAGGED_MM / np.sqrt(len(RAGGED_OVER_MM)))
    return ragged


def _join(plot: Plot, noise: Floats) -> Floats:
    """(h, w), 1 in the region, 0 far from it, and between a border of strands."""
    outside = distance_mm(plot.region > 0.5, plot.mm)
    return smooth_rise(1 - outside / JOIN_MM + 0.25 * noise * (outside > 0), (0.0, 0.8))
