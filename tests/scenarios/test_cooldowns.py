"""Ejections, cooldowns and the way back, over real sockets."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import grpc
import pytest
from structlog.testing import capture_logs

from edge.pool.config import DispatchConfig, HealthCheckConfig
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import Answer, Refuse
from tests.scenarios.common import OFTEN, call, call_until, ejections, ends, failure, worker_of
from tests.scenarios.conftest import MakeEdge

FAILS = Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED")


@pytest.mark.parametrize("probes_pass", [True, False])
async def test_1_probes_inside_a_cooldown_lift_nothing_and_the_first_good_one_after_it_does(
    workers: MakeWorkers, driver: MakeDriver, probes_pass: bool
) -> None:
    bad, good = await workers(2)
    bad.script.append(FAILS)
    health = HealthCheckConfig(interval_seconds=0.05, cooldown_seconds=1.5)
    mesh = await driver(bad.address, good.address, health=health)
    loop = asyncio.get_running_loop()
    with capture_logs() as lines:
        before_s = loop.time()
        await call_until(mesh, bad)
        probes = bad.probes
        if not probes_pass:
            bad.probe_script.append(False)  # bad ones come seconds apart: one fits in
        await until(lambda: mesh.online().healthy == 2)
    assert loop.time() - before_s >= 1.5
    assert bad.probes >= probes + 2, "one at least inside the cooldown, one at its end"
    assert [line["to"] for line in lines if line["event"] == "worker_state"] == ["EJECTED", "SERVING"]


async def test_2_b65_passing_probes_bring_no_traffic_to_a_worker_that_fails_every_call(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    bad, good = await workers(2)
    bad.default = FAILS
    health = HealthCheckConfig(interval_seconds=0.05, cooldown_seconds=0.4, cooldown_max_seconds=60)
    mesh = await driver(bad.address, good.address, health=health)
    probes = bad.probes
    loop = asyncio.get_running_loop()
    tried_s: list[tuple[float, float]] = []
    """Moments before and after each call that touched the bad one."""
    with capture_logs() as lines:
        while len(tried_s) < 3:  # the test's own timeout ends it
            seen, before_s = len(bad.seen), loop.time()
            assert (await mesh.call(call())).worker == good.address
            if len(bad.seen) > seen:
                tried_s.append((before_s, loop.time()))
            await asyncio.sleep(0.005)
    gaps = [after_s - before_s for (before_s, _), (_, after_s) in pairwise(tried_s)]
    assert gaps[0] >= 0.4
    assert gaps[1] >= 0.8, "the second cooldown is twice as long"
    assert bad.probes > probes + 5
    told_s = [line["cooldown_s"] for line in lines if line["event"] == "worker_state" and line["to"] == "EJECTED"]
    assert all(told >= least for told, least in zip(told_s, (0.4, 0.8, 1.6), strict=True)), told_s


async def test_4_the_only_worker_fails_once_and_clients_and_monitor_hear_the_truth(
    workers: MakeWorkers, edge: MakeEdge
) -> None:
    (worker,) = await workers(1)
    worker.script.append(FAILS)
    rest, mesh = await edge(worker.address, health=HealthCheckConfig(interval_seconds=0.05, cooldown_seconds=5))
    first = await rest.measure()
    meanwhile = await rest.measure()
    monitor = await rest.client.get("/monitor")
    for response in (first, meanwhile):
        assert (response.status_code, response.json()["code"]) == (503, 1007)
        assert response.json()["data"]["reason"] == "NO_WORKER"
        assert 1 <= int(response.headers["retry-after"]) <= 6, "as long as the cooldown lasts, in whole seconds"
    assert (monitor.status_code, monitor.json()["workers_healthy"]) == (503, 0)
    assert len(worker.seen) == 1
    await until(lambda: mesh.online().healthy == 1)
    assert (await rest.measure()).status_code == 200
    assert (await rest.client.get("/monitor")).status_code == 200


async def test_9_a_worker_whose_health_says_serving_and_whose_calls_are_refused_is_down(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    liar, good = await workers(2)
    liar.refuses = Refuse(grpc.StatusCode.UNAVAILABLE)  # as gRPC says it itself: nothing listens behind the health
    mesh = await driver(liar.address, good.address, health=OFTEN)
    outcomes = [await mesh.call(call()) for _ in range(5)]
    probes = liar.probes
    await until(lambda: liar.probes >= probes + 3)
    assert {outcome.worker for outcome in outcomes} == {good.address}
    assert len(liar.seen) == 1
    assert mesh.online().healthy == 1
    assert worker_of(mesh, liar.address).cause == "passive"


async def test_26_a_cooldown_ends_with_a_hundred_waiting_and_one_goes_there_first(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    bad, good = await workers(2)
    bad.default = FAILS
    mesh = await driver(
        bad.address,
        good.address,
        health=HealthCheckConfig(interval_seconds=0.05, cooldown_seconds=2),
        dispatch=DispatchConfig(max_in_flight=200),
    )
    await call_until(mesh, bad)
    hold = good.hold(then=Answer())
    with capture_logs() as lines:
        crowd = [asyncio.create_task(mesh.call(call(f"request-{number}"))) for number in range(101)]
        await hold.started.wait()
        await until(lambda: len(ejections(lines)) == 1)
        assert len(bad.seen) == 2, "one before, one when the cooldown ended"
        assert mesh.snapshot().waiting_fast == 100
        hold.release.set()
        outcomes = await asyncio.gather(*crowd)
    assert {outcome.worker for outcome in outcomes} == {good.address}
    assert sum(outcome.attempts == 2 for outcome in outcomes) == len(bad.seen) - 1


@pytest.mark.parametrize("count", [1, 3])
async def test_b67_a_pool_all_out_is_told_with_a_time_and_comes_back_one_trial_at_a_time(
    workers: MakeWorkers, driver: MakeDriver, count: int
) -> None:
    pool = await workers(count)
    for worker in pool:
        worker.default = FAILS
    mesh = await driver(
        *(worker.address for worker in pool),
        health=HealthCheckConfig(interval_seconds=0.05, cooldown_seconds=4),
        dispatch=DispatchConfig(max_retries=0),
    )
    for number in range(count):
        await failure(mesh, call(photo=bytes([number])))
    assert mesh.online().healthy == 0
    refused = await failure(mesh, call())
    assert refused.reason == "NO_WORKER"
    assert refused.retry_after_s is not None
    assert 1 <= refused.retry_after_s <= 5, "a promise that a client can keep to"
    assert [len(worker.seen) for worker in pool] == [1] * count
    for worker in pool:
        worker.default = Answer()
    await until(lambda: mesh.online().healthy >= 1)
    assert (await mesh.call(call())).attempts == 1
    await until(lambda: mesh.online().healthy == count)


async def test_an_ejection_costs_the_clients_who_wait_nothing(workers: MakeWorkers, driver: MakeDriver) -> None:
    """Those queued while a worker goes out are answered by the rest, in their order."""
    bad, good = await workers(2)
    bad.default, good.default = Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED", after_s=0.02), Answer(after_s=0.002)
    mesh = await driver(bad.address, good.address)
    crowd = [asyncio.create_task(mesh.call(call(f"request-{number}"))) for number in range(40)]
    results = await ends(crowd)
    assert {outcome.worker for outcome in results} == {good.address}
    assert len(bad.seen) == 1
