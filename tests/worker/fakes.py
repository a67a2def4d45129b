"""A scripted pipeline: what it does stands in the photo's bytes. Only tests can give it to a worker."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

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
from vision.errors import ModelError, PhotoError, Reason
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

OK = b"ok"
NO_FACE = b"no face"
"""Followed by ` slowly`: after a moment."""
BREAKS = b"breaks"
"""A stage raises."""
LOSES_ACCELERATOR = b"loses the accelerator"
BIG_ANSWER = b"big answer"
HOLDS = b"holds"
"""Computes with steps until `release` is set or the call is given up."""
SPAWNS = b"spawns"
"""Starts a child process, as the decoder of rare formats does."""
TAKES_1_S = b"takes a second"
FROZEN = b"frozen"
"""Computes without any step until `release` is set."""
QUEUES = b"queues"
"""Waits in another server's queue until `release` is set or the call is given up."""
HURRIES = b"hurries"
"""Makes 5,000 steps in no time."""
GOES_WITHOUT = b"goes without "
"""Followed by a `GrowthReason`: why nothing is grown."""
BREAKS_LATE = b"broken at the end"
"""A stage raises after the first result."""


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
        rules=(DesignRule("glabella_distance", True, 60.0, 55.0, 80.0, "mm"),),
        regions=(curve,),
    )


PROOF = GrowthProof(0.95, 0.5, 3.0, 0.1, 0.2, 0)


def check_thread() -> None:
    """Models belong to the compute thread: it alone may touch anything of a pipeline."""
    assert threading.current_thread().name.startswith("compute")


class FakePipeline:
    """Counts how many calls compute at once, and lets a test hold and release them."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.started = threading.Event()
        self.canary_error: Exception | None = None
        self.canaries = 0
        self.canary_gate = threading.Event()
        """Cleared: the canary waits in the compute thread."""
        self.canary_gate.set()
        self.measured: list[bytes] = []
        """Photos of all calls."""
        self.timeout_s: float | None = None
        """What the last `grow_styles` was told to be left."""
        self.most_computing = 0
        self.closed = False
        self._computing = 0

    @property
    def device(self) -> str:
        check_thread()
        return "cpu"

    @property
    def versions(self) -> Mapping[str, str]:
        check_thread()
        return {"fake": "1"}

    def load(self, _progress: Progress) -> FakePipeline:
        """The loader that a worker is given."""
        return self

    def measure(self, data: bytes, options: MeasureOptions, progress: Progress) -> MeasureResult:
        with self._computing_alone(data, progress):
            picture = self._picture(data)
        return MeasureResult(facts(), picture if options.annotate else None)

    def design(self, data: bytes, options: DesignOptions, progress: Progress) -> DesignResult:
        with self._computing_alone(data, progress):
            drawn = tuple(DrawnDesign(design(style), self._picture(data)) for style in options.styles or Style)
        return DesignResult(facts(), drawn)

    def segment(self, data: bytes, options: MaskOptions, progress: Progress) -> MaskResult:
        with self._computing_alone(data, progress):
            masks = tuple(FaceMask(part, self._picture(data), 4.0, None) for part in options.parts or FacePart)
        return MaskResult(facts(), masks)

    def grow_styles(
        self, data: bytes, options: GrowStylesOptions, progress: Progress, emit: EmitStyle
    ) -> GrowthSummary:
        with self._computing_alone(data, progress):
            self.timeout_s = options.timeout_s
            for style in options.styles or GROWN_BY_DEFAULT:
                drawn = DrawnDesign(design(style), self._picture(data))
                emit(StyleGrowth(drawn, *self._grown(data, progress)))
                if data.startswith(BREAKS_LATE):
                    raise ValueError("cannot reshape")
        return self._summary(options.seed)

    def grow_region(
        self, data: bytes, options: GrowRegionOptions, progress: Progress, emit: EmitRegion
    ) -> GrowthSummary:
        with self._computing_alone(data, progress):
            picture, reason, proof = self._grown(data, progress)
            emit(RegionGrowth(self._picture(data), picture, reason, 9.0, None, proof))
        return self._summary(options.seed)

    @contextmanager
    def _computing_alone(self, data: bytes, progress: Progress) -> Iterator[None]:
        check_thread()
        self._computing += 1
        self.most_computing = max(self.most_computing, self._computing)
        try:
            self.measured.append(data)
            progress.enter(Stage.PARSING)
            self.started.set()
            self._act(data, progress)
            yield
            progress.enter(Stage.DRAWING)
        finally:
            self._computing -= 1

    def _picture(self, data: bytes) -> EncodedImage:
        return EncodedImage(b"\x89PNG fake" + bytes(5_000_000 if data.startswith(BIG_ANSWER) else 0), 4, 3)

    def _grown(self, data: bytes, progress: Progress) -> tuple[EncodedImage | None, str, GrowthProof | None]:
        progress.enter(Stage.GROWING, 2)
        progress.step()
        progress.step()
        if data.startswith(GOES_WITHOUT):
            return None, data.removeprefix(GOES_WITHOUT).decode(), None
        return self._picture(data), "", PROOF

    def _summary(self, seed: int | None) -> GrowthSummary:
        return GrowthSummary(facts(), 7 if seed is None else seed, "local", ())

    def _act(self, data: bytes, progress: Progress) -> None:
        if data.startswith(SPAWNS):
            subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        if data.startswith(NO_FACE + b" slowly"):
            time.sleep(0.3)
        if data.startswith(NO_FACE):
            raise PhotoError(Reason.NO_FACE, {"faces": 0})
        if data.startswith(BREAKS):
            raise ValueError("cannot reshape")
        if data.startswith(LOSES_ACCELERATOR):
            self.canary_error = RuntimeError("CUDA error: device-side assert triggered")
            raise self.canary_error
        if data.startswith(HOLDS):
            while not self.release.wait(0.005):
                progress.step()
        if data.startswith(TAKES_1_S):
            end_s = time.monotonic() + 1.0
            while time.monotonic() < end_s:
                progress.step()
                time.sleep(0.01)
        if data.startswith(FROZEN):
            self.release.wait()
        if data.startswith(QUEUES):
            progress.enter(Stage.DIFFUSION_QUEUE)
            while not self.release.wait(0.005):
                progress.look()
        if data.startswith(HURRIES):
            for _step in range(5_000):
                progress.step()

    def canary(self) -> None:
        check_thread()
        self.canaries += 1
        self.canary_gate.wait()
        if self.canary_error:
            raise self.canary_error

    def close(self) -> None:
        check_thread()
        self.closed = True


class MissingModels:
    """A loader whose file is missing until a test puts it there."""

    def __init__(self) -> None:
        self.pipeline = FakePipeline()
        self.present = threading.Event()
        self.tries = 0

    def load(self, _progress: Progress) -> FakePipeline:
        self.tries += 1
        if not self.present.is_set():
            raise ModelError("79999_iter.pth is missing; run `hairmesh models fetch`")
        return self.pipeline
