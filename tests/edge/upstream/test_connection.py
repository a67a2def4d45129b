"""What the settings of channels are there for: pings that notice and never offend, and a quick return.

Here with intervals made short; `tests/scenarios/test_lines.py` takes the time that the product's own need.
"""

from __future__ import annotations

import asyncio
import signal

import pytest
from hair.analysis.v1 import growth_pb2, measure_pb2
from structlog.testing import capture_logs

from edge.calls import Call
from edge.pool.config import HealthCheckConfig
from edge.pool.events import Code
from edge.upstream import channel
from edge.upstream.attempt import call_metadata
from edge.upstream.channel import Link
from edge.upstream.refusal import Refusal
from hairmesh import wire
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, Spawn, until
from tests.fakes.worker import PASSWORD

CALL = Call("Measure", measure_pb2.MeasureRequest(), "request-1")
SELDOM = HealthCheckConfig(interval_seconds=3_600)
PING_MS = 1_000
"""More often gRPC does not ping."""
KILLED = {"Socket closed", "Connection reset by peer"}
"""Which one the system says depends on whether bytes lay unread."""


@pytest.fixture
def pings_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five times as often as in the product, and as impatient for the answer."""
    quick = {
        "grpc.keepalive_time_ms": PING_MS,
        "grpc.keepalive_timeout_ms": 1_000,
        "grpc.http2.ping_timeout_ms": 1_000,
        "grpc.min_reconnect_backoff_ms": 500,
    }
    options = tuple((name, quick.get(name, value)) for name, value in channel.OPTIONS)
    assert {name for name, _ in options} >= set(quick)
    monkeypatch.setattr(channel, "OPTIONS", options)


@pytest.mark.usefixtures("pings_often")
async def test_b40_pings_offend_no_worker_of_ours_but_every_other_one(
    workers: MakeWorkers, driver: MakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a silent call, and on an idle channel. That others are offended shows that there are pings."""
    (ours,) = await workers(1)
    monkeypatch.setattr(wire, "SERVER_OPTIONS", (("grpc.so_reuseport", 0),))
    (other,) = await workers(1)
    with capture_logs() as lines:
        edges = {worker: await driver(worker.address, health=SELDOM) for worker in (ours, other)}
        hold = ours.hold()
        silent = asyncio.create_task(edges[ours].call(CALL))
        await hold.started.wait()
        await edges[other].call(CALL)
        await asyncio.sleep(5 * PING_MS / 1000)
        hold.release.set()
        await silent
        for worker in (ours, other):
            await edges[worker].call(CALL)
    assert len({seen.peer for seen in ours.seen}) == 1
    assert len({seen.peer for seen in other.seen}) == 2, "gRPC's own settings allow two pings in five minutes"
    assert [line["to"] for line in lines if line.get("worker") == ours.address] == ["SERVING"]


@pytest.mark.usefixtures("pings_often")
async def test_a_frozen_worker_is_noticed_by_its_silence_alone(spawn: Spawn, driver: MakeDriver) -> None:
    process = await spawn()
    mesh = await driver(process.address, health=SELDOM)
    await until(lambda: mesh.online().healthy == 1)
    process.process.send_signal(signal.SIGSTOP)  # no FIN, and no probe is due within the hour
    await until(lambda: mesh.online().healthy == 0)
    process.process.send_signal(signal.SIGCONT)
    await until(lambda: mesh.online().healthy == 1)


@pytest.mark.usefixtures("pings_often")
@pytest.mark.parametrize(
    ("number", "told"),
    [(signal.SIGKILL, KILLED), (signal.SIGSTOP, {"ping timeout"})],
    ids=["killed", "frozen"],
)
async def test_a_killed_worker_is_told_from_a_frozen_one(spawn: Spawn, number: signal.Signals, told: set[str]) -> None:
    process = await spawn(steps=1_000, step_s=0.01)
    link = Link.open(process.address, None)
    began = asyncio.Event()
    metadata = call_metadata((wire.TOKEN_KEY, PASSWORD), "request-1", "call-1", "00-0-0-00")
    attempt = asyncio.ensure_future(
        link.calls["GrowStyles"](
            growth_pb2.GrowStylesRequest(), timeout_s=60, metadata=metadata, progressed=lambda _: began.set()
        )
    )
    await began.wait()
    process.process.send_signal(number)
    refusal = await attempt
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.transport in told) == (Code.UNAVAILABLE, True), refusal
    await link.channel.close()


@pytest.mark.long
async def test_a_frozen_worker_is_noticed_within_16_s_though_nothing_runs(spawn: Spawn, driver: MakeDriver) -> None:
    process = await spawn()
    mesh = await driver(process.address)
    process.process.send_signal(signal.SIGSTOP)
    await until(lambda: mesh.online().healthy == 0, within_s=2 * HealthCheckConfig().interval_seconds)


async def test_a_worker_that_was_gone_for_long_is_back_within_one_probe_interval(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    """Long: so long that the backoff of its channel has grown as far as it goes."""
    (worker,) = await workers(1)
    mesh = await driver(worker.address)
    await worker.stop()
    await until(lambda: mesh.online().healthy == 0)
    options = dict(channel.OPTIONS)
    await asyncio.sleep(2 * options["grpc.max_reconnect_backoff_ms"] / 1000)
    await worker.start()
    await until(lambda: mesh.online().healthy == 1, within_s=HealthCheckConfig().interval_seconds)


async def test_the_log_says_how_the_connection_of_a_failed_attempt_ended(spawn: Spawn, driver: MakeDriver) -> None:
    killed, other = await spawn(after_s=0.5), await spawn(after_s=0.5)
    with capture_logs() as lines:
        mesh = await driver(killed.address, other.address, primary_workers=(killed.address,))
        running = asyncio.create_task(mesh.call(CALL))
        await until(lambda: mesh.snapshot().endpoints[0].stage != "")
        killed.process.kill()
        assert (await running).worker == other.address
    (failed,) = [line for line in lines if line["event"] == "attempt_failed"]
    assert (failed["code"], failed["reason"]) == ("UNAVAILABLE", "")
    assert failed["transport"] in KILLED
    ejected = next(line for line in lines if line.get("to") == "EJECTED")
    assert ejected["evidence"] == f"call: UNAVAILABLE {failed['transport']}"
