"""`grpc.health.v1` and `GetStatus` over a real socket."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2
from hair.worker.v1 import worker_service_pb2 as pb
from structlog.testing import capture_logs

from hairmesh.wire import ANALYZE_SERVICE
from tests.worker.fakes import FROZEN, HOLDS, LOSES_ACCELERATOR, NO_FACE, OK, FakePipeline, MissingModels
from tests.worker.harness import (
    NOT_SERVING,
    PATIENCE_S,
    QUICK,
    SERVING,
    TOKEN,
    Client,
    refused,
    released,
    running,
    started,
)
from tests.worker.web import Web, listening
from vision.errors import ModelError
from worker import calls
from worker.health.monitor import HealthMonitor
from worker.health.report import Report

NAMES = {"", ANALYZE_SERVICE, "liveness", "disk", "models", "accelerator", "progress", "capability/growth"}


async def test_every_documented_name_is_listed_and_checked(client: Client) -> None:
    request = health_pb2.HealthListRequest()  # type: ignore[attr-defined]  # the published stubs are older
    listed = await client.health.List(request, metadata=TOKEN, timeout=PATIENCE_S)
    assert {name: response.status for name, response in listed.statuses.items()} == dict.fromkeys(NAMES, SERVING)
    for name, response in listed.statuses.items():
        assert await client.check(name) == response.status


async def test_wrong_name_is_not_found_and_watch_says_unknown(client: Client) -> None:
    """B94."""
    code, _info, _details = await refused(
        client.health.Check(health_pb2.HealthCheckRequest(service="AnalyzeService"), metadata=TOKEN, timeout=PATIENCE_S)
    )
    assert code is grpc.StatusCode.NOT_FOUND
    watch = client.health.Watch(
        health_pb2.HealthCheckRequest(service="AnalyzeService"), metadata=TOKEN, timeout=PATIENCE_S
    )
    first = await watch.read()
    assert first.status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    watch.cancel()


async def test_broken_model_shows_under_the_empty_name_too(client: Client, pipeline: FakePipeline) -> None:
    """B94, and a canary that passes again brings the worker back."""
    watch = client.health.Watch(
        health_pb2.HealthCheckRequest(service=ANALYZE_SERVICE), metadata=TOKEN, timeout=PATIENCE_S
    )
    assert (await watch.read()).status == SERVING
    pipeline.canary_error = ModelError("canary answered 0.13, pinned 0.87")
    code, info, _details = await refused(client.measure(b"breaks"))
    assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "MODELS")
    assert (await watch.read()).status == NOT_SERVING
    for name in ("", ANALYZE_SERVICE, "models"):
        assert await client.check(name) == NOT_SERVING
        assert await client.reason(name) == "models:canary answered 0.13, pinned 0.87"
    assert await client.check("liveness") == SERVING
    status = await client.status()
    assert (status.cause, status.live) == ("models", True)
    pipeline.canary_error = None
    assert (await watch.read()).status == SERVING
    watch.cancel()
    await client.measure(OK)


async def test_while_models_load_only_liveness_and_disk_serve() -> None:
    """Scenario 16; a missing file is named, and found when it is put in place."""
    models = MissingModels()
    async with running(models.load, warm=False, health={"min_free_gb": 0.001, "resume_free_gb": 0.001}) as (_w, client):
        status = await client.until(lambda status: status.cause == "models")
        assert status.state == pb.SERVING_STATE_NOT_SERVING
        assert list(status.reasons) == ["models:79999_iter.pth is missing; run `hairmesh models fetch`"]
        assert await client.check("liveness") == SERVING
        await client.until(lambda status: status.checks[0].state == pb.CHECK_STATE_PASSING)
        assert await client.check("disk") == SERVING
        for name in ("", ANALYZE_SERVICE, "models", "progress", "accelerator"):
            assert await client.check(name) == NOT_SERVING
        assert await client.reason("progress") == "starting"
        code, info, _details = await refused(client.measure(OK))
        assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "MODELS")
        models.present.set()
        await client.until_serving()
        await client.measure(OK)


async def test_not_serving_before_the_first_canary() -> None:
    with released(FakePipeline()) as pipeline:

        def load(_progress: object) -> FakePipeline:
            pipeline.release.wait()
            return pipeline

        async with running(load, warm=False) as (_worker, client):
            assert await client.check("") == NOT_SERVING
            status = await client.status()
            assert (status.state, list(status.reasons), status.live) == (
                pb.SERVING_STATE_STARTING,
                ["starting"],
                True,
            )
            _code, info, _details = await refused(client.measure(OK))
            assert info.reason == "STARTING"
            pipeline.release.set()
            await client.until_serving()
            assert pipeline.canaries == 1


async def test_frozen_compute_thread_is_a_stall_and_moving_again_ends_it(pipeline: FakePipeline) -> None:
    """Scenarios 13 and 15: only the compute thread is frozen, RPC threads answer."""
    limits = {"min_free_gb": 0, "stall_after_seconds": {"parsing": 0.3}}
    async with running(pipeline.load, health=limits) as (_worker, client):
        moving = asyncio.ensure_future(client.measure(HOLDS))
        await started(pipeline)
        counter = (await client.status()).slot.call.step_counter
        await client.until(lambda status: status.slot.call.age_s > 0.8)
        status = await client.status()
        assert status.slot.call.step_counter > counter
        assert status.state == pb.SERVING_STATE_SERVING
        pipeline.release.set()
        await moving
        pipeline.release.clear()

        frozen = asyncio.ensure_future(client.measure(FROZEN))
        await started(pipeline)
        status = await client.until(lambda status: status.state == pb.SERVING_STATE_NOT_SERVING)
        assert (list(status.reasons), status.cause, status.live) == (["stalled:parsing"], "stalled", False)
        assert [await client.check(name) for name in ("", "progress", "liveness")] == [NOT_SERVING] * 3
        assert await client.check("models") == SERVING
        _code, info, _details = await refused(client.measure(OK))
        assert info.reason == "STALLED"
        pipeline.release.set()
        await frozen
        await client.until_serving()


async def test_lost_accelerator_latches_until_the_process_is_new(client: Client, pipeline: FakePipeline) -> None:
    """Scenario 14, B64."""
    code, info, _details = await refused(client.measure(LOSES_ACCELERATOR))
    assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "ACCELERATOR")
    pipeline.canary_error = None
    status = await client.status()
    assert (status.cause, status.live, list(status.reasons)) == ("accelerator", False, ["accelerator:RuntimeError"])
    assert [await client.check(name) for name in ("", "accelerator", "liveness")] == [NOT_SERVING] * 3
    code, info, _details = await refused(client.measure(OK))
    assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "ACCELERATOR")


async def test_eight_refusals_in_a_row_force_a_canary(client: Client, pipeline: FakePipeline) -> None:
    """Scenario 30 in small: the eighth "no face" is not believed when the canary fails."""
    for _photo in range(7):
        await refused(client.measure(NO_FACE))
    assert pipeline.canaries == 1
    pipeline.canary_error = ModelError("all zeros")
    code, info, _details = await refused(client.measure(NO_FACE))
    assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "MODELS")


async def test_overdue_canary_runs_between_calls_and_when_idle(pipeline: FakePipeline) -> None:
    async with running(pipeline.load, health={"min_free_gb": 0, "canary_max_age_seconds": 0.000001}) as (_w, client):
        before = pipeline.canaries
        await client.measure(OK)
        assert pipeline.canaries > before  # before the answer left
        after = pipeline.canaries
        while pipeline.canaries == after:  # the test's own timeout ends it
            await client.status()


async def test_answer_found_behind_a_failed_canary_is_not_given(pipeline: FakePipeline) -> None:
    """The call came in while the idle canary was asked, and computed with the models that failed it."""
    async with running(pipeline.load, health={"min_free_gb": 0, "canary_max_age_seconds": 0.000001}) as (_w, client):
        pipeline.canary_gate.clear()
        asked = pipeline.canaries
        while pipeline.canaries == asked:  # the test's own timeout ends it
            await client.status()
        call = asyncio.ensure_future(refused(client.measure(OK)))
        await client.until_slot(pb.SLOT_STATE_BUSY)
        pipeline.canary_error = ModelError("all zeros")
        pipeline.canary_gate.set()
        code, info, _details = await call
        assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "MODELS")
        assert pipeline.measured == [OK]


async def test_full_disk_takes_out_the_worker_but_not_its_life(pipeline: FakePipeline, tmp_path: Path) -> None:
    """Scenario 24."""
    huge = {"min_free_gb": 1e6, "resume_free_gb": 1e6, "disk_paths": [str(tmp_path)]}
    with capture_logs() as lines:
        async with running(pipeline.load, warm=False, health=huge) as (_worker, client):
            status = await client.until(lambda status: status.cause == "disk" and "starting" not in status.reasons)
            assert list(status.reasons) == ["disk_free_below_1000000.0g"]
            assert status.live
            assert await client.check("disk") == NOT_SERVING
            assert await client.check("liveness") == SERVING
            code, info, _details = await refused(client.measure(OK))
            assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "DISK")
            check = next(check for check in status.checks if check.name == "disk")
            assert check.evidence["free_gib"] == check.evidence[f"{tmp_path}:free_gib"] > 0
            assert check.required
    told = next(line for line in lines if line["event"] == "health" and status.reasons[0] in line["reasons"])
    assert told["evidence"]["disk"][f"{tmp_path}:free_gib"] > 0


async def test_status_tells_who_it_is(client: Client) -> None:
    first, second = await client.status(), await client.status()
    assert first.boot_id == second.boot_id != ""
    assert first.start_time == second.start_time
    assert dict(first.versions)["fake"] == "1"
    assert list(first.capabilities) == ["measure", "growth"]
    assert first.device == "cpu"
    assert next(check for check in first.checks if check.name == "accelerator").state == pb.CHECK_STATE_OFF


async def test_status_shows_every_check_with_its_evidence_and_the_call_in_flight(pipeline: FakePipeline) -> None:
    web = Web()
    with listening(web):
        dep = {"name": "comfyui", "kind": "comfyui", "target": web.target}
        disk = {"min_free_gb": 0.001, "resume_free_gb": 0.001}
        async with running(pipeline.load, health={**disk, "deps": [dep]}) as (_worker, client):
            call = asyncio.ensure_future(client.measure(HOLDS, metadata=(*TOKEN, ("x-call-id", "c"))))
            await started(pipeline)
            status = await client.until(lambda status: status.slot.call.age_s > 0.3)
            pipeline.release.set()
            await call
    evidence = {check.name: set(check.evidence) for check in status.checks}
    assert evidence == {
        "disk": {"free_gib", f"{Path.cwd()}:free_gib", "write_ms"},
        "dep/comfyui": {"answer_ms", "bad_in_a_row"},
        "models": {"canary_ms"},
        "accelerator": set(),
        "progress": {"still_s", "step_counter"},
        "capability/growth": set(),
    }
    assert [check.name for check in status.checks if check.required] == [*evidence][:-1]
    assert all(0 <= check.evidence_age_s < 20 for check in status.checks)
    assert status.slot.call.step_counter >= status.checks[4].evidence["step_counter"] > 0
    assert (status.slot.call.method, status.slot.call.call_id, status.slot.call.stage) == ("Measure", "c", "parsing")


async def test_watch_status_shows_the_slot_taken_and_given_back(client: Client, pipeline: FakePipeline) -> None:
    watch = client.worker.WatchStatus(pb.WatchStatusRequest(), metadata=TOKEN, timeout=PATIENCE_S)
    assert (await _read(watch)).slot.state == pb.SLOT_STATE_FREE
    await client.measure(OK, metadata=(*TOKEN, ("x-call-id", "lease-1")))
    busy = await _read(watch)
    assert (busy.slot.state, busy.slot.epoch, busy.slot.call.call_id) == (pb.SLOT_STATE_BUSY, 1, "lease-1")
    status = busy
    while status.slot.state != pb.SLOT_STATE_FREE:
        status = await _read(watch)
    assert status.slot.epoch == 1
    assert not status.slot.HasField("call")
    watch.cancel()


async def test_a_call_that_has_not_moved_yet_shows_no_stage_of_another_job(pipeline: FakePipeline) -> None:
    async with running(pipeline.load, health={"min_free_gb": 0, "canary_max_age_seconds": 0.000001}) as (_w, client):
        await client.measure(OK)
        pipeline.canary_gate.clear()
        asked = pipeline.canaries
        while pipeline.canaries == asked:  # the test's own timeout ends it
            await client.status()
        call = asyncio.ensure_future(client.measure(OK))
        status = await client.until_slot(pb.SLOT_STATE_BUSY)
        assert (status.slot.call.stage, status.slot.call.stall_after_s) == ("", 10.0)
        pipeline.canary_gate.set()
        await call


async def _read(watch: aio.UnaryStreamCall[pb.WatchStatusRequest, pb.WatchStatusResponse]) -> pb.WorkerStatus:
    message = await watch.read()
    assert isinstance(message, pb.WatchStatusResponse)
    return message.status


async def test_fifty_watchers_that_leave_cost_nothing(client: Client) -> None:
    """B51 in small."""
    watches = [
        client.health.Watch(health_pb2.HealthCheckRequest(service=""), metadata=TOKEN, timeout=PATIENCE_S)
        for _n in range(50)
    ]
    for watch in watches:
        assert (await watch.read()).status == SERVING
    for watch in watches:
        watch.cancel()
    assert await client.check() == SERVING
    await client.measure(OK)


async def test_drain_finishes_the_running_call_and_refuses_new_ones(client: Client, pipeline: FakePipeline) -> None:
    call = asyncio.ensure_future(client.measure(HOLDS))
    await started(pipeline)
    drained = asyncio.ensure_future(client.worker.Drain(pb.DrainRequest(), metadata=TOKEN, timeout=PATIENCE_S))
    status = await client.until(lambda status: status.state == pb.SERVING_STATE_DRAINING)
    assert (status.cause, status.live) == ("draining", True)
    assert await client.check() == NOT_SERVING
    assert await client.reason() == "draining"
    assert await client.check("liveness") == SERVING
    await _refuses(client)
    assert not drained.done()
    pipeline.release.set()
    assert (await call).HasField("measurements")
    assert (await drained).status.slot.state == pb.SLOT_STATE_FREE


async def _refuses(client: Client) -> None:
    """Until new calls are refused with DRAINING; before that the slot is busy."""
    for _try in range(1000):
        code, info, _details = await refused(client.measure(OK))
        if info.reason == "DRAINING":
            assert code is grpc.StatusCode.UNAVAILABLE
            return
        assert info.reason == "BUSY"
    pytest.fail("never refused")


async def test_worker_whose_own_loop_dies_says_that_it_is_broken(
    pipeline: FakePipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(pipeline.load) as (worker, _client):
        monkeypatch.setattr(HealthMonitor, "report", _dies)
        assert "no report" in str(await asyncio.wait_for(worker.broken, PATIENCE_S))
        monkeypatch.undo()


def _dies(_monitor: HealthMonitor) -> Report:
    raise LookupError("no report")


async def test_call_over_the_grace_time_is_cut_off_with_a_reason(pipeline: FakePipeline) -> None:
    """B38: the handler is cancelled from inside, and the caller is told."""
    async with running(pipeline.load, drain_grace_seconds=0.1, thresholds=QUICK) as (worker, client):
        call = asyncio.ensure_future(refused(client.measure(HOLDS)))
        await started(pipeline)
        assert await worker.stop()
        code, info, _details = await call
        assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")


async def test_a_caller_that_takes_nothing_does_not_hold_up_the_end(
    pipeline: FakePipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never_sent(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(calls, "_refuse", never_sent)
    short = replace(QUICK, close_s=0.1)
    async with running(pipeline.load, drain_grace_seconds=0.1, thresholds=short) as (worker, client):
        call = asyncio.ensure_future(refused(client.measure(HOLDS)))
        await started(pipeline)
        assert await worker.stop()
        await call


@pytest.mark.parametrize(
    ("error", "reason", "live"),
    [
        (OSError("libGL.so.1: cannot open shared object file"), "models:load_raised_OSError", True),
        (RuntimeError("CUDA error: no kernel image is available"), "accelerator:RuntimeError", False),
    ],
)
async def test_load_that_breaks_leaves_the_worker_up_and_says_how(error: Exception, reason: str, live: bool) -> None:
    def load(_progress: object) -> FakePipeline:
        raise error

    async with running(load, warm=False) as (_worker, client):
        status = await client.until(lambda status: list(status.reasons) == [reason])
        assert status.live is live


async def test_a_reason_of_any_length_and_letters_fits_into_metadata() -> None:
    problem = "模型\r\n\x7f" * 5_000

    def load(_progress: object) -> FakePipeline:
        raise ModelError(problem)

    async with running(load, warm=False) as (_worker, client):
        status = await client.until(lambda status: status.cause == "models")
        assert list(status.reasons) == [f"models:{problem}"]
        assert (await client.reason("")).startswith("models:\\u6a21\\u578b   \\u6a21")
