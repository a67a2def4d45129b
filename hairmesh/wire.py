"""What edge and workers say to each other beside the protos: metadata keys, reasons, limits, channel settings.

Both sides read this one table; it imports nothing of theirs.
"""

from __future__ import annotations

from enum import StrEnum

ERROR_DOMAIN = "hairmesh"
"""`domain` of every `google.rpc.ErrorInfo`."""

ANALYZE_SERVICE = "hair.analysis.v1.AnalyzeService"
WORKER_SERVICE = "hair.worker.v1.WorkerService"

TOKEN_KEY = "x-internal-token"  # noqa: S105  (the name of the metadata key, not a secret)
"""Printable ASCII only, on both sides; see `password_problem`."""
REQUEST_ID_KEY = "x-request-id"
CALL_ID_KEY = "x-call-id"
TRACE_KEY = "traceparent"
"""W3C Trace Context; see `hairmesh.trace_context`."""
HEALTH_REASON_KEY = "x-health-reason"

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""Both sides, both directions. gRPC's default of 4 MiB is per side and direction and answers RESOURCE_EXHAUSTED."""
MAX_OUTPUT_SIDE_PX = 4096
"""Long side of a picture in an answer: at most so long, so that even a picture that does not compress fits in."""


PLACEHOLDERS = ("change-me", "replace-me")
"""How passwords and tokens of the example configurations begin. They are public: none that begins so is a secret."""


def placeholder_problem(secret: str) -> str:
    """What to do where an example's placeholder was left in its place; empty for any other secret."""
    return "is still the example's placeholder: write one of your own" if secret.startswith(PLACEHOLDERS) else ""


def password_problem(password: str) -> str:
    """Why `password` cannot be used between edge and workers; empty when it can. Never a piece of it."""
    if not password:
        return "is empty"
    if problem := placeholder_problem(password):
        return problem
    if not (password.isascii() and password.isprintable()):
        return "only printable ASCII: gRPC metadata carries nothing else"
    if password != password.strip():
        return "no space at either end: gRPC metadata drops it"
    return ""


class WorkerReason(StrEnum):
    """`ErrorInfo.reason` of all that is not the photo's fault (those stand in `vision.errors.Reason`)."""

    BUSY = "BUSY"
    """RESOURCE_EXHAUSTED, with RetryInfo: the slot is taken."""
    DRAINING = "DRAINING"
    STARTING = "STARTING"
    DISK = "DISK"
    DEPENDENCY = "DEPENDENCY"
    STALLED = "STALLED"
    MODELS = "MODELS"
    ACCELERATOR = "ACCELERATOR"
    """All UNAVAILABLE: the worker takes itself out and says why."""
    INPUT_FAILED = "INPUT_FAILED"
    """FAILED_PRECONDITION: a stage raised on this input while the canary passes."""
    WRONG_PASSWORD = "WRONG_PASSWORD"  # noqa: S105  (a reason, not a secret)
    """UNAUTHENTICATED."""
    WORKER_FAILED = "WORKER_FAILED"
    """INTERNAL: the worker's own fault."""


PING_INTERVAL_MS = 5_000
"""An edge pings a worker of which nothing has been heard for so long."""
WORKER_PING_INTERVAL_MS = 2 * PING_INTERVAL_MS
"""A worker pings an edge of which nothing has been heard for so long: one that has vanished, as edges ping first."""
PING_TIMEOUT_MS = 5_000
"""How long the answer to one may take before the connection counts as dead."""

CLIENT_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A frozen peer is noticed by HTTP/2 pings; keepalive_timeout alone takes a minute, ping_timeout does it.
    ("grpc.keepalive_time_ms", PING_INTERVAL_MS),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # A worker that comes back is seen within one probe period, not after gRPC's two minutes of backoff.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # How long one attempt to connect may take, whatever its name says: TCP, TLS and HTTP/2 over a slow line, or to a
    # machine that is busy. Refused connections do not wait for it.
    ("grpc.min_reconnect_backoff_ms", 2_000),
)

SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A second worker on the same port must fail loudly, not share it.
    ("grpc.so_reuseport", 0),
    # A client that vanished without a word (power, network) must not leave its streams here for gRPC's two hours.
    ("grpc.keepalive_time_ms", WORKER_PING_INTERVAL_MS),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),
    # Clients ping every PING_INTERVAL_MS: allowed twice as often, so that none ever earns too_many_pings.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", PING_INTERVAL_MS // 2),
    ("grpc.http2.max_ping_strikes", 0),
)
