"""What each call answers, as the contract's OpenAPI document has it. Made by scripts/client_answers.py.

Left and right are the subject's. Pixels are those of the upright photo. Names of classes and reasons are strings: a
newer service may know more of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """An axis-parallel rectangle in the upright photo."""

    x_px: float
    """Left edge, in pixels."""
    y_px: float
    """Top edge, in pixels."""
    width_px: float
    """Width, in pixels."""
    height_px: float
    """Height, in pixels."""


@dataclass(frozen=True, slots=True)
class DesignHairlinesResponse:
    """Answer of `AnalyzeService.DesignHairlines`."""

    hairline_images: Sequence[HairlineDesign]
    """The designs, in the order asked for."""
    photo: PhotoInfo | None
    """The photo as it was understood."""
    face: FaceInfo | None
    """The face the designs are fitted to."""
    hairline: Hairline | None
    """The present hairline."""
    scale: Scale | None
    """Millimetres per pixel."""
    warnings: Sequence[PhotoWarning]
    """What the reader should know."""


@dataclass(frozen=True, slots=True)
class DesignRule:
    """One surgical rule and whether a design keeps it."""

    name: str | None
    """Stable name of the rule, such as `glabella_distance`. `glabella_distance`: height above glabella.
    `upper_court`: upper third. `temporal_angle_on_canthus`: place of temporal angle. `temporal_angle`: temporal
    angle. `temple_rise`: height of temporal angle. `no_hair_removed`: no hair removed.
    """
    text: str | None
    """The rule in words, in the language asked for."""
    kept: bool
    """Whether the design keeps it."""
    value: float | None
    """The design's value, in the unit `unit`."""
    low: float | None
    """Lower limit, in the unit `unit`."""
    high: float | None
    """Upper limit, in the unit `unit`."""
    unit: str | None
    """Unit of the values: `mm`, `deg`, `ratio`."""
    certain: bool
    """Whether the 95 % interval of `value` leaves no doubt of `kept`."""
    source: str | None
    """Where the limits come from: a publication, or this project's own choice."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A feature in which the vision LLM and geometry differ."""

    field: str
    """Such as `jaw.width`, or `hair_present`."""
    claimed: str
    """What the LLM says."""
    measured: str
    """What geometry says."""
    kept: str
    """Whose word stands."""


@dataclass(frozen=True, slots=True)
class FaceFeatures:
    """A face in words."""

    source: str
    """Who was asked, and answered."""
    llm_reason: str | None
    """Why the configured vision LLM says nothing; null where it does, or where none is configured."""
    photo: PhotoInfo
    """The photo as decoded."""
    face: FaceInfo
    """The face that counts."""
    hair_present: bool | None
    """Whether there is hair on the head; null: not known."""
    features: Mapping[str, Mapping[str, Feature]]
    """By part of the face."""
    remarks: Mapping[str, str | None] | None
    """Plain sentences of the vision LLM, not checked; null without one."""
    disagreements: Sequence[Disagreement]
    """Where both differ."""
    warnings: Sequence[PhotoWarning]
    """About the photo."""


@dataclass(frozen=True, slots=True)
class FaceInfo:
    """The face that was analysed: the largest; among equals the one nearest the centre of the photo."""

    box: Box | None
    """Bounding box of the face landmarks, in pixels of the upright photo."""
    yaw_deg: float
    """Turn to the side, in degrees; positive when the subject turns to their own left."""
    pitch_deg: float
    """Nod, in degrees; positive when the chin goes down."""
    roll_deg: float
    """Tilt in the picture plane, in degrees; positive when the top of the head leans to the viewer's right."""
    faces_found: int
    """Number of faces found; above 1 only when the others are so small that they cannot be meant."""


@dataclass(frozen=True, slots=True)
class FaceMask:
    """One mask."""

    part: str | None
    """Which part."""
    image_url: str | None
    """The mask as 8-bit grey PNG of the size of the upright photo or smaller: 255 inside, 0 outside."""
    area_px2: float
    """Area, in square pixels of the upright photo."""
    area_mm2: float | None
    """Area projected on the plane of the face, in mm²; absent without a scale."""
    area_interval_mm2: Interval | None
    """95 % interval of `area_mm2`, in mm²: the scale's error counts twice, and the border may lie a little farther
    out or in all along.
    """


@dataclass(frozen=True, slots=True)
class FaceShape:
    """Face shape with the ratios it was decided by."""

    shape: str | None
    """The class."""
    confidence: float
    """How far the ratios lie inside the class, 0 (on a border) to 1."""
    ratios: Mapping[str, float]
    """The ratios, by name, without unit."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of the face."""

    value: str | None
    """Its class, a stable name; null: not known."""
    text: str | None
    """The class in words, in the language asked for; on a border both classes."""
    borderline_with: str | None
    """The other class where the measured lies so near to it that another photo, or the same in another size, may
    fall into it; null where it does not, or where the LLM has decided.
    """
    source: str | None
    """Whose word it is."""
    confidence: float | None
    """Of geometry's word, 0 to 1: how far the measured is from another class."""
    ratios: Mapping[str, float]
    """What was measured, by name; degrees where the name ends in `_deg`."""
    reason: str | None
    """Why there is no class, such as `NO_PARSER`, `GLASSES`, `HAIRLINE_OCCLUDED`."""


@dataclass(frozen=True, slots=True)
class Fifths:
    """Five widths at the height of the eyes, from the subject's right to the left."""

    right_outer: Measurement | None
    """Right temple to right exocanthion."""
    right_eye: Measurement | None
    """Right palpebral width: exocanthion to endocanthion."""
    middle: Measurement | None
    """Intercanthal width: endocanthion to endocanthion."""
    left_eye: Measurement | None
    """Left palpebral width: endocanthion to exocanthion."""
    left_outer: Measurement | None
    """Left exocanthion to left temple."""


@dataclass(frozen=True, slots=True)
class GrownRegion:
    """The grown region."""

    marked_image_url: str | None
    """The photo with the region marked."""
    grown_image_url: str | None
    """The photo with hair grown in the region; absent where `grown_reason` says why."""
    grown_reason: str | None
    """UPPER_SNAKE reason why `grown_image` is absent, such as `CHILD`, `NOT_CONVINCING`; not set where it is there.
    `BACKEND_NONE`: This service is set up to grow no hair. `NOTHING_TO_GROW`: The present hair reaches the
    design, or fills the region already: there is nothing to grow. `CHILD`: No hair is grown on a child.
    `HAIRLINE_HIDDEN`: The hairline is hidden. Move bangs, hat or hand away, so that the whole forehead shows.
    `NO_OWN_HAIR`: Too little of the person's own hair is near the region to take colour and texture from. Use a
    photo that shows more of it, or a region nearer to it. `NOT_CONVINCING`: A picture was made and is not shown,
    for it does not look real enough. Try another photo, seed or region. `DIFFUSION_UNAVAILABLE`: The server that
    grows hair is not available. Please try again later. `DIFFUSION_FAILED`: The server that grows hair made no
    picture. Please try again later. `DIFFUSION_STALLED`: The server that grows hair stood still. Please try again
    later. `OUT_OF_TIME`: The time allowed was too short to grow hair. Allow more in X-Request-Timeout-Ms, or
    leave that header out. `GROWTH_FAILED`: Growing hair failed inside the service. Please try again later.
    """
    grown_message: str | None
    """For people: why there is no grown picture, in the language asked for; null where there is one."""
    area_px2: float
    """Area of the region, in square pixels of the upright photo."""
    area_cm2: float | None
    """Area of the region, in cm²; absent without a scale."""
    proof: GrowthProof | None
    """Proof numbers of the picture that was made: there with NOT_CONVINCING too, whose picture is not shown; absent
    where none was made.
    """
    photo: PhotoInfo | None
    """The photo as it was understood."""
    face: FaceInfo | None
    """The face that was worked on."""
    seed: int
    """Seed that was used."""
    backend: str | None
    """Backend that grew the hair: `comfyui`, `local` or `none`."""
    warnings: Sequence[PhotoWarning]
    """What the reader should know."""


@dataclass(frozen=True, slots=True)
class GrownStyles:
    """The styles, and what is common to them."""

    results: Sequence[StyleResult]
    """In the order asked for."""
    photo: PhotoInfo | None
    """The photo as it was understood."""
    face: FaceInfo | None
    """The face that was worked on."""
    seed: int
    """Seed that was used."""
    backend: str | None
    """Backend that grew the hair: `comfyui`, `local` or `none`."""
    warnings: Sequence[PhotoWarning]
    """What the reader should know."""


@dataclass(frozen=True, slots=True)
class GrowthProof:
    """Proof numbers of one grown picture, computed on the result itself."""

    hair_share: float
    """Share of the region that parses as hair, 0 to 1."""
    edge_distance_mm: float | None
    """Median distance of the grown edge from the design or the free border of the region, in mm; absent without a
    scale, and where hair is all around.
    """
    delta_e: float
    """CIEDE2000 distance of the grown hair's mean colour to the person's own hair, without unit."""
    orientation_distance: float
    """Distance of the strand direction histogram to the person's own hair, 0 (same) to 1."""
    gradient_distance: float
    """Distance of the gradient spectrum to the person's own hair, 0 (same) to 1."""
    outside_changed_pixels: int
    """Pixels outside the feathered region that differ from the input, before the picture was reduced where it was.
    Always 0.
    """


@dataclass(frozen=True, slots=True)
class Hairline:
    """The hairline from the subject's right temple to the left one."""

    status: str | None
    """Overall state: that of the trichion."""
    trichion: HairlinePoint | None
    """Where the hairline crosses the facial midline; absent when it is not observed."""
    points: Sequence[HairlinePoint]
    """Polyline from the subject's right temple (viewer's left) to the left temple."""


@dataclass(frozen=True, slots=True)
class HairlineDesign:
    """One design."""

    style: str | None
    """Name in the catalogue. `round`: Round. `m`: M-shaped. `widows_peak`: Widow's peak. `rectangular`: Rectangular.
    `bell`: Bell. `triangular`: Triangular. `straight`: Straight.
    """
    style_text: str | None
    """The style in words, in the language asked for."""
    image_url: str | None
    """The design drawn on the photo."""
    curve: Sequence[Point]
    """The designed curve from the subject's right temple to the left one, in pixels of the upright photo."""
    mid_point: Point | None
    """The mid-frontal point, in pixels of the upright photo."""
    left_temple_point: Point | None
    """The temple point on the subject's left, in pixels of the upright photo."""
    right_temple_point: Point | None
    """The temple point on the subject's right, in pixels of the upright photo."""
    height: Measurement | None
    """Glabella to the mid-frontal point."""
    area_cm2: float | None
    """Area between the design and the present hairline, in cm²; absent without a scale or present hairline, and of a
    child (warning `CHILD`). 0 where the present hair reaches the design, or nearly: stretches that are nowhere
    deeper than 2 mm are less than a hairline is known by, and are not counted. `area_interval_cm2` has them.
    """
    area_interval_cm2: Interval | None
    """95 % interval of `area_cm2`, in cm²: of scale, hair's edge and shape of the head."""
    grafts: int | None
    """Grafts for the stated density; absent without an area."""
    density_per_cm2: float
    """Density the graft count is for, in grafts per cm²."""
    rules: Sequence[DesignRule]
    """Rules it keeps or breaks; none of a child: they are adults'."""


@dataclass(frozen=True, slots=True)
class HairlinePoint:
    """One point of the hairline."""

    point: Point | None
    """Where it lies, in pixels of the upright photo."""
    state: str | None
    """Whether it was seen."""
    confidence: float
    """Confidence that `state` and `point` are right, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval. Its unit is that of the value it belongs to."""

    low: float
    """Lower end, in the unit of the value."""
    high: float
    """Upper end, in the unit of the value."""


@dataclass(frozen=True, slots=True)
class IntervalCauses:
    """Relative half-widths of the scale's 95 % interval by cause, in percent of the scale. They add as squares."""

    population_pct: float
    """Spread of iris diameters in the population; the same for all photos of one person."""
    fit_pct: float
    """Uncertainty of the iris (or pupil) edge found in this photo."""
    pose_pct: float
    """Gaze, which foreshortens the iris."""


@dataclass(frozen=True, slots=True)
class IntervalCausesMm:
    """Half-widths of the 95 % interval of one value by cause, in mm. They add as squares."""

    population_mm: float
    """Spread of iris diameters in the population; the same for all photos of one person."""
    fit_mm: float
    """Uncertainty of the iris (or pupil) edge found in this photo."""
    pose_mm: float
    """Gaze, head pose and perspective."""
    segmentation_mm: float
    """Where the landmarks and the hair boundary at the ends of the length lie."""


@dataclass(frozen=True, slots=True)
class MeasureResponse:
    """Answer of `AnalyzeService.Measure`."""

    annotated_image_url: str | None
    """The photo with the measurements drawn on it; absent when `annotate` was false."""
    photo: PhotoInfo | None
    """The photo as it was understood."""
    face: FaceInfo | None
    """The face that was measured."""
    scale: Scale | None
    """Millimetres per pixel and where they come from."""
    hairline: Hairline | None
    """The boundary between hair and forehead."""
    measurements: Measurements | None
    """Lengths, widths, ratios and angles. Left and right are the subject's."""
    face_shape: FaceShape | None
    """Class of the face outline by its proportions."""
    warnings: Sequence[PhotoWarning]
    """What the reader should know: child, perspective, not a photo and so on."""
    model_versions: Mapping[str, str]
    """Versions of the models that were used, by name."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured quantity. What could not be measured has no value and says why."""

    px: float | None
    """Length in the photo, in pixels, corrected for head pose; absent for angles and ratios."""
    mm: float | None
    """Length, in mm; absent without a scale."""
    interval_mm: Interval | None
    """95 % interval of `mm` with all causes, in mm."""
    interval_same_person_mm: Interval | None
    """95 % interval of `mm` without the population term, in mm: what two photos of one person may differ by."""
    ratio: float | None
    """Ratio to the quantity named in `ratio_of`, without unit."""
    ratio_of: str | None
    """Name of the quantity that `ratio` divides by, such as `face_height`."""
    angle_deg: float | None
    """Angle, in degrees; absent for lengths."""
    norms: Sequence[Norm]
    """Published norms it may be compared with; adults only."""
    unavailable_reason: str | None
    """UPPER_SNAKE reason why there is no value, such as `HAIRLINE_OCCLUDED`; empty when there is one."""
    causes_mm: IntervalCausesMm | None
    """What makes up `interval_mm`; absent without mm."""
    ratio_perspective_corrected: float | None
    """`ratio` as a camera at 1.5 m would show it, without unit: corrected for the camera's distance as the face
    tells it. The same as `ratio` where that is 1.5 m or more.
    """


@dataclass(frozen=True, slots=True)
class Measurements:
    """All quantities of the measure call."""

    thirds: Thirds | None
    """Trichion–glabella, glabella–subnasale, subnasale–menton (三庭)."""
    thirds_nose_tip: Thirds | None
    """The variant that cuts the middle court at the nose tip: trichion–glabella, glabella–pronasale,
    pronasale–menton.
    """
    fifths: Fifths | None
    """The five eye widths (五眼)."""
    face_height: Measurement | None
    """Trichion to menton."""
    face_width: Measurement | None
    """Bizygomatic width: zygion to zygion."""
    jaw_width: Measurement | None
    """Bigonial width: gonion to gonion."""
    temple_width: Measurement | None
    """Width between the temples at the height of the brows."""
    intercanthal_width: Measurement | None
    """Endocanthion to endocanthion."""
    palpebral_width: SidedMeasurement | None
    """Endocanthion to exocanthion of each eye."""
    pupillary_distance: Measurement | None
    """Centre of one pupil to the other."""
    nose_width: Measurement | None
    """Alare to alare."""
    mouth_width: Measurement | None
    """Cheilion to cheilion."""
    brow_to_hairline: SidedMeasurement | None
    """Top of the brow's middle straight up to the hairline."""
    mid_frontal_height: Measurement | None
    """Glabella to trichion."""
    temple_recession: SidedMeasurement | None
    """How far the highest point of the hairline on that side lies above the trichion; 0 where none does."""
    golden_triangle_angle: Measurement | None
    """Angle at the nose tip of the triangle exocanthion–pronasale–exocanthion."""


@dataclass(frozen=True, slots=True)
class Norm:
    """A published norm."""

    low: float
    """Lower end of the usual range, in the unit `unit`."""
    high: float
    """Upper end of the usual range, in the unit `unit`."""
    unit: str | None
    """Unit of the range: `mm`, `ratio` or `deg`."""
    population: str | None
    """Whom it holds for, such as `adults, Korean and Japanese`."""
    source: str | None
    """Where it was published."""


@dataclass(frozen=True, slots=True)
class PhotoInfo:
    """The photo as it was understood."""

    width_px: int
    """Width of the upright photo, in pixels. All coordinates refer to it."""
    height_px: int
    """Height of the upright photo, in pixels."""
    format: str | None
    """Format found in the bytes: `JPEG`, `PNG`, `WEBP`, `BMP`, `TIFF`, `HEIF`."""
    exif_orientation: int
    """EXIF orientation (1 to 8) that was applied to make the photo upright."""


@dataclass(frozen=True, slots=True)
class PhotoWarning:
    """Something the reader of the numbers should know."""

    reason: str | None
    """Stable UPPER_SNAKE name, such as `CHILD`, `PERSPECTIVE`, `NOT_A_PHOTO`, `GLASSES`. `CHILD`: Child: adult norms
    do not hold. `PERSPECTIVE`: Taken too close: perspective distorts proportions. `NOT_A_PHOTO`: May not be a
    photo of a person: values unreliable. `SCALE_UNCERTAIN`: The irises are not clear enough: no millimetres are
    given. `PUPILLARY_DISTANCE_DOUBTFUL`: The pupillary distance given contradicts the irises: check it.
    `HEAD_TILTED`: Head tilted up or down: heights uncertain, retake level. `GLASSES`: Glasses: wider interval.
    """
    message: str | None
    """The warning in words, in the language asked for."""
    value: float | None
    """The measured value behind it, in the unit `unit`."""
    limit: float | None
    """The limit it was compared with, in the unit `unit`."""
    unit: str | None
    """Unit of `value` and `limit`, such as `deg`, `px`, `ratio`."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the upright photo: origin at the top left corner, x to the right as the viewer sees it, y down."""

    x_px: float
    """Distance from the left edge, in pixels."""
    y_px: float
    """Distance from the top edge, in pixels."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Millimetres per pixel at the plane of the face."""

    mm_per_px: float | None
    """Millimetres per pixel; absent when no iris could be measured and no pupillary distance was given."""
    interval: Interval | None
    """95 % interval of `mm_per_px`, in mm per px."""
    source: str | None
    """Where the scale comes from."""
    causes: IntervalCauses | None
    """Causes of the interval."""
    left_iris_px: float | None
    """Horizontal iris diameter of the subject's left eye, in pixels; absent when not measurable."""
    right_iris_px: float | None
    """Horizontal iris diameter of the subject's right eye, in pixels; absent when not measurable."""


@dataclass(frozen=True, slots=True)
class SegmentFaceResponse:
    """Answer of `AnalyzeService.SegmentFace`."""

    masks: Sequence[FaceMask]
    """The masks, in the order asked for."""
    photo: PhotoInfo | None
    """The photo as it was understood."""
    face: FaceInfo | None
    """The face that was masked."""
    scale: Scale | None
    """Millimetres per pixel."""
    warnings: Sequence[PhotoWarning]
    """What the reader should know."""


@dataclass(frozen=True, slots=True)
class SidedMeasurement:
    """A quantity measured on both sides of the face."""

    left: Measurement | None
    """The subject's left side (viewer's right)."""
    right: Measurement | None
    """The subject's right side (viewer's left)."""


@dataclass(frozen=True, slots=True)
class SpecialPoints:
    """Named points. Left and right are the subject's."""

    photo: PhotoInfo
    """The photo as decoded."""
    face: FaceInfo
    """The face that counts."""
    points: Mapping[str, Point]
    """By name."""


@dataclass(frozen=True, slots=True)
class StyleDesign:
    """One design."""

    style: str | None
    """Name in the catalogue. `round`: Round. `m`: M-shaped. `widows_peak`: Widow's peak. `rectangular`: Rectangular.
    `bell`: Bell. `triangular`: Triangular. `straight`: Straight.
    """
    style_text: str | None
    """The style in words, in the language asked for."""
    curve: Sequence[Point]
    """The designed curve from the subject's right temple to the left one, in pixels of the upright photo."""
    mid_point: Point | None
    """The mid-frontal point, in pixels of the upright photo."""
    left_temple_point: Point | None
    """The temple point on the subject's left, in pixels of the upright photo."""
    right_temple_point: Point | None
    """The temple point on the subject's right, in pixels of the upright photo."""
    height: Measurement | None
    """Glabella to the mid-frontal point."""
    area_cm2: float | None
    """Area between the design and the present hairline, in cm²; absent without a scale or present hairline, and of a
    child (warning `CHILD`). 0 where the present hair reaches the design, or nearly: stretches that are nowhere
    deeper than 2 mm are less than a hairline is known by, and are not counted. `area_interval_cm2` has them.
    """
    area_interval_cm2: Interval | None
    """95 % interval of `area_cm2`, in cm²: of scale, hair's edge and shape of the head."""
    grafts: int | None
    """Grafts for the stated density; absent without an area."""
    density_per_cm2: float
    """Density the graft count is for, in grafts per cm²."""
    rules: Sequence[DesignRule]
    """Rules it keeps or breaks; none of a child: they are adults'."""


@dataclass(frozen=True, slots=True)
class StyleResult:
    """One style, designed and grown."""

    style: str | None
    """Name in the catalogue. `round`: Round. `m`: M-shaped. `widows_peak`: Widow's peak. `rectangular`: Rectangular.
    `bell`: Bell. `triangular`: Triangular. `straight`: Straight.
    """
    style_text: str | None
    """The style in words, in the language asked for."""
    image_url: str | None
    """The design drawn on the photo."""
    grown_image_url: str | None
    """The photo with hair grown to the design; absent where `grown_reason` says why."""
    grown_reason: str | None
    """UPPER_SNAKE reason why `grown_image` is absent, such as `CHILD`, `NOT_CONVINCING`; not set where it is there.
    `BACKEND_NONE`: This service is set up to grow no hair. `NOTHING_TO_GROW`: The present hair reaches the
    design, or fills the region already: there is nothing to grow. `CHILD`: No hair is grown on a child.
    `HAIRLINE_HIDDEN`: The hairline is hidden. Move bangs, hat or hand away, so that the whole forehead shows.
    `NO_OWN_HAIR`: Too little of the person's own hair is near the region to take colour and texture from. Use a
    photo that shows more of it, or a region nearer to it. `NOT_CONVINCING`: A picture was made and is not shown,
    for it does not look real enough. Try another photo, seed or region. `DIFFUSION_UNAVAILABLE`: The server that
    grows hair is not available. Please try again later. `DIFFUSION_FAILED`: The server that grows hair made no
    picture. Please try again later. `DIFFUSION_STALLED`: The server that grows hair stood still. Please try again
    later. `OUT_OF_TIME`: The time allowed was too short to grow hair. Allow more in X-Request-Timeout-Ms, or
    leave that header out. `GROWTH_FAILED`: Growing hair failed inside the service. Please try again later.
    """
    grown_message: str | None
    """For people: why there is no grown picture, in the language asked for; null where there is one."""
    design: StyleDesign | None
    """The design's numbers, without its picture."""
    proof: GrowthProof | None
    """Proof numbers of the picture that was made: there with NOT_CONVINCING too, whose picture is not shown; absent
    where none was made.
    """


@dataclass(frozen=True, slots=True)
class Thirds:
    """Three heights that divide the face."""

    upper: Measurement | None
    """Upper court."""
    middle: Measurement | None
    """Middle court."""
    lower: Measurement | None
    """Lower court."""
