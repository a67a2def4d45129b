"""An edge that is asked for far more than its workers can do: does alerting still get through, and everybody an answer?

    python bench/overload.py [--clients N] [--seconds N] [--workers fake|real]

200 clients send portraits of about 3 MB to an edge with two workers for 60 s, each the next one as soon as it has an
answer, and after a refusal within a second; a third of them in JSON, plain and wrapped (`bench/overload_clients.py`).
For as long as they begin requests `/monitor` is asked 20 times a second, each time on a new connection, on a fixed
schedule (`bench/overload_monitor.py`); and at the same moments that of an edge beside it which nobody else asks: what
that one takes is the machine's doing, and the bench's. The workers are fakes that take as long for a call and return
as large a picture as a worker of ours does, so that edge and clients have the machine to themselves; with
`--workers real` they are real ones with the real models, which take both cores of a small machine.

`monitor_p99_ms`: from the moment of the schedule to the whole answer. `unanswered`: requests that got none.
`requests`: of all.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import uvloop
from PIL import Image

from bench.edge_overhead import edge_config
from bench.harness import ROOT, BenchError, console, emit, process, table, wait_for_port
from bench.mark_crop import resolve
from bench.overload_clients import BEGUN
from bench.overload_monitor import Answers, ask_for
from hairmesh.client.plain import Client
from hairmesh.stack import Stack, free_ports, write_private

CLIENTS, SECONDS = 200, 60.0
WORKERS = 2
CALL_S = 0.4
"""A measure call of a photo of 12 MP on one core."""
PICTURE_BYTES = 3_000_000
"""Its annotated picture, 2048 px on the long side."""
PHOTO_SIDE_PX = 3464
PHOTO_BYTES = 3_000_000
LIMITS = {"max_body_bytes": 4_194_304}
PHOTO_BYTES_DEFAULT = 1_500_000
"""Where `limits.max_body_bytes` is as it is by default, in base64 too."""
PHOTOS = 4
MB = 1e6


@dataclass(frozen=True, slots=True)
class Served:
    """An edge to be crowded."""

    port: int
    pid: int
    beside_port: int
    """Of one that nobody else asks."""


@dataclass(frozen=True, slots=True)
class Found:
    """How it went."""

    clients: dict[str, Any]
    """`bench.overload_clients.Tally`."""
    monitor: Answers
    beside: Answers
    """Of the edge beside it."""
    edge_rss_mb: float
    """The highest seen."""
    edge_cores: float
    """Processor time over wall time."""


def portraits(folder: Path, count: int, side_px: int, size: int) -> list[Path]:
    """Studio portraits as a phone of 12 MP sends them: squares of `side_px`, JPEGs of about `size` bytes."""
    paths = []
    for number in range(1, count + 1):
        picture = Image.open(resolve(f"openpeople/P{number:03}")).convert("RGB")
        picture = picture.resize((side_px, side_px), Image.Resampling.LANCZOS)
        for quality in range(98, 10, -4):
            buffer = io.BytesIO()
            picture.save(buffer, "JPEG", quality=quality)
            if buffer.tell() <= size:
                break
        paths.append(folder / f"portrait{number}.jpg")
        paths[-1].write_bytes(buffer.getvalue())
    return paths


@contextmanager
def fake_workers(folder: Path, call_s: float, picture_bytes: int, limits: Mapping[str, int]) -> Iterator[Served]:
    """A real edge in front of workers that wait instead of computing."""
    token = "overload-bench-token"
    port, *worker_ports = free_ports(1 + WORKERS)
    fake = [sys.executable, "-m", "tests.fakes.worker", "--png-bytes", str(picture_bytes), "--after-s", str(call_s)]
    with ExitStack() as stack:
        for worker_port in worker_ports:
            arguments = [*fake, "--port", str(worker_port)]
            stack.enter_context(process(f"worker{worker_port}", arguments, folder, {"FAKE_WORKER_PASSWORD": token}))
            wait_for_port(worker_port)
        pid = stack.enter_context(an_edge("edge", folder, port, worker_ports, token, limits))
        yield Served(port, pid, stack.enter_context(edge_beside(folder)))


@contextmanager
def real_workers(folder: Path) -> Iterator[Served]:
    """The whole service with its models."""
    with Stack(folder / "stack", workers=WORKERS) as stack:
        stack.start()
        with Client(stack.url) as client:
            stack.wait_online(client, WORKERS)
        with edge_beside(folder) as beside_port:
            yield Served(int(stack.url.rpartition(":")[2]), stack.edge.pid, beside_port)


@contextmanager
def an_edge(
    name: str, folder: Path, port: int, worker_ports: Sequence[int], token: str, limits: Mapping[str, int]
) -> Iterator[int]:
    """A real edge that serves; its process id."""
    config = {**json.loads(edge_config(folder / name, port, worker_ports, token)), "limits": limits}
    write_private(folder / f"{name}.json", json.dumps(config))
    program = str(Path(sys.executable).with_name("hairmesh-edge"))
    with process(name, [program, "--config", str(folder / f"{name}.json")], folder) as running:
        wait_for_port(port)
        yield running.pid


@contextmanager
def edge_beside(folder: Path) -> Iterator[int]:
    """Another one, without a worker and without clients; its port."""
    port, nobody = free_ports(2)
    with an_edge("beside", folder, port, [nobody], "token-of-the-edge-beside", {}):
        yield port


async def measure(served: Served, photos: Sequence[Path], clients: int, seconds: float) -> Found:
    """Crowd the edge, and ask `/monitor` for as long as anybody begins a request."""
    arguments = ["-m", "bench.overload_clients", str(served.port), str(clients), str(seconds), *map(str, photos)]
    edge = psutil.Process(served.pid)
    monitor, beside = Answers(served.port), Answers(served.beside_port)
    rss_mb = 0.0

    def look() -> None:
        nonlocal rss_mb
        rss_mb = max(rss_mb, edge.memory_info().rss / MB)

    crowd = await asyncio.create_subprocess_exec(sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        if crowd.stdout is None or await crowd.stdout.readline() != BEGUN:
            raise BenchError("the clients could not begin")
        cpu_s, begun_s = sum(edge.cpu_times()[:2]), time.perf_counter()
        await ask_for(seconds, [monitor, beside], look)
        cores = (sum(edge.cpu_times()[:2]) - cpu_s) / (time.perf_counter() - begun_s)
        told, _ = await crowd.communicate()
    finally:
        if crowd.returncode is None:
            crowd.kill()
            await crowd.wait()
    if crowd.returncode:
        raise BenchError("the clients could not go on")
    return Found(json.loads(told), monitor, beside, rss_mb, cores)


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--workers", choices=("fake", "real"), default="fake")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        real = args.workers == "real"
        photos = portraits(folder, PHOTOS, PHOTO_SIDE_PX, PHOTO_BYTES_DEFAULT if real else PHOTO_BYTES)
        serving = real_workers(folder) if real else fake_workers(folder, CALL_S, PICTURE_BYTES, LIMITS)
        with serving as served, console.status(f"{args.clients} clients for {args.seconds:.0f} s, and the rest of it"):
            found = uvloop.run(measure(served, photos, args.clients, args.seconds))
    show(found)
    emit(
        {
            "monitor_p99_ms": percentile_ms(found.monitor.taken_s, 99),
            "unanswered": found.clients["unanswered"],
            "requests": found.clients["requests"],
        }
    )


def percentile_ms(times_s: Sequence[float], percent: float) -> float:
    """Of times in s, in ms; 0 where there are none."""
    return float(np.percentile(times_s, percent)) * 1000 if times_s else 0.0


def show(found: Found) -> None:
    """Print tables for people."""
    rows = [
        [name, str(len(times)), *(f"{percentile_ms(times, percent):.1f}" for percent in (50, 99, 100))]
        for name, times in (
            ("/monitor", found.monitor.taken_s),
            ("/monitor of the edge beside it", found.beside.taken_s),
            ("answered 200", found.clients["good_s"]),
            ("refused", found.clients["refused_s"]),
        )
    ]
    table("How long answers took, ms", ["", "answers", "median", "p99", "longest"], rows)
    rows = [[f"HTTP {status}", str(count)] for status, count in sorted(found.clients["by_status"].items())]
    rows += [[f"no answer: {problem}", str(count)] for problem, count in found.clients["problems"].items()]
    rows += [["/monitor: statuses", " ".join(map(str, sorted(found.monitor.statuses)))]]
    rows += [["edge: highest resident size, MB", f"{found.edge_rss_mb:.0f}"]]
    rows += [["edge: cores", f"{found.edge_cores:.2f}"]]
    table("What became of the requests", ["", ""], rows)


if __name__ == "__main__":
    main()
