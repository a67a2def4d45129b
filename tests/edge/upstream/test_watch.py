"""What the driver notices of its workers without any call: streams, lost connections, probes."""

from __future__ import annotations

import asyncio

import grpc
from hair.analysis.v1 import measure_pb2
from structlog.testing import capture_logs

from edge.calls import Call
from edge.pool.config import HealthCheckConfig
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, Spawn, until
from tests.fakes.worker import PASSWORD, Refuse

SELDOM = HealthCheckConfig(interval_seconds=3_600)
"""No probe comes by itself within a test."""


async def test_what_a_worker_tells_takes_effect_at_once_with_its_cause(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address, health=SELDOM)
    worker.tell(serving=False, cause="disk")
    await until(lambda: mesh.snapshot().endpoints[0].cause == "disk")
    assert mesh.online().healthy == 0
    probes = worker.probes
    worker.tell(serving=True)
    await until(lambda: mesh.online().healthy == 1)
    assert worker.probes > probes, "brought back by a probe, not by its word"


async def test_a_killed_process_is_noticed_without_a_call_and_its_successor_too(
    spawn: Spawn, driver: MakeDriver
) -> None:
    process = await spawn()
    mesh = await driver(process.address, health=SELDOM)
    await until(lambda: mesh.snapshot().endpoints[0].state == "SERVING")
    await process.end()
    await until(lambda: mesh.online().healthy == 0)
    assert mesh.snapshot().endpoints[0].cause == "unreachable"
    await spawn(port=process.port)
    await until(lambda: mesh.online().healthy == 1)


async def test_a_worker_that_comes_late_is_found(spawn: Spawn, driver: MakeDriver) -> None:
    process = await spawn()
    await process.end()
    mesh = await driver(process.address, health=SELDOM)
    assert mesh.online().healthy == 0
    await spawn(port=process.port)
    await until(lambda: mesh.online().healthy == 1)


async def test_one_bad_probe_is_forgiven_two_are_not(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    worker.watch_tells = False
    worker.probe_script.extend([True, grpc.StatusCode.INTERNAL, True, False, False])
    with capture_logs() as lines:
        mesh = await driver(worker.address, health=HealthCheckConfig(interval_seconds=0.05))
        await until(lambda: worker.probes >= 6)
        await until(lambda: mesh.online().healthy == 1)
    changes = [(line["from"], line["to"], line["cause"]) for line in lines if line["event"] == "worker_state"]
    assert changes == [
        ("UNKNOWN", "SERVING", ""),
        ("SERVING", "NOT_SERVING", "probe"),
        ("NOT_SERVING", "SERVING", ""),
    ]


async def test_a_probe_without_an_answer_is_a_bad_one(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    worker.probe_script.extend([True, 30.0, 30.0])
    mesh = await driver(worker.address, health=HealthCheckConfig(interval_seconds=0.05, timeout_seconds=0.2))
    await until(lambda: mesh.snapshot().endpoints[0].evidence == "probe: DEADLINE_EXCEEDED")
    await until(lambda: mesh.online().healthy == 1)


async def test_inside_a_cooldown_neither_word_nor_probes_nor_a_new_process_help(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    bad, good = await workers(2)
    bad.default = Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED")
    mesh = await driver(bad.address, good.address, health=HealthCheckConfig(interval_seconds=0.05))
    await mesh.call(Call("Measure", measure_pb2.MeasureRequest(), "request-1"))
    bad.tell(serving=False, cause="disk")
    bad.tell(serving=True)
    await bad.stop()
    await bad.start()
    probes = bad.probes
    await until(lambda: bad.probes >= probes + 3)
    assert mesh.snapshot().endpoints[0].state == "EJECTED"
    assert mesh.online().healthy == 1


async def test_a_drained_worker_comes_back_as_a_new_process(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address, health=SELDOM)
    await until(lambda: worker.boot_id != "" and mesh.online().healthy == 1)
    await worker.drain(delay_s=0.2)
    assert mesh.snapshot().endpoints[0].state == "DRAINING"
    await worker.start()
    await until(lambda: mesh.online().healthy == 1)


async def test_a_refused_stream_is_said_in_the_log(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    with capture_logs() as lines:
        await driver(worker.address, password="wrong")
        await until(lambda: {line.get("stream") for line in lines} >= {"Watch", "WatchStatus"})
    assert {line["code"] for line in lines if line["event"] == "stream_refused"} == {"UNAUTHENTICATED"}


async def test_a_stream_refused_again_after_it_was_heard_is_said_again(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)

    def refusals() -> int:
        return sum(line.get("stream") == "WatchStatus" for line in lines)

    with capture_logs() as lines:
        mesh = await driver(worker.address, password="new", health=HealthCheckConfig(interval_seconds=0.05))
        await until(lambda: refusals() == 1)
        worker.password = "new"
        worker.tell(serving=False, cause="disk")
        await until(lambda: mesh.snapshot().endpoints[0].cause == "disk")
        worker.password = PASSWORD
        await worker.stop()
        await worker.start()
        await until(lambda: refusals() == 2)


async def test_many_workers_are_probed_and_watched_at_once(workers: MakeWorkers, driver: MakeDriver) -> None:
    many = await workers(12)
    mesh = await driver(*(worker.address for worker in many))
    assert mesh.online().healthy == 12
    async with asyncio.timeout(60):
        await asyncio.gather(
            *(mesh.call(Call("Measure", measure_pb2.MeasureRequest(), f"request-{n}")) for n in range(60))
        )
    assert all(worker.seen for worker in many), "the one idle for longest is next"


async def test_a_worker_behind_a_slow_line_is_reached_by_the_first_probe(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    port = int(worker.address.rpartition(":")[2])

    async def carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            await asyncio.sleep(0.3)
            target.write(data)

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", port)
        ends.extend((writer, forth))
        await asyncio.gather(carry(reader, forth), carry(back, writer))
        ended.set()

    ends: list[asyncio.StreamWriter] = []
    ended = asyncio.Event()
    async with await asyncio.start_server(forward, "127.0.0.1", 0) as line:
        mesh = await driver(f"127.0.0.1:{line.sockets[0].getsockname()[1]}", health=SELDOM)
        assert mesh.online().healthy == 1
        await mesh.close()
        for end in ends:
            end.close()
        await ended.wait()
