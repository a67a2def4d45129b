"""`python -m tests.e2e.breakable_worker [--models] CONFIG`: a real worker whose models can be broken from outside.

Everything is as in production but the pipeline. `--models`: the real one, whose parser answers nothing but zeros after
SIGUSR1, as a broken accelerator does. Without it: a light one that computes as long as the end of the photo says (see
`photo`), logs when each call began and ended, and finds no face in anything after SIGUSR1. SIGUSR2 mends either.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray
from PIL import Image
from typing_extensions import override

from hairmesh import logs
from tests.fakes.worker import png
from tests.worker.scripted import ScriptedPipeline
from vision.errors import ModelError, PhotoError, Reason
from vision.types import EncodedImage, Progress, Stage
from worker import settings
from worker.engine import PipelineLoader
from worker.server import CannotListenError, serve

STEP_S = 0.005
"""How soon a running call sees that nobody waits any more."""
_END_OF_JPEG = b"\xff\xd9"

log = structlog.stdlib.get_logger("breakable_worker")


@dataclass(frozen=True, slots=True)
class Script:
    """What the light pipeline does with one photo."""

    seconds: float = 0.0
    """How long it computes."""
    png_bytes: int = 2_000
    """Size of the picture in the answer."""

    @classmethod
    def of(cls, data: bytes) -> Script:
        """The script behind the picture in `data`; the default where there is none."""
        end = data.rpartition(_END_OF_JPEG)[2]
        return cls(**json.loads(end)) if end.startswith(b"{") else cls()


def photo(**script: Any) -> bytes:
    """A JPEG that the edge takes, followed by a `Script` with these values."""
    file = io.BytesIO()
    Image.new("RGB", (256, 256), (128, 128, 128)).save(file, "JPEG")
    return file.getvalue() + json.dumps(asdict(Script(**script))).encode()


class Switch:
    """Whether the models are broken; thrown by signals."""

    def __init__(self) -> None:
        self._broken = threading.Event()
        signal.signal(signal.SIGUSR1, lambda _number, _frame: self._broken.set())
        signal.signal(signal.SIGUSR2, lambda _number, _frame: self._broken.clear())

    @property
    def broken(self) -> bool:
        """Whether they are."""
        return self._broken.is_set()


class LightPipeline(ScriptedPipeline):
    """Computes by waiting; looks at the cancel flag every `STEP_S`."""

    device = "cpu"

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self.versions: Mapping[str, str] = {"light": "1"}

    def load(self, progress: Progress) -> LightPipeline:
        """The loader that a worker is given."""
        progress.enter(Stage.MODEL_LOAD)
        return self

    @override
    @contextmanager
    def computing(self, data: bytes, progress: Progress) -> Iterator[None]:
        progress.enter(Stage.PARSING)
        log.info("computing")
        began_s = time.monotonic()
        cancelled = True
        try:
            self.compute(Script.of(data), progress)
            cancelled = False
        finally:
            log.info("computed", began_s=began_s, ended_s=time.monotonic(), cancelled=cancelled)
        if self._switch.broken:
            raise PhotoError(Reason.NO_FACE)
        progress.enter(Stage.DRAWING)
        yield

    @override
    def picture(self, data: bytes) -> EncodedImage:
        encoded = png(Script.of(data).png_bytes)
        width, height = struct.unpack(">II", encoded[16:24])
        return EncodedImage(encoded, width, height)

    def compute(self, script: Script, progress: Progress) -> None:
        """Be busy for as long as the script says; raises `CancelledCallError`."""
        end_s = time.monotonic() + script.seconds
        while (left_s := end_s - time.monotonic()) > 0:
            progress.step()
            time.sleep(min(STEP_S, left_s))

    def canary(self) -> None:
        """See `worker.engine.AnalysisPipeline`."""
        if self._switch.broken:
            raise ModelError("canary_no_face")

    def close(self) -> None:
        """See `worker.engine.AnalysisPipeline`."""


class BreakableParser:
    """A real parser, or zeros."""

    def __init__(self, parser: Any, switch: Switch) -> None:
        self._parser = parser
        self._switch = switch
        self.device: str = parser.device
        self.version: str = parser.version
        self.canary_reference: NDArray[np.float64] = parser.canary_reference

    def __call__(self, crops: NDArray[np.float32]) -> NDArray[np.float32]:
        """See `vision.runtime.ParserRuntime`."""
        logits: NDArray[np.float32] = self._parser(crops)
        return np.zeros_like(logits) if self._switch.broken else logits


def real_models(switch: Switch) -> PipelineLoader:
    """Loader of the real pipeline around a breakable parser."""
    from vision.landmarks import LandmarkDetector  # noqa: PLC0415  (the light worker has no use for it)
    from vision.models import default_cache_dir, locate  # noqa: PLC0415
    from vision.pipeline import Pipeline  # noqa: PLC0415
    from vision.raster import Limits  # noqa: PLC0415
    from vision.runtime import load_parser  # noqa: PLC0415

    def load(progress: Progress) -> Pipeline:
        progress.enter(Stage.MODEL_LOAD)
        files = locate(default_cache_dir())
        detector = LandmarkDetector(files.face_landmarker)
        return Pipeline(detector, BreakableParser(load_parser(files, "cpu"), switch), files, Limits())

    return load


def run(config: Path, load: PipelineLoader) -> int:
    """Serve until stopped; the exit code."""
    logs.configure("worker", level=os.environ.get("LOG_LEVEL", "info"))
    configured = settings.load(config, os.environ)
    return asyncio.run(serve(configured, load_pipeline=load, config_path=config, environ=os.environ))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--models", action="store_true", help="the real pipeline")
    arguments = parser.parse_args()
    switch = Switch()
    try:
        code = run(arguments.config, real_models(switch) if arguments.models else LightPipeline(switch).load)
    except CannotListenError as error:
        sys.exit(str(error))
    sys.exit(code)
