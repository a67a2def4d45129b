"""A pipeline without models: plausible answers to every call, from facts that are the same for every photo."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager

import numpy as np
from google.protobuf.descriptor import Descriptor
from hair.analysis.v1 import measure_pb2

from vision.calls import (
    GROWN_BY_DEFAULT,
    DesignOptions,
    DesignResult,
    DesignRule,
    DrawnDesign,
    EmitRegion,
    EmitStyle,
    FaceMask,
    FacePart,
    GrowRegionOptions,
    GrowStylesOptions,
    GrowthProof,
    GrowthSummary,
    HairlineDesign,
    MaskOptions,
    MaskResult,
    RegionGrowth,
    Style,
    StyleGrowth,
)
from vision.types import (
    Box,
    EncodedImage,
    FaceLandmarks,
    Facts,
    Hairline,
    HairlineState,
    Interval,
    IntervalCauses,
    Measurement,
    MeasureOptions,
    MeasureResult,
    ParsingMap,
    Photo,
    Pose,
    Progress,
    Scale,
    ScaleSource,
    Stage,
)


def measurement_names(message: Descriptor = measure_pb2.Measurements.DESCRIPTOR, prefix: str = "") -> list[str]:
    """Dotted names of all quantities in the proto."""
    names = []
    for field in message.fields:
        assert field.message_type is not None
        if field.message_type is measure_pb2.Measurement.DESCRIPTOR:
            names.append(prefix + field.name)
        else:
            names += measurement_names(field.message_type, f"{prefix}{field.name}.")
    return names


def facts(**changes: object) -> Facts:
    """Plausible facts of a photo of 4×3 pixels."""
    plain = Facts(
        photo=Photo(np.zeros((3, 4, 3), np.uint8), "JPEG", 6),
        landmarks=FaceLandmarks(
            points=np.zeros((478, 2)),
            depth=np.zeros(478),
            transform=np.eye(4),
            pose=Pose(1.0, -2.0, 3.0),
            box=Box(0.5, 0.25, 3.0, 2.0),
            faces_found=1,
        ),
        parsing=ParsingMap(np.zeros((19, 2, 2), np.float32), np.eye(2, 3)),
        hairline=Hairline((), HairlineState.NONE, None, 0.0),
        scale=Scale(0.2, ScaleSource.IRIS, IntervalCauses(6.0, 8.0, 0.0), None, None),
        measurements={name: Measurement(px=float(n), mm=n / 5) for n, name in enumerate(measurement_names())},
        face_shape=None,
    )
    values = {name: getattr(plain, name) for name in Facts.__dataclass_fields__}
    return Facts(**{**values, **changes})


def design(style: Style) -> HairlineDesign:
    """A design of three points."""
    curve = np.array([(0.0, 2.0), (2.0, 1.0), (4.0, 2.0)])
    return HairlineDesign(
        style=style,
        curve=curve,
        mid_point=(2.0, 1.0),
        left_temple_point=(4.0, 2.0),
        right_temple_point=(0.5, 2.0),
        height=Measurement(px=300.0, mm=60.0),
        area_cm2=12.5,
        area_interval_cm2=Interval(11.0, 14.0),
        grafts=500,
        density_per_cm2=40.0,
        rules=(DesignRule("glabella_distance", True, 60.0, 55.0, 80.0, "mm", source="our own"),),
        regions=(curve,),
    )


PROOF = GrowthProof(0.95, 0.5, 3.0, 0.1, 0.2, 0)


class ScriptedPipeline(ABC):
    """All calls of `worker.engine.AnalysisPipeline`; what computing means is up to who is derived from it."""

    @abstractmethod
    def computing(self, data: bytes, progress: Progress) -> AbstractContextManager[None]:
        """Computes on the photo in `data` when it is entered; the answer is made inside."""

    @abstractmethod
    def picture(self, data: bytes) -> EncodedImage:
        """Every picture of an answer."""

    def grown(self, data: bytes, progress: Progress) -> tuple[EncodedImage | None, str, GrowthProof | None]:
        """A grown picture and its proof, or the reason why there is none."""
        progress.enter(Stage.GROWING, 2)
        progress.step()
        progress.step()
        return self.picture(data), "", PROOF

    def measure(self, data: bytes, options: MeasureOptions, progress: Progress) -> MeasureResult:
        with self.computing(data, progress):
            picture = self.picture(data)
        return MeasureResult(facts(), picture if options.annotate else None)

    def design(self, data: bytes, options: DesignOptions, progress: Progress) -> DesignResult:
        with self.computing(data, progress):
            drawn = tuple(DrawnDesign(design(style), self.picture(data)) for style in options.styles or Style)
        return DesignResult(facts(), drawn)

    def segment(self, data: bytes, options: MaskOptions, progress: Progress) -> MaskResult:
        with self.computing(data, progress):
            masks = tuple(FaceMask(part, self.picture(data), 4.0, None) for part in options.parts or FacePart)
        return MaskResult(facts(), masks)

    def grow_styles(
        self, data: bytes, options: GrowStylesOptions, progress: Progress, emit: EmitStyle
    ) -> GrowthSummary:
        with self.computing(data, progress):
            for style in options.styles or GROWN_BY_DEFAULT:
                drawn = DrawnDesign(design(style), self.picture(data))
                emit(StyleGrowth(drawn, *self.grown(data, progress)))
        return _summary(options.seed)

    def grow_region(
        self, data: bytes, options: GrowRegionOptions, progress: Progress, emit: EmitRegion
    ) -> GrowthSummary:
        with self.computing(data, progress):
            picture, reason, proof = self.grown(data, progress)
            emit(RegionGrowth(self.picture(data), picture, reason, 9.0, None, proof))
        return _summary(options.seed)


def _summary(seed: int | None) -> GrowthSummary:
    return GrowthSummary(facts(), 7 if seed is None else seed, "local", ())
