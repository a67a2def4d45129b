"""Pure decisions around a call: admission, doubt, service times, and the table of refusals."""

from __future__ import annotations

import itertools
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RequestInfo, RetryInfo
from google.rpc.status_pb2 import Status
from hypothesis import given
from hypothesis import strategies as st

from hairmesh.wire import ERROR_DOMAIN, WorkerReason
from vision.errors import PhotoError, Reason
from worker.admission import admit
from worker.calls import OUTCOMES
from worker.doubt import Doubt, canary_overdue
from worker.engine import is_accelerator_error
from worker.health.checks import Cause, CheckResult, CheckState
from worker.health.report import Report, report
from worker.refusals import CANCELLED, CODES, DEADLINE, OF_CAUSE, Refusal, of_photo, to_status
from worker.service_times import ServiceTimes
from worker.slot import CallIdentity, Slot
from worker.thresholds import Thresholds

GOOD = report([], warm=True, draining=False)


def asked(**changes: Any) -> Refusal | None:
    """Whether a free and healthy worker admits a call, but for `changes`."""
    free = {
        "refusing": False,
        "health": GOOD,
        "remaining_s": None,
        "slot": Slot(),
        "busy_for_s": 1.5,
        "unread_bytes": 0,
        "thresholds": Thresholds(),
    }
    return admit(**{**free, **changes})


def bad(cause: Cause) -> Report:
    return report([CheckResult("x", CheckState.FAILING, cause, "why")], warm=True, draining=False)


def taken() -> Slot:
    slot = Slot()
    slot.occupy(CallIdentity("Measure"), 0.0)
    return slot


def reason(refusal: Refusal | None) -> str | None:
    return refusal.reason if refusal else None


@pytest.mark.parametrize("cause", list(Cause))
def test_worker_out_of_rotation_says_its_own_reason_before_busy(cause: Cause) -> None:
    refusal = asked(health=bad(cause), remaining_s=1.0, slot=taken())
    assert refusal
    assert refusal.reason == OF_CAUSE[cause]
    assert refusal.code is grpc.StatusCode.UNAVAILABLE


def test_draining_outranks_all_and_busy_comes_last() -> None:
    much = Thresholds().most_unread_bytes
    order = [
        asked(refusing=True, health=bad(Cause.DISK), remaining_s=0.0, slot=taken(), unread_bytes=much),
        asked(health=bad(Cause.DISK), remaining_s=0.0, slot=taken(), unread_bytes=much),
        asked(remaining_s=0.0, slot=taken(), unread_bytes=much),
        asked(remaining_s=0.1, slot=taken(), unread_bytes=much),
        asked(remaining_s=0.1, unread_bytes=much),
        asked(remaining_s=0.1, unread_bytes=much - 1),
        asked(),
    ]
    assert [reason(refusal) for refusal in order] == ["DRAINING", "DISK", DEADLINE, "BUSY", "BUSY", None, None]
    assert [refusal.retry_after_s for refusal in order[3:5] if refusal] == [1.5, Thresholds().unread_retry_s]


def test_announced_draining_alone_refuses_nobody() -> None:
    assert asked(health=report([], warm=True, draining=True)) is None


def test_every_reason_has_a_code_and_every_code_an_outcome() -> None:
    assert set(CODES) == {*Reason, *WorkerReason, DEADLINE, CANCELLED}
    before_there_is_a_call = {WorkerReason.WRONG_PASSWORD}
    assert {CODES[known] for known in set(CODES) - before_there_is_a_call} == set(OUTCOMES) - {grpc.StatusCode.OK}


@pytest.mark.parametrize(
    ("refusal", "code", "kinds"),
    [
        (of_photo(PhotoError(Reason.YAW, {"yaw_deg": 31.5, "max": 25})), 9, [ErrorInfo]),
        (of_photo(PhotoError(Reason.DAMAGED_IMAGE)), 3, [ErrorInfo]),
        (of_photo(PhotoError(Reason.INVALID_PARAMETER, {"field": "lang"})), 3, [ErrorInfo, BadRequest]),
        (of_photo(PhotoError(Reason.REGION_TOO_LARGE, {"field": "mask", "max_px2": 9})), 3, [ErrorInfo, BadRequest]),
        (Refusal(WorkerReason.BUSY, retry_after_s=0.25), 8, [ErrorInfo, RetryInfo]),
        (Refusal(WorkerReason.WORKER_FAILED), 13, [ErrorInfo]),
        (Refusal(CANCELLED), 10, [ErrorInfo]),
    ],
)
def test_refusals_on_the_wire(refusal: Refusal, code: int, kinds: list[type]) -> None:
    sent = to_status(refusal, "req-1")
    status = Status.FromString(dict(sent.trailing_metadata)["grpc-status-details-bin"])
    assert (status.code, status.message) == (code, refusal.reason)
    assert [packed.TypeName() for packed in status.details] == [
        kind.DESCRIPTOR.full_name for kind in [*kinds, RequestInfo]
    ]
    info = ErrorInfo()
    status.details[0].Unpack(info)
    assert (info.domain, info.reason) == (ERROR_DOMAIN, refusal.reason)
    assert dict(info.metadata) == {name: str(value) for name, value in refusal.details.items()}


def test_eighth_refusal_in_a_row_forces_a_canary_and_an_answer_breaks_the_row() -> None:
    doubt = Doubt(Thresholds())
    assert [doubt.refused() for _photo in range(17)] == [n in {7, 15} for n in range(17)]
    doubt.answered(0.0)
    assert not any(doubt.refused() for _photo in range(7))


def test_three_different_inputs_within_a_minute_are_the_workers_fault() -> None:
    doubt = Doubt(Thresholds())
    assert not doubt.input_failed(b"a", 0.0)
    assert not doubt.input_failed(b"a", 1.0)
    assert not doubt.input_failed(b"b", 2.0)
    assert doubt.input_failed(b"c", 60.0)
    assert not doubt.input_failed(b"d", 200.0)


def test_one_uploader_of_bad_inputs_does_not_make_a_worker_guilty_that_answers_others() -> None:
    """Scenario 29: twenty variants of an input that breaks a stage, among calls that are answered."""
    doubt = Doubt(Thresholds())
    for second in range(20):
        doubt.answered(float(second))
        assert not doubt.input_failed(b"variant %d" % second, second + 0.5)
    nobody_is_answered = [doubt.input_failed(b"late %d" % n, 79.4) for n in range(3)]
    assert nobody_is_answered == [False, True, True]


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d", "answered"]), st.floats(0.0, 40.0)), max_size=40))
def test_fault_needs_enough_inputs_inside_the_window_and_more_than_answers(events: list[tuple[str, float]]) -> None:
    doubt, now_s = Doubt(Thresholds()), 0.0
    history: list[tuple[str, float]] = []
    for name, gap_s in events:
        now_s += gap_s
        history.append((name, now_s))
        if name == "answered":
            doubt.answered(now_s)
            continue
        recent = [other for other, at_s in history if at_s >= now_s - 60.0]
        inputs, answers = len(set(recent) - {"answered"}), recent.count("answered")
        assert doubt.input_failed(name.encode(), now_s) == (inputs >= 3 and inputs > answers)


def test_canary_age() -> None:
    assert canary_overdue(None, 0.0, 30.0)
    assert not canary_overdue(10.0, 40.0, 30.0)
    assert canary_overdue(10.0, 40.1, 30.0)


def test_accelerator_errors_are_told_from_others() -> None:
    class AcceleratorError(RuntimeError):
        pass

    assert is_accelerator_error(RuntimeError("CUDA error: device-side assert triggered"))
    assert is_accelerator_error(AcceleratorError("lost"))
    assert not is_accelerator_error(RuntimeError("shapes do not match"))
    assert not is_accelerator_error(MemoryError())
    assert not is_accelerator_error(AcceleratorError("CUDA error: out of memory"))


def test_service_times_are_medians_of_the_last_minutes() -> None:
    times = ServiceTimes(window_s=300.0)
    assert times.medians_s(0.0) == {}
    for duration_s, ended_s in ((9.0, 0.0), (1.0, 200.0), (2.0, 210.0), (4.0, 220.0)):
        times.add("Measure", duration_s, ended_s)
    times.add("GrowStyles", 18.0, 0.0)
    assert times.medians_s(220.0) == {"Measure": 3.0, "GrowStyles": 18.0}
    assert times.medians_s(400.0) == {"Measure": 2.0}
    for ended in itertools.count(1000):
        times.add("Measure", 0.5, float(ended))
        if ended > 2000:
            break
    assert times.medians_s(2000.0) == {"Measure": 0.5}
