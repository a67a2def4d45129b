"""Passive checks: what the end of an attempt means. One table by status code, one by the worker's own reason."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from edge.pool.events import Cause, Code
from hairmesh.wire import WorkerReason


class Meaning(Enum):
    """What one attempt's end means for its worker and for its request."""

    GOOD = auto()
    """Answered."""
    PASSED_ON = auto()
    """Not the worker's fault: no strike, no retry; what it said goes to the client."""
    FAILED = auto()
    """The worker's fault: ejected, tried again elsewhere."""
    AUTH = auto()
    """It does not take our password: ejected with that cause, tried again elsewhere."""
    TOOK_ITSELF_OUT = auto()
    """It says itself that it cannot: NOT_SERVING with its cause, no cooldown, tried again elsewhere."""
    DRAINING = auto()
    """It is going: no strike, tried again elsewhere, not counted as a retry."""
    BUSY = auto()
    """Its slot is taken: back to the place in the queue, no strike, not counted as a retry."""
    SLOW = auto()
    """Ran out of a full attempt's time while it moved, or while this machine stood still: no strike, tried again
    elsewhere."""
    SLEPT = auto()
    """Lost its connection while this machine stood still: no strike, back to the queue, not counted as a retry."""
    OUT_OF_TIME = auto()
    """The request's own time is over before a full attempt's: no strike, nothing left to retry with."""


BY_CODE: Mapping[Code, Meaning] = {
    Code.OK: Meaning.GOOD,
    Code.INVALID_ARGUMENT: Meaning.PASSED_ON,
    Code.FAILED_PRECONDITION: Meaning.PASSED_ON,
    Code.NOT_FOUND: Meaning.PASSED_ON,
    Code.ALREADY_EXISTS: Meaning.PASSED_ON,
    Code.OUT_OF_RANGE: Meaning.PASSED_ON,
    Code.RESOURCE_EXHAUSTED: Meaning.PASSED_ON,  # a message above the limits; a busy slot says so itself, below
    Code.UNAVAILABLE: Meaning.FAILED,
    Code.DEADLINE_EXCEEDED: Meaning.FAILED,  # of a full attempt; see `meaning_of`
    Code.INTERNAL: Meaning.FAILED,
    Code.UNKNOWN: Meaning.FAILED,
    Code.DATA_LOSS: Meaning.FAILED,
    Code.ABORTED: Meaning.FAILED,
    Code.UNIMPLEMENTED: Meaning.FAILED,
    Code.PERMISSION_DENIED: Meaning.FAILED,
    Code.CANCELLED: Meaning.FAILED,  # by the worker: our own cancelling never comes back as an end
    Code.UNAUTHENTICATED: Meaning.AUTH,
}
"""Every code, unless the worker gave one of the reasons below."""

BY_REASON: Mapping[tuple[Code, str], Meaning] = {
    (Code.RESOURCE_EXHAUSTED, WorkerReason.BUSY): Meaning.BUSY,
    (Code.UNAVAILABLE, WorkerReason.DRAINING): Meaning.DRAINING,
    (Code.UNAVAILABLE, WorkerReason.STARTING): Meaning.TOOK_ITSELF_OUT,
    (Code.UNAVAILABLE, WorkerReason.DISK): Meaning.TOOK_ITSELF_OUT,
    (Code.UNAVAILABLE, WorkerReason.DEPENDENCY): Meaning.TOOK_ITSELF_OUT,
    (Code.UNAVAILABLE, WorkerReason.STALLED): Meaning.TOOK_ITSELF_OUT,
    (Code.UNAVAILABLE, WorkerReason.MODELS): Meaning.TOOK_ITSELF_OUT,
    (Code.UNAVAILABLE, WorkerReason.ACCELERATOR): Meaning.TOOK_ITSELF_OUT,
}
"""Where the worker's own reason changes what the code says."""


class Harm(Enum):
    """What an attempt's end says about its input."""

    NONE = auto()
    """The worker is well: it answered, or refused the photo or a parameter for a reason of its own."""
    INPUT_FAILED = auto()
    """A stage failed on it, while the worker's own canary passes."""
    BROKE = auto()
    """The worker failed on it by its own account."""
    DIED = auto()
    """The worker was gone."""
    UNKNOWN = auto()
    """Nothing: it was cut off, came too late, was not let in."""


_FAILED_INSIDE = frozenset({Code.INTERNAL, Code.UNKNOWN, Code.DATA_LOSS})
"""Failures that an input can bring about. Not among them: what is not built, not allowed, or ended from outside."""

_CUT_OFF = frozenset({Code.DEADLINE_EXCEEDED, Code.ABORTED, Code.CANCELLED})
"""Codes of calls that were ended from outside: with or without a reason of the worker's, its thread may compute on."""

CAUSES: Mapping[str, Cause] = {
    "starting": Cause.MODELS,
    "disk": Cause.DISK,
    "dependency": Cause.DEPENDENCY,
    "stalled": Cause.STALLED,
    "models": Cause.MODELS,
    "accelerator": Cause.ACCELERATOR,
    "draining": Cause.DRAINING,
}
"""From a worker's word for why it does not serve, in lower case, to the pool's."""


def cause_of(word: str) -> Cause:
    """The pool's cause for a worker's word (`DISK`, `disk`); `probe` for one it does not know."""
    return CAUSES.get(word.lower(), Cause.PROBE)


def meaning_of(
    code: Code,
    reason: str,
    *,
    expired: bool,
    full_time: bool,
    moved: bool = False,
    late: bool = False,
    slept: bool = False,
) -> Meaning:
    """What the end of an attempt means.

    `reason` is the worker's own, or empty. `expired`: the attempt's time was over; a worker that says so before has
    failed. `full_time`: that was all the time that one may take, so that running out of it is the worker's doing and
    not that of an impatient client. `moved`: progress was reported late in the attempt, so that it was slow and not
    stuck. `late`: it ended long after its time, or its time ended while the edge itself stood still. `slept`: its
    connection was lost by that.
    """
    if slept and is_gone(code, reason):
        return Meaning.SLEPT
    if code is Code.DEADLINE_EXCEEDED and expired and not full_time:
        return Meaning.OUT_OF_TIME
    if code is Code.DEADLINE_EXCEEDED and expired and (moved or late):
        return Meaning.SLOW
    return BY_REASON.get((code, reason), BY_CODE[code])


def is_gone(code: Code, reason: str) -> bool:
    """Whether an attempt that ended like this lost its worker: the connection broke, or could not be made."""
    return code is Code.UNAVAILABLE and reason == ""


def harm_of(meaning: Meaning, code: Code, reason: str) -> Harm:
    """What the end of an attempt says about its input."""
    if meaning is Meaning.GOOD or (meaning is Meaning.PASSED_ON and reason):
        return Harm.INPUT_FAILED if reason == WorkerReason.INPUT_FAILED else Harm.NONE
    if meaning is not Meaning.FAILED:
        return Harm.UNKNOWN
    if is_gone(code, reason):
        return Harm.DIED
    return Harm.BROKE if code in _FAILED_INSIDE else Harm.UNKNOWN


def proves_slot_free(code: Code, reason: str) -> bool:
    """Whether an attempt that ended like this has left the worker's slot for certain: by the worker's own answer.

    One that drains may have refused the call, or have cut it off.
    """
    said_by_worker = code is Code.OK or reason != ""
    return said_by_worker and code not in _CUT_OFF and reason != WorkerReason.DRAINING
