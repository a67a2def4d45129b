"""A worker of this project, as the watchdog reads it."""

from __future__ import annotations

import pytest
from hair.worker.v1 import worker_service_pb2 as pb

from worker.health.probes.worker import read_liveness, read_status
from worker.health.verdict import Verdict
from worker.health.watchdog.limits import Limits
from worker.health.watchdog.looks import Look
from worker.health.watchdog.policy import Action, Watchdog
from worker.health.watchdog.server import Outcome


def status(*, steps: int = 5, busy: bool = True, live: bool = True, reasons: tuple[str, ...] = ()) -> pb.WorkerStatus:
    said = pb.WorkerStatus(boot_id="b", live=live, reasons=reasons, state=pb.SERVING_STATE_SERVING)
    if reasons:
        said.state = pb.SERVING_STATE_NOT_SERVING
    said.start_time.seconds = 1_000
    said.checks.add(name="progress", evidence={"still_s": 0.0, "step_counter": float(steps)})
    said.slot.epoch = 3
    if busy:
        said.slot.call.stage, said.slot.call.step_counter, said.slot.call.stall_after_s = "parsing", steps, 30.0
    return said


def look(said: pb.WorkerStatus, at_s: float, grace_s: float | None = None) -> Look:
    return read_status(said, at_s=at_s, now_epoch_s=5_000.0 + at_s, grace_s=grace_s)


@pytest.fixture
def dog() -> Watchdog:
    return Watchdog(Limits(), canaries=False, begun_s=0.0)


def test_each_stage_has_its_own_patience() -> None:
    assert look(status(), 0.0).engines[""].stall_after_s == 30.0
    assert look(status(), 0.0, grace_s=7.0).engines[""].stall_after_s == 7.0


def test_a_call_that_ends_is_no_restart(dog: Watchdog) -> None:
    """The counter that comes with a call and the one of an idle worker are the same one."""
    verdicts = [
        dog.see(look(status(steps=5 + n, busy=n % 3 > 0), 10.0 * n)).finding.verdict  # every third look finds it free
        for n in range(12)
    ]
    assert set(verdicts) == {Verdict.IDLE, Verdict.BUSY}


def test_a_still_call_is_stalled_after_twice_its_stages_patience(dog: Watchdog) -> None:
    decisions = [dog.see(look(status(), 10.0 * n)) for n in range(8)]
    assert [decision.finding.verdict for decision in decisions] == [Verdict.BUSY] * 6 + [Verdict.STALLED] * 2
    assert decisions[6].action is Action.RESTART


@pytest.mark.parametrize("grace_s", [None, 7.0])
def test_a_call_in_another_servers_queue_is_no_stall_and_its_stillness_there_does_not_count(
    dog: Watchdog, grace_s: float | None
) -> None:
    """However long, and whatever patience the command line gives."""
    queued = status()
    queued.slot.call.stage, queued.slot.call.waiting_for = "diffusion_queue", "comfyui"
    dog.see(look(status(), 0.0, grace_s))
    decisions = [dog.see(look(queued, 10.0 * n, grace_s)) for n in range(1, 361)]
    assert {decision.finding.verdict for decision in decisions} == {Verdict.WAITING}
    assert {decision.finding.outcome for decision in decisions} == {Outcome.WELL}
    assert {decision.action for decision in decisions} == {Action.NOTHING}
    assert decisions[-1].finding.why == "in the queue of comfyui"
    assert dog.see(look(status(), 3_610.0, grace_s)).finding.verdict is Verdict.BUSY


def test_a_worker_that_says_itself_that_only_a_restart_helps_is_believed_the_second_time(dog: Watchdog) -> None:
    lost = status(busy=False, live=False, reasons=("accelerator:cuda",))
    first, second = dog.see(look(lost, 0.0)), dog.see(look(lost, 10.0))
    assert first.action is Action.NOTHING
    assert (second.finding.verdict, second.action) == (Verdict.STALLED, Action.RESTART)
    assert "accelerator:cuda" in second.finding.why


def test_a_full_disk_is_told_and_never_restarted(dog: Watchdog) -> None:
    """Scenario 24: restarting would not help."""
    full = status(busy=False, reasons=("disk_free_below_5.0g",))
    decisions = [dog.see(look(full, 10.0 * n)) for n in range(100)]
    assert {decision.action for decision in decisions} == {Action.NOTHING}
    assert {decision.finding.outcome for decision in decisions} == {Outcome.DEGRADED}
    assert "does not serve: disk_free_below_5.0g" in decisions[-1].finding.why


def test_another_boot_id_is_a_restart(dog: Watchdog) -> None:
    dog.see(look(status(), 0.0))
    other = status()
    other.boot_id = "c"
    assert dog.see(look(other, 10.0)).finding.verdict is Verdict.RESTARTED


def test_without_password_only_liveness_is_known(dog: Watchdog) -> None:
    alive = dog.see(read_liveness(live=True, at_s=0.0)).finding
    assert (alive.verdict, alive.outcome) == (Verdict.UNKNOWN, Outcome.DEGRADED)
    dog.see(read_liveness(live=False, at_s=10.0))
    assert dog.see(read_liveness(live=False, at_s=20.0)).finding.verdict is Verdict.STALLED


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_counter_that_is_no_number_is_none(number: float) -> None:
    said = status()
    said.checks[0].evidence["step_counter"] = number
    assert look(said, 0.0).engines[""].counter is None


def test_a_workers_words_are_one_short_line_whatever_they_hold(dog: Watchdog) -> None:
    forged = ("\x1b[2J\x1b]52;c;ZXZpbA==\x07disk\n2026-01-01 worker x: BUSY", "\u202e\x9b", "x" * 1_000_000)
    queued = status()
    queued.slot.call.waiting_for = "".join(forged)
    for said in (status(reasons=forged), status(live=False, reasons=forged), queued):
        why = dog.see(look(said, 0.0)).finding.why
        assert why.isprintable()
        assert len(why) < 1_200
