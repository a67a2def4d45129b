"""`hair.worker.v1.WorkerService.GetStatus` of a worker of this project, read into a look."""

from __future__ import annotations

import math

from hair.worker.v1.worker_service_pb2 import SERVING_STATE_SERVING, WorkerStatus

from hairmesh.plain import NAME_CHARACTERS, printable
from worker.health.verdict import Reading
from worker.health.watchdog.looks import Answer, Look

STEP_COUNTER = "step_counter"
"""Evidence of the check `progress`: known without a call in flight, up to a second old."""


def read_status(status: WorkerStatus, *, at_s: float, now_epoch_s: float, grace_s: float | None) -> Look:
    """The look that `status` amounts to.

    `at_s` is the reader's monotonic clock, `now_epoch_s` seconds since the epoch. `grace_s` replaces the patience that
    the worker's present stage has; who waits in another server's queue needs none.
    """
    start_time_s = status.start_time.seconds + status.start_time.nanos / 1e9
    slot = status.slot
    busy = slot.HasField("call")
    counters = [check.evidence[STEP_COUNTER] for check in status.checks if STEP_COUNTER in check.evidence]
    counters = [counter for counter in counters if math.isfinite(counter)]
    serves = status.state == SERVING_STATE_SERVING
    reasons = printable(", ".join(status.reasons))
    reading = Reading(
        at_s=at_s,
        boot_id=status.boot_id,
        start_time_s=start_time_s,
        counter=round(counters[0]) if counters else None,
        in_flight=1 if busy else 0,
        waiting=0,
        stage=slot.call.stage,
        stall_after_s=slot.call.stall_after_s if grace_s is None else grace_s,
        waiting_for=printable(slot.call.waiting_for, NAME_CHARACTERS),
        signs=(slot.epoch, slot.call.step_counter),
    )
    return Look(
        at_s,
        Answer.READ,
        {"": reading},
        age_s=max(0.0, now_epoch_s - start_time_s),
        problem="" if serves else f"does not serve: {reasons}",
        serves=serves,
        condemned="" if status.live else f"says that only a restart helps: {reasons}",
    )


def read_liveness(*, live: bool, at_s: float) -> Look:
    """The look that the health service's `liveness` amounts to, which is all that a worker tells without password."""
    reading = Reading(
        at_s=at_s,
        boot_id="",
        start_time_s=None,
        counter=None,
        in_flight=0,
        waiting=0,
        stage="",
        stall_after_s=0.0,
    )
    return Look(
        at_s,
        Answer.READ,
        {"": reading},
        problem="without the password only liveness is known",
        condemned="" if live else "says that only a restart helps",
    )
