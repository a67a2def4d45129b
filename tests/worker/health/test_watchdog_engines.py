"""Several engines behind one address: what a canary says of one of them, on virtual time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.vllm_engine import VllmServer
from tests.sim.watched_server import Watched
from tests.worker.health.watched import SETTLED_S, actions, verdicts
from worker.health.verdict import Verdict
from worker.health.watchdog.policy import Action, Decision
from worker.health.watchdog.server import Outcome

MASS_S = 106
"""Requests that were aborted all at once, and still show."""


def served(*, heeds_ranks: bool) -> Watched:
    """Two engines of which the balancer avoids the first, since it shows so much work; the other answers everything."""
    server = VllmServer(engines=2, slots=200, heeds_ranks=heeds_ranks)
    server.engines[1].queue.clear()
    server.advance(SETTLED_S - 1.0)
    server.engines[0].steps = 1_000.0
    server.engines[0].shown_running = MASS_S
    return Watched(server)


def run(
    dog: Watched, to_s: float, each: Callable[[VllmServer], object] = lambda server: server.submit(3.0)
) -> list[Decision]:
    """Look every ten seconds while clients come."""
    decisions = []
    for n in range(int(to_s / 10.0)):
        each(dog.server)
        decisions.append(dog.look(SETTLED_S + 10.0 * n))
    return decisions


def test_b81_a_stale_engine_that_the_balancer_avoids_is_never_restarted_and_named() -> None:
    """All canaries pass, in the other engine."""
    dog = served(heeds_ranks=False)
    decisions = run(dog, 7_200.0)
    assert dog.server.restarts == []
    assert verdicts(decisions) <= {Verdict.BUSY, Verdict.UNKNOWN}
    finding = decisions[-1].finding
    assert (finding.verdict, finding.outcome) == (Verdict.UNKNOWN, Outcome.DEGRADED)
    assert "engine 0 still for" in finding.why
    assert "canary answered, perhaps by another engine" in finding.why
    assert "engine 1" not in finding.why


def test_b81_a_stale_engine_that_can_be_asked_by_name_shows_its_step() -> None:
    dog = served(heeds_ranks=True)
    decisions = run(dog, 7_200.0)
    assert dog.server.restarts == []
    assert verdicts(decisions) <= {Verdict.BUSY, Verdict.IDLE}
    assert len(dog.canaries) == 1
    assert decisions[-1].finding.outcome is Outcome.WELL


def test_a_canary_that_waits_behind_another_engines_work_proves_nothing() -> None:
    """The healthy engine is full and its queue long; nothing tells in which of the two the canary waits."""
    dog = served(heeds_ranks=False)
    dog.server.engines[1].slots = 1
    for _ in range(MASS_S // 2):
        dog.server.submit(1e6)
    decisions = run(dog, 7_200.0, lambda _server: None)
    assert dog.server.restarts == []
    assert decisions[-1].finding.verdict is Verdict.UNKNOWN
    assert "engine 0 still for" in decisions[-1].finding.why


@pytest.mark.parametrize("full", [False, True])
def test_b83_a_stuck_engine_is_asked_by_name_though_the_balancer_avoids_it(*, full: bool) -> None:
    """Whether the other one is idle enough to answer, or so full that its own canary would wait."""
    dog = served(heeds_ranks=True)
    dog.server.engines[0].hung = True
    if full:
        dog.server.engines[1].slots = 1
        for _ in range(MASS_S // 2):
            dog.server.submit(1e6)
    decisions = run(dog, 300.0, lambda server: None if full else server.submit(3.0))
    (restarted_s,) = dog.server.restarts
    assert 120.0 <= restarted_s - SETTLED_S <= 150.0
    (proof,) = [decision for decision in decisions if decision.action is Action.RESTART]
    assert "engine 0 still for" in proof.finding.why
    assert "canary unanswered for" in proof.finding.why


def test_b83_a_stuck_engine_to_which_no_canary_comes_is_named_and_left_alone() -> None:
    dog = served(heeds_ranks=False)
    dog.server.engines[0].hung = True
    decisions = run(dog, 3_600.0)
    assert dog.server.restarts == []
    assert decisions[-1].finding.outcome is Outcome.DEGRADED
    assert "engine 0 still for" in decisions[-1].finding.why


@pytest.mark.parametrize("heeds_ranks", [False, True])
def test_when_all_engines_are_still_a_silent_canary_is_in_one_of_them(*, heeds_ranks: bool) -> None:
    server = VllmServer(engines=2, heeds_ranks=heeds_ranks)
    for _ in range(4):
        server.submit(1e6)
    server.advance(SETTLED_S - 1.0)
    for engine in server.engines:
        engine.hung = True
    dog = Watched(server)
    dog.run(SETTLED_S, SETTLED_S + 300.0)
    assert len(server.restarts) == 1


def test_an_engine_that_hangs_while_idle_is_found_beside_one_that_answers() -> None:
    server = VllmServer(engines=2, at_s=-SETTLED_S)
    dog = Watched(server, begun_s=-SETTLED_S)
    dog.run(0.0, 50.0)
    server.engines[1].hung = True
    dog.run(50.0, 1_200.0)
    assert len(server.restarts) == 1


@pytest.mark.parametrize(("one", "other"), [("4", "5"), ("prefill", "decode")])
def test_engines_that_are_refused_by_their_names_are_never_proven_stuck(one: str, other: str) -> None:
    """Ranks counted over several machines, and names that are no ranks."""
    dog = served(heeds_ranks=True)
    dog.text = lambda text: text.replace('engine="0"', f'engine="{one}"').replace('engine="1"', f'engine="{other}"')
    decisions = run(dog, 3_600.0)
    assert dog.server.restarts == []
    assert decisions[-1].finding.verdict is Verdict.UNKNOWN
    assert f"engine {one} still for" in decisions[-1].finding.why


def test_names_are_tried_anew_after_a_restart() -> None:
    """It came back as a version that does not heed them."""
    dog = served(heeds_ranks=True)
    run(dog, 200.0)
    newcomer = served(heeds_ranks=False).server
    newcomer.started_s = SETTLED_S + 195.0
    dog.server = newcomer
    decisions = [dog.look(SETTLED_S + 200.0 + 10.0 * n) for n in range(400) if newcomer.submit(3.0) or True]
    assert newcomer.restarts == []
    assert Action.RESTART not in actions(decisions)
    assert decisions[-1].finding.verdict is Verdict.UNKNOWN
