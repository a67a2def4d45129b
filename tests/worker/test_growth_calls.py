"""The two calls that stream, over a real socket: order, slow readers, those who leave, what fails half-way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from grpc import aio
from hair.analysis.v1 import common_pb2, growth_pb2
from hair.analysis.v1.analyze_service_pb2_grpc import AnalyzeServiceStub
from hair.worker.v1 import worker_service_pb2 as pb
from structlog.testing import capture_logs

from hairmesh.wire import CLIENT_OPTIONS
from tests.worker.fakes import (
    BIG_ANSWER,
    BREAKS_LATE,
    FROZEN,
    GOES_WITHOUT,
    HOLDS,
    HURRIES,
    NO_FACE,
    OK,
    QUEUES,
    FakePipeline,
)
from tests.worker.harness import (
    BRIEF_S,
    PATIENCE_S,
    QUICK,
    SERVING,
    TOKEN,
    Client,
    kinds,
    refused,
    request,
    running,
    started,
    whole,
)
from vision.growth.backend import GrowthReason
from worker import calls
from worker.servicer import AnalyzeServicer

TRIANGLE = growth_pb2.Polygon(points=[common_pb2.Point(x_px=x, y_px=y) for x, y in ((0, 0), (3, 0), (0, 2))])
Stream = aio.UnaryStreamCall[Any, Any]


async def test_progress_then_each_style_then_the_summary(client: Client) -> None:
    messages = await whole(client.grow_styles(OK, styles=["m", "round"], seed=11))
    assert messages[0].HasField("progress")
    told = [message.progress for message in messages if message.HasField("progress")]
    assert {(at.attempt, at.results_total) for at in told} == {(1, 2)}
    before = [
        sum(other.HasField("result") for other in messages[:place])
        for place, message in enumerate(messages)
        if message.HasField("progress")
    ]
    assert [at.results_done for at in told] == before
    assert told[-1].results_done == 2
    assert kinds(messages) == ["result", "result", "summary"]
    results = [message.result for message in messages if message.HasField("result")]
    assert [result.style for result in results] == ["m", "round"]
    assert [result.design.style for result in results] == ["m", "round"]
    for result in results:
        assert (result.image.data, result.grown_image.data, result.grown_reason) == (b"\x89PNG fake",) * 2 + ("",)
        assert not result.design.HasField("image"), "it would travel twice"
        assert result.proof.hair_share == 0.95
    summary = messages[-1].summary
    assert (summary.seed, summary.backend, summary.face.faces_found) == (11, "local", 1)


async def test_a_region_gives_one_result(client: Client) -> None:
    messages = await whole(client.grow_region(OK, region=TRIANGLE))
    assert kinds(messages) == ["result", "summary"]
    (result,) = (message.result for message in messages if message.HasField("result"))
    assert (result.marked_image.data, result.area_px2, result.HasField("area_cm2")) == (b"\x89PNG fake", 9.0, False)


async def test_a_result_arrives_while_the_next_one_is_made(client: Client, pipeline: FakePipeline) -> None:
    stream = client.grow_region(HOLDS, region=TRIANGLE)
    first = await anext(aiter(stream))
    assert first.progress.stage == "parsing", "at once, not when the call ends"
    assert (await client.status()).slot.state == pb.SLOT_STATE_BUSY
    pipeline.release.set()
    assert kinds(await whole(stream)) == ["result", "summary"]


async def test_the_callers_time_is_told(client: Client, pipeline: FakePipeline) -> None:
    await whole(client.grow_styles(OK, timeout_s=100.0))
    assert pipeline.timeout_s == pytest.approx(100.0, abs=20.0)


async def test_thousands_of_steps_are_few_messages_and_the_last_one_counts(pipeline: FakePipeline) -> None:
    async with running(pipeline.load, thresholds=replace(QUICK, progress_gap_s=60.0)) as (_worker, client):
        messages = await whole(client.grow_region(HURRIES, region=TRIANGLE))
        steps = [(at.progress.stage, at.progress.step) for at in messages if at.HasField("progress")]
        assert len(steps) <= 4, "one at once, and what stood last before each result and before the end"
        assert ("growing", 2) in steps


async def test_who_reads_nothing_holds_up_neither_thread_nor_slot(client: Client, pipeline: FakePipeline) -> None:
    """Eight pictures of 5 MB: far more than any buffer between the two takes."""
    stream = client.grow_styles(BIG_ANSWER)
    assert (await anext(aiter(stream))).HasField("progress")
    await client.until(lambda status: status.slot.epoch == 1 and status.slot.state == pb.SLOT_STATE_FREE)
    await client.measure(OK)
    messages = await whole(stream)
    assert kinds(messages) == ["result"] * 4 + ["summary"]
    for message in messages:
        if message.HasField("result"):
            assert len(message.result.grown_image.data) > 5_000_000


@pytest.mark.parametrize("data", [HOLDS, QUEUES], ids=["computing", "in another server's queue"])
async def test_a_client_that_leaves_frees_the_slot_in_mid_growth(
    client: Client, pipeline: FakePipeline, data: bytes
) -> None:
    stream = client.grow_styles(data)
    await anext(aiter(stream))
    await started(pipeline)
    stream.cancel()
    await client.until_slot(pb.SLOT_STATE_FREE)
    assert not pipeline.release.is_set(), "it saw the flag"
    assert kinds(await whole(client.grow_styles(OK)))[-1] == "summary"


async def test_a_client_that_leaves_while_pictures_wait_for_it_is_forgotten(client: Client) -> None:
    with capture_logs() as lines:
        stream = client.grow_styles(BIG_ANSWER)
        await anext(aiter(stream))
        await client.until(lambda status: status.slot.epoch == 1 and status.slot.state == pb.SLOT_STATE_FREE)
        stream.cancel()
        while not (ended := [line for line in lines if line["event"] == "call"]):  # the test's own timeout ends it
            await client.status()
    assert [line["outcome"] for line in ended] == ["cancelled"]
    assert [line for line in lines if line["event"] == "handler_raised"] == []


async def test_answers_that_nobody_takes_are_bounded(pipeline: FakePipeline) -> None:
    """The slot is free, and yet no call is let in while one answer of 40 MB waits."""
    async with running(pipeline.load, thresholds=replace(QUICK, most_unread_bytes=30_000_000)) as (_worker, client):
        stream = client.grow_styles(BIG_ANSWER)
        await anext(aiter(stream))
        await client.until(lambda status: status.slot.epoch == 1 and status.slot.state == pb.SLOT_STATE_FREE)
        async with aio.insecure_channel(client.target, options=CLIENT_OPTIONS) as channel:
            for _try in range(3):
                call = AnalyzeServiceStub(channel).Measure(request(OK), metadata=TOKEN, timeout=PATIENCE_S)
                code, info, details = await refused(call)
                assert (code, info.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "BUSY")
                assert "RetryInfo" in details
        assert kinds(await whole(stream)) == ["result"] * 4 + ["summary"]
        await client.measure(OK)
        await client.measure(OK)


async def test_an_answer_that_is_still_being_read_when_the_worker_stops_is_read_to_its_end(
    pipeline: FakePipeline,
) -> None:
    """The slot is free long before; SIGTERM gives the reader the grace time."""
    async with running(pipeline.load, drain_grace_seconds=60) as (worker, client):
        stream = client.grow_styles(BIG_ANSWER)
        await anext(aiter(stream))
        await client.until(lambda status: status.slot.epoch == 1 and status.slot.state == pb.SLOT_STATE_FREE)
        stopping = asyncio.ensure_future(worker.stop())
        await client.until(lambda status: status.state == pb.SERVING_STATE_DRAINING)
        refusal = await refused(client.measure(OK))
        assert refusal[1].reason == "DRAINING"
        assert kinds(await whole(stream)) == ["result"] * 4 + ["summary"]
        assert await stopping


async def test_who_does_not_read_within_the_grace_time_hears_that_the_worker_drains(
    pipeline: FakePipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off, cut = calls.Calls.cut_off, asyncio.Event()

    async def and_tell(these: calls.Calls, _timeout_s: float) -> None:
        await cut_off(these, 0.5)  # nobody reads meanwhile
        cut.set()

    monkeypatch.setattr(calls.Calls, "cut_off", and_tell)
    thresholds = replace(QUICK, close_s=PATIENCE_S)
    async with running(pipeline.load, drain_grace_seconds=0.1, thresholds=thresholds) as (worker, client):
        stream = client.grow_styles(BIG_ANSWER)
        await anext(aiter(stream))
        await client.until(lambda status: status.slot.epoch == 1 and status.slot.state == pb.SLOT_STATE_FREE)
        with capture_logs() as lines:
            stopping = asyncio.ensure_future(worker.stop())
            await cut.wait()
            code, info, _details = await refused(whole(stream))
            assert await stopping
    assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
    ended = [line for line in lines if line["event"] == "call"]
    assert [(line["outcome"], line["reason"]) for line in ended] == [("unavailable", "DRAINING")]


async def test_draining_by_request_ends_when_the_answers_are_read(client: Client) -> None:
    stream = client.grow_styles(BIG_ANSWER)
    await anext(aiter(stream))
    await client.until(lambda status: status.slot.epoch == 1 and status.slot.state == pb.SLOT_STATE_FREE)
    draining = asyncio.ensure_future(client.worker.Drain(pb.DrainRequest(), metadata=TOKEN, timeout=PATIENCE_S))
    await client.until(lambda status: status.state == pb.SERVING_STATE_DRAINING)
    assert (await refused(client.measure(OK)))[1].reason == "DRAINING"
    assert not draining.done()
    assert kinds(await whole(stream))[-1] == "summary"
    await draining


@pytest.mark.parametrize("streams", [False, True])
async def test_an_answer_that_cannot_be_sent_is_not_said_to_be_ok(
    client: Client, monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    """All are bounded where their pictures are made. Should one not be, its caller and the log hear the same."""
    monkeypatch.setattr(calls, "MAX_MESSAGE_BYTES", 4_000_000)
    with capture_logs() as lines:
        code, info, _details = await refused(
            whole(client.grow_styles(BIG_ANSWER)) if streams else client.measure(BIG_ANSWER)
        )
    assert (code, info.reason) == (grpc.StatusCode.INTERNAL, "WORKER_FAILED")
    ended = [(line["outcome"], line["reason"]) for line in lines if line["event"] == "call"]
    assert ended == [("failed", "WORKER_FAILED")]
    (told,) = [line for line in lines if line["event"] == "answer_too_large"]
    assert told["bytes"] > 4_000_000
    await client.until_slot(pb.SLOT_STATE_FREE)
    await client.measure(OK)


async def test_a_backend_that_broke_is_no_fault_of_the_photo_and_the_canary_speaks(
    client: Client, pipeline: FakePipeline
) -> None:
    for number in range(4):  # the same for every photo: a photo's own fault would be counted against the worker
        before = pipeline.canaries
        messages = await whole(client.grow_styles(GOES_WITHOUT + b"GROWTH_FAILED", styles=["m", "bell"], seed=number))
        assert kinds(messages) == ["result", "result", "summary"]
        assert pipeline.canaries == before + 1
    before = pipeline.canaries
    await whole(client.grow_styles(OK))
    assert pipeline.canaries == before, "once for each such call"


async def test_a_backend_that_broke_because_the_worker_is_broken_gets_no_answer(
    client: Client, pipeline: FakePipeline
) -> None:
    pipeline.canary_error = RuntimeError("CUDA error: device-side assert triggered")
    code, info, _details = await refused(whole(client.grow_styles(GOES_WITHOUT + b"GROWTH_FAILED")))
    assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "ACCELERATOR")


class GoneContext:
    """Of a caller whose connection has ended, before anybody has told the handler."""

    ended: Any = None

    def invocation_metadata(self) -> tuple[()]:
        return ()

    def time_remaining(self) -> None:
        return None

    def add_done_callback(self, _callback: object) -> None:
        """It ends with its test."""

    async def write(self, _message: object) -> None:
        raise aio.UsageError("RPC already finished")

    async def abort_with_status(self, status: Any) -> None:
        self.ended = status
        raise aio.AbortError


async def test_a_message_that_cannot_be_sent_gives_the_call_up(pipeline: FakePipeline) -> None:
    async with running(pipeline.load) as (worker, client):
        context: Any = GoneContext()
        servicer = AnalyzeServicer(worker._calls, worker._engine)
        request = growth_pb2.GrowStylesRequest(photo=common_pb2.Image(data=HOLDS))
        with pytest.raises(aio.AbortError):
            await servicer.GrowStyles(request, context)
        assert context.ended.details == "CANCELLED"
        await client.until_slot(pb.SLOT_STATE_FREE)
        assert not pipeline.release.is_set(), "it saw the flag"


async def test_deadline_in_mid_growth_keeps_the_slot_until_the_thread_ends(
    client: Client, pipeline: FakePipeline
) -> None:
    late = asyncio.ensure_future(refused(whole(client.grow_styles(FROZEN, timeout_s=BRIEF_S))))
    await started(pipeline)
    assert (await late)[0] is grpc.StatusCode.DEADLINE_EXCEEDED
    await client.until_slot(pb.SLOT_STATE_ABANDONED)
    assert (await refused(client.measure(OK)))[1].reason == "BUSY"
    pipeline.release.set()
    await client.until_slot(pb.SLOT_STATE_FREE)


async def test_what_breaks_after_a_result_is_no_answer(client: Client) -> None:
    stream = client.grow_styles(BREAKS_LATE)
    while not (message := await anext(aiter(stream))).HasField("result"):
        pass
    code, info, _details = await refused(whole(stream))
    assert (code, info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "INPUT_FAILED")
    assert message.result.grown_image.data, "the first style was told already, and no summary makes an answer of it"


async def test_a_refused_photo_is_refused_as_in_other_calls(client: Client) -> None:
    code, info, _details = await refused(whole(client.grow_styles(NO_FACE)))
    assert (code, info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NO_FACE")


async def test_another_call_meanwhile_is_told_how_long_growth_takes(client: Client, pipeline: FakePipeline) -> None:
    stream = client.grow_styles(HOLDS)
    await started(pipeline)
    _code, info, details = await refused(client.measure(OK))
    retry = details["RetryInfo"]
    assert isinstance(retry, RetryInfo)
    assert info.reason == "BUSY"
    assert 5 < retry.retry_delay.ToSeconds() <= 18
    pipeline.release.set()
    await whole(stream)
    assert 0 < (await client.status()).service_time_s["GrowStyles"] < 18


@pytest.mark.parametrize("reason", list(GrowthReason))
async def test_a_servers_fault_costs_the_capability_until_growth_succeeds(client: Client, reason: GrowthReason) -> None:
    """The call is answered all the same, with the design, and the worker goes on."""
    messages = await whole(client.grow_styles(GOES_WITHOUT + reason.encode(), styles=["m"]))
    (result,) = (message.result for message in messages if message.HasField("result"))
    assert (result.grown_reason, result.HasField("grown_image"), result.HasField("proof")) == (reason, False, False)
    assert result.image.data
    if not reason.is_servers_fault:
        assert list((await client.status()).capabilities) == ["measure", "growth"]
        return
    status = await client.until(lambda status: list(status.capabilities) == ["measure"])
    assert (status.state, list(status.reasons)) == (pb.SERVING_STATE_SERVING, [])
    assert await client.reason("capability/growth") == f"failed:{reason}"
    assert await client.check() == SERVING
    await whole(client.grow_styles(OK))
    await client.until(lambda status: list(status.capabilities) == ["measure", "growth"])


async def test_the_log_line_names_what_was_not_grown(client: Client) -> None:
    with capture_logs() as lines:
        await whole(client.grow_styles(GOES_WITHOUT + b"NOT_CONVINCING", styles=["m", "bell"]))
        await whole(client.grow_styles(OK))
    without, with_pictures = (line for line in lines if line["event"] == "call")
    assert (without["outcome"], without["grown_reasons"]) == ("ok", ["NOT_CONVINCING", "NOT_CONVINCING"])
    assert "grown_reasons" not in with_pictures
    assert set(with_pictures["stage_ms"]) == {"parsing", "growing", "drawing"}
    assert with_pictures["bytes_out"] > 100


async def test_who_waits_for_what_stands_in_the_status(client: Client, pipeline: FakePipeline) -> None:
    stream = client.grow_styles(QUEUES)
    status = await client.until(lambda status: status.slot.call.stage == "diffusion_queue")
    assert (status.slot.call.waiting_for, status.state) == ("comfyui", pb.SERVING_STATE_SERVING)
    pipeline.release.set()
    await whole(stream)


async def test_growth_over_the_grace_time_is_cut_off_with_a_reason(pipeline: FakePipeline) -> None:
    async with running(pipeline.load, drain_grace_seconds=0.1) as (worker, client):
        call = asyncio.ensure_future(refused(whole(client.grow_styles(HOLDS))))
        await started(pipeline)
        assert await worker.stop(), "the thread saw the flag"
        code, info, _details = await call
        assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
    assert pipeline.closed


NAN = float("nan")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "region"),
        ({"mask": common_pb2.Image()}, "mask"),
        ({"region": growth_pb2.Polygon(points=[common_pb2.Point(x_px=NAN)] * 3)}, "region"),
        ({"region": growth_pb2.Polygon(points=[common_pb2.Point()] * 1001)}, "region"),
        ({"region": TRIANGLE, "seed": -1}, "seed"),
        ({"region": TRIANGLE, "options": common_pb2.CallOptions(max_output_side_px=3)}, "options.max_output_side_px"),
    ],
)
async def test_bad_regions_name_the_field_and_cost_no_slot(
    client: Client, pipeline: FakePipeline, fields: dict[str, Any], field: str
) -> None:
    code, info, details = await refused(whole(client.grow_region(OK, **fields)))
    assert (code, info.reason, info.metadata["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PARAMETER", field)
    bad = details["BadRequest"]
    assert isinstance(bad, BadRequest)
    assert [violation.field for violation in bad.field_violations] == [field]
    assert pipeline.measured == []


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"styles": ["mohawk"]}, "styles"),
        ({"styles": ["m", "m"]}, "styles"),
        ({"sex": 9}, "sex"),
        ({"seed": -5}, "seed"),
    ],
)
async def test_bad_style_parameters_name_the_field(client: Client, fields: dict[str, Any], field: str) -> None:
    _code, info, _details = await refused(whole(client.grow_styles(OK, **fields)))
    assert (info.reason, info.metadata["field"]) == ("INVALID_PARAMETER", field)
    if field == "styles":
        assert "mohawk" not in str(info), "the input is not repeated"


async def test_no_picture_no_call(client: Client) -> None:
    _code, info, _details = await refused(whole(client.grow_styles(b"", metadata=TOKEN)))
    assert (info.reason, info.metadata["field"]) == ("INVALID_PARAMETER", "photo")
