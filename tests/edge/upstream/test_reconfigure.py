"""Another configuration while calls run: none is lost, and a wrong one changes nothing."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from hair.analysis.v1 import growth_pb2, measure_pb2

from edge.calls import Call
from edge.pool.config import DispatchConfig, HealthCheckConfig, PoolConfig
from edge.upstream.channel import ChannelSecurity, ChannelSecurityError
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.edge.upstream.tls import Authority
from tests.fakes.worker import PASSWORD, Answer, FakeWorker, Grow, Hold

CALL = Call("Measure", measure_pb2.MeasureRequest(), "request-1")
GROW = Call("GrowStyles", growth_pb2.GrowStylesRequest(), "request-2", slow=True)
SELDOM = HealthCheckConfig(interval_seconds=3_600)
PLAIN = ChannelSecurity()


async def test_workers_come_and_go_under_load_and_no_request_is_lost(workers: MakeWorkers, driver: MakeDriver) -> None:
    leaves, stays, comes = await workers(3)
    for worker in (leaves, stays, comes):
        worker.default = Answer(after_s=0.005)
    mesh = await driver(leaves.address, stays.address)
    calls = [asyncio.create_task(mesh.call(CALL)) for _ in range(60)]
    await until(lambda: sum(each.done() for each in calls) > 10)
    await mesh.reconfigure(PoolConfig((stays.address, comes.address)), PASSWORD, PLAIN)
    outcomes = await asyncio.gather(*calls)
    assert {outcome.attempts for outcome in outcomes} == {1}
    assert {outcome.worker for outcome in outcomes} == {leaves.address, stays.address, comes.address}
    assert {each.target for each in mesh.snapshot().endpoints} == {stays.address, comes.address}
    await until(lambda: leaves.watchers == 0)  # its channel is closed


async def test_a_call_on_a_worker_that_has_left_is_answered(workers: MakeWorkers, driver: MakeDriver) -> None:
    leaves, stays = await workers(2)
    hold = leaves.hold()
    mesh = await driver(leaves.address, stays.address)
    running = asyncio.create_task(mesh.call(CALL))
    await hold.started.wait()
    await mesh.reconfigure(PoolConfig((stays.address,)), PASSWORD, PLAIN)
    assert mesh.online().total == 1
    assert (await mesh.call(CALL)).worker == stays.address
    hold.release.set()
    outcome = await running
    assert (outcome.worker, outcome.attempts) == (leaves.address, 1)
    await until(lambda: leaves.watchers == 0)


async def test_other_numbers_hold_at_once(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address, health=SELDOM)
    probes = worker.probes
    often = PoolConfig(
        (worker.address,),
        health=HealthCheckConfig(interval_seconds=0.05),
        dispatch=DispatchConfig(request_timeout_seconds=7),
    )
    await mesh.reconfigure(often, PASSWORD, PLAIN)
    await until(lambda: worker.probes > probes + 3)
    await mesh.call(CALL)
    time_left_s = worker.seen[-1].time_left_s
    assert time_left_s is not None
    assert time_left_s < 8


@pytest.mark.parametrize(
    ("workers_setting", "password", "security", "says"),
    [
        (("192.0.2.7:1",), PASSWORD, PLAIN, "is not on this machine"),
        (("dns:///workers.test:1",), PASSWORD, PLAIN, "is not on this machine"),
        (("127.0.0.1:1",), "", PLAIN, "shared_password"),
        (("127.0.0.1:1",), PASSWORD, ChannelSecurity(ca=Path("none.pem")), "No such file"),
    ],
)
async def test_what_cannot_work_is_refused_and_changes_nothing(
    workers: MakeWorkers,
    driver: MakeDriver,
    workers_setting: tuple[str, ...],
    password: str,
    security: ChannelSecurity,
    says: str,
) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address)
    with pytest.raises(ChannelSecurityError, match=says):
        await mesh.reconfigure(PoolConfig(workers_setting), password, security)
    assert [each.target for each in mesh.snapshot().endpoints] == [worker.address]
    assert (await mesh.call(CALL)).worker == worker.address


async def test_two_changes_at_once_end_with_the_later_one(workers: MakeWorkers, driver: MakeDriver) -> None:
    first, second, third = await workers(3)
    mesh = await driver(first.address)
    changes = [mesh.reconfigure(PoolConfig((each.address,)), PASSWORD, PLAIN) for each in (second, third)]
    await asyncio.gather(*changes)
    await until(lambda: mesh.online().healthy == 1 and (first.watchers, second.watchers) == (0, 0))
    assert (await mesh.call(CALL)).worker == third.address


@pytest.mark.parametrize("at_once", [True, False], ids=["with the renewal", "before it"])
async def test_limits_that_became_shorter_cut_off_no_call_on_the_channel_before_a_renewal(
    authority: Authority, driver: MakeDriver, tmp_path: Path, *, at_once: bool
) -> None:
    worker = FakeWorker(credentials=authority.worker_credentials())
    await worker.start()
    hold = Hold()
    worker.growth = Grow(steps=4, midway_at=2, midway=hold)
    security = ChannelSecurity(ca=authority.folder / "ca.pem", cert=tmp_path / "edge.pem", key=tmp_path / "edge.key")
    short_s = 0.05
    shorter = PoolConfig(
        (worker.address,),
        health=HealthCheckConfig(interval_seconds=3_600, timeout_seconds=short_s),
        dispatch=DispatchConfig(request_timeout_seconds=short_s, growth_timeout_seconds=short_s),
    )

    def have(name: str) -> None:
        for ending in ("pem", "key"):
            shutil.copy(authority.folder / f"{name}.{ending}", tmp_path / f"edge.{ending}")

    try:
        have("edge")
        mesh = await driver(worker.address, security=security, health=SELDOM)
        running = asyncio.create_task(mesh.call(GROW))
        await hold.started.wait()
        if not at_once:
            await mesh.reconfigure(shorter, PASSWORD, security)
        have("successor")
        await mesh.reconfigure(shorter, PASSWORD, security)
        await asyncio.wait([running], timeout=10 * short_s)
        assert not running.done()
        hold.release.set()
        assert len((await running).results) == 2
        await mesh.close()
    finally:
        await worker.stop()


async def test_renewed_certificates_make_channels_anew_and_running_calls_end_on_the_old_ones(
    authority: Authority, driver: MakeDriver, tmp_path: Path
) -> None:
    """The files keep their names: what they hold is another certificate."""
    worker, idle = (FakeWorker(credentials=authority.worker_credentials()) for _ in range(2))
    await worker.start()
    await idle.start()
    hold = Hold()
    worker.growth = Grow(steps=4, midway_at=2, midway=hold)
    security = ChannelSecurity(ca=authority.folder / "ca.pem", cert=tmp_path / "edge.pem", key=tmp_path / "edge.key")

    def have(name: str) -> None:
        for ending in ("pem", "key"):
            shutil.copy(authority.folder / f"{name}.{ending}", tmp_path / f"edge.{ending}")

    try:
        have("edge")
        mesh = await driver(worker.address, idle.address, security=security, health=SELDOM)
        running = asyncio.create_task(mesh.call(GROW))
        await hold.started.wait()
        before = (await mesh.call(CALL)).worker, idle.seen[-1].peer
        same = PoolConfig((worker.address, idle.address), health=SELDOM)
        await mesh.reconfigure(same, PASSWORD, security)
        await mesh.call(CALL)
        assert (idle.address, idle.seen[-1].peer) == before, "nothing has changed: the same connection"

        have("successor")
        await mesh.reconfigure(same, PASSWORD, security)
        await mesh.call(CALL)
        assert idle.seen[-1].peer != before[1], "another connection"
        hold.release.set()
        outcome = await running
        assert (outcome.attempts, len(outcome.results)) == (1, 2)
        assert mesh.online().healthy == 2
        await until(lambda: (worker.watchers, idle.watchers) == (2, 2))
        await mesh.close()
    finally:
        await asyncio.gather(worker.stop(), idle.stop())
