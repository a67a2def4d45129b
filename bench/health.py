"""Does health answer while the slot works, how soon is trouble noticed, what does a death cost, when is a slot back?

    python bench/health.py [--rounds N] [--quick]

`check_busy_p99_ms`: health `Check` with the password, every 10 ms, straight to a real worker whose slot works without a
break: the worst of torch forwards, pure Python, HEIC of 12 MP and JPEG of 40 MP (the last two through the whole real
pipeline; left out without the models). The p99 of each round; the median over the rounds counts.

From cause to no traffic, by the edge's own log line about the flag by which calls are dispatched: `notice_said_s` from
SIGTERM to a worker, which then says that it drains, or from a disk that fills (the slower; the disk is left out where
mounting is refused); `notice_killed_s` from SIGKILL, `notice_frozen_s` from SIGSTOP, each on an idle service and under
load (the slower). Medians over the rounds.

`failed_when_killed`: answers other than a result while one of three workers is killed under the load of six clients;
the sum over the rounds. `slot_reuse_ms`: from the end of a cancelled call's thread to the start of the next call in
that slot, by the worker's own clock, while somebody waits: one after the other, and in a storm (100 clients cancel at
once, three edges, three workers); the worst of each round, of which the median counts.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from bench.busy_checks import add_burners, add_real, check_times_ms
from bench.harness import console, emit, table
from tests.e2e.breakable_worker import photo
from tests.e2e.service import Load, Record, Service, Worker, said_at_s
from tests.e2e.small_disk import MountRefusedError, SmallDisk, small_disk
from vision import models
from vision.errors import ModelError

CHECKS = 300
"""For each load and round."""
CLIENTS = 6
DISK_BYTES = 64 << 20
CANCELS = 10
"""For each round, one after the other."""
STORM_EDGES, STORM_IMPATIENT, STORM_PATIENT = 3, 100, 24
QUEUED_S = 0.3
"""After which a call that was sent has its place in the edge's queue."""
POOL: dict[str, Any] = {"health_check": {"cooldown_seconds": 1, "cooldown_max_seconds": 1}}
"""The defaults, but a worker that failed is soon back for the next round."""
CAUSES = {"said": signal.SIGTERM, "killed": signal.SIGKILL, "frozen": signal.SIGSTOP}


class Bench:
    """What was measured so far, by row, and the progress on the terminal."""

    def __init__(self, rounds: int, progress: Progress) -> None:
        self.rounds = rounds
        self.seen: dict[str, list[float]] = defaultdict(list)
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def say(self, doing: str) -> None:
        """What is being done now."""
        self._progress.update(self._task, description=doing)

    def worst_median(self, beginning: str) -> float | None:
        """The largest median of the rows whose name begins so; None where there is none."""
        medians = [statistics.median(values) for name, values in self.seen.items() if name.startswith(beginning)]
        return max(medians, default=None)


async def measure_checks(bench: Bench, folder: Path) -> None:
    """Rows `check, <load>`: p99 of a round, in ms."""
    service = Service(folder)
    count = CHECKS // 3 if bench.rounds == 1 else CHECKS
    busy = add_burners(service)
    try:
        models.locate(models.default_cache_dir())
        busy |= add_real(service)
    except ModelError as error:
        console.print(f"HEIC and 40 MP are left out: {error}")
    try:
        await service.start(**POOL)  # the edge says when every worker is warm
        for _ in range(bench.rounds):
            for name, (worker, image) in busy.items():
                bench.say(f"health checks while the slot works: {name}")
                taken_ms = await asyncio.to_thread(check_times_ms, worker, service.token, image, count)
                bench.seen[f"check, {name}"].append(float(np.percentile(taken_ms, 99)))
    finally:
        await service.stop()


async def noticed_s(service: Service, worker: Worker, cause: Callable[[], None]) -> float:
    """Seconds from `cause` to the edge's word that this worker gets no more calls."""
    service.edge.forget()
    begun_s = time.time()
    cause()
    record = await service.edge.event("worker_state", **{"worker": worker.address, "from": "SERVING"})
    return said_at_s(record) - begun_s


async def measure_notice(bench: Bench, service: Service, disk: SmallDisk | None) -> None:
    """Rows `noticed, …` in s, and `failed when …`. The last worker is the one that watches `disk`."""
    victim, *_, watcher = service.workers
    online = len(service.workers)

    async def suffer(name: str, how: str) -> None:
        cause = CAUSES[name]
        bench.seen[f"noticed, {name}, {how}"].append(await noticed_s(service, victim, lambda: victim.send(cause)))

    async def come_back() -> None:
        await victim.end()
        await victim.start()
        await service.edge.event("worker_state", worker=victim.address, to="SERVING")

    for _ in range(bench.rounds):
        if disk is not None:
            bench.say("a disk fills up")
            bench.seen["noticed, said, disk full"].append(await noticed_s(service, watcher, disk.fill))
            disk.free()
        for name, number in CAUSES.items():
            bench.say(f"{number.name}, idle")
            await suffer(name, "idle")
            await come_back()
        await service.until_online(online)  # the one with the disk has been calm for long enough
        for name, number in CAUSES.items():
            bench.say(f"{number.name}, under load")
            async with Load(service, clients=CLIENTS, image=photo(seconds=0.1)) as load:
                await load.more(CLIENTS)
                await suffer(name, "under load")
                await load.more(2 * CLIENTS)
            bench.seen[f"failed when {name}"].append(len(load.failed))
            await come_back()


def reuse_ms(records: Sequence[Record]) -> list[float]:
    """From the end of each cancelled call's thread to the start of the next call, in one worker's log; in ms."""
    calls = [record for record in records if record.get("event") == "computed"]
    return [(after["began_s"] - before["ended_s"]) * 1000 for before, after in pairwise(calls) if before["cancelled"]]


async def cancelled(calls: Sequence[asyncio.Task[Any]], patient: Sequence[Coroutine[Any, Any, Any]]) -> None:
    """All `calls` leave at the same moment while `patient` ones wait; until those are answered."""
    waiting = [asyncio.create_task(call) for call in patient]
    await asyncio.sleep(QUEUED_S)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await asyncio.gather(*waiting)


async def measure_slots(bench: Bench, edges: Sequence[Service]) -> None:
    """Rows `slot used again, …`: the worst of all slots at one cancellation, in ms."""
    workers = edges[0].workers
    long, short = photo(seconds=30), photo(seconds=0.02)

    async def cancel_at_once(row: str, among: Sequence[Service], impatient: int, patient: int) -> None:
        known = {worker.name: len(worker.records) for worker in workers}
        for worker in workers:
            worker.forget()
        calls = [asyncio.create_task(among[n % len(among)].measure(long)) for n in range(impatient)]
        await asyncio.gather(*(worker.event("computing") for worker in workers))
        await cancelled(calls, [among[n % len(among)].measure(short) for n in range(patient)])
        gaps = [gap for worker in workers for gap in reuse_ms(worker.records[known[worker.name] :])]
        bench.seen[row].append(max(gaps))

    for _ in range(bench.rounds):
        bench.say("calls are cancelled while others wait")
        for _ in range(CANCELS):
            await cancel_at_once("slot used again, one edge", edges[:1], len(workers), len(workers))
        bench.say(f"{STORM_IMPATIENT} clients cancel at once")
        await cancel_at_once(f"slot used again, {len(edges)} edges", edges, STORM_IMPATIENT, STORM_PATIENT)


async def measure_pool(bench: Bench, folder: Path) -> None:
    """Everything that needs an edge: three workers, the last on a disk of its own where that can be mounted."""
    async with AsyncExitStack() as stack:
        service = Service(folder / "edge1")
        for _ in range(2):
            service.add_worker()
        disk = None
        try:
            disk = stack.enter_context(small_disk(folder / "disk", DISK_BYTES))
            watched = {"min_free_gb": 0.02, "resume_free_gb": 0.03, "disk_paths": [str(disk.path)]}
            service.add_worker(config={"health": watched})
        except MountRefusedError as refused:
            console.print(f"the full disk is left out: mounting a tmpfs is refused here: {refused}")
            service.add_worker()
        stack.push_async_callback(service.stop)
        bench.say("starting the service")
        await service.start(**POOL)
        await measure_notice(bench, service, disk)
        edges = [service]
        for number in range(2, STORM_EDGES + 1):
            other = Service(folder / f"edge{number}")
            other.workers, other.token = service.workers, service.token
            stack.push_async_callback(other.stop)
            await other.start_edge(**POOL)
            edges.append(other)
        await measure_slots(bench, edges)


def show(seen: Mapping[str, Sequence[float]]) -> None:
    """All rows, for people."""
    rows = [
        [name, f"{statistics.median(values):.3g}", f"{min(values):.3g}", f"{max(values):.3g}", str(len(values))]
        for name, values in seen.items()
    ]
    table("check: p99 in ms; noticed: s; failed: answers; slot: ms", ["what", "median", "least", "most", "of"], rows)


async def measure(rounds: int, folder: Path, progress: Progress) -> Bench:
    """All of it."""
    bench = Bench(rounds, progress)
    await measure_checks(bench, folder / "checks")
    await measure_pool(bench, folder)
    return bench


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, fewer checks")
    args = parser.parse_args()
    columns = (TextColumn("{task.description}"), TimeElapsedColumn())
    with tempfile.TemporaryDirectory() as name, Progress(*columns, console=console, transient=True) as progress:
        bench = asyncio.run(measure(1 if args.quick else args.rounds, Path(name), progress))
    show(bench.seen)
    emit(
        {
            "check_busy_p99_ms": bench.worst_median("check, "),
            "notice_said_s": bench.worst_median("noticed, said"),
            "notice_killed_s": bench.worst_median("noticed, killed"),
            "notice_frozen_s": bench.worst_median("noticed, frozen"),
            "failed_when_killed": sum(bench.seen["failed when killed"]),
            "slot_reuse_ms": bench.worst_median("slot used again"),
        }
    )


if __name__ == "__main__":
    main()
