"""Uneven looks, lost looks, and clocks that are set or differ: on virtual time."""

from __future__ import annotations

import pytest

from tests.fakes.vllm_engine import VllmServer
from tests.sim.watched_server import Watched
from tests.worker.health.watched import SETTLED_S, verdicts, watched
from worker.health.verdict import Verdict
from worker.health.watchdog.limits import Limits
from worker.health.watchdog.looks import Answer
from worker.health.watchdog.policy import Decision

DAY_S = 86_400.0


@pytest.mark.parametrize("lost", [Answer.UNREADABLE, Answer.SLOW, Answer.UNREACHABLE])
@pytest.mark.parametrize("every", [2, 8])
def test_looks_that_bring_nothing_do_not_save_a_stuck_server(lost: Answer, every: int) -> None:
    dog = watched()
    dog.look(SETTLED_S)
    dog.server.engines[0].hung = True
    for n in range(1, 61):
        dog.answer = lost if n % every == 0 else None
        dog.look(SETTLED_S + 10.0 * n)
    assert len(dog.server.restarts) == 1
    assert dog.server.restarts[0] - SETTLED_S <= 200.0


def slow_looks(took_s: float, count: int) -> tuple[Watched, list[Decision]]:
    """At a stuck server, which answers after `took_s` to looks meant for every two; the next one begins at once."""
    dog = Watched(watched().server, Limits(interval_s=2.0))
    dog.server.engines[0].hung = True
    dog.took_s = took_s
    return dog, [dog.look(SETTLED_S + took_s * n) for n in range(count)]


def test_a_stuck_server_that_answers_slowly_is_restarted() -> None:
    dog, _decisions = slow_looks(8.0, 30)
    assert len(dog.server.restarts) == 1


def test_a_look_that_took_longer_than_any_may_was_slept_through() -> None:
    dog, decisions = slow_looks(600.0, 30)
    assert verdicts(decisions) == {Verdict.BUSY}
    assert dog.server.restarts == []


@pytest.mark.parametrize("ahead_s", [-DAY_S, -1_000.0, DAY_S])
def test_a_stuck_server_is_restarted_though_clocks_differ(ahead_s: float) -> None:
    """What the age really is nobody can tell; it is held for one start grace at most, not for ever."""
    dog = watched()
    dog.clock_ahead_s = ahead_s
    dog.server.engines[0].hung = True
    dog.run(SETTLED_S, SETTLED_S + 1_200.0)
    (restarted_s,) = dog.server.restarts
    assert restarted_s - SETTLED_S <= 920.0


@pytest.mark.parametrize("ahead_s", [-DAY_S, DAY_S])
def test_a_clock_that_is_set_while_we_look_changes_no_age(ahead_s: float) -> None:
    dog = watched()
    dog.look(SETTLED_S)
    dog.server.engines[0].hung = True
    dog.clock_ahead_s = ahead_s
    dog.run(SETTLED_S + 10.0, SETTLED_S + 300.0)
    (restarted_s,) = dog.server.restarts
    assert restarted_s - SETTLED_S <= 150.0


def test_a_clock_that_is_set_forward_does_not_make_a_server_that_loads_an_old_one() -> None:
    server = VllmServer(at_s=SETTLED_S - 20.0)
    server.submit(1e6)
    server.advance(SETTLED_S - 1.0)
    dog = Watched(server)
    dog.look(SETTLED_S)
    server.engines[0].hung = True
    dog.clock_ahead_s = DAY_S
    dog.run(SETTLED_S + 10.0, SETTLED_S + 870.0)
    assert server.restarts == []


@pytest.mark.parametrize("ahead_s", [-DAY_S, DAY_S])
def test_a_new_process_is_no_older_than_our_last_sight_of_the_one_before(ahead_s: float) -> None:
    """Its supervisor restarted it, and it compiles; by our clock it has run for a day."""
    dog = watched()
    dog.clock_ahead_s = ahead_s
    dog.run(SETTLED_S, SETTLED_S + 100.0)
    dog.server.restart()
    dog.server.restarts.clear()
    dog.server.up_from_s = SETTLED_S + 105.0
    for _ in range(2):
        dog.server.submit(1e6)
    dog.look(SETTLED_S + 110.0)
    dog.server.engines[0].hung = True
    held = dog.run(SETTLED_S + 120.0, SETTLED_S + 980.0)
    assert Verdict.STALLED in verdicts(held)
    assert dog.server.restarts == []
    dog.run(SETTLED_S + 980.0, SETTLED_S + 1_080.0)
    assert len(dog.server.restarts) == 1


def test_a_restart_that_did_not_happen_is_tried_again_after_the_backoff() -> None:
    """The command failed, or was only said: the process is as old as it was."""
    dog = Watched(watched().server, Limits(start_grace_s=1_900.0))
    dog.server.restart = lambda: dog.server.restarts.append(0.0)  # type: ignore[method-assign]
    dog.server.engines[0].hung = True
    decisions = dog.run(SETTLED_S, SETTLED_S + 1_200.0)
    assert len(dog.server.restarts) == 2
    assert any("restarted 1 times already" in decision.hold for decision in decisions)
