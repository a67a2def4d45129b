"""What a measure call costs by stage, and against its parts as bare library calls.

    python bench/measure.py [--rounds N]

The whole pipeline on a studio portrait, in this process, with the real models; and in every round, in turn, the same
work as anybody would do it with the libraries alone: libjpeg-turbo decodes the file, MediaPipe finds one face in it,
onnxruntime runs the parser on as many crops as the pipeline does (never more than three), OpenCV writes the picture as
PNG with its own settings. `total_over_parts` is the median over the rounds of the whole call over the sum of these
parts, `total_over_parts_own_png` the same with the pipeline's own PNG writer in OpenCV's place, which is four times as
fast, `total_over_forward` the same over one forward; `<stage>_ms` are medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable

import cv2
import mediapipe as mp
import numpy as np
import simplejpeg
from mediapipe.tasks.python import BaseOptions
from mediapipe.tasks.python.vision import FaceLandmarker, FaceLandmarkerOptions
from rich.progress import track

from bench.harness import BenchError, console, emit, median_ratio, seconds, table
from bench.mark_crop import resolve
from vision.models import default_cache_dir, locate
from vision.offline import run_offline
from vision.parsing import INPUT_SIDE_PX
from vision.pipeline import Pipeline
from vision.png import encode_png
from vision.runtime import INPUT_NAME
from vision.types import Lang, MeasureOptions, MeasureResult, Stage

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # see vision.runtime
import onnxruntime

PERSON = "openpeople/P001"
MAX_FORWARDS = 3
OWN_PNG = "PNG as the pipeline writes it"


class StageClock:
    """A `Progress` that notes how long each stage took and how many parser forwards there were."""

    def __init__(self) -> None:
        self.stage_s: dict[Stage, float] = defaultdict(float)
        self.forwards = 0
        self._stage: Stage | None = None
        self._since_s = 0.0

    def enter(self, stage: Stage, total: int = 0) -> None:
        """The next stage begins."""
        self.finish()
        self._stage, self._since_s = stage, time.perf_counter()

    def step(self) -> None:
        """One forward, where the stage is the parser's."""
        self.forwards += self._stage is Stage.PARSING

    def moved(self) -> None:
        """Is no forward."""

    def look(self) -> None:
        """Never given up."""

    def finish(self) -> None:
        """The stage that runs has ended."""
        if self._stage is not None:
            self.stage_s[self._stage] += time.perf_counter() - self._since_s


def bare_parts(data: bytes, forwards: int, annotated: bytes) -> dict[str, Callable[[], object]]:
    """The parts as bare library calls, each ready to run."""
    files = locate(default_cache_dir())
    base = BaseOptions(model_asset_path=str(files.face_landmarker), delegate=BaseOptions.Delegate.CPU)
    finder = FaceLandmarkerOptions(base_options=base, num_faces=1)
    landmarker = run_offline(lambda: FaceLandmarker.create_from_options(finder))
    image = mp.Image(image_format=mp.ImageFormat.SRGB, data=simplejpeg.decode_jpeg(data))
    session = onnxruntime.InferenceSession(files.parser_onnx, providers=["CPUExecutionProvider"])
    crop = np.random.default_rng(0).standard_normal((1, 3, INPUT_SIDE_PX, INPUT_SIDE_PX)).astype(np.float32)
    drawn = np.asarray(cv2.imdecode(np.frombuffer(annotated, np.uint8), cv2.IMREAD_COLOR))

    def forward() -> object:
        return session.run(None, {INPUT_NAME: crop})

    return {
        "decode": lambda: simplejpeg.decode_jpeg(data),
        "landmarks": lambda: landmarker.detect(image),
        **{f"forward {number}": forward for number in range(1, forwards + 1)},
        "PNG": lambda: cv2.imencode(".png", drawn),
        OWN_PNG: lambda: encode_png(drawn),
    }


def main() -> None:
    """Measure in rounds, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    data = resolve(PERSON).read_bytes()
    options = MeasureOptions(lang=Lang.ZH)
    pipeline = Pipeline.load(locate(default_cache_dir()))

    def whole() -> tuple[float, StageClock, MeasureResult]:
        clock = StageClock()
        begun_s = time.perf_counter()
        result = pipeline.measure(data, options, clock)
        total_s = time.perf_counter() - begun_s
        clock.finish()
        return total_s, clock, result

    _, clock, result = whole()
    if result.annotated is None or clock.forwards > MAX_FORWARDS:
        raise BenchError(f"{clock.forwards} parser forwards, picture: {result.annotated is not None}")
    parts = bare_parts(data, clock.forwards, result.annotated.data)
    for work in parts.values():  # warm-up
        work()
    totals: list[float] = []
    stages: dict[Stage, list[float]] = defaultdict(list)
    bare: dict[str, list[float]] = {name: [] for name in parts}
    for _ in track(range(args.rounds), "measuring", console=console, transient=True):
        total_s, clock, _ = whole()
        totals.append(total_s)
        for stage, taken_s in clock.stage_s.items():
            stages[stage].append(taken_s)
        for name, work in parts.items():
            bare[name].append(seconds(work))
    pipeline.close()

    sums = [sum(taken) for taken in zip(*(bare[name] for name in parts if name != OWN_PNG), strict=True)]
    stricter = [sum(taken) for taken in zip(*(bare[name] for name in parts if name != "PNG"), strict=True)]
    forward_s = [bare["forward 1"][index] for index in range(args.rounds)]
    medians = {stage: statistics.median(taken) * 1000 for stage, taken in stages.items()}
    table("The call, by stage", ["stage", "ms"], [[stage.value, f"{ms:.1f}"] for stage, ms in medians.items()])
    rows = [[name, f"{statistics.median(taken) * 1000:.1f}"] for name, taken in bare.items()]
    table(
        "Its parts as bare library calls",
        ["part", "ms"],
        [*rows, ["sum (with OpenCV's PNG)", f"{statistics.median(sums) * 1000:.1f}"]],
    )
    emit(
        {
            "total_over_parts": median_ratio(totals, sums),
            "total_over_parts_own_png": median_ratio(totals, stricter),
            "total_over_forward": median_ratio(totals, forward_s),
            "total_ms": statistics.median(totals) * 1000,
            **{f"{stage.value}_ms": ms for stage, ms in medians.items()},
        }
    )


if __name__ == "__main__":
    main()
