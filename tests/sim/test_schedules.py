"""Seeded schedules of loads and troubles: every rule holds at every event, and in the end everything is well."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from tests.sim.clock import Ties
from tests.sim.faults import FAULTS
from tests.sim.play import Report, play, replay_command, shrink
from tests.sim.schedule import Schedule, generate

CHUNK = 25
SEEDS = 150
LONG_SEEDS = 6000
ORDERS = 40
"""Seeds that are played with every order of what falls into one moment."""


def verdict(report: Report, ties: Ties) -> str:
    """What a failing test says."""
    return f"{report.failure}\nreplay: {replay_command(report.schedule, ties)}"


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_rule_holds(first: int) -> None:
    for seed in range(first, first + CHUNK):
        ties = list(Ties)[seed % 3]
        report = play(generate(seed), ties=ties)
        assert report.failure is None, verdict(report, ties)


@pytest.mark.long
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + LONG_SEEDS, 10 * CHUNK))
def test_every_rule_holds_in_thousands(first: int) -> None:
    for seed in range(first, first + 10 * CHUNK):
        ties = list(Ties)[seed % 3]
        report = play(generate(seed, requests=200), ties=ties)
        assert report.failure is None, verdict(report, ties)


@pytest.mark.parametrize("first", range(0, ORDERS, 10))
def test_the_end_is_the_same_whichever_came_first(first: int) -> None:
    """After recovery: state, cause and slot of every worker at every edge, and both queues."""
    for seed in range(first, first + 10):
        reports = {ties: play(generate(seed, requests=60), ties=ties) for ties in Ties}
        for ties, report in reports.items():
            assert report.failure is None, verdict(report, ties)
            assert report.end == reports[Ties.FIRST].end, verdict(report, ties)


def test_a_seed_always_plays_the_same() -> None:
    first, second = play(generate(7)), play(generate(7))
    assert (first.requests, first.answered_ok, first.end) == (second.requests, second.answered_ok, second.end)


def test_schedules_have_every_trouble_and_every_kind_of_client() -> None:
    schedules = [generate(seed) for seed in range(SEEDS)]
    assert {fault.kind for schedule in schedules for fault in schedule.faults} == set(FAULTS)
    loads = [load for schedule in schedules for load in schedule.loads]
    for trait in ("slow", "leaves", "growth", "poison"):
        assert len({bool(getattr(load, trait)) for load in loads}) == 2, trait
    assert {schedule.edges for schedule in schedules} == {1, 2, 3}


def test_most_requests_of_a_quiet_schedule_are_answered_by_workers() -> None:
    quiet = [replace(generate(seed), faults=()) for seed in range(20)]
    reports = [play(schedule) for schedule in quiet]
    assert sum(report.answered_ok for report in reports) > 0.5 * sum(report.requests for report in reports)


def test_a_failing_schedule_shrinks_to_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = generate(3, kinds=("slow", "freeze"))
    assert {fault.kind for fault in schedule.faults} == {"slow", "freeze"}
    monkeypatch.setattr("tests.sim.worker.SimWorker.freeze", lambda _: 1 / 0)
    failure = play(schedule).failure
    assert failure is not None
    assert failure.invariant == "crash"
    assert [fault.kind for fault in shrink(schedule).faults] == ["freeze"]


def test_a_replay_tells_every_event_and_decision() -> None:
    command = replay_command(generate(11, requests=20).without(0))
    assert command.startswith("python -m tests.sim --seed 11 --requests 20")
    done = subprocess.run([sys.executable, *command.split()[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "< Submitted edge-1" in done.stdout
    assert "> Start edge-1" in done.stdout
    assert "nothing is wrong" in done.stdout


def test_a_schedule_without_some_troubles_is_named_by_their_numbers() -> None:
    schedule: Schedule = generate(20, kinds=("slow", "crash"))
    assert schedule.without(1).left_out() == [1]
    assert "--kinds 'slow,crash' --without 1" in replay_command(schedule.without(1))
