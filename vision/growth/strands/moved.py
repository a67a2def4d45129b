"""The person's own front, moved: the photo itself, drawn towards the face until its hairline lies on the new front.

Nothing looks as much like a person's hairline as that hairline: its width, its single hairs, its irregularity, how hair
darkens and thickens behind it, which way it runs at either temple. So where the region joins the present hair, the hair
behind the hairline is taken along rays from the glabella. Where the front turns sharply, as at the end of a region,
strands are not bent round it: hair that moves more evenly is cut there, as softly as the own front ends. It can be used
as far as hair is deep enough; where the head ends there, and where a region does not join the hair, new hair has to be
made otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from vision.growth.backend import GrowthJob
from vision.growth.strands.looks import Looks
from vision.growth.strands.plot import MARGIN_MM, Coarse, Floats, Plot, distance_mm
from vision.growth.strands.ramps import smooth_rise
from vision.growth.strands.rays import Rays
from vision.head import GLABELLA

RAGGED_MM, RAGGED_OVER_MM = 0.5, 3.0
SWAYS_MM, SWAYS_OVER_MM = 1.5, 9.0
"""The front comes and goes, and sways along itself, by so much (standard deviation), over such lengths: it is no copy
of the old one."""
STILL_MM = 2.0
"""What is moved by less than this bends less."""
CHANGED_MM = (2.0, 8.0)
"""What is moved by less than the first is moved as it is, from the second on it comes and goes and sways fully: nobody
takes a front for a copy that lies nearly where the old one was."""
STRETCHED = (2.0, 4.0)
"""Hair that is not deep enough is stretched; from the first to the second factor it is used less and less."""
CUT_MM = (3.0, 6.0)
"""Up to the first depth behind the front hair that was moved further ends where the own front would; from the second on
nothing of it is left out."""
HAIRY = (0.06, 0.3)
"""Up to the first level, 0 for skin and 1 for hair, the photo's own pixel stays; from the second on the moved one is
seen. In between are shadows and the finest hairs."""
LEVEL_MM, OWN_LEVEL_MM = 0.25, 1.0
"""The level is smoothed over so much: that of what is moved, and of what the photo shows where it comes to lie."""


@dataclass(frozen=True, slots=True)
class MovedFront:
    """On the plot, (h, w)."""

    picture: Floats
    """(h, w, 3), 0 to 1."""
    share: Floats
    """How far it can be used, 0 to 1."""


def move_front(job: GrowthJob, coarse: Coarse, plot: Plot, looks: Looks, rng: np.random.Generator) -> MovedFront | None:
    """None where the photo shows no hairline, or the region does not lie before it."""
    rays = Rays.of(job, coarse, looks)
    if rays is None:
        return None
    centre = job.scene.landmarks[GLABELLA].astype(np.float32)
    x, y = plot.frame.canvas_grid()
    x, y = x - centre[0], centre[1] - y
    radius, angle = np.hypot(x, y), np.arctan2(x, y)
    shift = rays.at(rays.shift_px, angle)
    changed = smooth_rise(shift * plot.mm, CHANGED_MM)
    sway = SWAYS_MM / plot.mm * _noise(plot, SWAYS_OVER_MM, rng) * changed / np.maximum(radius, 1)
    from_angle = (angle + sway).astype(np.float32)
    own, room = rays.at(rays.own_px, from_angle), rays.at(rays.room_px, from_angle)
    ragged = np.float32(RAGGED_MM / plot.mm) * _noise(plot, RAGGED_OVER_MM, rng) * changed
    behind = radius + shift - own

    def drawn(move: Floats) -> tuple[Floats, Floats, Floats]:
        """The photo moved so far towards the centre, its level of hair, and how far it was stretched."""
        depth = radius + move + ragged - own
        # Deeper than the room there is nothing to be taken: depths bend towards it, d / (1 + (d / room)³)^⅓. What is
        # not moved does not bend.
        moving = np.clip(move * np.float32(plot.mm / STILL_MM), 0, 1)
        bend = 1 + (np.maximum(depth, 0) / room * moving) ** 3
        at_radius = np.maximum(own + depth / np.cbrt(bend), 0)
        at = (centre[0] + at_radius * np.sin(from_angle), centre[1] - at_radius * np.cos(from_angle))
        taken = cv2.remap(job.scene.rgb, *at, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        hair = np.asarray(taken, dtype=np.float32) / np.float32(255)
        cells = [
            (a - np.float32(o)) / np.float32(coarse.frame.step) for a, o in zip(at, coarse.frame.origin, strict=True)
        ]
        parsed = cv2.remap(coarse.hair, cells[0], cells[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        level = looks.level(hair, np.asarray(parsed, dtype=np.float32), LEVEL_MM / plot.mm)
        return hair, level, bend ** (4 / 3)

    # What lies at the front is cut out of hair that is bent less: by as much as it is hairier than the front drawn to
    # the same place.
    _, level, _ = drawn(shift)
    hair, full, stretched = drawn(rays.move_at(angle, behind * plot.mm))
    bare = np.clip(full - level, 0, 1) * (1 - smooth_rise(behind * plot.mm, CUT_MM))
    hair = hair + bare[..., None] * (plot.rgb - hair)
    level_here = looks.level(plot.rgb, plot.hair, OWN_LEVEL_MM / plot.mm)
    around = distance_mm(plot.region > 0.5, plot.mm) < MARGIN_MM
    seen = np.maximum(smooth_rise(level, HAIRY), smooth_rise(level_here, HAIRY)) * around
    share = 1 - smooth_rise(stretched, STRETCHED)
    return MovedFront(plot.rgb + seen[..., None] * (hair - plot.rgb), share * rays.at(rays.joined, angle))


def _noise(plot: Plot, over_mm: float, rng: np.random.Generator) -> Floats:
    """(h, w), smooth over so much; mean 0, standard deviation 1."""
    height, width = plot.region.shape
    shrink = max(1, int(over_mm / plot.mm / 4))
    size = (-(-height // shrink), -(-width // shrink))
    small = cv2.GaussianBlur(rng.standard_normal(size).astype(np.float32), (0, 0), over_mm / plot.mm / shrink)
    small = (small - small.mean()) / max(float(small.std()), 1e-6)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC), dtype=np.float32)
