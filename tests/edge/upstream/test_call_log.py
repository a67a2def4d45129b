"""Whose request a call was stands in every line of the pool's that names the call, also long after its end."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from hair.analysis.v1 import measure_pb2
from structlog.testing import capture_logs

from edge.calls import Call, CallTrace
from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.config import DispatchConfig
from edge.upstream import call_log
from edge.upstream.call_log import CallLog
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import Refuse


def call(request_id: str) -> Call:
    return Call("Measure", measure_pb2.MeasureRequest(), request_id)


def of_event(lines: list[Any], event: str) -> list[Any]:
    return [line for line in lines if line["event"] == event]


def assert_joined(lines: list[Any], asked: Call) -> None:
    """Everything that names this call names its request."""
    naming = [line for line in lines if line.get("call_id") == asked.trace.call_id]
    assert naming
    assert {line.get("request_id") for line in naming} == {asked.request_id}


async def test_a_failed_attempt_and_what_it_does_to_its_worker_name_the_request(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    bad, good = await workers(2)
    bad.default = Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED")
    with capture_logs() as lines:
        mesh = await driver(bad.address, good.address)
        asked = call("of-the-client")
        await mesh.call(asked)
        assert_joined(lines, asked)
    assert of_event(lines, "attempt_failed")[0]["request_id"] == "of-the-client"
    assert [line.get("request_id") for line in of_event(lines, "worker_state") if line["to"] == "EJECTED"] == [
        "of-the-client"
    ]
    assert all("request_id" not in line for line in lines if "call_id" not in line)
    assert asked.trace == CallTrace(bad.seen[0].call_id, [bad.address, good.address])


async def test_a_slot_left_behind_names_the_request_when_it_is_missed_and_when_it_comes_back(
    workers: MakeWorkers, driver: MakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixed, "LEFT_BEHIND_WARN_S", 0.05)
    (worker,) = await workers(1)
    hold, asked = worker.hold(), call("of-a-client-that-left")
    with capture_logs() as lines:
        mesh = await driver(worker.address)
        leaving = asyncio.create_task(mesh.call(asked))
        await hold.started.wait()
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        assert asked.trace == CallTrace(worker.seen[0].call_id, [worker.address]), "known though nobody was answered"
        await until(lambda: bool(of_event(lines, "slot_not_returned")))
        hold.release.set()
        await until(lambda: bool(of_event(lines, "slot_returned")))
    assert_joined(lines, asked)


async def test_so_does_the_slot_of_an_attempt_whose_request_was_answered_elsewhere(
    workers: MakeWorkers, driver: MakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixed, "LEFT_BEHIND_WARN_S", 0.05)
    stuck, good = await workers(2)
    hold, asked = stuck.hold(), call("answered")
    with capture_logs() as lines:
        mesh = await driver(stuck.address, good.address, dispatch=DispatchConfig(request_timeout_seconds=0.5))
        outcome = await mesh.call(asked)
        assert (outcome.worker, asked.trace.workers) == (good.address, [stuck.address, good.address])
        await until(lambda: bool(of_event(lines, "slot_not_returned")))
        hold.release.set()
    assert_joined(lines, asked)


def write(log: CallLog, call_id: str) -> dict[str, Any]:
    with capture_logs() as lines:
        log.write(ev.Log("warning", "slot_not_returned", {"call_id": call_id}))
    (line,) = lines
    return dict(line)


def test_another_edges_call_has_no_request_here() -> None:
    log = CallLog()
    log.begins("mine-1", "request-1", "trace-1")
    mine, theirs = write(log, "mine-1"), write(log, "theirs-1")
    assert (mine["request_id"], mine["trace_id"]) == ("request-1", "trace-1")
    assert not {"request_id", "trace_id"} & set(theirs)


def test_what_is_remembered_of_calls_that_are_over_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_log, "UNSETTLED_MAX", 2)
    log = CallLog()
    for number in range(6):
        log.begins(f"mine-{number}", f"request-{number}", "trace")
    for number in range(5):
        log.ends(f"mine-{number}", settled=number == 4)
    joined = [number for number in range(6) if "request_id" in write(log, f"mine-{number}")]
    assert joined == [2, 3, 5], "the last two that may have left a slot behind, and those that run"
