"""Calls over a real socket: answers, refusals, the slot."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, RequestInfo, RetryInfo
from grpc import aio
from hair.analysis.v1 import common_pb2
from hair.worker.v1 import worker_service_pb2 as pb

from hairmesh.wire import ANALYZE_SERVICE
from tests.worker.fakes import BIG_ANSWER, BREAKS, FROZEN, HOLDS, NO_FACE, OK, FakePipeline
from tests.worker.harness import BRIEF_S, PATIENCE_S, QUICK, SERVING, TOKEN, Client, refused, request, running, started


async def test_measure_answers_with_facts_and_picture(client: Client) -> None:
    answer = await client.measure(OK)
    assert answer.annotated_image.data == b"\x89PNG fake"
    assert (answer.photo.width_px, answer.photo.height_px, answer.photo.exif_orientation) == (4, 3, 6)
    assert answer.scale.interval.low == pytest.approx(0.18)
    assert answer.scale.interval.high == pytest.approx(0.22)
    assert answer.model_versions == {"fake": "1"}


async def test_no_picture_when_none_was_asked_for(client: Client) -> None:
    answer = await client.measure(OK, annotate=False)
    assert not answer.HasField("annotated_image")
    assert answer.HasField("measurements")


async def test_photo_refusal_carries_reason_details_and_request_id(client: Client) -> None:
    code, info, details = await refused(client.measure(NO_FACE, metadata=(*TOKEN, ("x-request-id", "req-7"))))
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert (info.domain, info.reason, dict(info.metadata)) == ("hairmesh", "NO_FACE", {"faces": "0"})
    assert details["RequestInfo"] == RequestInfo(request_id="req-7")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"pupillary_distance_mm": 39.9}, "pupillary_distance_mm"),
        ({"pupillary_distance_mm": float("nan")}, "pupillary_distance_mm"),
        ({"options": common_pb2.CallOptions(max_output_side_px=-1)}, "options.max_output_side_px"),
        ({"options": common_pb2.CallOptions(max_output_side_px=4097)}, "options.max_output_side_px"),
    ],
)
async def test_bad_parameter_names_the_field_and_costs_no_slot(
    client: Client, pipeline: FakePipeline, fields: dict[str, Any], field: str
) -> None:
    code, info, details = await refused(client.measure(OK, **fields))
    assert (code, info.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PARAMETER")
    bad = details["BadRequest"]
    assert isinstance(bad, BadRequest)
    assert [violation.field for violation in bad.field_violations] == [field]
    assert pipeline.measured == []


async def test_empty_photo_is_a_bad_parameter(client: Client) -> None:
    _code, info, _details = await refused(client.measure(b""))
    assert (info.reason, info.metadata["field"]) == ("INVALID_PARAMETER", "photo")


async def test_waves_of_calls_never_compute_side_by_side(client: Client, pipeline: FakePipeline) -> None:
    """Scenario 10."""
    for _wave in range(4):
        pipeline.release.clear()
        calls = [asyncio.ensure_future(client.measure(HOLDS)) for _call in range(4)]
        for outcome in itertools.islice(asyncio.as_completed(calls), 3):
            code, info, details = await refused(outcome)
            assert (code, info.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "BUSY")
            retry = details["RetryInfo"]
            assert isinstance(retry, RetryInfo)
            assert 0 < retry.retry_delay.ToMilliseconds() <= 60_000
        pipeline.release.set()
        (winner,) = (call for call in calls if not (call.done() and call.exception()))
        await winner
        await client.until_slot(pb.SLOT_STATE_FREE)
    assert pipeline.most_computing == 1
    assert (await client.status()).slot.epoch == 4


async def test_health_and_status_answer_while_it_computes(client: Client, pipeline: FakePipeline) -> None:
    """Scenarios 11 and 12: busy is not sick. They do not wait for the call, which does not end; how soon they answer
    is measured in `bench/health.py`.
    """
    call = asyncio.ensure_future(client.measure(HOLDS, metadata=(*TOKEN, ("x-call-id", "c-1"))))
    await started(pipeline)
    for name in ("", ANALYZE_SERVICE) * 20:
        assert await client.check(name) == SERVING
    status = await client.status()
    assert (status.slot.state, status.slot.call.call_id, status.slot.call.stage) == (
        pb.SLOT_STATE_BUSY,
        "c-1",
        "parsing",
    )
    assert status.slot.call.stall_after_s == 30.0
    pipeline.release.set()
    await call


async def test_call_that_runs_out_of_time_keeps_the_slot_until_its_thread_ends(
    client: Client, pipeline: FakePipeline
) -> None:
    """B43, without a stage that looks at the flag."""
    pipeline.release.clear()
    late = asyncio.ensure_future(refused(client.measure(FROZEN, timeout_s=BRIEF_S)))
    await started(pipeline)
    code, _info, _details = await late
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    status = await client.until_slot(pb.SLOT_STATE_ABANDONED)
    assert status.slot.epoch == 1
    code, info, _details = await refused(client.measure(OK))
    assert info.reason == "BUSY"
    pipeline.release.set()
    await client.until_slot(pb.SLOT_STATE_FREE)
    await client.measure(OK)
    assert (await client.status()).slot.epoch == 2
    assert pipeline.most_computing == 1


async def test_ten_cancelled_calls_leave_soon_by_the_flag(client: Client, pipeline: FakePipeline) -> None:
    """B43 and scenario 18, with stages that look at the flag."""
    for _call in range(10):
        call = client.measure(HOLDS)
        task = asyncio.ensure_future(call)
        await started(pipeline)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await client.until_slot(pb.SLOT_STATE_FREE)
    assert not pipeline.release.is_set()
    await client.measure(OK)
    assert pipeline.most_computing == 1


async def test_deadline_in_the_past_starts_nothing(client: Client, pipeline: FakePipeline) -> None:
    code, _info, _details = await refused(client.measure(OK, timeout_s=-1.0))
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert pipeline.measured == []


async def test_short_deadline_behind_a_running_call_is_answered_at_once(client: Client, pipeline: FakePipeline) -> None:
    """Scenario 17, the worker's part: nothing queues here."""
    call = asyncio.ensure_future(client.measure(HOLDS))
    await started(pipeline)
    _code, info, _details = await refused(client.measure(OK, timeout_s=BRIEF_S))
    assert info.reason == "BUSY"
    pipeline.release.set()
    await call


async def test_busy_time_follows_measured_service_times(pipeline: FakePipeline) -> None:
    """Without a measurement it would be the default."""
    default_s = 50.0
    async with running(pipeline.load, thresholds=replace(QUICK, default_service_time_s=default_s)) as (_worker, client):
        for _call in range(3):
            await client.measure(OK)
        assert (await client.status()).service_time_s["Measure"] < default_s / 2
        call = asyncio.ensure_future(client.measure(HOLDS))
        await started(pipeline)
        _code, _info, details = await refused(client.measure(OK))
        retry = details["RetryInfo"]
        assert isinstance(retry, RetryInfo)
        assert retry.retry_delay.ToSeconds() < default_s / 2
        pipeline.release.set()
        await call


async def test_failed_input_is_told_from_a_failed_worker(client: Client, pipeline: FakePipeline) -> None:
    before = pipeline.canaries
    code, info, _details = await refused(client.measure(BREAKS))
    assert (code, info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "INPUT_FAILED")
    assert pipeline.canaries == before + 1
    await refused(client.measure(BREAKS))
    _code, info, _details = await refused(client.measure(BREAKS + b"2"))
    assert info.reason == "INPUT_FAILED"  # the same input twice counts once
    code, info, _details = await refused(client.measure(BREAKS + b"3"))
    assert (code, info.reason) == (grpc.StatusCode.INTERNAL, "WORKER_FAILED")
    await client.measure(OK)


async def test_big_messages_pass_and_too_big_ones_are_no_busy(client: Client) -> None:
    """B39: above gRPC's 4 MiB; above ours the status carries no reason of a worker."""
    await client.measure(OK + bytes(5_000_000))
    await client.measure(OK + bytes(4_194_304))
    assert len((await client.measure(BIG_ANSWER)).annotated_image.data) > 5_000_000
    large = request(OK + bytes(65 * 1024 * 1024)).SerializeToString()
    async with aio.insecure_channel(client.target, options=(("grpc.max_send_message_length", -1),)) as channel:
        raw: aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/hair.analysis.v1.AnalyzeService/Measure")
        code, info, _details = await refused(raw(large, metadata=TOKEN, timeout=PATIENCE_S))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert info.reason == ""
