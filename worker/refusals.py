"""Every way a call can go without an answer, and how it looks on the wire: one table, one error type.

A refusal is a `google.rpc.Status` with one `ErrorInfo` (domain, reason, details as text), `BadRequest` where a field is
at fault, `RetryInfo` where a retry helps, `RequestInfo` where the caller named its request. Its message is the reason
alone: no path, no stack trace, no piece of the input.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RequestInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from hairmesh.wire import ERROR_DOMAIN, WorkerReason
from vision.errors import DetailValue, PhotoError, Reason
from worker.health.checks import Cause

DEADLINE = "DEADLINE"
"""Reason of DEADLINE_EXCEEDED: the caller's time was over before the call began, or ran out while it computed."""
CANCELLED = "CANCELLED"
"""Reason of ABORTED: the handler was cancelled, by a caller who left and hears nothing, or from inside."""

_PHOTO = grpc.StatusCode.FAILED_PRECONDITION
_INPUT = grpc.StatusCode.INVALID_ARGUMENT

CODES: Mapping[str, grpc.StatusCode] = MappingProxyType(
    {
        Reason.NO_FACE: _PHOTO,
        Reason.FACE_TOO_SMALL: _PHOTO,
        Reason.FACE_CUT_OFF: _PHOTO,
        Reason.YAW: _PHOTO,
        Reason.PITCH: _PHOTO,
        Reason.ROLL: _PHOTO,
        Reason.UPSIDE_DOWN: _PHOTO,
        Reason.MULTIPLE_FACES: _PHOTO,
        Reason.HAIRLINE_HIDDEN: _PHOTO,
        Reason.IMAGE_TOO_SMALL: _INPUT,
        Reason.IMAGE_TOO_MANY_PIXELS: _INPUT,
        Reason.UNSUPPORTED_FORMAT: _INPUT,
        Reason.DAMAGED_IMAGE: _INPUT,
        Reason.INVALID_PARAMETER: _INPUT,
        Reason.REGION_SELF_CROSSING: _INPUT,
        Reason.REGION_OUTSIDE_IMAGE: _INPUT,
        Reason.REGION_EMPTY: _INPUT,
        Reason.REGION_OFF_SCALP: _INPUT,
        Reason.REGION_TOO_LARGE: _INPUT,
        Reason.REGION_TOO_FINE: _INPUT,
        Reason.MASK_SIZE_DIFFERS: _INPUT,
        Reason.MASK_UNREADABLE: _INPUT,
        WorkerReason.INPUT_FAILED: _PHOTO,
        WorkerReason.BUSY: grpc.StatusCode.RESOURCE_EXHAUSTED,
        WorkerReason.DRAINING: grpc.StatusCode.UNAVAILABLE,
        WorkerReason.STARTING: grpc.StatusCode.UNAVAILABLE,
        WorkerReason.DISK: grpc.StatusCode.UNAVAILABLE,
        WorkerReason.DEPENDENCY: grpc.StatusCode.UNAVAILABLE,
        WorkerReason.STALLED: grpc.StatusCode.UNAVAILABLE,
        WorkerReason.MODELS: grpc.StatusCode.UNAVAILABLE,
        WorkerReason.ACCELERATOR: grpc.StatusCode.UNAVAILABLE,
        WorkerReason.WRONG_PASSWORD: grpc.StatusCode.UNAUTHENTICATED,
        WorkerReason.WORKER_FAILED: grpc.StatusCode.INTERNAL,
        DEADLINE: grpc.StatusCode.DEADLINE_EXCEEDED,
        CANCELLED: grpc.StatusCode.ABORTED,
    }
)

OF_CAUSE: Mapping[Cause, WorkerReason] = MappingProxyType(
    {
        Cause.ACCELERATOR: WorkerReason.ACCELERATOR,
        Cause.STALLED: WorkerReason.STALLED,
        Cause.MODELS: WorkerReason.MODELS,
        Cause.DISK: WorkerReason.DISK,
        Cause.DEPENDENCY: WorkerReason.DEPENDENCY,
        Cause.STARTING: WorkerReason.STARTING,
    }
)
"""What a worker that is out of rotation tells a caller."""


class Refusal(Exception):  # noqa: N818  (most refusals are no errors of this program)
    """The call has no answer, for `reason`, one of `CODES`."""

    def __init__(
        self,
        reason: str,
        *,
        details: Mapping[str, DetailValue] | None = None,
        field: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = str(reason)
        self.details: Mapping[str, DetailValue] = dict(details or {})
        self.field = field
        self.retry_after_s = retry_after_s
        self.code = CODES[reason]


def of_photo(error: PhotoError) -> Refusal:
    """What the vision floor refused, as it stands."""
    return Refusal(error.reason, details=error.details, field=str(error.details.get("field", "")))


def to_status(refusal: Refusal, request_id: str = "") -> grpc.Status:
    """The refusal with all its details, ready for `abort_with_status`."""
    info = ErrorInfo(
        reason=refusal.reason,
        domain=ERROR_DOMAIN,
        metadata={name: _text(value) for name, value in refusal.details.items()},
    )
    details: list[Message] = [info]
    if refusal.field:
        violation = BadRequest.FieldViolation(field=refusal.field, description=refusal.reason, reason=refusal.reason)
        details.append(BadRequest(field_violations=[violation]))
    if refusal.retry_after_s is not None:
        delay = Duration()
        delay.FromNanoseconds(round(refusal.retry_after_s * 1e9))
        details.append(RetryInfo(retry_delay=delay))
    if request_id:
        details.append(RequestInfo(request_id=request_id))
    number: int = refusal.code.value[0]
    status = Status(code=number, message=refusal.reason)
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    return rpc_status.to_status(status)


def _text(value: DetailValue) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)
