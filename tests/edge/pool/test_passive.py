"""What each end of an attempt means, row by row."""

from __future__ import annotations

import pytest

from edge.pool.events import Cause, Code
from edge.pool.passive import BY_CODE, Meaning, cause_of, meaning_of
from hairmesh.wire import WorkerReason

STRIKES = [
    Code.UNAVAILABLE,
    Code.INTERNAL,
    Code.UNKNOWN,
    Code.DATA_LOSS,
    Code.ABORTED,
    Code.UNIMPLEMENTED,
    Code.PERMISSION_DENIED,
    Code.CANCELLED,
    Code.DEADLINE_EXCEEDED,
]
NO_STRIKES = [
    Code.INVALID_ARGUMENT,
    Code.FAILED_PRECONDITION,
    Code.NOT_FOUND,
    Code.ALREADY_EXISTS,
    Code.OUT_OF_RANGE,
    Code.RESOURCE_EXHAUSTED,
]


@pytest.mark.parametrize("code", STRIKES)
def test_a_worker_is_ejected_for(code: Code) -> None:
    assert meaning_of(code, "", expired=True, full_time=True) is Meaning.FAILED
    assert meaning_of(code, "WORKER_FAILED", expired=True, full_time=True) is Meaning.FAILED


@pytest.mark.parametrize("code", NO_STRIKES)
@pytest.mark.parametrize("reason", ["", "NO_FACE", "INPUT_FAILED", "INVALID_PARAMETER"])
def test_nobody_is_blamed_for(code: Code, reason: str) -> None:
    assert meaning_of(code, reason, expired=True, full_time=True) is Meaning.PASSED_ON


def test_the_deadline_of_a_shorter_attempt_is_no_strike() -> None:
    assert meaning_of(Code.DEADLINE_EXCEEDED, "", expired=True, full_time=False) is Meaning.OUT_OF_TIME


@pytest.mark.parametrize("full_time", [True, False])
def test_who_says_at_once_that_time_is_over_has_failed(full_time: bool) -> None:
    assert meaning_of(Code.DEADLINE_EXCEEDED, "", expired=False, full_time=full_time, moved=True) is Meaning.FAILED


def test_what_comes_back_long_after_its_time_is_no_strike() -> None:
    assert meaning_of(Code.DEADLINE_EXCEEDED, "", expired=True, full_time=True, late=True) is Meaning.SLOW


@pytest.mark.parametrize("reason", ["", WorkerReason.WRONG_PASSWORD])
def test_a_password_refused_is_a_cause_of_its_own(reason: str) -> None:
    assert meaning_of(Code.UNAUTHENTICATED, reason, expired=True, full_time=True) is Meaning.AUTH


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        (WorkerReason.DISK, Cause.DISK),
        (WorkerReason.DEPENDENCY, Cause.DEPENDENCY),
        (WorkerReason.STALLED, Cause.STALLED),
        (WorkerReason.MODELS, Cause.MODELS),
        (WorkerReason.ACCELERATOR, Cause.ACCELERATOR),
        (WorkerReason.STARTING, Cause.MODELS),
    ],
)
def test_a_worker_that_takes_itself_out_says_why(reason: str, cause: Cause) -> None:
    assert meaning_of(Code.UNAVAILABLE, reason, expired=True, full_time=True) is Meaning.TOOK_ITSELF_OUT
    assert cause_of(reason) is cause
    assert cause_of(reason.lower()) is cause, "the same word as in its status"


def test_draining_and_busy_are_told_by_the_workers_own_reason() -> None:
    assert meaning_of(Code.UNAVAILABLE, WorkerReason.DRAINING, expired=True, full_time=True) is Meaning.DRAINING
    assert meaning_of(Code.RESOURCE_EXHAUSTED, WorkerReason.BUSY, expired=True, full_time=True) is Meaning.BUSY
    assert meaning_of(Code.INTERNAL, WorkerReason.BUSY, expired=True, full_time=True) is Meaning.FAILED, (
        "the wrong code for that reason"
    )


def test_every_code_has_a_meaning() -> None:
    assert set(BY_CODE) == set(Code)


def test_an_unknown_word_of_a_worker_is_a_plain_probe_cause() -> None:
    assert cause_of("tired") is Cause.PROBE
