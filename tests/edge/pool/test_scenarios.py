"""Incidents that operators of such pools reported, on virtual time. The numbers are those of the design's list."""

from __future__ import annotations

from itertools import pairwise

import pytest

from edge.pool import events as ev
from edge.pool.config import DispatchConfig, HealthCheckConfig, PoolConfig
from tests.sim.world import World

A, B, C = "a:1", "b:1", "c:1"


def world(*workers: str, primaries: tuple[str, ...] = (), **settings: object) -> World:
    config = PoolConfig(workers=workers or (A, B), primary_workers=primaries, **settings)  # type: ignore[arg-type]
    made = World(config)
    made.start()
    return made


@pytest.mark.parametrize("probes_pass", [True, False])
def test_1_probes_inside_a_cooldown_lift_nothing(probes_pass: bool) -> None:
    here = world(A, B)
    here.workers[A].fails_with = ev.Code.INTERNAL
    here.submit()
    here.run(1.0)
    here.heal(A)
    here.workers[A].serving = probes_pass
    until_s = here.endpoint(A).cooldown_until_s
    here.run(until_s - here.now_s - 0.1)
    assert not here.endpoint(A).online
    here.heal(A)
    here.run(2.0)
    assert here.endpoint(A).online


def test_2_probes_pass_and_calls_fail_then_one_call_then_a_longer_cooldown() -> None:
    here = world(A, B)
    here.workers[A].fails_with = ev.Code.INTERNAL
    for _ in range(450):  # one call after another for longer than both cooldowns
        here.submit()
        here.run(0.6)
    tried = [moment for client in here.clients.values() for moment, target in client.started if target == A]
    gaps = [later - earlier for earlier, later in pairwise(tried)]
    assert len(gaps) == 2
    assert 60 <= gaps[0] <= 75
    assert 120 <= gaps[1] <= 142
    assert all(client.answer == "ok" for client in here.clients.values() if client.answered_s)


def test_4_the_only_worker_fails_once() -> None:
    here = world(A)
    here.workers[A].fails_with = ev.Code.INTERNAL
    first = here.submit()
    here.run(1.0)
    assert first.answer == "NO_WORKER"
    assert first.retry_after_s == pytest.approx(here.endpoint(A).cooldown_left_s(here.now_s) + 0.5, abs=0.01)
    here.heal(A)
    meanwhile = here.submit()
    assert (meanwhile.answer, meanwhile.answered_s) == ("NO_WORKER", here.now_s)
    assert not here.endpoint(A).online, "the flag that monitoring counts"
    here.run(66.0)
    after = here.submit()
    here.run(1.0)
    assert after.answer == "ok"


def test_5_fifty_callers_one_slot() -> None:
    here = world(A, dispatch=DispatchConfig(queue_wait_seconds=10))
    clients = [here.submit() for _ in range(50)]
    here.run(60.0)
    answered = [client for client in clients if client.answer == "ok"]
    assert [client.number for client in answered] == list(range(1, len(answered) + 1))
    assert len(answered) >= 20
    busy = [client for client in clients if client.answer == "BUSY"]
    assert len(answered) + len(busy) == 50
    assert all(client.answered_s == client.submitted_s + 10 for client in busy)
    assert here.endpoint(A).ejections == 0


def test_6_all_primaries_are_killed_under_load() -> None:
    here = world(A, B, C, primaries=(A, B))
    clients = []
    for step in range(40):
        clients.append(here.submit())
        if step == 10:
            here.kill(A)
            here.kill(B)
        here.run(0.25)
    here.run(30.0)
    assert [client.answer for client in clients] == ["ok"] * 40
    assert any(client.started[-1][1] == C for client in clients)


def test_7_six_calls_on_three_slots_take_two_rounds() -> None:
    here = world(A, B, C)
    clients = [here.submit() for _ in range(6)]
    here.run(5.0)
    took = [client.answered_s - client.submitted_s for client in clients if client.answered_s]
    assert took == pytest.approx([0.5, 0.5, 0.5, 1.0, 1.0, 1.0])


def test_9_serving_by_health_refused_by_calls_is_down() -> None:
    here = world(A, B)
    here.workers[A].fails_with, here.workers[A].call_s = ev.Code.UNAVAILABLE, 0.001
    client = here.submit()
    here.run(1.0)
    assert client.answer == "ok"
    assert not here.endpoint(A).online


def test_17_a_short_deadline_is_answered_when_it_passes() -> None:
    here = world(A)
    here.workers[A].call_s = 20.0
    here.submit()
    hasty = here.submit(timeout_s=1.0)
    here.run(30.0)
    assert (hasty.answer, hasty.answered_s) == ("DEADLINE", hasty.submitted_s + 1.0)


def test_18_a_client_leaves_and_the_slot_frees_when_the_thread_ends() -> None:
    here = world(A)
    here.workers[A].call_s = 5.0
    leaves, next_ = here.submit(), here.submit()
    here.run(1.0)
    here.leave(leaves)
    here.run(3.5)
    assert not next_.started
    here.run(0.6)
    assert [target for _, target in next_.started] == [A]
    assert next_.started[0][0] == pytest.approx(5.0 + leaves.submitted_s, abs=0.01)
    assert here.endpoint(A).online


def test_22_a_drained_worker_costs_nobody_anything() -> None:
    here = world(A, B)
    clients = []
    for step in range(40):
        clients.append(here.submit())
        if step == 10:
            here.drain(A)
        if step == 20:
            here.kill(A)
        if step == 30:
            here.boot_up(A)
        here.run(0.3)
    here.run(30.0)
    assert [client.answer for client in clients] == ["ok"] * 40
    assert here.endpoint(A).ejections == 0
    assert here.endpoint(A).online
    causes = [entry.fields["cause"] for _, entry in here.log if entry.event == "worker_state"]
    assert "passive" not in causes


def test_26_a_cooldown_ends_with_many_waiting_and_one_goes_first() -> None:
    here = world(A, B, dispatch=DispatchConfig(queue_wait_seconds=200, max_in_flight=200))
    here.workers[A].fails_with = ev.Code.INTERNAL
    here.workers[B].call_s = 2.0
    for _ in range(110):
        here.submit()
    here.run(80.0)
    on_a = [moment for client in here.clients.values() for moment, target in client.started if target == A]
    assert len(on_a) == 2, "one before, one when the cooldown ended"


def test_35_growth_fills_the_pool_and_a_measurement_gets_the_next_slot() -> None:
    here = world(A, B, C, dispatch=DispatchConfig(queue_wait_seconds=100))
    for target in (A, B, C):
        here.workers[target].call_s = 18.0
    for _ in range(9):
        here.submit(slow=True)
    here.run(1.0)
    measurements = [here.submit() for _ in range(3)]
    here.run(17.5)
    assert [len(client.started) for client in measurements] == [1, 0, 0]
    for target in (A, B, C):
        here.workers[target].call_s = 0.5
    here.run(100.0)
    assert all(client.answer == "ok" for client in here.clients.values())


def test_slow_calls_leave_one_worker_while_fast_ones_wait() -> None:
    here = world(A, B, C)
    here.workers[A].call_s = here.workers[B].call_s = here.workers[C].call_s = 1.0
    for _ in range(20):
        here.submit(slow=True)
        here.submit()
    here.run(0.5)
    worst = 0
    for _ in range(20):
        running = [client for client in here.clients.values() if client.running_on]
        if any(client.waits and not client.slow for client in here.clients.values()):
            worst = max(worst, sum(client.slow for client in running))
        here.run(1.0)
    assert worst == 2
    assert all(client.answer == "ok" for client in here.clients.values())


def test_a_silent_host_is_noticed_within_two_probe_periods() -> None:
    here = world(A, B)
    here.workers[A].probes_hang = here.workers[A].hangs = True
    frozen_s = here.now_s
    here.run(16.0)
    assert here.endpoint(A).cause is ev.Cause.PROBE
    offline_s = next(moment for moment, entry in here.log if entry.fields.get("to") == "NOT_SERVING")
    assert offline_s - frozen_s <= 16.0


def test_a_rolling_restart_leaves_no_error_and_no_cooldown_behind() -> None:
    here = world(A, B, C)
    clients = []
    for round_ in range(3):
        target = (A, B, C)[round_]
        for step in range(20):
            clients.append(here.submit())
            if step == 2:
                here.drain(target)
            if step == 8:
                here.kill(target)
            if step == 12:
                here.boot_up(target)
            here.run(0.3)
    here.run(10.0)
    assert [client.answer for client in clients] == ["ok"] * 60
    assert [(endpoint.online, endpoint.ejections) for endpoint in here.pool.endpoints()] == [(True, 0)] * 3


def test_a_pool_with_cooldown_zero_recovers_with_the_next_good_probe() -> None:
    here = world(A, health=HealthCheckConfig(cooldown_seconds=0))
    here.workers[A].fails_with = ev.Code.INTERNAL
    here.submit()
    here.run(0.6)
    here.heal(A)
    here.run(0.1)
    assert here.endpoint(A).online


@pytest.mark.parametrize("uploads", [("X", "Y"), ("Y", "X", "Y", "X")])
def test_29_one_uploader_with_two_killers_costs_nobody_else_an_answer(uploads: tuple[str, ...]) -> None:
    here = world(A, B, C)
    for worker in here.workers.values():
        worker.poisons, worker.restarts_in_s, worker.call_s = {"X": None, "Y": None}, 0.05, 0.1
    others = []
    for step in range(400):
        if step % 5 == 0 and step // 5 < len(uploads):
            here.edges[0].submit(input_key=uploads[step // 5], client_key="uploader")
        if step > 5:
            others.append(here.edges[0].submit(input_key=f"sound {step}", client_key=f"sound {step % 7}"))
        here.run(0.1)
    assert {client.answer for client in others[:-5]} == {"ok"}
    assert [(endpoint.online, endpoint.ejections) for endpoint in here.pool.endpoints()] == [(True, 0)] * 3
    assert "ejection_pardoned" in {entry.event for _, entry in here.log}


def test_27_a_poison_input_takes_no_worker_out_for_longer_than_its_restart() -> None:
    here = world(A, B)
    for worker in here.workers.values():
        worker.poisons, worker.restarts_in_s, worker.call_s = {"X": None}, 2.0, 0.1
    here.edges[0].submit(input_key="X", client_key="uploader")
    here.run(1.0)
    assert not any(endpoint.online for endpoint in here.pool.endpoints())
    here.run(4.0)
    assert [(endpoint.online, endpoint.ejections) for endpoint in here.pool.endpoints()] == [(True, 0)] * 2
