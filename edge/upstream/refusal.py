"""What a failed RPC says: the worker's `google.rpc.Status` out of the trailing metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

from edge.calls import DetailValue
from edge.pool.events import Code
from edge.upstream import transport
from hairmesh.plain import NAME_CHARACTERS, printable
from hairmesh.wire import ERROR_DOMAIN, MAX_MESSAGE_BYTES

TOO_LARGE = "BODY_TOO_LARGE"
"""Reason of a request above `MAX_MESSAGE_BYTES`: another worker would not take it either."""
_TOO_LARGE_SAYS = "message larger than max"
"""In what gRPC says of one, on either side. Its code is that of a busy slot, which comes with the worker's reason."""

_DETAILS_KEY = "grpc-status-details-bin"
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One failed attempt."""

    code: Code
    reason: str = ""
    """The worker's own, or `TOO_LARGE`; empty when the status was not made by its code."""
    details: Mapping[str, DetailValue] = field(default_factory=dict)
    """Measured value and limit; numbers as numbers."""
    field: str = ""
    """The field at fault."""
    retry_after_s: float | None = None
    transport: str = ""
    """What gRPC says of an end without a reason, as far as that is known to be its own text; for the log."""


def read(error: grpc.aio.AioRpcError, request: Message) -> Refusal:
    """Everything our own workers put into an error. Details of other origin, or damaged ones, are left out.

    Either side may say that a message is too large, and of either message: it is the request's fault only when it was
    the request. An answer above the limit is the worker's failure, without a reason of its own.
    """
    code = Code[error.code().name]
    packed = (error.trailing_metadata() or {}).get(_DETAILS_KEY)
    if not isinstance(packed, bytes):
        too_large = code is Code.RESOURCE_EXHAUSTED and _TOO_LARGE_SAYS in (error.details() or "")
        if too_large and request.ByteSize() > MAX_MESSAGE_BYTES:
            return Refusal(code, TOO_LARGE, {"max_bytes": MAX_MESSAGE_BYTES})
        return Refusal(code, transport=transport.said(error))
    info, at_fault, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    try:
        for detail in status_pb2.Status.FromString(packed).details:
            for message in (info, at_fault, retry):
                if detail.Is(message.DESCRIPTOR):
                    detail.Unpack(message)
    except DecodeError:
        return Refusal(code)
    if info.domain != ERROR_DOMAIN:
        return Refusal(code)
    delay_s = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
    return Refusal(
        code=code,
        reason=printable(info.reason, NAME_CHARACTERS),
        details={printable(name, NAME_CHARACTERS): _parsed(value) for name, value in info.metadata.items()},
        field=printable(at_fault.field_violations[0].field, NAME_CHARACTERS) if at_fault.field_violations else "",
        retry_after_s=delay_s if retry.HasField("retry_delay") else None,
    )


def _parsed(value: str) -> DetailValue:
    """A number that was written into a string map; anything else stays text."""
    if _INTEGER.fullmatch(value):
        return int(value)
    return float(value) if _NUMBER.fullmatch(value) else printable(value)
