"""A million requests through pools on virtual time, with every fault there is, and every rule checked at every event.

    python bench/simulate.py [--requests N] [--first-seed N] [--processes N]

Each schedule is played by the real `edge.pool` with simulated workers, edges and network (`tests/sim`), two thirds of
them with one order of what falls into the same moment, the others with another. `requests` are those submitted,
`answered_by_workers` those of them that got a worker's answer (the others met a full queue, a deadline, or nobody
online: the faults are many), `violations` schedules in which a rule was broken; each is printed with the command that
replays it.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bench.harness import console, emit, table
from tests.sim.clock import Ties
from tests.sim.play import play, replay_command
from tests.sim.rules import INVARIANTS
from tests.sim.schedule import generate

REQUESTS_EACH = 400
"""In one schedule, about."""
TOLD = 10
"""Violations printed in full."""


def one(seed: int) -> tuple[int, int, Counter[str], str]:
    """Play one: requests, those answered by a worker, troubles by kind, and what was broken, with its replay."""
    schedule = generate(seed, requests=REQUESTS_EACH)
    ties = list(Ties)[seed % 3]
    report = play(schedule, ties=ties)
    kinds = Counter(fault.kind for fault in schedule.faults)
    kinds["poison inputs"] = sum(load.poison != "" for load in schedule.loads)
    failure = "" if report.failure is None else f"{report.failure}\n  {replay_command(schedule, ties)}"
    return report.requests, report.answered_ok, kinds, failure


def all_of_them(processes: int, first_seed: int) -> Iterator[tuple[int, int, Counter[str], str]]:
    """Without end."""
    seeds = itertools.count(first_seed)
    if processes == 1:
        yield from map(one, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        while True:
            yield from pool.imap_unordered(one, itertools.islice(seeds, 50 * processes), chunksize=5)


def main() -> int:
    """Exit status 1 when anything was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    requests = answered = schedules = 0
    kinds: Counter[str] = Counter()
    failures: list[str] = []
    begun_s = time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("simulated requests", total=arguments.requests)
        for number, good, faults, failure in all_of_them(arguments.processes, arguments.first_seed):
            requests, answered, schedules = requests + number, answered + good, schedules + 1
            kinds += faults
            if failure:
                failures.append(failure)
                if len(failures) <= TOLD:
                    progress.console.print(failure, markup=False)
            progress.update(bar, completed=requests)
            if requests >= arguments.requests:
                break
    seconds = time.perf_counter() - begun_s
    table("Faults", ["kind", "times"], [[kind, str(times)] for kind, times in kinds.most_common()])
    console.print(f"Checked at every event: {', '.join(INVARIANTS)} (tests/sim/rules.py says what each is).")
    emit(
        {
            "requests": requests,
            "violations": len(failures),
            "schedules": schedules,
            "faults": kinds.total(),
            "answered_by_workers": answered,
            "seconds": seconds,
            "requests_per_s": requests / seconds,
        }
    )
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
