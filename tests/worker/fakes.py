"""A scripted pipeline: what it does stands in the photo's bytes. Only tests can give it to a worker."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.worker.scripted import ScriptedPipeline
from vision.calls import EmitStyle, GrowStylesOptions, GrowthProof, GrowthSummary, StyleGrowth
from vision.errors import ModelError, PhotoError, Reason
from vision.types import EncodedImage, Progress, Stage

OK = b"ok"
NO_FACE = b"no face"
BREAKS = b"breaks"
"""A stage raises."""
LOSES_ACCELERATOR = b"loses the accelerator"
BIG_ANSWER = b"big answer"
HOLDS = b"holds"
"""Computes with steps until `release` is set or the call is given up."""
SPAWNS = b"spawns"
"""Starts a child process, as the decoder of rare formats does."""
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
UNTIL_GONE = b", when this file is gone: "
"""Behind any of these and followed by a path: first it computes with steps, by which a test holds another process."""


def held(what: bytes, by: Path) -> bytes:
    """A photo that does `what` when the file `by`, which is made here, is gone."""
    by.touch()
    return what + UNTIL_GONE + bytes(by)


def check_thread() -> None:
    """Models belong to the compute thread: it alone may touch anything of a pipeline."""
    assert threading.current_thread().name.startswith("compute")


class FakePipeline(ScriptedPipeline):
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

    @contextmanager
    def computing(self, data: bytes, progress: Progress) -> Iterator[None]:
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

    def picture(self, data: bytes) -> EncodedImage:
        return EncodedImage(b"\x89PNG fake" + bytes(5_000_000 if data.startswith(BIG_ANSWER) else 0), 4, 3)

    def grown(self, data: bytes, progress: Progress) -> tuple[EncodedImage | None, str, GrowthProof | None]:
        if data.startswith(GOES_WITHOUT):
            return None, data.removeprefix(GOES_WITHOUT).decode(), None
        return super().grown(data, progress)

    def grow_styles(
        self, data: bytes, options: GrowStylesOptions, progress: Progress, emit: EmitStyle
    ) -> GrowthSummary:
        self.timeout_s = options.timeout_s

        def emit_and_break(result: StyleGrowth) -> None:
            emit(result)
            if data.startswith(BREAKS_LATE):
                raise ValueError("cannot reshape")

        return super().grow_styles(data, options, progress, emit_and_break)

    def _act(self, data: bytes, progress: Progress) -> None:
        _, held, path = data.partition(UNTIL_GONE)
        while held and Path(path.decode()).exists():
            progress.step()
            time.sleep(0.005)
        if data.startswith(SPAWNS):
            subprocess.run([sys.executable, "-S", "-c", ""], check=True)
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
