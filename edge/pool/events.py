"""Events go in, decisions come out. The vocabulary between the pool and the shell that owns clock and channels.

Moments (`now_s`, `at_s`) are seconds on the shell's monotonic clock. An endpoint is named by its target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import Literal

from edge.pool.config import PoolConfig, Target


class Cause(StrEnum):
    """Why an endpoint is not SERVING."""

    UNREACHABLE = "unreachable"
    """No connection."""
    PROBE = "probe"
    """Probes fail, or say no without a reason that the pool knows."""
    STALLED = "stalled"
    """Its progress stands still: a restart is needed."""
    DISK = "disk"
    """Its disk is full."""
    DEPENDENCY = "dependency"
    """A server that it needs is down."""
    MODELS = "models"
    """Its models are not there yet, or not the right ones."""
    ACCELERATOR = "accelerator"
    """Its accelerator fails until a new process starts."""
    AUTH = "auth"
    """It does not take our password."""
    PASSIVE = "passive"
    """A call failed on it, whatever its health says."""
    DRAINING = "draining"
    """It is going: no new calls, the running one ends."""


class Code(StrEnum):
    """How an attempt ended: the names of gRPC's status codes."""

    OK = "OK"
    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"
    DATA_LOSS = "DATA_LOSS"
    UNAUTHENTICATED = "UNAUTHENTICATED"


class ProbeResult(Enum):
    """What one active check found."""

    GOOD = auto()
    """The worker says SERVING."""
    NOT_SERVING = auto()
    """The worker answers, and says otherwise."""
    UNREACHABLE = auto()
    """No connection."""
    TIMEOUT = auto()
    """No answer in time."""
    AUTH = auto()
    """The worker does not take the password."""
    ERROR = auto()
    """Any other answer."""


# Events ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """The shell is ready to probe."""

    now_s: float


@dataclass(frozen=True, slots=True)
class StartupOver:
    """The first probe round is over: everyone answered, or its time is up."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Tick:
    """The moment asked for by `Wake` has come."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Woke:
    """This process stood still for longer than `SLEPT_S`: comes before anything that was heard since."""

    now_s: float
    slept_s: float
    """For how long, at least."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A client wants a call."""

    now_s: float
    call_id: str
    slow: bool = False
    timeout_s: float | None = None
    """The client's own patience, in s; None: what the configuration allows."""
    size_bytes: int = 0
    """Size of the body; only looked at when there is no room inside (`Pool.has_room`)."""
    capability: str = ""
    """What a worker should be able to do for it, such as `growth`; any worker will do where none can."""
    input_key: str = ""
    """Keyed hash of its input; only looked at while the pool remembers inputs (`Pool.minds_inputs`)."""
    client_key: str = ""
    """Keyed hash of who sent it; empty: not known."""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A started attempt ended by itself."""

    now_s: float
    call_id: str
    code: Code = Code.OK
    reason: str = ""
    """The worker's own `ErrorInfo.reason`, empty when the status did not come from its code."""
    retry_after_s: float | None = None
    """From `RetryInfo`, in s."""
    input_key: str = ""
    """Keyed hash of the call's input, for every end but a good one."""
    transport: str = ""
    """What gRPC itself says of an end without the worker's own word, short and printable; for log and operators."""


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """The attempt's own stream told of a stage or a step."""

    now_s: float
    call_id: str


@dataclass(frozen=True, slots=True)
class CallGone:
    """The client left; the shell has cancelled what ran."""

    now_s: float
    call_id: str


@dataclass(frozen=True, slots=True)
class ProbeEnded:
    """An active check is over."""

    now_s: float
    endpoint: str
    result: ProbeResult
    evidence: str = ""
    """In words, for log and operators."""


@dataclass(frozen=True, slots=True)
class HealthTold:
    """The health `Watch` stream says something."""

    now_s: float
    endpoint: str
    serving: bool


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """An established health stream broke."""

    now_s: float
    endpoint: str


@dataclass(frozen=True, slots=True)
class StatusTold:
    """One message of the `WatchStatus` stream."""

    now_s: float
    endpoint: str
    asked_s: float
    """When the stream that brought it was opened."""
    boot_id: str
    """Random id of the worker's process."""
    cause: Cause | None = None
    """Why it does not serve; None when it does."""
    evidence: str = ""
    """Its reasons, in words."""
    taken: bool = False
    """Whether its slot is taken, by a call or by the thread of an abandoned one."""
    call_id: str = ""
    """`x-call-id` of the call that took it."""
    stage: str = ""
    """What that call does now."""
    steps: int = 0
    """The worker's progress counter: moves with every stage and step."""
    capabilities: frozenset[str] = frozenset()
    """What it can do now, such as `growth`."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """What it cannot do now, each with its reason."""


@dataclass(frozen=True, slots=True)
class StatusLost:
    """The `WatchStatus` stream broke: what it said of the slot is out of date."""

    now_s: float
    endpoint: str


@dataclass(frozen=True, slots=True)
class Configured:
    """Another configuration, or other addresses behind its names."""

    now_s: float
    config: PoolConfig
    targets: tuple[Target, ...]
    """Every endpoint that there shall be: the addresses in `config.workers`, and those its names resolve to."""


@dataclass(frozen=True, slots=True)
class PasswordChanged:
    """The shell has another password: whoever was out because of the old one may try again."""

    now_s: float


Event = (
    Started
    | StartupOver
    | Configured
    | PasswordChanged
    | Tick
    | Woke
    | Submitted
    | CallProgressed
    | CallEnded
    | CallGone
    | ProbeEnded
    | HealthTold
    | ConnectionLost
    | StatusTold
    | StatusLost
)


# Decisions ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Run an attempt of the call on this endpoint now; report `CallEnded`, or `CallGone` when its client leaves."""

    call_id: str
    endpoint: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Finish:
    """Hand the client what the worker answered last: a result, or its refusal of the input."""

    call_id: str
    endpoint: str
    attempts: int
    queue_s: float


FailReason = Literal["NO_WORKER", "BUSY", "WORKER_FAILED", "DEADLINE", "POISON_INPUT"]


@dataclass(frozen=True, slots=True)
class Fail:
    """Tell the client that the system has no answer."""

    call_id: str
    reason: FailReason
    retry_after_s: float
    endpoint: str
    """The last one that was tried; empty when none was."""
    attempts: int
    queue_s: float
    needed_s: float | None = None
    """For one refused at once because its patience is too short: what it would take by measured service times."""


@dataclass(frozen=True, slots=True)
class Open:
    """A new endpoint: make its channel. Comes before anything else that names it."""

    endpoint: str


@dataclass(frozen=True, slots=True)
class Close:
    """It is no longer of the pool, and nothing of ours runs there: close its channel."""

    endpoint: str


@dataclass(frozen=True, slots=True)
class Probe:
    """Check this endpoint now; report `ProbeEnded`."""

    endpoint: str


@dataclass(frozen=True, slots=True)
class AskStatus:
    """Open the `WatchStatus` stream anew: what it says must be younger than this decision."""

    endpoint: str


Level = Literal["info", "warning"]


@dataclass(frozen=True, slots=True)
class Log:
    """One structured line."""

    level: Level
    event: str
    fields: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wake:
    """Send `Tick` at this moment; replaces the one asked for before."""

    at_s: float


Decision = Start | Finish | Fail | Open | Close | Probe | AskStatus | Log | Wake
