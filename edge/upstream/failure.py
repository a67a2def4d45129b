"""What the client hears of a call that has no answer."""

from __future__ import annotations

import math

from edge.calls import CallFailedError
from edge.pool import events as ev
from edge.upstream.attempt import Reply
from edge.upstream.refusal import Refusal


def failure(word: ev.Finish | ev.Fail, answer: Reply | Refusal | None) -> CallFailedError:
    """The worker's refusal of the input, or why the system has no answer."""
    if isinstance(word, ev.Fail):
        return CallFailedError(
            word.reason,
            details={} if word.needed_s is None else {"needed_ms": math.ceil(word.needed_s * 1000)},
            retry_after_s=word.retry_after_s,
            worker=word.endpoint,
            attempts=word.attempts,
            queue_s=word.queue_s,
        )
    assert isinstance(answer, Refusal)  # noqa: S101  (the pool finishes only what has ended)
    return CallFailedError(
        answer.reason,
        details=answer.details,
        field=answer.field,
        retry_after_s=answer.retry_after_s,
        worker=word.endpoint,
        attempts=word.attempts,
        queue_s=word.queue_s,
    )
