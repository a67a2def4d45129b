"""Whether a call may take the slot now. Pure."""

from __future__ import annotations

from hairmesh.wire import WorkerReason
from worker.health.report import Report
from worker.refusals import DEADLINE, OF_CAUSE, Refusal
from worker.slot import Slot, SlotState
from worker.thresholds import Thresholds


def admit(
    *,
    refusing: bool,
    health: Report,
    remaining_s: float | None,
    slot: Slot,
    busy_for_s: float,
    unread_bytes: int,
    thresholds: Thresholds,
) -> Refusal | None:
    """None when the call may start, else why not; what outlasts the call is asked first.

    `refusing`: the worker drains and its delay is over. `remaining_s`: until the caller's deadline, None without one.
    `busy_for_s`: how long the call in the slot will probably still take. `unread_bytes`: of answers that were made and
    not yet taken.
    """
    if refusing:
        return Refusal(WorkerReason.DRAINING)
    if health.cause is not None:
        return Refusal(OF_CAUSE[health.cause])
    if remaining_s is not None and remaining_s <= 0:
        return Refusal(DEADLINE)
    if slot.state is not SlotState.FREE:
        return Refusal(WorkerReason.BUSY, retry_after_s=busy_for_s)
    if unread_bytes >= thresholds.most_unread_bytes:
        return Refusal(WorkerReason.BUSY, retry_after_s=thresholds.unread_retry_s)
    return None
