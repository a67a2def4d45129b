"""Health checks without a password: half-sent ones fill no memory, and no probe is shut out by them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2
from structlog.testing import capture_logs

from tests.worker import raw_http2
from tests.worker.fakes import FakePipeline
from tests.worker.harness import PATIENCE_S, QUICK, SERVING, running
from worker.bare_checks import BareChecks
from worker.passwords import HEALTH_CHECK


async def test_a_half_sent_one_is_given_up_and_told_and_200_at_once_are_answered(pipeline: FakePipeline) -> None:
    thresholds = replace(QUICK, check_prompt_s=1.0, check_late_s=0.0)
    message = health_pb2.HealthCheckRequest(service="liveness").SerializeToString()
    with capture_logs() as lines:
        async with running(pipeline.load, thresholds=thresholds) as (_worker, client):
            half_sent = asyncio.ensure_future(raw_http2.call(client.target, HEALTH_CHECK, {}, message, keep_back=1))
            checks = await asyncio.gather(*(client.check("liveness", metadata=()) for _ in range(200)))
            assert set(checks) == {SERVING}
            assert b"DEADLINE" in await half_sent
    (told,) = [line for line in lines if line["event"] == "turned_away"]
    assert (told["password"], told["calls"], told["methods"]) == ("none", 1, [HEALTH_CHECK])


class Sender:
    """A check of which the test decides when its message comes."""

    def __init__(self, checks: BareChecks) -> None:
        self.message: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.said: list[str] = []
        plain: Any = grpc.unary_unary_rpc_method_handler(self._check)
        handler: Any = checks.guard(plain, lambda _context: self.said.append("told"))
        self.task = asyncio.ensure_future(handler.stream_stream(None, self))

    async def _check(self, request: str, _context: object) -> str:
        return f"answer to {request}"

    async def read(self) -> Any:
        return await self.message

    async def write(self, answer: str) -> None:
        self.said.append(answer)

    async def abort_with_status(self, status: grpc.Status) -> None:
        self.said.append(status.code.name)
        raise aio.AbortError


async def test_one_at_a_time_may_be_late_and_the_next_when_that_one_has_ended() -> None:
    checks = BareChecks(prompt_s=0.0, late_s=PATIENCE_S)
    for end in ("comes", "leaves", "comes"):
        late = Sender(checks)
        for _turn in range(10):
            await asyncio.sleep(0)
        other = Sender(checks)
        with pytest.raises(aio.AbortError):
            await other.task
        assert other.said == ["told", "DEADLINE_EXCEEDED"]
        assert late.said == []
        if end == "comes":
            late.message.set_result("late")
            await late.task
            assert late.said == ["answer to late"]
        else:
            late.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await late.task


async def test_who_ends_without_a_message_gets_no_answer() -> None:
    sender = Sender(BareChecks(prompt_s=PATIENCE_S, late_s=0.0))
    sender.message.set_result(aio.EOF)
    with pytest.raises(aio.AbortError):
        await sender.task
    assert sender.said == ["told", "DEADLINE_EXCEEDED"]
