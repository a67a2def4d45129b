"""What the stages hand to each other.

Frame: unless a name says otherwise, coordinates are pixels of the *upright photo* (EXIF orientation applied): origin
at the top left corner,
x to the right as the viewer sees it, y down; a pixel's centre has whole-number coordinates. `left` and `right` are
the subject's: the
subject's left eye lies on the viewer's right. Lengths end in `_px` or `_mm`, angles in `_deg`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

RgbImage = NDArray[np.uint8]
"""(H, W, 3), 8-bit sRGB, red first."""

Points = NDArray[np.float64]
"""(N, 2), x and y in pixels of the upright photo."""


class Stage(StrEnum):
    """Stages of a call, in order. Each may be still for so long before a worker counts as stalled (`STALL_AFTER_S`)."""

    DECODE = "decode"
    LANDMARKS = "landmarks"
    PARSING = "parsing"
    HAIRLINE = "hairline"
    SCALE = "scale"
    MEASURING = "measuring"
    DESIGNING = "designing"
    MASKING = "masking"
    DRAWING = "drawing"
    GROWING = "growing"
    """Hair grown on this machine."""
    DIFFUSION_QUEUE = "diffusion_queue"
    """Waiting in the diffusion server's queue: no stillness of this worker's (verdict WAITING)."""
    DIFFUSION = "diffusion"
    """One node of a diffusion workflow; it may load a model of its own first."""
    PROVING = "proving"
    MODEL_LOAD = "model_load"
    CANARY = "canary"


STALL_AFTER_S: Mapping[Stage, float] = {
    Stage.DECODE: 10.0,
    Stage.LANDMARKS: 10.0,
    Stage.PARSING: 30.0,
    Stage.HAIRLINE: 10.0,
    Stage.SCALE: 10.0,
    Stage.MEASURING: 10.0,
    Stage.DESIGNING: 10.0,
    Stage.MASKING: 10.0,
    Stage.DRAWING: 10.0,
    Stage.GROWING: 30.0,
    Stage.DIFFUSION_QUEUE: 30.0,
    Stage.DIFFUSION: 120.0,
    Stage.PROVING: 30.0,
    Stage.MODEL_LOAD: 300.0,
    Stage.CANARY: 30.0,
}


class Progress(Protocol):
    """How a running call says that it moves, and learns that nobody waits for it any more."""

    def enter(self, stage: Stage, total: int = 0) -> None:
        """Begin `stage`, which has `total` steps (0: not known): moves the counter.

        Raises `vision.errors.CancelledCallError` when the call was given up.
        """

    def step(self) -> None:
        """One step inside the present stage.

        Moves the counter. Raises `vision.errors.CancelledCallError` when the call was given up.
        """

    def moved(self) -> None:
        """A sign of life inside the present step, of work whose steps cannot be seen.

        Moves the counter. Raises `vision.errors.CancelledCallError` when the call was given up.
        """

    def look(self) -> None:
        """While something else works: raises `vision.errors.CancelledCallError` when the call was given up.

        Moves nothing, so that waiting never looks like working.
        """


class NoProgress:
    """For callers that do not watch."""

    def enter(self, stage: Stage, total: int = 0) -> None:
        """Nothing to tell."""

    def step(self) -> None:
        """Nothing to tell."""

    def moved(self) -> None:
        """Nothing to tell."""

    def look(self) -> None:
        """Never given up."""


@dataclass(frozen=True, slots=True)
class Photo:
    """A decoded photo, upright."""

    rgb: RgbImage
    format: str
    """`JPEG`, `PNG`, `WEBP`, `BMP`, `TIFF` or `HEIF`."""
    exif_orientation: int
    """1 to 8, the one that was applied."""

    @property
    def width_px(self) -> int:
        """Width of the upright photo."""
        return int(self.rgb.shape[1])

    @property
    def height_px(self) -> int:
        """Height of the upright photo."""
        return int(self.rgb.shape[0])


@dataclass(frozen=True, slots=True)
class Box:
    """Axis-parallel rectangle, in pixels of the upright photo."""

    x_px: float
    y_px: float
    width_px: float
    height_px: float


@dataclass(frozen=True, slots=True)
class Pose:
    """Head pose relative to the line of sight; 0 for MediaPipe's canonical face (see `vision.pose`)."""

    yaw_deg: float
    """Positive when the subject turns to their own left."""
    pitch_deg: float
    """Positive when the chin goes down."""
    roll_deg: float
    """Positive when the top of the head leans to the viewer's right."""


@dataclass(frozen=True, slots=True)
class FaceLandmarks:
    """The 478 points of MediaPipe's face mesh for the face that counts."""

    points: Points
    """(478, 2), pixels of the upright photo."""
    depth: NDArray[np.float64]
    """(478,), the mesh's relative depth scaled to pixels; smaller is nearer to the camera."""
    transform: NDArray[np.float64]
    """(4, 4), canonical face model (cm) to camera."""
    pose: Pose
    box: Box
    faces_found: int


class Label:
    """BiSeNet's class ids (the order it was trained in, not the annotation list of CelebAMask-HQ).

    Left and right are the subject's.
    """

    BACKGROUND = 0
    SKIN = 1
    LEFT_BROW = 2
    RIGHT_BROW = 3
    LEFT_EYE = 4
    RIGHT_EYE = 5
    EYEGLASSES = 6
    LEFT_EAR = 7
    RIGHT_EAR = 8
    EARRING = 9
    NOSE = 10
    MOUTH = 11
    UPPER_LIP = 12
    LOWER_LIP = 13
    NECK = 14
    NECKLACE = 15
    CLOTH = 16
    HAIR = 17
    HAT = 18


LABEL_COUNT = 19


@dataclass(frozen=True, slots=True)
class ParsingMap:
    """Fused face parsing on a raster of its own, upright with the face (roll removed), finer near the face than
    the photo needs elsewhere.
    """

    probabilities: NDArray[np.float32]
    """(19, h, w), softmax, fused over the scales."""
    photo_from_map: NDArray[np.float64]
    """(2, 3), affine: map pixel (x, y, 1) to photo pixel."""

    @property
    def labels(self) -> NDArray[np.uint8]:
        """(h, w), most probable class id."""
        labels: NDArray[np.uint8] = self.probabilities.argmax(axis=0).astype(np.uint8)
        return labels

    @property
    def map_from_photo(self) -> NDArray[np.float64]:
        """(2, 3), affine: photo pixel to map pixel."""
        linear = np.linalg.inv(self.photo_from_map[:, :2])
        return np.hstack([linear, -linear @ self.photo_from_map[:, 2:]])


class HairlineState(StrEnum):
    """State of the hairline or of one of its points."""

    OBSERVED = "observed"
    OCCLUDED = "occluded"
    HAT = "hat"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class HairlinePoint:
    """One point of the hairline."""

    x_px: float
    y_px: float
    state: HairlineState
    confidence: float
    """0 to 1."""


@dataclass(frozen=True, slots=True)
class Hairline:
    """Boundary of hair and forehead skin, from the subject's right temple (viewer's left) to the left one."""

    points: tuple[HairlinePoint, ...]
    status: HairlineState
    """That of the trichion."""
    trichion: HairlinePoint | None
    """Where it crosses the facial midline; None unless observed."""
    edge_sd_px: float
    """Standard deviation of the trichion's place along the face axis: how soft the edge is."""


class ScaleSource(StrEnum):
    """Where the millimetres come from."""

    IRIS = "iris"
    PUPILLARY_DISTANCE = "pupillary_distance"


@dataclass(frozen=True, slots=True)
class IntervalCauses:
    """Relative half-widths of the scale's 95 % interval by cause, in percent of it. They add as squares."""

    population_pct: float
    fit_pct: float
    pose_pct: float

    @property
    def total_pct(self) -> float:
        """All causes together."""
        return float(np.hypot(self.population_pct, self.same_person_pct))

    @property
    def same_person_pct(self) -> float:
        """Without the population term: what two photos of one person may differ by."""
        return float(np.hypot(self.fit_pct, self.pose_pct))


@dataclass(frozen=True, slots=True)
class IntervalCausesMm:
    """Half-widths of one value's 95 % interval by cause, in mm. They add as squares."""

    population_mm: float
    fit_mm: float
    pose_mm: float
    """Gaze, head pose and perspective."""
    segmentation_mm: float
    """Where the ends of the length lie."""

    @property
    def same_person_mm(self) -> float:
        """Without the population term: what two photos of one person may differ by."""
        return float(np.sqrt(self.fit_mm**2 + self.pose_mm**2 + self.segmentation_mm**2))

    @property
    def total_mm(self) -> float:
        """All causes together."""
        return float(np.hypot(self.population_mm, self.same_person_mm))


@dataclass(frozen=True, slots=True)
class IrisFit:
    """One iris, fitted at its sub-pixel edge."""

    centre_px: tuple[float, float]
    diameter_px: float
    """Horizontal visible diameter along the line between the eye corners, corrected for yaw."""
    sd_px: float
    weight: float
    """0 (useless) to 1; from visibility and glare."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Millimetres per pixel at the plane of the face.

    `mm_per_px` is None when neither an iris nor a pupillary distance gave one.
    """

    mm_per_px: float | None
    source: ScaleSource | None
    causes: IntervalCauses
    left_iris: IrisFit | None
    right_iris: IrisFit | None


@dataclass(frozen=True, slots=True)
class Norm:
    """A published norm for adults."""

    low: float
    high: float
    unit: str
    """`mm`, `ratio` or `deg`."""
    population: str
    source: str


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval in the unit of the value it belongs to."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured quantity; what could not be measured has no value and an `unavailable_reason`."""

    px: float | None = None
    mm: float | None = None
    interval_mm: Interval | None = None
    interval_same_person_mm: Interval | None = None
    causes_mm: IntervalCausesMm | None = None
    ratio: float | None = None
    """As the photo shows it."""
    ratio_perspective_corrected: float | None = None
    """As a camera at the distance of portraits would show it; see `vision.perspective`."""
    ratio_of: str = ""
    angle_deg: float | None = None
    norms: tuple[Norm, ...] = ()
    unavailable_reason: str = ""
    line: tuple[tuple[float, float], ...] = ()
    """End points (or the angle's three points) in photo pixels, for drawing."""


class FaceShapeClass(StrEnum):
    """Class of the face outline."""

    OVAL = "oval"
    ROUND = "round"
    SQUARE = "square"
    OBLONG = "oblong"
    HEART = "heart"
    DIAMOND = "diamond"
    TRIANGLE = "triangle"


@dataclass(frozen=True, slots=True)
class FaceShape:
    """Face shape with the ratios it was decided by."""

    shape: FaceShapeClass
    confidence: float
    ratios: Mapping[str, float]
    second: FaceShapeClass
    """The next nearest."""


@dataclass(frozen=True, slots=True)
class PhotoWarning:
    """Something the reader of the numbers should know."""

    reason: str
    value: float | None = None
    limit: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the measure call found, before drawing.

    `measurements` maps dotted names to quantities: `face_height`, `thirds.upper`, `fifths.right_eye`,
    `palpebral_width.left` … the same names
    as the fields of `hair.analysis.v1.Measurements`, all of them always there.
    """

    photo: Photo
    landmarks: FaceLandmarks
    parsing: ParsingMap
    hairline: Hairline
    scale: Scale
    measurements: Mapping[str, Measurement]
    face_shape: FaceShape | None
    warnings: tuple[PhotoWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """A PNG without metadata."""

    data: bytes = field(repr=False)
    width_px: int
    height_px: int
    media_type: str = "image/png"


class Lang(StrEnum):
    """Language of labels in pictures."""

    ZH = "zh"
    EN = "en"


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """Parameters of the measure call."""

    pupillary_distance_mm: float | None = None
    annotate: bool = True
    lang: Lang = Lang.ZH
    max_output_side_px: int = 2048


@dataclass(frozen=True, slots=True)
class MeasureResult:
    """Facts and, if asked for, the picture."""

    facts: Facts
    annotated: EncodedImage | None


Parser = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""(N, 3, 512, 512) normalized crops to (N, 19, 64, 64) logits, one cell per 8 × 8 pixels."""
