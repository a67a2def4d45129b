"""A password rotated in either order, with traffic: no failed request, no strike. Whoever is behind is named."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from hair.analysis.v1 import growth_pb2, measure_pb2
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.testing import capture_logs

from edge.calls import Call
from edge.pool.config import HealthCheckConfig, PoolConfig
from edge.upstream.channel import ChannelSecurity
from edge.upstream.driver import Driver
from edge.upstream.passwords import Key, Passwords
from hairmesh import wire
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import PASSWORD, Answer, FakeWorker

OFTEN = HealthCheckConfig(interval_seconds=0.05)
SELDOM = HealthCheckConfig(interval_seconds=3_600)
NEW = "the-new-secret"

FAST = Call("Measure", measure_pb2.MeasureRequest(), "request-1")
SLOW = Call("GrowStyles", growth_pb2.GrowStylesRequest(), "request-2", slow=True)


async def use(mesh: Driver, password: str, health: HealthCheckConfig = SELDOM) -> None:
    """Tell the edge of another password."""
    workers = tuple(each.target for each in mesh.snapshot().endpoints)
    await mesh.reconfigure(PoolConfig(workers, health=health), password, ChannelSecurity())


class Traffic:
    """Calls of both kinds, one after another, until it is left; every one must be answered by its first attempt."""

    def __init__(self, mesh: Driver, probed: Sequence[FakeWorker]) -> None:
        self._mesh = mesh
        self._probed = probed
        self._over = False
        self.answered = 0

    async def __aenter__(self) -> Traffic:
        self._task = asyncio.create_task(self._run())
        await self.some_more()
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._over = True
        await self._task

    async def some_more(self) -> None:
        """Until calls that begin now have been answered, and as many probes that would take a worker out."""
        enough, probes = self.answered + 5, [worker.probes for worker in self._probed]
        await until(lambda: self.answered >= enough or self._task.done())
        await until(lambda: all(worker.probes >= n + 4 for worker, n in zip(self._probed, probes, strict=True)))

    async def _run(self) -> None:
        while not self._over:
            for outcome in await asyncio.gather(self._mesh.call(FAST), self._mesh.call(SLOW)):
                assert outcome.attempts == 1
            self.answered += 1


def learn(worker: FakeWorker) -> None:
    """It is told of the new password, and takes both for a while."""
    worker.password, worker.former_password = NEW, PASSWORD


def forget(worker: FakeWorker) -> None:
    """The old one is taken no more."""
    worker.former_password = ""


@pytest.mark.parametrize("health", [OFTEN, SELDOM], ids=["probes come first", "calls come first"])
@pytest.mark.parametrize("order", ["edge first", "workers first"])
async def test_a_rotation_with_traffic_costs_no_request_and_no_strike(
    workers: MakeWorkers, driver: MakeDriver, order: str, health: HealthCheckConfig
) -> None:
    two = await workers(2)
    for worker in two:
        worker.default = Answer(after_s=0.002)
    with capture_logs() as lines:
        mesh = await driver(*(worker.address for worker in two), health=health)
        async with Traffic(mesh, two if health is OFTEN else ()) as traffic:
            if order == "edge first":
                await use(mesh, NEW, health)
                await traffic.some_more()
            for worker in two:
                learn(worker)
                await traffic.some_more()
            if order == "workers first":
                await use(mesh, NEW, health)
                await traffic.some_more()
            for worker in two:
                forget(worker)
                await traffic.some_more()
        assert mesh.online().healthy == 2
    assert {line["to"] for line in lines if line["event"] == "worker_state"} == {"SERVING"}
    for secret in (PASSWORD, NEW):
        assert secret not in f"{lines} {mesh!r} {mesh.snapshot()} {vars(mesh)}"


def said_of(lines: Sequence[Mapping[str, object]], worker: FakeWorker) -> list[str]:
    """What the log says of its password, in order."""
    return [
        f"{line['log_level']} {line['event']}"
        for line in lines
        if line.get("worker") == worker.address and line["event"] in {"former_password_used", "password_current"}
    ]


def former(mesh: Driver) -> list[str]:
    """Workers that are spoken to with the former password, since they take no other."""
    return [address for address, contact in mesh.contacts().items() if contact.former_password]


async def test_a_worker_that_takes_the_former_password_only_is_named_once_until_it_has_learnt(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    behind, learnt = await workers(2)
    with capture_logs() as lines:
        mesh = await driver(behind.address, learnt.address, health=OFTEN)
        assert former(mesh) == []
        async with Traffic(mesh, (behind, learnt)) as traffic:
            learn(learnt)
            await use(mesh, NEW, OFTEN)
            await until(lambda: former(mesh) == [behind.address])
            await traffic.some_more()
            assert said_of(lines, behind) == ["warning former_password_used"]
            assert said_of(lines, learnt) == ["info password_current"]
            learn(behind)
            await until(lambda: former(mesh) == [])
            await traffic.some_more()
            assert said_of(lines, behind) == ["warning former_password_used", "info password_current"]
            behind.password, behind.former_password = PASSWORD, ""  # as after a restart with its old configuration
            await until(lambda: former(mesh) == [behind.address])
            await traffic.some_more()
    assert said_of(lines, behind)[2:] == ["warning former_password_used"]
    assert said_of(lines, learnt) == ["info password_current"]
    assert mesh.online().healthy == 2
    for secret in (PASSWORD, NEW):
        assert secret not in f"{lines} {mesh.contacts()}"


async def test_as_long_as_nothing_changes_nothing_is_said_of_passwords(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    with capture_logs() as lines:
        mesh = await driver(worker.address, health=OFTEN)
        await until(lambda: worker.probes >= 3)
        await mesh.call(FAST)
        await use(mesh, PASSWORD, OFTEN)
        await until(lambda: worker.probes >= 6)
    assert said_of(lines, worker) == []


async def test_a_call_that_finds_the_former_password_in_use_is_no_part_of_the_warning(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address, health=SELDOM)
    await use(mesh, NEW)
    learn(worker)
    await mesh.call(FAST)  # with the former one, which it still takes
    forget(worker)
    with capture_logs([merge_contextvars]) as lines, bound_contextvars(request_id="request-1"):
        await mesh.call(FAST)
        worker.password = PASSWORD
        await mesh.call(FAST)
    assert said_of(lines, worker) == ["info password_current", "warning former_password_used"]
    assert all("request_id" not in line for line in lines)


async def test_steady_state_costs_one_rpc_whichever_password_a_worker_takes(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address, health=SELDOM)
    await use(mesh, NEW)
    for takes in (PASSWORD, NEW, PASSWORD):
        worker.password = takes
        await mesh.call(FAST)
        seen = len(worker.seen)
        for _ in range(5):
            await mesh.call(FAST)
        assert len(worker.seen) == seen + 5


async def test_a_worker_that_has_learnt_the_new_one_is_not_sent_the_old_one_for_ever(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address, health=OFTEN)
    await use(mesh, NEW, OFTEN)
    learn(worker)
    probes = worker.probes
    await until(lambda: worker.probes >= probes + 3)  # one was on its way with the old, one has brought the answer
    await mesh.call(FAST)
    assert worker.seen[-1].metadata[wire.TOKEN_KEY] == NEW


async def test_streams_are_opened_with_whichever_password_the_worker_takes(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address, health=SELDOM)
    await use(mesh, NEW)
    await worker.stop()
    await worker.start()  # every stream anew, and the old password still
    with capture_logs() as lines:
        await until(lambda: mesh.online().healthy == 1)
        worker.tell(serving=False, cause="disk")
        await until(lambda: mesh.snapshot().endpoints[0].cause == "disk")
    assert "stream_refused" not in {line["event"] for line in lines}


async def test_a_wrong_password_is_mended_by_the_right_one(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address, password="wrong", health=OFTEN)
    await until(lambda: mesh.snapshot().endpoints[0].cause == "auth")
    await use(mesh, PASSWORD)
    await until(lambda: mesh.online().healthy == 1)
    assert (await mesh.call(FAST)).attempts == 1


async def test_a_worker_ejected_for_its_password_is_back_as_soon_as_there_is_another(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    changed, other = await workers(2)
    mesh = await driver(changed.address, other.address, health=SELDOM)
    changed.password = NEW  # behind the edge's back
    assert (await mesh.call(FAST)).worker == other.address
    assert (mesh.snapshot().endpoints[0].state, mesh.snapshot().endpoints[0].cause) == ("EJECTED", "auth")
    learn(other)
    await use(mesh, NEW)
    await until(lambda: mesh.online().healthy == 2)


def test_at_most_two_are_known_and_the_one_that_worked_is_tried_first() -> None:
    passwords = Passwords("one")
    key = Key(passwords, "10.0.0.11:28187")
    assert [password for _, password in key.tokens()] == ["one"]
    assert not passwords.change("one")
    assert passwords.change("two")
    assert [password for _, password in key.tokens()] == ["one", "two"]
    assert [password for _, password in key.newest_first()] == ["two", "one"]
    key.worked((wire.TOKEN_KEY, "two"))
    assert [password for _, password in key.tokens()] == ["two", "one"]
    assert passwords.change("three")
    assert [password for _, password in key.tokens()] == ["two", "three"]
    assert "three" not in f"{passwords!r} {key!r} {vars(key)!r}"
