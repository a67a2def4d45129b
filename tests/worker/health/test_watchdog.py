"""The watchdog over a simulated server on virtual time: field reports B80 to B87, and what follows a verdict."""

from __future__ import annotations

import re

import pytest

from tests.fakes.vllm_engine import VllmServer
from tests.fakes.vllm_metrics import Flavour, render
from tests.sim.watched_server import EPOCH_S, Watched
from tests.worker.health.watched import SETTLED_S, actions, verdicts, watched
from worker.health.verdict import Verdict
from worker.health.watchdog.canary import Canaries
from worker.health.watchdog.limits import Limits
from worker.health.watchdog.looks import Answer, CanaryResult
from worker.health.watchdog.policy import Action
from worker.health.watchdog.server import Outcome


@pytest.mark.parametrize("flavour", list(Flavour))
def test_a_server_that_moves_is_busy_and_gets_nothing(flavour: Flavour) -> None:
    """Scenario 12 and 15, in the words of every version."""
    dog = watched(flavour=flavour)
    decisions = dog.run(SETTLED_S, SETTLED_S + 3_600.0)
    assert verdicts(decisions[1:]) == {Verdict.BUSY}
    assert all(decision.finding.outcome is Outcome.WELL for decision in decisions)
    assert dog.canaries == []
    assert decisions[-1].finding.running == 2


@pytest.mark.parametrize("flavour", list(Flavour))
def test_a_stuck_engine_is_restarted_once_after_two_graces(flavour: Flavour) -> None:
    dog = watched(flavour=flavour)
    dog.run(SETTLED_S, SETTLED_S + 100.0)
    dog.server.engines[0].hung = True
    decisions = dog.run(SETTLED_S + 100.0, SETTLED_S + 3_600.0)
    assert len(dog.server.restarts) == 1
    after_s = dog.server.restarts[0] - (SETTLED_S + 100.0)
    patience_s = 300.0 if flavour is Flavour.V04 else 60.0
    assert 2 * patience_s - 10.0 <= after_s <= 2 * patience_s + 20.0  # it moved until the last look before
    assert decisions[-1].finding.verdict is Verdict.IDLE


def test_until_it_is_proven_a_still_engine_is_only_asked() -> None:
    dog = watched()
    dog.run(SETTLED_S, SETTLED_S + 100.0)
    dog.server.engines[0].hung = True
    decisions = dog.run(SETTLED_S + 100.0, SETTLED_S + 220.0)
    assert verdicts(decisions) == {Verdict.BUSY}
    assert actions(decisions) == [Action.CANARY]
    assert "canary unanswered for" in decisions[-1].finding.why
    assert not decisions[-1].finding.conclusive


def test_b80_waiting_without_running_is_a_stuck_engine_and_not_an_idle_one() -> None:
    dog = watched()

    def nothing_runs(text: str) -> str:
        text = re.sub(r"(num_requests_running{.*}) .*", r"\1 0.0", text)
        return re.sub(r"(num_requests_waiting{.*}) .*", r"\1 3.0", text)

    dog.server.engines[0].hung = True
    dog.text = nothing_runs
    decisions = dog.run(SETTLED_S, SETTLED_S + 200.0)
    assert Verdict.IDLE not in verdicts(decisions)
    assert Verdict.STALLED in verdicts(decisions)


def test_b81_stale_gauges_after_a_mass_abort_are_refuted_by_the_canary() -> None:
    dog = watched()
    dog.look(SETTLED_S)
    dog.server.abort_all()
    decisions = dog.run(SETTLED_S + 10.0, SETTLED_S + 600.0)
    assert decisions[0].finding.running == 2  # nobody runs: the gauge is stale
    assert dog.server.restarts == []
    assert verdicts(decisions) == {Verdict.BUSY, Verdict.IDLE}
    assert decisions[-1].finding.verdict is Verdict.IDLE
    assert len(dog.canaries) <= 3


def test_b81_a_canary_that_waits_behind_running_work_is_no_failure() -> None:
    """Still for 70 s, the canary is sent; then the engine goes on, and the canary waits its turn for an hour."""
    dog = watched()
    dog.look(SETTLED_S)
    dog.server.engines[0].hung = True
    dog.run(SETTLED_S + 10.0, SETTLED_S + 90.0)
    assert len(dog.canaries) == 1
    dog.server.engines[0].hung = False
    decisions = dog.run(SETTLED_S + 90.0, SETTLED_S + 3_600.0)
    assert verdicts(decisions) == {Verdict.BUSY}
    assert dog.server.restarts == []
    assert len(dog.canaries) == 1


def test_a_canary_that_gets_an_error_proves_nothing() -> None:
    """No API key: the gauges may be stale, so nobody can tell."""
    dog = watched()
    dog.canary_error = True
    dog.look(SETTLED_S)
    dog.server.engines[0].hung = True
    decisions = dog.run(SETTLED_S + 10.0, SETTLED_S + 1_200.0)
    assert decisions[-1].finding.verdict is Verdict.UNKNOWN
    assert decisions[-1].finding.outcome is Outcome.DEGRADED
    assert "error, which proves nothing" in decisions[-1].finding.why
    assert dog.server.restarts == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (lambda text: re.sub(r".*iteration_tokens.*\n", "", text), "iteration_tokens_total_count"),
        (lambda _text: "", "no series of vllm"),
        (lambda _text: "<!doctype html><title>Sign in</title>", "a web page"),
        (lambda text: re.sub(r".*num_requests.*\n", "", text), "num_requests_running, vllm:num_requests_waiting"),
    ],
)
def test_b82_missing_metrics_are_named_and_never_stall_nor_restart_by_default(text: object, missing: str) -> None:
    dog = watched(slots=3)
    dog.server.abort_all()
    dog.server.advance(SETTLED_S)
    assert callable(text)
    dog.text = text
    decisions = dog.run(SETTLED_S, SETTLED_S + 1_200.0)
    assert not verdicts(decisions) & {Verdict.STALLED, Verdict.DEAD}
    assert all(missing in decision.finding.why and "metrics" in decision.finding.why for decision in decisions)
    assert dog.canaries


def test_b82_without_steps_silence_is_unknown_until_the_canary_has_spoken() -> None:
    dog = watched(flavour=Flavour.V04)
    dog.look(SETTLED_S)
    dog.server.engines[0].hung = True
    decisions = dog.run(SETTLED_S + 10.0, SETTLED_S + 300.0)
    assert verdicts(decisions) == {Verdict.BUSY, Verdict.UNKNOWN}
    assert len(dog.canaries) == 1


def test_b83_one_stuck_engine_is_seen_though_the_other_advances() -> None:
    dog = watched(engines=2)
    dog.run(SETTLED_S, SETTLED_S + 50.0)
    dog.server.engines[1].hung = True
    decisions = dog.run(SETTLED_S + 50.0, SETTLED_S + 200.0)
    (stuck,) = [d for d in decisions if d.finding.verdict is Verdict.STALLED]
    assert "engine 1 still for" in stuck.finding.why
    assert "engine 0" not in stuck.finding.why
    assert stuck.action is Action.RESTART


def test_b83_an_idle_engine_beside_a_busy_one_is_not_stuck() -> None:
    server = VllmServer(engines=2)
    server.submit(1e6)
    server.advance(SETTLED_S - 1.0)
    dog = Watched(server)
    assert verdicts(dog.run(SETTLED_S, SETTLED_S + 3_600.0)[1:]) == {Verdict.BUSY}
    assert dog.canaries == []


def test_b83_stale_gauges_of_one_engine_are_refuted_by_a_canary_each() -> None:
    dog = watched(engines=2)
    dog.look(SETTLED_S)
    dog.server.engines[1].queue.clear()
    decisions = dog.run(SETTLED_S + 10.0, SETTLED_S + 1_200.0)
    assert verdicts(decisions) == {Verdict.BUSY}
    assert dog.server.restarts == []


def test_b83_stale_gauges_of_all_engines_are_refuted_by_a_canary_each() -> None:
    """One canary alone would move one engine, and make the other look stuck."""
    dog = watched(engines=2)
    dog.look(SETTLED_S)
    dog.server.abort_all()
    decisions = dog.run(SETTLED_S + 10.0, SETTLED_S + 1_200.0)
    assert dog.server.restarts == []
    assert decisions[-1].finding.outcome is Outcome.WELL


def test_counters_that_never_move_though_canaries_pass_are_no_stall() -> None:
    dog = watched(slots=3)
    frozen = render(dog.server.engines, Flavour.V1, EPOCH_S)
    dog.text = lambda _text: frozen
    decisions = dog.run(SETTLED_S, SETTLED_S + 3_600.0)
    assert verdicts(decisions) == {Verdict.BUSY}
    assert "canary answered" in decisions[-1].finding.why


def test_every_stall_is_proven_by_a_canary_of_its_own() -> None:
    """One that was given up behind running work says nothing of what comes later."""
    dog = watched()
    dog.look(SETTLED_S)
    dog.server.engines[0].hung = True
    dog.run(SETTLED_S + 10.0, SETTLED_S + 90.0)
    dog.server.engines[0].hung = False
    dog.run(SETTLED_S + 90.0, SETTLED_S + 600.0)
    dog.server.engines[0].hung = True
    dog.run(SETTLED_S + 600.0, SETTLED_S + 800.0)
    assert len(dog.server.restarts) == 1
    assert [at_s > SETTLED_S + 600.0 for at_s in dog.canaries] == [False, True]


def test_a_silent_canary_is_work_only_of_an_engine_in_which_it_must_be() -> None:
    canaries = Canaries(Limits(), possible=True)
    canaries.see(nobody="99")
    canaries.sent(0.0, ["0", "99"], {"0": 5, "1": 7})
    assert canaries.are_work_in("0", {"0": 5, "1": 7})
    assert not canaries.are_work_in("0", {"0": 5, "1": 8})  # it may wait in the other one
    canaries.ended(1.0, "99", CanaryResult.REFUSED)
    assert canaries.are_work_in("0", {"0": 5, "1": 8})
    assert not canaries.are_work_in("0", {"0": 6, "1": 8})
    canaries.forget_names()
    assert not canaries.are_work_in("0", {"0": 5, "1": 8})


def test_b85_slow_is_saturated_and_never_restarted() -> None:
    dog = watched()
    dog.look(SETTLED_S)
    dog.answer = Answer.SLOW
    decisions = dog.run(SETTLED_S + 10.0, SETTLED_S + 7_200.0)
    assert verdicts(decisions) == {Verdict.SATURATED}
    assert actions(decisions) == []


def test_b86_a_silence_shorter_than_the_grace_is_nothing() -> None:
    dog = watched(flavour=Flavour.BARE)
    dog.look(SETTLED_S)
    dog.server.engines[0].hung = True
    dog.run(SETTLED_S + 10.0, SETTLED_S + 50.0)
    dog.server.engines[0].hung = False
    decisions = dog.run(SETTLED_S + 50.0, SETTLED_S + 300.0)
    assert verdicts(decisions) == {Verdict.BUSY}
    assert dog.canaries == []


def test_b86_a_long_prompt_that_fills_the_cache_moves() -> None:
    """Ten minutes of reading without one token, as long as pieces of it arrive in the cache."""
    server = VllmServer(slots=1)
    server.submit(10.0, silent_s=600.0)
    dog = Watched(server, begun_s=-SETTLED_S)
    server.started_s = -SETTLED_S
    assert verdicts(dog.run(10.0, 600.0)) == {Verdict.BUSY}
    assert dog.canaries == []


def test_b87_metrics_broken_while_inference_works_is_degraded_and_says_so() -> None:
    dog = watched(slots=3)
    dog.answer = Answer.UNREADABLE
    decisions = dog.run(SETTLED_S, SETTLED_S + 1_800.0)
    assert verdicts(decisions) == {Verdict.UNKNOWN}
    assert decisions[-1].finding.outcome is Outcome.DEGRADED
    assert "metrics: HTTP 500; canary answered" in decisions[-1].finding.why
    assert 4 <= len(dog.canaries) <= 7


def test_b87_without_counters_a_silent_canary_is_no_proof() -> None:
    """The old rule: five test requests without answer. They wait behind a full batch."""
    dog = watched(slots=2)
    dog.answer = Answer.UNREADABLE
    decisions = dog.run(SETTLED_S, SETTLED_S + 3_600.0)
    assert verdicts(decisions) == {Verdict.UNKNOWN}
    assert dog.server.restarts == []


def test_an_idle_server_gets_a_canary_now_and_then() -> None:
    dog = Watched(VllmServer(at_s=-SETTLED_S), begun_s=-SETTLED_S)
    decisions = dog.run(0.0, 3_600.0)
    assert verdicts(decisions) <= {Verdict.IDLE, Verdict.BUSY}
    assert 10 <= len(dog.canaries) <= 13


def test_an_engine_that_hangs_while_idle_is_found_by_the_canary_though_its_gauges_say_nothing_runs() -> None:
    dog = Watched(VllmServer(at_s=-SETTLED_S), begun_s=-SETTLED_S)
    dog.run(0.0, 100.0)
    dog.server.engines[0].hung = True
    decisions = dog.run(100.0, 1_000.0)
    assert {decision.finding.running for decision in decisions} == {0, None}
    assert len(dog.server.restarts) == 1
    assert dog.server.restarts[0] - dog.canaries[1] >= 120.0
    (proof,) = [decision for decision in decisions if decision.action is Action.RESTART]
    assert "canary unanswered for" in proof.finding.why


def test_scenario_32_a_suspended_machine_is_no_stall() -> None:
    dog = watched(flavour=Flavour.BARE)
    dog.look(SETTLED_S)
    dog.server.engines[0].hung = True
    dog.run(SETTLED_S + 10.0, SETTLED_S + 110.0)
    decisions = dog.run(SETTLED_S + 140.0, SETTLED_S + 190.0)  # thirty seconds nobody lived through
    assert verdicts(decisions) == {Verdict.BUSY}
    assert dog.server.restarts == []


@pytest.mark.parametrize(
    ("slept_s", "proof"), [(30.0, "canary unanswered for 180 s"), (120.0, "canary never answered")]
)
def test_a_late_look_takes_no_proof_out_of_the_words_of_a_stall(slept_s: float, proof: str) -> None:
    """The stillness begins anew behind it, and the canary that was sent before waits on."""
    dog = watched()
    dog.look(SETTLED_S)
    dog.server.engines[0].hung = True
    dog.run(SETTLED_S + 10.0, SETTLED_S + 110.0)
    decisions = dog.run(SETTLED_S + 100.0 + slept_s, SETTLED_S + 400.0)
    (stalled,) = [decision.finding for decision in decisions if decision.finding.verdict is Verdict.STALLED]
    assert len(dog.canaries) == 1
    assert stalled.why == f"engine 0 still for 120 s; {proof}"


def test_several_servers_behind_one_address_are_named_and_never_restarted() -> None:
    one, other = watched(), VllmServer(at_s=-7.0)
    other.submit(1e6)
    other.advance(SETTLED_S - 1.0)
    servers = [one.server, other]
    decisions = []
    for n in range(200):
        one.server = servers[(n // 2) % 2]
        decisions.append(one.look(SETTLED_S + 10.0 * n))
    assert not verdicts(decisions) & {Verdict.STALLED, Verdict.DEAD}
    assert any("behind a proxy use --proxy" in decision.finding.why for decision in decisions)


def test_a_slot_of_tokens_per_second_is_told() -> None:
    dog = watched()
    finding = dog.run(SETTLED_S, SETTLED_S + 100.0)[-1].finding
    assert finding.tokens_per_s == pytest.approx(40.0)
    assert (finding.running, finding.waiting) == (2, 0)
    assert finding.conclusive


def test_an_idle_server_that_refuses_the_canary_is_not_known_to_work() -> None:
    dog = Watched(VllmServer(at_s=-SETTLED_S), begun_s=-SETTLED_S)
    dog.canary_error = True
    decisions = dog.run(0.0, 100.0)
    assert verdicts(decisions) == {Verdict.IDLE}
    assert decisions[-1].finding.outcome is Outcome.DEGRADED
    assert decisions[-1].finding.conclusive
