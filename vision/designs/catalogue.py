"""The catalogue: every style as a few named proportions.

A shape is drawn on half a forehead and mirrored. Its control points, from the midline outwards, are

    peak     on the midline, `peak_depth` below the front: the mid-frontal point
    front    (`front_width`, `front_rise`): the front before it bends to the temple
    temple   (`temple_width`, `temple_rise`): where the front's line and the temple's would meet
    limb     between temple and end, `limb_bulge` beside their straight line, outwards positive
    end      in the temporal hair

Widths are in units of the eye corners' distance from the midline (`vision.designs.forehead`), so 1 is the lateral
canthus vertical. Rises are shares of the height of the front above the end; negative is lower than the front.

All proportions are our own. For comparison: widow's peaks of Spanish women are 10 mm deep and 21 mm wide on average
(Ceballos et al., Actas Dermosifiliogr 104 (2013) 311); ours is 7 mm deep, and as wide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vision.calls import Style


@dataclass(frozen=True, slots=True)
class Shape:
    """Proportions of one style."""

    front_width: float
    front_rise: float
    temple_width: float
    temple_rise: float
    temple_rounding: float
    """Where the curve begins to bend, as a share of the way from the temple to the front, and to the limb."""
    limb_bulge: float = 0.0
    peak_depth: float = 0.0
    """How far the mid-frontal point lies below the front; as the widths, since a peak is as deep on a low forehead."""
    peak_width: float = 0.0
    """Half of it; 0: no peak."""


SHAPES: Mapping[Style, Shape] = {
    Style.ROUND: Shape(
        front_width=0.58, front_rise=-0.14, temple_width=1.06, temple_rise=-0.42, temple_rounding=0.45, limb_bulge=0.06
    ),
    Style.M: Shape(
        front_width=0.50, front_rise=0.02, temple_width=1.02, temple_rise=0.23, temple_rounding=0.32, limb_bulge=-0.02
    ),
    Style.WIDOWS_PEAK: Shape(
        front_width=0.70,
        front_rise=-0.10,
        temple_width=1.08,
        temple_rise=-0.32,
        temple_rounding=0.48,
        limb_bulge=0.05,
        peak_depth=0.16,
        peak_width=0.20,
    ),
    Style.RECTANGULAR: Shape(
        front_width=0.66, front_rise=-0.01, temple_width=1.12, temple_rise=-0.02, temple_rounding=0.55, limb_bulge=0.05
    ),
    Style.BELL: Shape(
        front_width=0.50, front_rise=-0.05, temple_width=0.88, temple_rise=-0.30, temple_rounding=0.40, limb_bulge=-0.08
    ),
    Style.TRIANGULAR: Shape(
        front_width=0.48, front_rise=-0.20, temple_width=1.06, temple_rise=-0.50, temple_rounding=0.36, limb_bulge=0.03
    ),
    Style.STRAIGHT: Shape(front_width=0.60, front_rise=0.0, temple_width=1.0, temple_rise=0.0, temple_rounding=0.25),
}
