"""A worker's rich status, read back."""

from __future__ import annotations

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from hair.analysis.v1 import measure_pb2

from edge.pool.events import Code
from edge.upstream import refusal
from edge.upstream.refusal import TOO_LARGE, Refusal
from hairmesh.wire import ERROR_DOMAIN, MAX_MESSAGE_BYTES


def error(*trailing: tuple[str, bytes], code: grpc.StatusCode = grpc.StatusCode.INTERNAL) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details="x")


def packed(info: error_details_pb2.ErrorInfo) -> tuple[str, bytes]:
    status = status_pb2.Status(code=13)
    status.details.add().Pack(info)
    return "grpc-status-details-bin", status.SerializeToString()


def read(failed: grpc.aio.AioRpcError, *, photo_bytes: int = 5) -> Refusal:
    request = measure_pb2.MeasureRequest()
    request.photo.data = bytes(photo_bytes)
    return refusal.read(failed, request)


@pytest.mark.parametrize(
    ("written", "parsed"),
    [
        ("180", 180),
        ("-7", -7),
        ("+7", 7),
        ("0.25", 0.25),
        ("-31.5", -31.5),
        ("1e-3", 0.001),
        ("1234567890123456789", 1.2345678901234568e18),
        ("HEIC", "HEIC"),
        ("nan", "nan"),
        ("1_000", "1_000"),
        ("٣", "٣"),
        ("12px", "12px"),
        ("", ""),
    ],
)
def test_numbers_come_back_as_numbers_and_everything_else_as_text(written: str, parsed: float | str) -> None:
    info = error_details_pb2.ErrorInfo(reason="R", domain=ERROR_DOMAIN, metadata={"value": written})
    value = read(error(packed(info))).details["value"]
    assert value == parsed
    assert type(value) is type(parsed)


def test_a_status_without_details_has_its_code_alone() -> None:
    assert read(error(code=grpc.StatusCode.UNAVAILABLE)) == Refusal(Code.UNAVAILABLE)


def test_details_of_another_origin_are_not_the_workers_word() -> None:
    info = error_details_pb2.ErrorInfo(reason="BUSY", domain="proxy.example")
    assert read(error(packed(info))) == Refusal(Code.INTERNAL)


def test_damaged_details_are_left_out() -> None:
    assert read(error(("grpc-status-details-bin", b"\xff\xff\xff"))) == Refusal(Code.INTERNAL)


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_every_code_has_its_name_in_the_pool(code: grpc.StatusCode) -> None:
    assert read(error(code=code)).code.value == code.name


@pytest.mark.parametrize("side", ["CLIENT: Sent", "CLIENT: Received", "SERVER: Sent", "SERVER: Received"])
def test_a_message_above_the_limit_is_told_from_a_busy_slot_and_from_any_other_exhaustion(side: str) -> None:
    exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
    empty = grpc.aio.Metadata()
    too_large = grpc.aio.AioRpcError(exhausted, empty, empty, details=f"{side} message larger than max (5 vs. 4)")
    of_request = read(too_large, photo_bytes=MAX_MESSAGE_BYTES)
    assert of_request == Refusal(Code.RESOURCE_EXHAUSTED, TOO_LARGE, {"max_bytes": MAX_MESSAGE_BYTES})
    of_answer = read(too_large)
    assert (of_answer.reason, of_answer.details) == ("", {})
    assert of_answer.transport.endswith("message larger than max (5 vs. 4)")
    other = grpc.aio.AioRpcError(exhausted, empty, empty, details="Bandwidth exhausted")
    assert read(other) == Refusal(Code.RESOURCE_EXHAUSTED)
