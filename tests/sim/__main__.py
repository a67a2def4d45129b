"""Plays schedules: one, told in full, or many.

python -m tests.sim --seed 123 --trace
python -m tests.sim --seeds 0:1000
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields

from edge.pool import events as ev
from tests.sim.clock import Ties
from tests.sim.edge import SimEdge
from tests.sim.play import Report, play, replay_command, shrink
from tests.sim.rules import INVARIANTS
from tests.sim.schedule import REQUESTS, Schedule, generate


def main() -> int:
    """Exit status 1 when an invariant is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="play this one")
    parser.add_argument("--seeds", default="0:200", metavar="FROM:TO", help="play these (default %(default)s)")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="in each, about (default %(default)s)")
    parser.add_argument("--kinds", default="", help="only these troubles, separated by commas")
    parser.add_argument("--ties", type=Ties, choices=list(Ties), default=Ties.FIRST, help="what comes first")
    parser.add_argument("--without", default="", help="numbers of troubles to leave out, separated by commas")
    parser.add_argument("--trace", action="store_true", help="tell every event and every decision")
    parser.add_argument("--shrink", action="store_true", help="leave out troubles as long as it still fails")
    arguments = parser.parse_args()
    kinds = tuple(kind for kind in arguments.kinds.split(",") if kind)
    first, _, end = arguments.seeds.partition(":")
    seeds = range(int(first), int(end)) if arguments.seed is None else [arguments.seed]
    failed = 0
    for seed in seeds:
        schedule = generate(seed, requests=arguments.requests, kinds=kinds)
        schedule = schedule.without(*(int(number) for number in arguments.without.split(",") if number))
        if arguments.seed is not None:
            describe(schedule)
        report = told(schedule, arguments.ties) if arguments.trace else play(schedule, ties=arguments.ties)
        if report.failure is not None:
            failed += 1
            smallest = shrink(schedule, arguments.ties) if arguments.shrink else schedule
            says = INVARIANTS.get(report.failure.invariant, "the pool never raises")
            print(f"seed {seed}: {report.failure}\n  rule: {says}\n  {replay_command(smallest, arguments.ties)}")
        elif arguments.seed is not None:
            print(f"{report.requests} requests, {report.answered_ok} answered by workers; nothing is wrong")
    print(f"{failed} of {len(seeds)} schedules broke a rule")
    return int(failed > 0)


def describe(schedule: Schedule) -> None:
    """Everything that will happen."""
    print(f"{schedule.config}")
    print(
        f"{schedule.edges} edges, calls {schedule.call_s} s, slow {schedule.slow_call_s} s, {schedule.latency_s} s away"
    )
    for load in schedule.loads:
        print(f"  {load}")
    for number, fault in enumerate(schedule.faults):
        print(f"  {number}: {fault}")


def told(schedule: Schedule, ties: Ties) -> Report:
    """Played, with one line for each event and each decision."""

    def tell(edge: SimEdge, what: ev.Event | ev.Decision) -> None:
        values = ((each.name, getattr(what, each.name)) for each in fields(what) if each.name != "now_s")
        said = " ".join(str(value) if name == "call_id" else f"{name}={value}" for name, value in values if value)
        arrow = "<" if hasattr(what, "now_s") else "  >"
        print(f"{edge.clock.now_s:11.6f} {edge.edge_id:6} {arrow} {type(what).__name__} {said}")

    return play(schedule, ties=ties, trace=tell, note=lambda at_s, text: print(f"{at_s:11.6f} ---- {text}"))


if __name__ == "__main__":
    sys.exit(main())
