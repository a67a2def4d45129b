"""What the pool costs with 1,000 workers, and whether 10,000 requests leave anything behind.

    python bench/pool_scale.py [--seconds N] [--requests N] [--quick]

`pick_p99_us`: the pure pool alone, every event timed by itself: `Submitted` until it says where the call starts,
`CallEnded` until the slot is given back, and `CallEnded` while 50 calls wait, which gives it to the next; with half of
the endpoints busy, the slowest of the three at 1,000 endpoints. Tables for 3, 100 and 1,000; medians over rounds.

`probe_core_fraction`: processor time over wall time of a real edge process that looks after 1,000 workers with the
default intervals and gets no requests. Counted with it: a `Check` for each worker every 8 s (± 10 %); one open
`Watch` and one open `WatchStatus` stream for each, both silent, as those of idle workers are; HTTP/2 pings on each
connection every 5 s (`hairmesh.wire`); and what an idle edge does anyway. How many RPCs were answered is counted on the
other side. The workers are many ports of a few processes.

`fd_growth`, `rss_growth_mb`: 10,000 calls through an edge and three real worker processes (which compute nothing); the
largest growth of any of these processes between the first fifth and the end (MB of 10^6 bytes, median of a fifth).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import psutil
from rich.progress import Progress, TaskID, TextColumn, TimeElapsedColumn

from bench.edge_overhead import ROUTE, HttpPeer, multipart
from bench.harness import console, emit, table
from edge.pool import events as ev
from edge.pool.config import DispatchConfig, PoolConfig
from edge.pool.manager import Pool
from hairmesh.stack import LOOPBACK, free_ports
from tests.e2e.breakable_worker import photo
from tests.e2e.service import Process, Record, Service, Worker

ENDPOINTS = (3, 100, 1_000)
EVENTS = 5_000
"""Of each kind, for each number of endpoints and round."""
ROUNDS = 5
EVENT_STEP_S = 0.001
"""How much later each event comes than the one before, on the pool's virtual clock."""
WAITING = 50
PORTS_PER_PROCESS = 250
SETTLE_S = 12.0
"""More than one probe period: the herd of the start is over."""
CLIENTS = 4
SAMPLES = 100
MB = 1e6


class Drive:
    """A pool on virtual time whose probes always pass; `timed` lists are in µs."""

    def __init__(self, endpoints: int) -> None:
        config = PoolConfig(
            workers=tuple(f"10.0.{n // 250}.{n % 250 + 1}:28187" for n in range(endpoints)),
            dispatch=DispatchConfig(max_in_flight=2 * endpoints + WAITING),
        )
        self._pool = Pool(config, seed=1, edge_id="bench")
        self._wake_s = 0.0
        self._probes: list[str] = []
        self._calls = 0
        self.now_s = 0.0
        self.running: list[str] = []
        self._take(self._pool.handle(ev.Started(0.0)))
        while self._pool.snapshot(self.now_s).inside == 0 and len(self.online()) < endpoints:
            self._catch_up()
        self._take(self._pool.handle(ev.StartupOver(self.now_s)))

    def online(self) -> list[str]:
        """Targets that get calls."""
        return [endpoint.target for endpoint in self._pool.endpoints() if endpoint.online]

    def submit(self) -> float:
        """One more call; how long the pool took to decide, in µs."""
        self._catch_up()
        self._calls += 1
        return self._timed(ev.Submitted(self.now_s, f"bench-{self._calls}"))

    def end_one(self, chance: random.Random) -> float:
        """A running call ends; how long the pool took, in µs."""
        self._catch_up()
        call_id = self.running.pop(chance.randrange(len(self.running)))
        return self._timed(ev.CallEnded(self.now_s, call_id))

    def _catch_up(self) -> None:
        """What a shell does between two calls: alarms that ring, probes that end. Not timed."""
        self.now_s += EVENT_STEP_S
        if self._wake_s <= self.now_s:
            self._take(self._pool.handle(ev.Tick(self.now_s)))
        probes, self._probes = self._probes, []
        for target in probes:
            self._take(self._pool.handle(ev.ProbeEnded(self.now_s, target, ev.ProbeResult.GOOD, "SERVING")))

    def _timed(self, event: ev.Event) -> float:
        begun_ns = time.perf_counter_ns()
        decisions = self._pool.handle(event)
        taken_us = (time.perf_counter_ns() - begun_ns) / 1000
        self._take(decisions)
        return taken_us

    def _take(self, decisions: Sequence[ev.Decision]) -> None:
        for decision in decisions:
            match decision:
                case ev.Wake(at_s):
                    self._wake_s = at_s
                case ev.Probe(endpoint):
                    self._probes.append(endpoint)
                case ev.Start(call_id):
                    self.running.append(call_id)


def pick_times_us(endpoints: int, events: int) -> dict[str, list[float]]:
    """How long each of the three decisions took, every time."""
    drive, chance = Drive(endpoints), random.Random(2)
    for _ in range(endpoints // 2):
        drive.submit()
    times: dict[str, list[float]] = {"submitted": [], "ended": [], "ended, others wait": []}
    for _ in range(events):
        times["submitted"].append(drive.submit())
        times["ended"].append(drive.end_one(chance))
    while len(drive.running) < endpoints:
        drive.submit()
    for _ in range(WAITING):
        drive.submit()
    for _ in range(events):
        times["ended, others wait"].append(drive.end_one(chance))
        drive.submit()
    return times


def pick_percentiles_us(rounds: int) -> dict[tuple[int, str], tuple[float, float]]:
    """Median and p99 of each decision by number of endpoints; medians over rounds, each of which takes every number."""
    seen: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    for _ in range(rounds):
        for endpoints in ENDPOINTS:
            for name, times in pick_times_us(endpoints, EVENTS).items():
                seen[endpoints, name].append((float(np.percentile(times, 50)), float(np.percentile(times, 99))))
    return {
        row: (statistics.median(p50 for p50, _ in values), statistics.median(p99 for _, p99 in values))
        for row, values in seen.items()
    }


async def core_fraction(seconds: float, folder: Path, say: Progress, task: TaskID) -> tuple[float, Record, float]:
    """Processor time over wall time, RPCs answered meanwhile, and the edge's resident size in MB."""
    service = Service(folder)
    edge_port = int(service.url.rpartition(":")[2])
    ports = [port for port in free_ports(ENDPOINTS[-1] + 1) if port != edge_port][: ENDPOINTS[-1]]
    hosts = [
        Process(
            f"workers{number}",
            [sys.executable, "-m", "bench.many_workers", *map(str, ports[number : number + PORTS_PER_PROCESS])],
            {"FAKE_WORKER_PASSWORD": service.token},
        )
        for number in range(0, len(ports), PORTS_PER_PROCESS)
    ]
    service.workers = [Worker("", f"{LOOPBACK}:{port}", ()) for port in ports]
    try:
        for host in hosts:
            await host.start()
            await host.event("listening")
        await service.start_edge()
        await asyncio.sleep(SETTLE_S)
        edge = psutil.Process(service.edge.running.pid)
        before, cpu_s, begun_s = await asked(hosts), processor_s(edge), time.perf_counter()
        for second in range(round(seconds)):
            say.update(task, description=f"an edge looks after {len(ports):,} workers: {second} of {seconds:.0f} s")
            await asyncio.sleep(1)
        fraction = (processor_s(edge) - cpu_s) / (time.perf_counter() - begun_s)
        after = await asked(hosts)
        return fraction, {name: after[name] - before.get(name, 0) for name in after}, edge.memory_info().rss / MB
    finally:
        await service.stop()
        for host in hosts:
            await host.end()


async def asked(hosts: Sequence[Process]) -> Record:
    """What all the workers together have answered so far."""
    total: Record = {}
    for host in hosts:
        host.send(signal.SIGUSR1)
        for name, count in (await host.event("asked")).items():
            if name != "event":
                total[name] = total.get(name, 0) + count
    return total


def processor_s(process: psutil.Process) -> float:
    """User and system time so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


class Sizes:
    """Descriptors and resident size of some processes, as often as asked."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}
        self.descriptors: dict[str, list[int]] = {name: [] for name in pids}
        self.resident_mb: dict[str, list[float]] = {name: [] for name in pids}

    def look(self) -> None:
        """Once more."""
        for name, process in self._processes.items():
            self.descriptors[name].append(process.num_fds())
            self.resident_mb[name].append(process.memory_info().rss / MB)


def growth(series: Sequence[float]) -> float:
    """The median of the last fifth less that of the first."""
    fifth = max(1, len(series) // 5)
    return statistics.median(series[-fifth:]) - statistics.median(series[:fifth])


def send(url: str, count: int, look_every: int, sizes: Sizes, note: threading.Lock) -> None:
    """`count` calls from one client, all of which must succeed."""
    client = HttpPeer(int(url.rpartition(":")[2]), ROUTE, *multipart(photo()))
    for number in range(count):
        client.call()
        if number % look_every == 0:
            with note:
                sizes.look()


async def soak(requests: int, folder: Path) -> Sizes:
    """All those calls through an edge and three workers; what they left behind."""
    service = Service(folder)
    for _ in range(3):
        service.add_worker()
    try:
        await service.start()
        pids = {process.name: process.running.pid for process in (service.edge, *service.workers)}
        warm, sizes, note = Sizes(pids), Sizes(pids), threading.Lock()
        await asyncio.to_thread(send, service.url, max(100, requests // 50), 1000, warm, note)
        per_client = requests // CLIENTS
        look_every = max(1, requests // SAMPLES)
        await asyncio.gather(
            *(asyncio.to_thread(send, service.url, per_client, look_every, sizes, note) for _ in range(CLIENTS))
        )
    finally:
        await service.stop()
    return sizes


async def measure(
    seconds: float, requests: int, folder: Path, say: Progress
) -> tuple[tuple[float, Record, float], Sizes]:
    """What needs processes."""
    task = say.add_task("starting 1,000 workers", total=None)
    watched = await core_fraction(seconds, folder / "many", say, task)
    say.update(task, description=f"{requests:,} requests")
    return watched, await soak(requests, folder / "soak")


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the idle edge is looked at")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true", help="15 s, 1,000 requests")
    args = parser.parse_args()
    seconds, requests = (15.0, 1_000) if args.quick else (args.seconds, args.requests)
    picks = pick_percentiles_us(1 if args.quick else ROUNDS)
    rows = [[f"{count:,} endpoints: {name}", f"{p50:.1f}", f"{p99:.1f}"] for (count, name), (p50, p99) in picks.items()]
    table("The pool decides, µs", ["event", "median", "p99"], rows)
    columns = (TextColumn("{task.description}"), TimeElapsedColumn())
    with tempfile.TemporaryDirectory() as name, Progress(*columns, console=console, transient=True) as say:
        (fraction, answered, resident_mb), sizes = asyncio.run(measure(seconds, requests, Path(name), say))
    rows = [[name, f"{count / seconds:.1f}"] for name, count in answered.items()]
    rows += [["share of a core", f"{fraction:.3f}"], ["resident, MB", f"{resident_mb:.0f}"]]
    table(f"An edge that looks after {ENDPOINTS[-1]:,} workers", ["per second", ""], rows)
    fd = {name: growth([float(count) for count in series]) for name, series in sizes.descriptors.items()}
    rss = {name: growth(series) for name, series in sizes.resident_mb.items()}
    rows = [[name, f"{fd[name]:+.0f}", f"{rss[name]:+.1f}"] for name in fd]
    table(f"{requests:,} requests: growth", ["process", "descriptors", "MB"], rows)
    emit(
        {
            "pick_p99_us": max(p99 for (count, _), (_, p99) in picks.items() if count == ENDPOINTS[-1]),
            "probe_core_fraction": fraction,
            "fd_growth": max(fd.values()),
            "rss_growth_mb": max(rss.values()),
        }
    )


if __name__ == "__main__":
    main()
