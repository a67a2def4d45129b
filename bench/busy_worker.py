"""`python -m bench.busy_worker LOAD CONFIG`: a real worker whose calls compute flat out, for as long as a photo says.

LOAD is `python`, which never lets go of the interpreter by itself, or `torch`: forwards of the face parser's network
with random weights, on every core that torch takes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from typing_extensions import override

from tests.e2e.breakable_worker import LightPipeline, Script, Switch, run
from vision.types import Progress

STEP_S = 0.2
"""How often a call says that it moves."""


class BusyPipeline(LightPipeline):
    """Computes instead of waiting."""

    def __init__(self, switch: Switch, work: Callable[[], object]) -> None:
        super().__init__(switch)
        self._work = work

    @override
    def compute(self, script: Script, progress: Progress) -> None:
        end_s = time.monotonic() + script.seconds
        while time.monotonic() < end_s:
            progress.step()
            until_s = time.monotonic() + STEP_S
            while time.monotonic() < until_s:
                self._work()


def pure_python() -> Callable[[], object]:
    """Arithmetic on small numbers, a few milliseconds at a time."""
    return lambda: sum(number * number % 7 for number in range(50_000))


def torch_forward() -> Callable[[], object]:
    """One forward of the parser's network on one crop."""
    import torch  # noqa: PLC0415  (the other load has no use for it)

    from vision.bisenet import INPUT_SIDE_PX, BiSeNet  # noqa: PLC0415

    network = BiSeNet().eval()
    crop = torch.randn(1, 3, INPUT_SIDE_PX, INPUT_SIDE_PX)

    def forward() -> object:
        with torch.inference_mode():
            return network(crop)

    return forward


LOADS: Mapping[str, Callable[[], Callable[[], object]]] = {"python": pure_python, "torch": torch_forward}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("load", choices=LOADS)
    parser.add_argument("config", type=Path)
    arguments = parser.parse_args()
    raise SystemExit(run(arguments.config, BusyPipeline(Switch(), LOADS[arguments.load]()).load))
