"""Who gets which worker, and when, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import grpc
from structlog.testing import capture_logs

from edge.pool.config import DispatchConfig, HealthCheckConfig
from hairmesh import wire
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import Answer, FakeWorker, Hold
from tests.scenarios.common import SELDOM, call, ejections, ends, worker_of
from tests.scenarios.conftest import MakeEdge


async def all_started(holds: Iterable[Hold]) -> None:
    """Until all of these calls compute at the same time."""
    async with asyncio.timeout(60):
        await asyncio.gather(*(hold.started.wait() for hold in holds))


async def test_5_fifty_callers_and_one_busy_worker_wait_for_no_longer_than_they_were_told(
    workers: MakeWorkers, edge: MakeEdge
) -> None:
    (worker,) = await workers(1)
    hold = worker.hold()
    rest, mesh = await edge(worker.address, dispatch=DispatchConfig(queue_wait_seconds=1.5))
    first = asyncio.create_task(rest.measure())
    await hold.started.wait()
    with capture_logs() as lines:
        rest_of_them = await asyncio.gather(*(rest.measure() for _ in range(49)))
    assert {response.status_code for response in rest_of_them} == {503}
    assert {response.json()["data"]["reason"] for response in rest_of_them} == {"BUSY"}
    assert all(int(response.headers["retry-after"]) >= 1 for response in rest_of_them)
    assert ejections(lines) == []
    assert (await rest.client.get("/monitor")).status_code == 200, "busy is not sick"
    assert mesh.snapshot().inside == 1
    hold.release.set()
    assert (await first).status_code == 200


async def test_5_the_waiting_ones_are_served_first_come_first_served(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    worker.default = Answer(after_s=0.001)
    mesh = await driver(worker.address, dispatch=DispatchConfig(max_in_flight=10))  # most of them wait outside
    names = [f"request-{number}" for number in range(50)]
    await asyncio.gather(*(mesh.call(call(name)) for name in names))
    assert [seen.metadata[wire.REQUEST_ID_KEY] for seen in worker.seen] == names
    assert worker.computing_most == 1
    assert mesh.online().healthy == 1


async def test_7_six_calls_on_three_free_slots_take_two_rounds(workers: MakeWorkers, driver: MakeDriver) -> None:
    """A picker that binds early has one of them wait for two others."""
    pool = await workers(3)
    mesh = await driver(*(worker.address for worker in pool))
    first_round = [worker.hold(then=Answer()) for worker in pool]
    calls = [asyncio.create_task(mesh.call(call())) for _ in range(6)]
    await all_started(first_round)
    second_round = [worker.hold(then=Answer()) for worker in pool]
    for hold in first_round:
        hold.release.set()
    await all_started(second_round)  # at the same time: nobody waits for two calls
    for hold in second_round:
        hold.release.set()
    await asyncio.gather(*calls)
    assert [len(worker.seen) for worker in pool] == [2, 2, 2]


class Contacted(FakeWorker):
    """Remembers when anybody first asked it for anything."""

    first_s = float("inf")

    async def check_password(self, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        self.first_s = min(self.first_s, asyncio.get_running_loop().time())
        await super().check_password(context)


async def test_8_fifty_workers_are_not_asked_all_at_once(driver: MakeDriver) -> None:
    pool = [Contacted() for _ in range(50)]
    for worker in pool:
        await worker.start()
    try:
        began_s = asyncio.get_running_loop().time()
        mesh = await driver(*(worker.address for worker in pool), health=SELDOM)
        assert mesh.online().healthy == 50
        first_s = [worker.first_s - began_s for worker in pool]
        assert first_s[25] >= 0.24, "spread over half a second: never earlier, on a slow machine perhaps later"
        assert first_s[49] >= 0.48
    finally:
        await asyncio.gather(*(worker.stop() for worker in pool))


async def test_35_growth_is_busy_everywhere_and_a_measurement_gets_the_next_slot(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    pool = await workers(3)
    holds = [worker.hold() for worker in pool]
    mesh = await driver(*(worker.address for worker in pool))
    growing = [asyncio.create_task(mesh.call(call(f"growth-{number}", slow=True))) for number in range(3)]
    await asyncio.gather(*(hold.started.wait() for hold in holds))
    growing += [asyncio.create_task(mesh.call(call(f"growth-{number}", slow=True))) for number in range(3, 6)]
    await until(lambda: mesh.snapshot().waiting_slow == 3)
    second = pool[1].hold()
    measuring = [asyncio.create_task(mesh.call(call(f"measure-{number}"))) for number in range(2)]
    await until(lambda: mesh.snapshot().waiting_fast == 2)

    holds[1].release.set()
    await second.started.wait()
    assert pool[1].seen[-1].metadata[wire.REQUEST_ID_KEY] == "measure-0", "before all growth that came earlier"

    third = pool[0].hold()
    holds[0].release.set()
    await third.started.wait()
    assert pool[0].seen[-1].metadata[wire.REQUEST_ID_KEY] == "growth-3", "growth came earlier, and one worker is left"

    fourth = pool[1].hold()
    second.release.set()
    await fourth.started.wait()
    assert pool[1].seen[-1].metadata[wire.REQUEST_ID_KEY] == "measure-1", "that one is never growth's while one waits"
    for hold in (*holds, second, third, fourth):
        hold.release.set()
    await asyncio.gather(*growing, *measuring)


async def test_35_slow_calls_leave_one_worker_to_the_fast_ones_that_wait(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    pool = await workers(3)
    mesh = await driver(*(worker.address for worker in pool))
    for worker in pool:
        worker.default = Answer(after_s=0.02)
    crowd = [asyncio.create_task(mesh.call(call(f"{number}", slow=number % 2 == 0))) for number in range(60)]
    most_slow = 0
    async with asyncio.timeout(120):
        while not all(each.done() for each in crowd):
            now = mesh.snapshot()
            if now.waiting_fast:
                running = [int(each.call_id.rpartition("-")[2]) for each in now.endpoints if each.call_id]
                most_slow = max(most_slow, sum(number % 2 == 1 for number in running))  # the first call is number 1
            await asyncio.sleep(0)
    await asyncio.gather(*crowd)
    assert most_slow == 2


async def test_b70_fifty_queued_jobs_and_a_probe_every_moment_harm_nobody(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    """The probes go past the queue: not one waits for the work."""
    (worker,) = await workers(1)
    worker.default = Answer(after_s=0.03)
    mesh = await driver(worker.address, health=HealthCheckConfig(interval_seconds=0.05, timeout_seconds=2))
    with capture_logs() as lines:
        crowd = [asyncio.create_task(mesh.call(call())) for _ in range(50)]
        results = await ends(crowd)
    assert [outcome.attempts for outcome in results] == [1] * 50
    assert [line for line in lines if line["event"] == "worker_state"] == []
    assert worker_of(mesh, worker.address).state == "SERVING"
    assert worker.probes >= 10
