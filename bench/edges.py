"""Do several edges over the same workers get as much out of them as one edge does, and does none take a taken slot?

    python bench/edges.py [--rounds N] [--seconds N] [--quick]

Six worker processes, real but for their models (a call waits for 0.1 s), and three edges that know nothing of each
other. The same closed-loop clients, each of which sends its next photo when the last one was answered, call either one
edge or all three in equal shares; in every round one after the other, in turns of who is first. `busy` has four clients
for each worker, so that every edge has a queue; `even` as many clients as workers, so that no edge has one for long and
each free worker is wanted by whoever looks next; `uneven` has the clients of `busy`, half of them at one edge.

`throughput_ratio`: answers per second by three edges over those by one, medians of the rounds' ratios; the worst of the
loads. `double_booked`: calls that a worker computed while it computed another one, by its own clock. `failed`: answers
other than a result. `refused_busy_share`: attempts that came upon a slot which another edge had just taken, per answer
of three edges; each costs a round trip and no place in the queue; the worst of the loads. `edge_call_ms`: processor
time of one edge for one call with a photo of 1.5 MB and a picture of 4 MB, as a portrait of 2048 px has it.

Exit status 1 where the ratio is below 0.95, or anything was double-booked or failed.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from bench.harness import console, emit, table
from bench.overload_clients import crowd
from tests.e2e.breakable_worker import photo
from tests.e2e.service import Record, Service

EDGES, WORKERS = 3, 6
RATIO_MIN = 0.95
"""What several edges may cost, at most: a twentieth of one edge's throughput."""
CALL_S = 0.1
WARM_S = 1.0
LOADS: Mapping[str, tuple[int, ...]] = {"busy": (8, 8, 8), "even": (2, 2, 2), "uneven": (12, 6, 6)}
"""Clients of each edge; all of them are those of the one edge it is compared with."""
PHOTO_BYTES, PICTURE_BYTES = 1_500_000, 4_000_000
LARGE_CLIENTS = 4
SMALL = photo(seconds=CALL_S)
LARGE = photo(seconds=CALL_S, png_bytes=PICTURE_BYTES).ljust(PHOTO_BYTES)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one run under one load came to."""

    answers_per_s: float
    answers: int
    failed: int
    refused_busy: int
    """Attempts that a worker refused because its slot was taken."""


def overlaps(records: Sequence[Record]) -> int:
    """Calls that a worker began to compute before the one before had ended, by its log."""
    computed = sorted((record["began_s"], record["ended_s"]) for record in records if record.get("event") == "computed")
    return sum(after[0] < before[1] for before, after in pairwise(computed))


def refusals(records: Sequence[Record]) -> int:
    """Calls that a worker refused as busy, by its log."""
    return sum(record.get("event") == "call" and record.get("reason") == "BUSY" for record in records)


async def run(edges: Sequence[Service], clients: Sequence[int], seconds: float, image: bytes = SMALL) -> Seen:
    """So many clients at each of these edges for so long."""
    workers = edges[0].workers
    known = [len(worker.records) for worker in workers]
    begun_s = time.perf_counter()
    tallies = await asyncio.gather(
        *(
            crowd(int(edge.url.rpartition(":")[2]), count, seconds, [image])
            for edge, count in zip(edges, clients, strict=True)
        )
    )
    taken_s = time.perf_counter() - begun_s
    answers = sum(tally.by_status[200] for tally in tallies)
    return Seen(
        answers_per_s=answers / taken_s,
        answers=answers,
        failed=sum(tally.requests for tally in tallies) - answers,
        refused_busy=sum(refusals(worker.records[start:]) for worker, start in zip(workers, known, strict=True)),
    )


async def edge_call_ms(edge: Service, seconds: float) -> float:
    """Processor time of this edge for a call with pictures as large as real ones."""
    process = psutil.Process(edge.edge.running.pid)
    await run([edge], [LARGE_CLIENTS], WARM_S, LARGE)
    before_s = sum(process.cpu_times()[:2])
    seen = await run([edge], [LARGE_CLIENTS], seconds, LARGE)
    return (sum(process.cpu_times()[:2]) - before_s) * 1000 / seen.answers


async def start(stack: AsyncExitStack, folder: Path) -> list[Service]:
    """The edges, the first of which owns the workers."""
    first = Service(folder / "edge1")
    for _ in range(WORKERS):
        first.add_worker()
    stack.push_async_callback(first.stop)
    await first.start()
    edges = [first]
    for number in range(2, EDGES + 1):
        other = Service(folder / f"edge{number}")
        other.workers, other.token = first.workers, first.token
        stack.push_async_callback(other.stop)
        await other.start_edge()
        edges.append(other)
    return edges


async def measure(
    rounds: int, seconds: float, folder: Path, progress: Progress
) -> tuple[dict[str, list[tuple[Seen, Seen]]], int, float]:
    """By load: one edge and three of every round; calls that were computed beside another; `edge_call_ms`."""
    seen: dict[str, list[tuple[Seen, Seen]]] = defaultdict(list)
    task = progress.add_task("starting", total=None)
    async with AsyncExitStack() as stack:
        edges = await start(stack, folder)
        await run(edges, LOADS["even"], WARM_S)
        for number in range(rounds):
            for name, clients in LOADS.items():
                pair: dict[bool, Seen] = {}
                for several in (False, True) if number % 2 == 0 else (True, False):
                    progress.update(task, description=f"{name}, {EDGES if several else 1} of the edges")
                    pair[several] = await (
                        run(edges, clients, seconds) if several else run(edges[:1], [sum(clients)], seconds)
                    )
                seen[name].append((pair[False], pair[True]))
        progress.update(task, description="what a call costs an edge")
        call_ms = await edge_call_ms(edges[0], seconds)
        return seen, sum(overlaps(worker.records) for worker in edges[0].workers), call_ms


def ratio(pairs: Sequence[tuple[Seen, Seen]]) -> float:
    """Three edges over one."""
    return statistics.median(three.answers_per_s / one.answers_per_s for one, three in pairs)


def busy_share(pairs: Sequence[tuple[Seen, Seen]]) -> float:
    """Refused attempts per answer of three edges."""
    return sum(three.refused_busy for _one, three in pairs) / sum(three.answers for _one, three in pairs)


def falls_short(figures: Mapping[str, float]) -> list[str]:
    """The figures that are not what they have to be."""
    wrong = ["throughput_ratio"] if figures["throughput_ratio"] < RATIO_MIN else []
    return wrong + [name for name in ("double_booked", "failed") if figures[name]]


def main() -> None:
    """Measure, print; exit status 1 where that falls short."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0, help="each run")
    parser.add_argument("--quick", action="store_true", help="one round, 3 s each")
    args = parser.parse_args()
    rounds, seconds = (1, 3.0) if args.quick else (args.rounds, args.seconds)
    columns = (TextColumn("{task.description}"), TimeElapsedColumn())
    with tempfile.TemporaryDirectory() as name, Progress(*columns, console=console, transient=True) as progress:
        seen, double_booked, call_ms = asyncio.run(measure(rounds, seconds, Path(name), progress))
    rows = [
        [
            f"{name}: {'+'.join(map(str, LOADS[name]))} clients",
            *(f"{statistics.median(pair[which].answers_per_s for pair in pairs):.1f}" for which in (0, 1)),
            f"{ratio(pairs):.3f}",
            f"{busy_share(pairs):.3f}",
        ]
        for name, pairs in seen.items()
    ]
    headings = ["load", "one edge", f"{EDGES} edges", "ratio", "refused as busy, per answer"]
    bound = f"answers per second (no dispatch can make more than {WORKERS / CALL_S:.0f})"
    table(f"{WORKERS} workers, {CALL_S} s a call: {bound}", headings, rows)
    figures: dict[str, float] = {
        "throughput_ratio": min(map(ratio, seen.values())),
        "double_booked": double_booked,
        "failed": sum(run.failed for pairs in seen.values() for pair in pairs for run in pair),
        "refused_busy_share": max(map(busy_share, seen.values())),
        "edge_call_ms": call_ms,
    }
    emit(figures)
    if wrong := falls_short(figures):
        sys.exit(f"edges: not what it has to be: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
