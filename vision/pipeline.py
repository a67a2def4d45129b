"""The order of the stages: photo bytes to facts and picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version

import cv2
import numpy as np

from vision.annotate import annotate
from vision.answer_size import PICTURES_BYTES, fitting
from vision.anthropometry import face_shape, measure_face
from vision.calls import (
    DesignOptions,
    DesignResult,
    DrawnDesign,
    EmitRegion,
    EmitStyle,
    FacePart,
    GrowRegionOptions,
    GrowStylesOptions,
    GrowthSummary,
    MaskOptions,
    MaskResult,
)
from vision.canary import check_landmarks, check_logits, drawn_face
from vision.decode import decode
from vision.designs import design_hairlines, draw_design
from vision.errors import PhotoError
from vision.features import Features, check_features, refuse_upside_down, see_features
from vision.gates import MAY_BE_UPSIDE_DOWN, choose_face
from vision.growth.backend import GrowthBackend, NoGrowth
from vision.growth.region import marked_region
from vision.growth.run import Growth, grow_region, grow_styles
from vision.hairline import find_hairline
from vision.landmarks import LandmarkDetector
from vision.masks import make_masks
from vision.models import FACE_LANDMARKER, ModelFiles
from vision.parsing import CROPS, HAIR, HAIR_AND_NECK, normalized, parse
from vision.photo_warnings import find_warnings
from vision.raster import Limits
from vision.runtime import Device, ParserRuntime, load_parser
from vision.scale import doubts, find_scale
from vision.types import (
    EncodedImage,
    FaceLandmarks,
    Facts,
    MeasureOptions,
    MeasureResult,
    NoProgress,
    ParsingMap,
    Photo,
    Progress,
    RgbImage,
    Stage,
)


class Pipeline:
    """Loaded models and the calls they serve. Belongs to the one thread that loads, uses and closes it."""

    def __init__(
        self,
        detector: LandmarkDetector,
        parser: ParserRuntime,
        files: ModelFiles,
        limits: Limits,
        growth: GrowthBackend = NoGrowth(),  # noqa: B008  (holds nothing)
    ) -> None:
        self._detector = detector
        self._parser = parser
        self._files = files
        self._limits = limits
        self._growth = growth

    @classmethod
    def load(
        cls,
        files: ModelFiles,
        *,
        growth: GrowthBackend = NoGrowth(),  # noqa: B008  (holds nothing)
        device: Device = "auto",
        progress: Progress = NoProgress(),  # noqa: B008  (holds nothing)
        limits: Limits = Limits(),  # noqa: B008  (frozen)
    ) -> Pipeline:
        """Load both models; raises `ModelError` naming the file and what to do. `growth` is closed with the rest."""
        progress.enter(Stage.MODEL_LOAD)
        detector = LandmarkDetector(files.face_landmarker)
        progress.step()
        try:
            return cls(detector, load_parser(files, device), files, limits, growth)
        except BaseException:
            detector.close()
            raise

    @property
    def device(self) -> str:
        """`cpu` or `cuda`: where the parser runs. Landmarks always run on the CPU."""
        return self._parser.device

    @property
    def versions(self) -> Mapping[str, str]:
        """Models, by the beginning of their hashes, and runtimes."""
        return {
            "face_landmarker": FACE_LANDMARKER.sha256[:12],
            "parser": self._files.parser_weights_sha256[:12],
            "parser_runtime": self._parser.version,
            "mediapipe": version("mediapipe"),
        }

    def measure(self, data: bytes, options: MeasureOptions, progress: Progress) -> MeasureResult:
        """Measure the face in one encoded photo, and draw it if asked to.

        Raises `PhotoError` when the photo is refused, `CancelledCallError` when `progress` says so.
        """
        facts = self.facts(self._read(data, progress), options, progress)
        if not options.annotate:
            return MeasureResult(facts, None)
        progress.enter(Stage.DRAWING)
        return MeasureResult(facts, annotate(facts, options.lang, options.max_output_side_px))

    def design(self, data: bytes, options: DesignOptions, progress: Progress) -> DesignResult:
        """Fit hairline designs to the face, and draw each. Raises as `measure` does."""
        facts = self.facts(self._read(data, progress), MeasureOptions(), progress)
        progress.enter(Stage.DESIGNING)
        designs = design_hairlines(facts, options)

        def drawn(side_px: int) -> DesignResult:
            progress.enter(Stage.DRAWING, len(designs))
            pictures = []
            for design in designs:
                pictures.append(DrawnDesign(design, draw_design(facts, design, options.lang, side_px)))
                progress.step()
            return DesignResult(facts, tuple(pictures))

        return fitting(drawn, _pictures_of_designs, options.max_output_side_px, PICTURES_BYTES)

    def segment(self, data: bytes, options: MaskOptions, progress: Progress) -> MaskResult:
        """Mask the parts of head and face. Raises as `measure` does."""
        uncut = HAIR_AND_NECK if FacePart.NECK in (options.parts or FacePart) else HAIR
        facts = self.facts(self._read(data, progress), MeasureOptions(), progress, uncut)

        def masked(side_px: int) -> MaskResult:
            progress.enter(Stage.MASKING)
            return MaskResult(facts, make_masks(facts, replace(options, max_output_side_px=side_px)))

        return fitting(masked, _pictures_of_masks, options.max_output_side_px, PICTURES_BYTES)

    def grow_styles(
        self, data: bytes, options: GrowStylesOptions, progress: Progress, emit: EmitStyle
    ) -> GrowthSummary:
        """Grow hair to hairline styles. Raises as `measure` does."""
        growth = self._growth_of_call(progress, options.timeout_s)
        facts = self.facts(self._read(data, progress), MeasureOptions(), progress)
        return grow_styles(facts, options, growth, emit)

    def grow_region(
        self, data: bytes, options: GrowRegionOptions, progress: Progress, emit: EmitRegion
    ) -> GrowthSummary:
        """Grow hair in the region that the user marked. Raises as `measure` does, and REGION_… and MASK_…."""
        growth = self._growth_of_call(progress, options.timeout_s)
        photo = self._read(data, progress)
        progress.step()  # a mask is a second picture to decode
        region = marked_region(photo, options)
        return grow_region(self.facts(photo, MeasureOptions(), progress), region, options, growth, emit)

    def facts(self, photo: Photo, options: MeasureOptions, progress: Progress, uncut: tuple[int, ...] = HAIR) -> Facts:
        """Everything about the face that counts; the classes `uncut` are parsed as far as they go, see `parse`.

        Raises as `measure` does.
        """
        progress.enter(Stage.LANDMARKS)
        landmarks = self._find_face(photo, progress)
        progress.enter(Stage.PARSING, len(CROPS))
        parsing = self._parse(photo, landmarks, progress, uncut)
        check_features(see_features(landmarks, parsing), lambda: self._features_upside_down(photo, progress))
        progress.enter(Stage.HAIRLINE)
        hairline = find_hairline(photo, landmarks, parsing)
        progress.enter(Stage.SCALE)
        scale = find_scale(photo, landmarks, parsing, options.pupillary_distance_mm)
        progress.enter(Stage.MEASURING)
        measurements = measure_face(landmarks, hairline, scale)
        return Facts(
            photo=photo,
            landmarks=landmarks,
            parsing=parsing,
            hairline=hairline,
            scale=scale,
            measurements=measurements,
            face_shape=face_shape(measurements),
            warnings=(*find_warnings(photo, landmarks, parsing), *doubts(scale)),
        )

    def canary(self) -> None:
        """The test picture through both models; raises `ModelError` when an answer differs from the known one."""
        picture = drawn_face()
        check_landmarks(self._detector.detect(picture))
        logits = self._parser(normalized(picture))
        check_logits(logits, self._files.parser_weights_sha256, self._parser.canary_reference)

    def close(self) -> None:
        """Free the models, and what grows hair."""
        self._growth.close()
        self._detector.close()

    def _read(self, data: bytes, progress: Progress) -> Photo:
        progress.enter(Stage.DECODE)
        return decode(data, self._limits, look=progress.look)

    def _parse(
        self, photo: Photo, landmarks: FaceLandmarks, progress: Progress, uncut: tuple[int, ...] = HAIR
    ) -> ParsingMap:
        return parse(photo, landmarks, self._parser, progress.step, uncut)

    def _growth_of_call(self, progress: Progress, timeout_s: float | None) -> Growth:
        def parse_again(rgb: RgbImage, face: FaceLandmarks, step: Callable[[], None]) -> ParsingMap:
            return parse(Photo(rgb, "PNG", 1), face, self._parser, step)

        return Growth(self._growth, parse_again, progress, timeout_s=timeout_s)

    def _find_face(self, photo: Photo, progress: Progress) -> FaceLandmarks:
        try:
            faces = self._detector.find(photo.rgb, progress.moved)
            return choose_face(faces, width_px=photo.width_px, height_px=photo.height_px)
        except PhotoError as refused:
            if refused.reason in MAY_BE_UPSIDE_DOWN:
                refuse_upside_down(self._features_upside_down(photo, progress))
            raise

    def _features_upside_down(self, photo: Photo, progress: Progress) -> Features | None:
        """Features of the face that counts in the photo turned by 180 degrees; None when there is none."""
        turned = Photo(np.asarray(cv2.rotate(photo.rgb, cv2.ROTATE_180), dtype=np.uint8), photo.format, 3)
        faces = self._detector.detect(turned.rgb)
        return see_features(faces[0], self._parse(turned, faces[0], progress)) if faces else None


def _pictures_of_designs(result: DesignResult) -> Sequence[EncodedImage]:
    return [drawn.image for drawn in result.designs]


def _pictures_of_masks(result: MaskResult) -> Sequence[EncodedImage]:
    return [mask.image for mask in result.masks]
