"""What the REST side asks of the mesh, and what it gets: the only door between routes and pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from google.protobuf.message import Message

from hairmesh.trace_context import TraceContext

DetailValue = float | int | str


@dataclass(slots=True)
class AttemptTrace:
    """One attempt, for the spans of a request that is traced. Moments are of the monotonic clock, in s."""

    context: TraceContext
    method: str
    worker: str
    waited_since_s: float
    """When it began to wait for its worker."""
    began_s: float
    ended_s: float
    """Later, once it has ended."""
    code: str = ""
    """gRPC's name of how it ended; empty while it runs."""


@dataclass(slots=True)
class CallTrace:
    """Where a call went, filled while it runs, so that it is known even when its client leaves."""

    call_id: str = ""
    """As it stands in the workers' logs and in the pool's."""
    workers: list[str] = field(default_factory=list)
    """One address for each attempt, in order."""
    context: TraceContext = field(default_factory=lambda: TraceContext.new(sampled=False), compare=False)
    """The request's place in its trace: workers get it, and its id is on every line of the logs."""
    recorded: bool = False
    """Whether spans are made of this request: only then are attempts noted, each with a span of its own."""
    submitted_s: float = field(default=0.0, compare=False)
    """When the pool got it, monotonic clock."""
    attempts: list[AttemptTrace] = field(default_factory=list)

    def attempt_begins(self, method: str, worker: str, now_s: float) -> str:
        """Note an attempt, if the request is recorded; the `traceparent` for its worker."""
        if not self.recorded:
            return self.context.header
        waited_since_s = self.attempts[-1].ended_s if self.attempts else self.submitted_s
        own = self.context.child()
        self.attempts.append(AttemptTrace(own, method, worker, waited_since_s, now_s, now_s))
        return own.header

    def attempt_ended(self, code: str, now_s: float) -> None:
        """The last one that was noted is over."""
        if self.attempts:
            self.attempts[-1].ended_s, self.attempts[-1].code = now_s, code


@dataclass(frozen=True, slots=True)
class Call:
    """One call for any worker."""

    method: str
    """RPC of `AnalyzeService`, such as `Measure`."""
    message: Message
    request_id: str
    slow: bool = False
    """Growth calls: a class of their own in the queue, with the longer attempt timeout."""
    timeout_s: float | None = None
    """The client's own total patience; None: what the configuration allows."""
    capability: str = ""
    """What a worker should be able to do for it, such as `growth`; any worker will do where none can."""
    client: str = ""
    """Who sends it, such as the address of the peer; empty: not known. Never leaves the edge, never in a log."""
    on_queued: Callable[[int, int], None] | None = None
    """Whenever an attempt is due, the first time before anything else happens: how many calls of its class are to get a
    worker before it, and the number of the attempt (from 1)."""
    on_progress: Callable[[Message, int], None] | None = None
    """For RPCs that stream: every progress message as it arrives, with the number of the attempt (from 1)."""
    trace: CallTrace = field(default_factory=CallTrace, compare=False)
    """Filled in by whoever runs it: one for each call."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer and how it came about."""

    response: Message
    """Of an RPC that streams: its last message."""
    worker: str
    """Address of the worker that answered."""
    attempts: int
    queue_s: float
    """Time spent waiting for a worker."""
    results: tuple[Message, ...] = ()
    """Of an RPC that streams: every message that is no progress, of the attempt that succeeded, in order."""


class CallFailedError(Exception):
    """The call has no answer. `reason` is one of the contract's: a photo's fault, a parameter's, or the system's.

    System reasons: NO_WORKER, BUSY, WORKER_FAILED, DEADLINE, POISON_INPUT; `needed_ms` in `details` means that the call
    was refused at once because its `timeout_s` is shorter than that. Everything else is a worker's refusal of the
    input (`NO_FACE`, `YAW`, `DAMAGED_IMAGE`, `INPUT_FAILED`, `INVALID_PARAMETER` …) with its `details`.
    """

    def __init__(
        self,
        reason: str,
        *,
        details: Mapping[str, DetailValue] | None = None,
        field: str = "",
        retry_after_s: float | None = None,
        worker: str = "",
        attempts: int = 0,
        queue_s: float = 0.0,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.details: Mapping[str, DetailValue] = dict(details or {})
        self.field = field
        self.retry_after_s = retry_after_s
        self.worker = worker
        self.attempts = attempts
        self.queue_s = queue_s


@dataclass(frozen=True, slots=True)
class OnlineCounts:
    """What `/monitor` tells: the very flags by which calls are dispatched."""

    total: int
    healthy: int
    primary_total: int
    primary_healthy: int


@dataclass(frozen=True, slots=True)
class ContactSnapshot:
    """How the edge gets on with one worker, beside what the pool decides about it."""

    former_password: bool
    """It refuses the password of now and takes the one before: after a restart the edge would not get in."""


class Mesh(Protocol):
    """The pool and its channels, as routes see them."""

    async def call(self, call: Call) -> Outcome:
        """Run `call` on a worker; raises `CallFailedError`. Cancelling cancels the RPC, or leaves the queue."""

    def online(self) -> OnlineCounts:
        """Counts from memory; never waits."""
