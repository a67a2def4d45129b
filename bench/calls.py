"""What every call takes, from request to readable answer, and where its stages spend it.

    python bench/calls.py [--rounds N]

A real edge and one real worker with the real models and the growth backend `local`; a studio portrait of 2048 × 2048,
each call in turn in every round, after one round that warms up. Styles are the default four, the marked region is a
strip above a low design, features and special points run on the edge itself. `<call>_ms` is the median of what a client
waits, `<call>_cpu_ms` that of the processor time of edge and worker together, which another program on the machine
changes little. The table shows the worker's stages as it logs them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
from rich.progress import track

from bench.harness import BenchError, console, emit, seconds, table
from bench.mark_crop import resolve
from hairmesh.client.envelope import Envelope
from hairmesh.client.plain import Client
from hairmesh.stack import Stack

PERSON = "openpeople/P004"
"""Whose present hairline leaves all of the default styles something to grow."""
SEED = 7
REGION_SHARE = (0.3, 0.7)
"""Part of a design's curve above which the region lies."""
REGION_MM = 10.0
"""Its height."""


def region(client: Client, photo: bytes) -> list[tuple[float, float]]:
    """Corners of a strip from a low design up towards the present hair, pixels of the upright photo."""
    answer = worked(client.hairlines(photo, styles=["round"], height="low"))
    curve = answer.data["hairline_images"][0]["curve"]
    up_px = REGION_MM / answer.data["scale"]["mm_per_px"]
    first, last = (round(share * len(curve)) for share in REGION_SHARE)
    below = [(point["x_px"], point["y_px"]) for point in curve[first:last]]
    return below + [(x_px, y_px - up_px) for x_px, y_px in reversed(below)]


def worked(answer: Envelope) -> Envelope:
    """The answer; raises `BenchError` for a refusal, and where hair was to grow and did not."""
    if not answer.ok:
        raise BenchError(f"answered {answer.code} {answer.reason}")
    for result in (answer.data, *answer.data.get("results", ())):
        if result.get("grown_reason"):
            raise BenchError(f"not grown: {result['grown_reason']}")
    return answer


def calls(client: Client, photo: bytes) -> Mapping[str, Callable[[], Envelope]]:
    """Every call of the contract by name, ready to be made."""
    corners = region(client, photo)
    return {
        "measure": lambda: client.measure(photo),
        "styles": lambda: client.styles(photo, seed=SEED),
        "grow": lambda: client.grow(photo, region=corners, seed=SEED),
        "features": lambda: client.features(photo),
        "hairlines": lambda: client.hairlines(photo),
        "masks": lambda: client.masks(photo),
        "special_points": lambda: client.special_points(photo),
    }


def cpu_s(processes: tuple[psutil.Process, ...]) -> float:
    """Processor time that they and the children they have outlived have taken so far."""
    times = [each.cpu_times() for each in processes]
    return sum(each.user + each.system + each.children_user + each.children_system for each in times)


def last_stages(log: Path) -> Mapping[str, float]:
    """Milliseconds by stage of the last call in a worker's log."""
    for line in reversed(log.read_text().splitlines()):
        if line.startswith("{") and (entry := json.loads(line)).get("event") == "call":
            stages: dict[str, float] = entry["stage_ms"]
            return stages
    raise BenchError("the worker's log has no call")


LOCAL = ("features", "special_points")
"""Never reach a worker."""


def main() -> None:
    """Start both, call in rounds, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    photo = resolve(PERSON).read_bytes()
    waited: dict[str, list[float]] = defaultdict(list)
    worked_s: dict[str, list[float]] = defaultdict(list)
    stages: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as name, Stack(Path(name), workers=1) as stack:
        stack.start()
        with Client(stack.url) as client:
            stack.wait_online(client, 1)
            processes = (psutil.Process(stack.edge.pid), psutil.Process(stack.workers[0].pid))
            made = calls(client, photo)
            for call in made.values():
                worked(call())
            for _ in track(range(args.rounds), "calling", console=console, transient=True):
                for called, call in made.items():
                    before_s = cpu_s(processes)
                    waited[called].append(seconds(lambda call=call: worked(call())))  # type: ignore[misc]
                    worked_s[called].append(cpu_s(processes) - before_s)
                    if called not in LOCAL:
                        for stage, taken_ms in last_stages(stack.workers[0].log_path).items():
                            stages[called][stage].append(taken_ms)
    medians = {called: statistics.median(taken) * 1000 for called, taken in waited.items()}
    cpu = {called: statistics.median(taken) * 1000 for called, taken in worked_s.items()}
    rows = [
        [
            called,
            f"{medians[called]:.0f}",
            f"{cpu[called]:.0f}",
            ", ".join(f"{stage} {statistics.median(taken):.0f}" for stage, taken in stages[called].items()),
        ]
        for called in medians
    ]
    table("Every call, ms", ["call", "client waits", "processor", "stages of the worker"], rows)
    emit(
        {f"{called}_ms": ms for called, ms in medians.items()} | {f"{called}_cpu_ms": ms for called, ms in cpu.items()}
    )


if __name__ == "__main__":
    main()
