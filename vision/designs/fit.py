"""A style fitted to one face: how high it sits, where it ends, what it fills and which rules it keeps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vision.anthropometry import measure_face
from vision.calls import DesignOptions, DesignRule, HairlineDesign, HairlineHeight, Sex, Style
from vision.designs.area import Z95, Region, area_interval_cm2, find_regions, surface_mm2
from vision.designs.catalogue import SHAPES, Shape
from vision.designs.curve import USUAL_END_WIDTH, TempleEnd, design_curve
from vision.designs.forehead import Forehead
from vision.designs.present import PresentLine, present_line
from vision.designs.rules import GLABELLA_MM, MmScale, judge
from vision.head import Array
from vision.photo_warnings import is_child
from vision.types import Facts, Hairline, HairlinePoint, HairlineState, Interval, Measurement, Points

UPPER_OF_MIDDLE: Mapping[Sex, float] = {Sex.FEMALE: 0.85, Sex.MALE: 0.95, Sex.UNSPECIFIED: 0.90}
"""Upper over middle court, from the means of `vision.norms.COURTS`; between them where the sex was not said."""
LOW_MM: Mapping[Sex, float] = {Sex.FEMALE: 53.0, Sex.MALE: 64.0, Sex.UNSPECIFIED: 58.0}
HIGH_MM: Mapping[Sex, float] = {Sex.FEMALE: 67.0, Sex.MALE: 90.0, Sex.UNSPECIFIED: 76.0}
"""Low and high fronts above the glabella: near the limits of `vision.designs.rules.GLABELLA_MM`, not on them."""
MIDDLE_COURT_MM = 65.0
"""Of either sex (`vision.norms.COURTS`): turns the limits into proportions where no millimetres are known."""

END_SHARE = 0.4
"""A design ends in the temporal hair at this share of its own height above the glabella."""
END_WIDTH_LIMITS = (1.15, 1.55)
"""How far out that may be: hair that hangs over the temple is no temporal hairline."""


def design_hairlines(facts: Facts, options: DesignOptions) -> tuple[HairlineDesign, ...]:
    """The styles asked for, in that order; the whole catalogue where none was named."""
    fitting = _Fitting(facts, options)
    return tuple(fitting.design(style) for style in options.styles or tuple(Style))


def front_height(
    forehead: Forehead, present: PresentLine, unit_mm: float | None, sex: Sex, height: HairlineHeight
) -> float:
    """Of the front above the glabella, in face coordinates.

    Natural is what the person's middle court asks for, inside the surgical limits, and never above the present line:
    grafts bring a line down, not up. Low is never above natural. High may lie inside the present hair; the rule
    `no_hair_removed` then says so.
    """
    mm = unit_mm or MIDDLE_COURT_MM / forehead.middle_court
    low, high = (limit / mm for limit in GLABELLA_MM[sex])
    natural = float(np.clip(UPPER_OF_MIDDLE[sex] * forehead.middle_court, low, high))
    if present.mid_height is not None:
        natural = min(natural, present.mid_height)
    match height:
        case HairlineHeight.LOW:
            return min(LOW_MM[sex] / mm, natural)
        case HairlineHeight.HIGH:
            return max(HIGH_MM[sex] / mm, natural)
        case HairlineHeight.NATURAL:
            return natural


class _Fitting:
    """What all designs of a call have in common."""

    def __init__(self, facts: Facts, options: DesignOptions) -> None:
        self.facts = facts
        self.options = options
        self.forehead = Forehead(facts.landmarks)
        self.present = present_line(facts, self.forehead)
        mm_per_px = facts.scale.mm_per_px
        self.unit_mm = None if mm_per_px is None else mm_per_px * self.forehead.unit_px
        self.of_child = is_child(facts.warnings)
        # Adults' millimetres put no child's line anywhere; their proportions come nearer.
        adults_mm = None if self.of_child else self.unit_mm
        self.front = front_height(self.forehead, self.present, adults_mm, options.sex, options.height)

    def design(self, style: Style) -> HairlineDesign:
        """One style."""
        shape, forehead, present = SHAPES[style], self.forehead, self.present
        curve = design_curve(shape, self.front - shape.peak_depth, *temple_ends(present, self.front))
        placed = forehead.to_photo(curve)
        temple_heights = np.interp([1.0, -1.0], *curve.T)
        left, right = forehead.to_photo(np.column_stack([[1.0, -1.0], temple_heights]))
        height = _height(placed, self.facts)
        regions = find_regions(curve, present)
        area_cm2, interval = self._area(curve, temple_heights, regions, height)
        density = self.options.density_per_cm2
        return HairlineDesign(
            style=style,
            curve=placed,
            mid_point=_pair(placed[len(placed) // 2]),
            left_temple_point=_pair(left),
            right_temple_point=_pair(right),
            height=height,
            area_cm2=area_cm2,
            area_interval_cm2=interval,
            grafts=None if area_cm2 is None else round(area_cm2 * density),
            density_per_cm2=density,
            rules=() if self.of_child else self._rules(curve, shape, height),
            regions=tuple(forehead.to_photo(region.outline) for region in regions),
        )

    def _rules(self, curve: Points, shape: Shape, height: Measurement) -> tuple[DesignRule, ...]:
        scale = None
        if self.unit_mm is not None and height.mm and height.causes_mm:
            scale = MmScale(self.unit_mm, height.causes_mm.total_mm / height.mm)
        middle_court = self.forehead.middle_court
        return judge(curve, shape, self.options.sex, self.present, middle_court=middle_court, scale=scale)

    def _area(
        self, curve: Points, temple_heights: Array, regions: list[Region], height: Measurement
    ) -> tuple[float, Interval] | tuple[None, None]:
        """In cm², with its interval.

        None of a child, without a scale, or where the present line is not seen all along.
        """
        if self.of_child or self.unit_mm is None or not _is_known(temple_heights, self.present):
            return None, None
        mm_per_px = self.unit_mm / self.forehead.unit_px

        def cm2(of: list[Region]) -> float:
            return surface_mm2(of, self.forehead, mm_per_px) / 100

        area_cm2, edge = cm2(regions), Z95 * self.present.edge_sd
        nearer, further = (cm2(find_regions(curve, self.present, further=by, least_depth=0.0)) for by in (-edge, edge))
        return area_cm2, area_interval_cm2(area_cm2, (nearer, further), height)


def temple_ends(present: PresentLine, front: float) -> tuple[TempleEnd, TempleEnd]:
    """Where a design whose front lies at `front` ties into the temporal hair, on the subject's right and left.

    Where that is not seen on one side, as on the other; where on neither, as usual.
    """
    height = END_SHARE * front
    right, left = (present.width_at(height, side) for side in (-1.0, 1.0))
    either = left if right is None else right
    widths = [either if width is None else width for width in (right, left)]
    ends = [float(np.clip(USUAL_END_WIDTH if width is None else width, *END_WIDTH_LIMITS)) for width in widths]
    return TempleEnd(ends[0], height), TempleEnd(ends[1], height)


def _is_known(temple_heights: Array, present: PresentLine) -> bool:
    """Whether hair is seen all along the front, from temple to temple: else nobody knows what there is to fill."""
    reach = float(np.degrees(np.arctan2(1.0, temple_heights.min())))
    return bool(present.hair_at(np.arange(-reach, reach, 1.0)).all())


def _height(placed: Points, facts: Facts) -> Measurement:
    """Glabella to the mid-frontal point, measured as if the design were the hairline: exact but for scale and pose."""
    line = tuple(HairlinePoint(float(x), float(y), HairlineState.OBSERVED, 1.0) for x, y in placed)
    designed = Hairline(line, HairlineState.OBSERVED, line[len(line) // 2], edge_sd_px=0.0)
    return measure_face(facts.landmarks, designed, facts.scale)["mid_frontal_height"]


def _pair(point: Points) -> tuple[float, float]:
    return float(point[0]), float(point[1])
