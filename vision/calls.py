"""What each call is asked and what it answers, beside measuring (`vision.types`): designs, masks, growth.

Frame and sides as in `vision.types`: pixels of the upright photo, left and right are the subject's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from vision.types import EncodedImage, Facts, Interval, Lang, Measurement, PhotoWarning, Points

DEFAULT_DENSITY_PER_CM2 = 40.0
DENSITY_PER_CM2 = (10.0, 80.0)
"""Grafts per cm² that may be asked for."""


class Sex(StrEnum):
    """Whose norms and design rules apply; never guessed from the photo."""

    UNSPECIFIED = "unspecified"
    FEMALE = "female"
    MALE = "male"


class HairlineHeight(StrEnum):
    """How high a design sits on the forehead."""

    LOW = "low"
    NATURAL = "natural"
    HIGH = "high"


class Style(StrEnum):
    """The catalogue of hairline designs."""

    ROUND = "round"
    """圆形"""
    M = "m"
    """M 形"""
    WIDOWS_PEAK = "widows_peak"
    """美人尖"""
    RECTANGULAR = "rectangular"
    """方形"""
    BELL = "bell"
    """钟形"""
    TRIANGULAR = "triangular"
    """三角形"""
    STRAIGHT = "straight"
    """一字形"""


GROWN_BY_DEFAULT = (Style.ROUND, Style.M, Style.WIDOWS_PEAK, Style.BELL)


class FacePart(StrEnum):
    """A part of head and face that can be masked."""

    HAIR = "hair"
    SKIN = "skin"
    FOREHEAD = "forehead"
    """Skin between brows, temples and hairline."""
    BROWS = "brows"
    EYES = "eyes"
    NOSE = "nose"
    LIPS = "lips"
    EARS = "ears"
    NECK = "neck"


@dataclass(frozen=True, slots=True)
class DesignOptions:
    """Parameters of the design call."""

    styles: tuple[Style, ...] = ()
    """Empty: the whole catalogue."""
    sex: Sex = Sex.UNSPECIFIED
    height: HairlineHeight = HairlineHeight.NATURAL
    density_per_cm2: float = DEFAULT_DENSITY_PER_CM2
    lang: Lang = Lang.ZH
    max_output_side_px: int = 2048


@dataclass(frozen=True, slots=True)
class DesignRule:
    """One surgical rule and whether a design keeps it."""

    name: str
    kept: bool
    value: float | None
    low: float | None
    high: float | None
    unit: str
    """`mm`, `deg` or `ratio`."""
    certain: bool = True
    """Whether the 95 % interval of the value leaves no doubt that it is kept, or not."""
    source: str = ""
    """Where the limits come from: a publication, or this project's own choice."""


@dataclass(frozen=True, slots=True)
class HairlineDesign:
    """One style fitted to one face."""

    style: Style
    curve: Points
    """(N, 2), from the subject's right temple (viewer's left) to the left one; smooth."""
    mid_point: tuple[float, float]
    left_temple_point: tuple[float, float]
    right_temple_point: tuple[float, float]
    height: Measurement
    """Glabella to the mid-frontal point."""
    area_cm2: float | None
    """Between design and present hairline; None without a scale or a present hairline, and of a child."""
    area_interval_cm2: Interval | None
    grafts: int | None
    """For `density_per_cm2`; None without an area."""
    density_per_cm2: float
    rules: tuple[DesignRule, ...]
    """None of a child's."""
    regions: tuple[Points, ...]
    """What hair would have to grow on: closed polygons (N, 2) between the curve and the present hair (on a head without
    a hairline, up to where the photo still shows scalp). Empty when the present hair reaches the design everywhere."""


@dataclass(frozen=True, slots=True)
class DrawnDesign:
    """A design and its picture."""

    design: HairlineDesign
    image: EncodedImage


@dataclass(frozen=True, slots=True)
class DesignResult:
    """Designs in the order asked for."""

    facts: Facts
    designs: tuple[DrawnDesign, ...]


@dataclass(frozen=True, slots=True)
class MaskOptions:
    """Parameters of the mask call."""

    parts: tuple[FacePart, ...] = ()
    """Empty: all."""
    max_output_side_px: int = 2048


@dataclass(frozen=True, slots=True)
class FaceMask:
    """One mask."""

    part: FacePart
    image: EncodedImage
    """8-bit grey PNG of the size of the upright photo or smaller: 255 inside, 0 outside."""
    area_px2: float
    """In square pixels of the upright photo, whatever the size of the picture."""
    area_mm2: float | None
    """Projected on the plane of the face; None without a scale."""
    area_interval_mm2: Interval | None = None
    """95 %: the scale's error counts twice, and the border may lie a little farther out or in all along."""


@dataclass(frozen=True, slots=True)
class MaskResult:
    """Masks in the order asked for."""

    facts: Facts
    masks: tuple[FaceMask, ...]


@dataclass(frozen=True, slots=True)
class GrowStylesOptions:
    """Parameters of growing to styles."""

    styles: tuple[Style, ...] = ()
    """Empty: `GROWN_BY_DEFAULT`."""
    sex: Sex = Sex.UNSPECIFIED
    seed: int | None = None
    """None: one is chosen, and told."""
    lang: Lang = Lang.ZH
    max_output_side_px: int = 2048
    timeout_s: float | None = None
    """What is left of the caller's patience when the call begins; growth gives up in time to answer without it."""


@dataclass(frozen=True, slots=True)
class GrowRegionOptions:
    """Parameters of growing in a marked region: exactly one of `polygon` and `mask` is given."""

    polygon: Points | None = None
    """(N, 2), closed by itself."""
    mask: bytes | None = field(default=None, repr=False)
    """Encoded picture of the size of the upright photo; above half brightness is inside."""
    seed: int | None = None
    lang: Lang = Lang.ZH
    max_output_side_px: int = 2048
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class GrowthProof:
    """Numbers computed on the finished picture; see `vision.growth.proof`."""

    hair_share: float
    """Share of the region that parses as hair, 0 to 1."""
    edge_distance_mm: float | None
    """Median distance of the grown edge from the design or a region's free border; None without a scale or a border."""
    delta_e: float
    """CIEDE2000 between the mean colours of grown and own hair, at the depth behind their edges where it is largest."""
    orientation_distance: float
    """Between the histograms of strand directions, 0 (same) to 1."""
    gradient_distance: float
    """Between the gradient spectra, 0 (same) to 1."""
    outside_changed_pixels: int
    """Pixels outside the feathered region that differ from the input."""


@dataclass(frozen=True, slots=True)
class StyleGrowth:
    """One style, designed and grown."""

    drawn: DrawnDesign
    grown: EncodedImage | None
    grown_reason: str
    """A `vision.growth.backend.GrowthReason` when there is no picture; else empty."""
    proof: GrowthProof | None
    """None where no picture was made; there for one that was made and does not convince."""

    @property
    def picture_bytes(self) -> int:
        """Size of both pictures."""
        return len(self.drawn.image.data) + (len(self.grown.data) if self.grown else 0)


@dataclass(frozen=True, slots=True)
class RegionGrowth:
    """The marked region, grown."""

    marked: EncodedImage
    grown: EncodedImage | None
    grown_reason: str
    area_px2: float
    area_cm2: float | None
    proof: GrowthProof | None

    @property
    def picture_bytes(self) -> int:
        """Size of both pictures."""
        return len(self.marked.data) + (len(self.grown.data) if self.grown else 0)


@dataclass(frozen=True, slots=True)
class GrowthSummary:
    """What is common to all results of a growth call."""

    facts: Facts
    seed: int
    backend: str
    warnings: tuple[PhotoWarning, ...]


EmitStyle = Callable[[StyleGrowth], None]
EmitRegion = Callable[[RegionGrowth], None]
"""Takes each result the moment it is finished, in the thread that computes."""
