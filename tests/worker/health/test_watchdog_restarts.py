"""When a sick server is restarted, and when it is left alone: on virtual time."""

from __future__ import annotations

from tests.fakes.vllm_engine import VllmServer
from tests.fakes.vllm_metrics import Flavour
from tests.sim.watched_server import Watched
from tests.worker.health.watched import SETTLED_S, verdicts, watched
from worker.health.verdict import Verdict
from worker.health.watchdog.limits import Limits
from worker.health.watchdog.looks import Answer
from worker.health.watchdog.server import Outcome


def test_b85_refused_five_times_in_a_row_is_dead() -> None:
    dog = watched()
    dog.look(SETTLED_S)
    dog.answer = Answer.REFUSED
    four = dog.run(SETTLED_S + 10.0, SETTLED_S + 50.0)
    assert verdicts(four) == {Verdict.UNKNOWN}
    dog.answer = None
    assert dog.look(SETTLED_S + 50.0).finding.verdict is Verdict.BUSY
    dog.answer = Answer.REFUSED
    five = dog.run(SETTLED_S + 60.0, SETTLED_S + 110.0)
    assert [decision.finding.verdict for decision in five] == [Verdict.UNKNOWN] * 4 + [Verdict.DEAD]
    assert five[-1].finding.outcome is Outcome.SICK


def test_a_dead_server_is_restarted_only_when_nobody_can_be_starting_it() -> None:
    """Its supervisor restarts it as well; the port opens when the models are loaded."""
    dog = watched()
    dog.look(SETTLED_S)
    dog.server.restart()
    dog.server.restarts.clear()
    decisions = dog.run(SETTLED_S + 10.0, SETTLED_S + 3_600.0)
    assert Verdict.DEAD in verdicts(decisions)
    assert any("someone may be starting it" in decision.hold for decision in decisions)
    assert dog.server.restarts == []


def test_a_dead_server_that_nobody_starts_is_started_once() -> None:
    dog = watched()
    dog.limits = Limits(dead_grace_s=0.0)
    dog = Watched(dog.server, dog.limits)
    dog.look(SETTLED_S)
    dog.server.up_from_s = float("inf")
    decisions = dog.run(SETTLED_S + 10.0, SETTLED_S + 900.0)
    assert len(dog.server.restarts) == 1
    assert dog.server.restarts[0] == SETTLED_S + 50.0
    assert decisions[-1].finding.outcome is Outcome.WELL


def test_b86_a_first_request_that_takes_long_after_a_start_is_given_the_time() -> None:
    """Kernels are compiled: three minutes without a step, five minutes after the start."""
    server = VllmServer(slots=1)
    dog = Watched(server)
    dog.run(0.0, 300.0)
    server.submit(100.0)
    dog.look(300.0)
    server.engines[0].hung = True
    decisions = dog.run(310.0, 500.0)
    assert any("it may still be starting" in decision.hold for decision in decisions)
    server.engines[0].hung = False
    assert verdicts(dog.run(500.0, 600.0)[1:]) <= {Verdict.BUSY, Verdict.IDLE}
    assert server.restarts == []


def test_someone_elses_restart_is_a_new_baseline_with_a_grace_of_its_own() -> None:
    dog = watched()
    dog.run(SETTLED_S, SETTLED_S + 100.0)
    dog.server.restart()
    dog.server.restarts.clear()
    dog.run(SETTLED_S + 110.0, SETTLED_S + 330.0)
    dog.server.submit(1e6)
    back = dog.run(SETTLED_S + 330.0, SETTLED_S + 400.0)
    assert back[0].finding.verdict is Verdict.RESTARTED
    dog.server.engines[0].hung = True
    held = dog.run(SETTLED_S + 400.0, SETTLED_S + 900.0)
    assert Verdict.STALLED in verdicts(held)
    assert dog.server.restarts == []
    dog.run(SETTLED_S + 900.0, SETTLED_S + 1_100.0)
    (restarted_s,) = dog.server.restarts
    assert restarted_s >= SETTLED_S + 90.0 + 900.0


def test_a_restart_that_shows_only_in_a_fallen_counter_has_its_grace() -> None:
    """Several processes say no start time, and it came back between two looks."""
    dog = watched(flavour=Flavour.MULTI_PROCESS)
    dog.run(SETTLED_S, SETTLED_S + 1_000.0)
    dog.server.restart()
    dog.server.up_from_s = 0.0
    dog.server.restarts.clear()
    dog.server.submit(1e6)
    assert dog.look(SETTLED_S + 1_000.0).finding.verdict is Verdict.RESTARTED
    dog.server.engines[0].hung = True
    held = dog.run(SETTLED_S + 1_010.0, SETTLED_S + 1_890.0)
    assert held[-1].finding.verdict is Verdict.STALLED
    assert dog.server.restarts == []
    dog.run(SETTLED_S + 1_890.0, SETTLED_S + 1_950.0)
    assert len(dog.server.restarts) == 1


def test_a_server_that_hangs_after_every_start_is_restarted_ever_more_seldom() -> None:
    dog = watched()
    server = dog.server
    for n in range(12 * 360):
        if server.listens:
            server.engines[0].hung = True
            if not server.engines[0].queue:
                server.submit(1e6)
        dog.look(SETTLED_S + 10.0 * n)
    gaps = [after - before for before, after in zip(server.restarts, server.restarts[1:], strict=False)]
    assert len(server.restarts) >= 4
    assert all(gap >= 900.0 * 2**n for n, gap in enumerate(gaps[:4]))
    assert max(gaps) <= 14_400.0 + 300.0
