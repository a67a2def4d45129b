"""Calls through the pool to workers on real sockets: answers, refusals, queue, retries, cancelling, killing."""

from __future__ import annotations

import asyncio
import signal
import socket

import grpc
import pytest
import structlog
from hair.analysis.v1 import analyze_service_pb2_grpc, measure_pb2
from hair.worker.v1 import worker_service_pb2 as worker_pb2
from structlog.testing import capture_logs

from edge.calls import Call, CallFailedError, Outcome
from edge.pool.config import DispatchConfig, HealthCheckConfig
from edge.upstream.driver import Driver
from hairmesh import wire
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, Spawn, until
from tests.fakes.worker import PASSWORD, Answer, Refuse


def call(request_id: str = "request-1", *, timeout_s: float | None = None, photo: bytes = b"photo") -> Call:
    message = measure_pb2.MeasureRequest()
    message.photo.data = photo
    return Call("Measure", message, request_id, timeout_s=timeout_s)


async def failure(driver: Driver, what: Call) -> CallFailedError:
    with pytest.raises(CallFailedError) as caught:
        await driver.call(what)
    return caught.value


async def test_an_answer_comes_with_how_it_came_about(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    worker.default = Answer(png_bytes=300_000)
    mesh = await driver(worker.address, dispatch=DispatchConfig(request_timeout_seconds=170))
    outcome = await mesh.call(call(photo=bytes(200_000)))
    assert isinstance(outcome.response, measure_pb2.MeasureResponse)
    assert len(outcome.response.annotated_image.data) == 300_000
    assert (outcome.worker, outcome.attempts, outcome.queue_s) == (worker.address, 1, 0.0)
    (seen,) = worker.seen
    assert measure_pb2.MeasureRequest.FromString(seen.request).photo.data == bytes(200_000)
    assert seen.metadata[wire.TOKEN_KEY] == PASSWORD
    assert seen.metadata[wire.REQUEST_ID_KEY] == "request-1"
    assert seen.time_left_s is not None
    assert 110 < seen.time_left_s < 172, "the deadline travels, rounded as its header is"


async def test_every_call_has_an_id_of_its_own_over_all_edges(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    for mesh in (await driver(worker.address), await driver(worker.address)):
        await mesh.call(call())
        await mesh.call(call())
    assert len({seen.call_id for seen in worker.seen}) == 4


@pytest.mark.parametrize(
    ("refusal", "reason", "details", "field"),
    [
        (Refuse(grpc.StatusCode.FAILED_PRECONDITION, "NO_FACE"), "NO_FACE", {}, ""),
        (
            Refuse(grpc.StatusCode.FAILED_PRECONDITION, "YAW", {"yaw_deg": "-31.5", "max": "25", "side": "left"}),
            "YAW",
            {"yaw_deg": -31.5, "max": 25, "side": "left"},
            "",
        ),
        (
            Refuse(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PARAMETER", {"max": "80"}, "pupillary_distance_mm"),
            "INVALID_PARAMETER",
            {"max": 80},
            "pupillary_distance_mm",
        ),
        (Refuse(grpc.StatusCode.FAILED_PRECONDITION, "INPUT_FAILED"), "INPUT_FAILED", {}, ""),
    ],
)
async def test_a_worker_s_refusal_of_the_input_reaches_the_client_and_costs_nothing(
    workers: MakeWorkers,
    driver: MakeDriver,
    refusal: Refuse,
    reason: str,
    details: dict[str, object],
    field: str,
) -> None:
    first, second = await workers(2)
    first.default = second.default = refusal
    mesh = await driver(first.address, second.address)
    error = await failure(mesh, call())
    assert (error.reason, error.details, error.field) == (reason, details, field)
    assert error.attempts == 1
    assert mesh.online().healthy == 2
    assert len(first.seen) + len(second.seen) == 1


async def test_a_failed_attempt_is_tried_again_on_the_other_worker(workers: MakeWorkers, driver: MakeDriver) -> None:
    first, second = await workers(2)
    first.default = Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED")
    mesh = await driver(first.address, second.address)
    outcome = await mesh.call(call())
    assert (outcome.worker, outcome.attempts) == (second.address, 2)
    assert mesh.online().healthy == 1
    assert repr(mesh.snapshot().endpoints[0].cause) == "'passive'"
    assert 50 < mesh.snapshot().endpoints[0].cooldown_left_s <= 66


async def test_the_only_worker_fails_once(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    worker.script.append(Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED"))
    mesh = await driver(worker.address, health=HealthCheckConfig(cooldown_seconds=1.0))
    error = await failure(mesh, call())
    assert error.reason == "NO_WORKER"
    assert error.retry_after_s is not None
    assert error.retry_after_s >= 1
    assert (await failure(mesh, call())).reason == "NO_WORKER"
    assert mesh.online().healthy == 0
    await until(lambda: mesh.online().healthy == 1)
    assert (await mesh.call(call())).attempts == 1


async def test_fifty_callers_and_one_slot_are_served_in_order(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    worker.default = Answer(after_s=0.001)
    mesh = await driver(worker.address)
    outcomes = await asyncio.gather(*(mesh.call(call(f"request-{number}")) for number in range(50)))
    assert [outcome.attempts for outcome in outcomes] == [1] * 50
    assert [seen.metadata[wire.REQUEST_ID_KEY] for seen in worker.seen] == [f"request-{number}" for number in range(50)]
    assert worker.computing_most == 1
    assert outcomes[-1].queue_s > outcomes[0].queue_s == 0.0


async def test_a_request_gets_its_worker_when_a_slot_is_free(workers: MakeWorkers, driver: MakeDriver) -> None:
    three = await workers(3)
    holds = [worker.hold() for worker in three]
    mesh = await driver(*(worker.address for worker in three))
    calls = [asyncio.create_task(mesh.call(call(f"request-{number}"))) for number in range(6)]
    await asyncio.gather(*(hold.started.wait() for hold in holds))
    assert mesh.snapshot().waiting_fast == 3
    holds[1].release.set()
    await until(lambda: sum(len(worker.seen) for worker in three) == len(calls))
    assert [len(worker.seen) for worker in three] == [1, 4, 1], "the free one serves all who wait"
    for hold in holds:
        hold.release.set()
    await asyncio.gather(*calls)


async def test_a_slot_that_another_edge_holds_is_waited_for(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address)
    hold = worker.hold()
    async with grpc.aio.insecure_channel(worker.address) as channel:
        other = analyze_service_pb2_grpc.AnalyzeServiceStub(channel)
        metadata = ((wire.TOKEN_KEY, PASSWORD), (wire.CALL_ID_KEY, "other-edge-1"))
        theirs = other.Measure(measure_pb2.MeasureRequest(), metadata=metadata)
        await hold.started.wait()
        ours = asyncio.create_task(mesh.call(call()))
        await until(lambda: mesh.snapshot().endpoints[0].taken_by_others or len(worker.seen) > 1)
        hold.release.set()
        await theirs
        outcome = await ours
    assert outcome.worker == worker.address
    assert mesh.online().healthy == 1


async def test_two_edges_share_workers_without_knowing_of_each_other(workers: MakeWorkers, driver: MakeDriver) -> None:
    two = await workers(2)
    for worker in two:
        worker.default = Answer(after_s=0.003)
    addresses = [worker.address for worker in two]
    edges = [await driver(*addresses), await driver(*addresses)]
    outcomes = await asyncio.gather(*(edge.call(call()) for _ in range(30) for edge in edges))
    assert len(outcomes) == 60
    assert [worker.computing_most for worker in two] == [1, 1]
    assert [edge.online().healthy for edge in edges] == [2, 2]


async def test_a_queued_call_is_answered_at_its_own_deadline(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    hold = worker.hold()
    mesh = await driver(worker.address)
    running = asyncio.create_task(mesh.call(call()))
    await hold.started.wait()
    error = await failure(mesh, call(timeout_s=0.1))
    assert (error.reason, error.attempts) == ("DEADLINE", 0)
    assert error.retry_after_s is not None
    assert not running.done()
    hold.release.set()
    await running


async def test_a_running_call_ends_at_its_deadline_and_its_thread_keeps_the_slot(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    hold = worker.hold()
    mesh = await driver(worker.address)
    late = asyncio.create_task(failure(mesh, call(timeout_s=1.0)))
    await hold.started.wait()
    error = await late
    assert (error.reason, error.attempts) == ("DEADLINE", 1)
    assert mesh.online().healthy == 1, "a client's impatience is no strike"
    next_ = asyncio.create_task(mesh.call(call()))
    await until(lambda: mesh.snapshot().endpoints[0].stage == "parsing")
    assert len(worker.seen) == 1
    assert mesh.snapshot().endpoints[0].left_behind
    hold.release.set()
    assert (await next_).attempts == 1
    assert worker.computing_most == 1


async def test_a_client_that_leaves_cancels_the_rpc_and_the_slot_follows_the_thread(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    hold = worker.hold()
    mesh = await driver(worker.address)
    leaving = asyncio.create_task(mesh.call(call()))
    await hold.started.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await until(lambda: worker.status().slot.state == worker_pb2.SLOT_STATE_ABANDONED)
    next_ = asyncio.create_task(mesh.call(call()))
    await until(lambda: mesh.snapshot().endpoints[0].stage == "parsing")
    assert len(worker.seen) == 1
    hold.release.set()
    await next_


async def test_a_client_that_leaves_the_queue_is_never_sent(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    hold = worker.hold()
    mesh = await driver(worker.address)
    running = asyncio.create_task(mesh.call(call("runs")))
    await hold.started.wait()
    leaving, staying = asyncio.create_task(mesh.call(call("leaves"))), asyncio.create_task(mesh.call(call("stays")))
    await until(lambda: mesh.snapshot().waiting_fast == 2)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    hold.release.set()
    await asyncio.gather(running, staying)
    assert [seen.metadata[wire.REQUEST_ID_KEY] for seen in worker.seen] == ["runs", "stays"]


async def test_a_burst_of_leaving_clients_frees_every_slot(workers: MakeWorkers, driver: MakeDriver) -> None:
    two = await workers(2)
    for worker in two:
        worker.default = Answer(after_s=0.02)
    mesh = await driver(*(worker.address for worker in two))
    for _ in range(5):
        crowd = [asyncio.create_task(mesh.call(call())) for _ in range(20)]
        await until(lambda: mesh.snapshot().inside == 20)
        for each in crowd:
            each.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)
        assert mesh.snapshot().inside == 0
        await asyncio.gather(mesh.call(call()), mesh.call(call()))
    assert [worker.computing_most for worker in two] == [1, 1]
    assert mesh.online().healthy == 2


async def test_sigkill_of_one_of_two_costs_no_client_anything_and_of_the_last_one_is_told_at_once(
    spawn: Spawn, driver: MakeDriver
) -> None:
    first, second = await spawn(after_s=0.02), await spawn(after_s=0.02)
    mesh = await driver(first.address, second.address, health=HealthCheckConfig(cooldown_seconds=1))
    calls = [asyncio.create_task(mesh.call(call())) for _ in range(20)]
    await until(lambda: sum(each.done() for each in calls) > 4)
    await first.end()
    outcomes: list[Outcome] = await asyncio.gather(*calls)
    assert {outcome.worker for outcome in outcomes[6:]} >= {second.address}
    await until(lambda: mesh.online().healthy == 1)

    calls = [asyncio.create_task(mesh.call(call())) for _ in range(5)]
    await until(lambda: mesh.snapshot().endpoints[1].in_flight_s is not None)
    await second.end()
    async with asyncio.timeout(15):  # nobody waits for the queue's 30 s or an attempt's 60 s
        results = await asyncio.gather(*calls, return_exceptions=True)
    assert {str(result) for result in results if isinstance(result, CallFailedError)} == {"NO_WORKER"}
    assert isinstance(results[-1], CallFailedError)
    assert mesh.online().healthy == 0

    await spawn(port=first.port)
    await until(lambda: mesh.online().healthy == 1)
    assert (await mesh.call(call())).worker == first.address


async def test_sigterm_under_load_costs_no_client_anything_and_nobody_is_ejected(
    spawn: Spawn, driver: MakeDriver
) -> None:
    first, second = await spawn(after_s=0.01), await spawn(after_s=0.01)
    mesh = await driver(first.address, second.address)
    calls = [asyncio.create_task(mesh.call(call())) for _ in range(60)]
    await until(lambda: sum(each.done() for each in calls) > 10)
    with capture_logs() as lines:
        assert await first.end(signal.SIGTERM) == 0
        await asyncio.gather(*calls)
        await spawn(port=first.port)
        await until(lambda: mesh.online().healthy == 2)
    assert "EJECTED" not in {line.get("to") for line in lines}
    assert "DRAINING" in {line.get("to") for line in lines}


@pytest.mark.long
async def test_a_frozen_process_is_noticed_and_its_call_goes_elsewhere(spawn: Spawn, driver: MakeDriver) -> None:
    frozen, other = await spawn(after_s=0.5), await spawn(after_s=0.5)
    mesh = await driver(frozen.address, other.address)
    running = asyncio.create_task(mesh.call(call()))
    await until(lambda: mesh.snapshot().endpoints[0].in_flight_s is not None)
    frozen.process.send_signal(signal.SIGSTOP)  # no FIN: only pings or probes can tell
    async with asyncio.timeout(2 * HealthCheckConfig().interval_seconds):
        outcome = await running
    assert (outcome.worker, outcome.attempts) == (other.address, 2)
    assert mesh.online().healthy == 1


async def test_start_waits_for_the_first_round_but_not_for_the_silent(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    with socket.create_server(("127.0.0.1", 0)) as silent, capture_logs() as lines:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        mesh = await driver(worker.address, address, health=HealthCheckConfig(timeout_seconds=1.5))
        counts = mesh.online()
        await mesh.close()
    assert (counts.total, counts.healthy) == (2, 1)
    started = next(line for line in lines if line["event"] == "pool_started")
    assert (started["workers_total"], started["workers_online"]) == (2, 1)
    assert [line["workers"] for line in lines if line["event"] == "workers_never_online"] == [[address]]


async def test_primaries_count_and_get_the_calls(workers: MakeWorkers, driver: MakeDriver) -> None:
    primary, backup = await workers(2)
    mesh = await driver(primary.address, backup.address, primary_workers=(primary.address,))
    assert {(await mesh.call(call())).worker for _ in range(4)} == {primary.address}
    counts = mesh.online()
    assert (counts.total, counts.healthy, counts.primary_total, counts.primary_healthy) == (2, 2, 1, 1)
    primary.tell(serving=False, cause="disk")
    await until(lambda: mesh.online().primary_healthy == 0)
    assert (await mesh.call(call())).worker == backup.address


async def test_a_wrong_password_is_seen_and_never_written_anywhere(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    with capture_logs() as lines:
        mesh = await driver(worker.address, password="not-the-secret")
        await until(lambda: mesh.snapshot().endpoints[0].cause == "auth")
        error = await failure(mesh, call())
        await mesh.close()
    assert error.reason == "NO_WORKER"
    assert "not-the-secret" not in f"{lines} {mesh!r} {mesh.snapshot()} {error!r} {vars(error)}"


async def test_closing_ends_every_call(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    hold = worker.hold()
    mesh = await driver(worker.address)
    running, queued = asyncio.create_task(mesh.call(call())), asyncio.create_task(mesh.call(call()))
    await hold.started.wait()
    await until(lambda: mesh.snapshot().waiting_fast == 1)
    await mesh.close()
    results = await asyncio.gather(running, queued, return_exceptions=True)
    assert [str(result) for result in results] == ["NO_WORKER", "NO_WORKER"]
    assert all(isinstance(result, CallFailedError) for result in results)
    assert (await failure(mesh, call())).reason == "NO_WORKER", "one who comes too late is told as well"


async def test_an_unknown_method_is_the_callers_mistake_and_leaves_nothing_behind(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address)
    with pytest.raises(KeyError, match="Nonsense"):
        await mesh.call(Call("Nonsense", measure_pb2.MeasureRequest(), "request-1"))
    assert (await mesh.call(call())).attempts == 1


async def test_a_worker_s_wait_is_passed_on(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    worker.default = Refuse(grpc.StatusCode.FAILED_PRECONDITION, "INPUT_FAILED", retry_after_s=2.5)
    mesh = await driver(worker.address)
    assert (await failure(mesh, call())).retry_after_s == 2.5


async def test_what_a_call_brings_about_is_logged_as_no_part_of_it(workers: MakeWorkers, driver: MakeDriver) -> None:
    """Neither at once nor by the probes and streams that begin in its course."""
    (worker,) = await workers(1)
    worker.script.append(Refuse(grpc.StatusCode.INTERNAL))
    mesh = await driver(
        worker.address, health=HealthCheckConfig(cooldown_seconds=0.05), dispatch=DispatchConfig(max_retries=0)
    )
    with capture_logs([structlog.contextvars.merge_contextvars]) as logs:
        with structlog.contextvars.bound_contextvars(route="/of/the/request"):
            await failure(mesh, call())
        await until(lambda: mesh.online().healthy == 1)
    assert {"EJECTED", "SERVING"} <= {line.get("to") for line in logs}
    assert all("route" not in line for line in logs)
