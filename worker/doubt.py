"""When to doubt the worker rather than the input. Pure: every event carries `now_s`.

A broken accelerator hides behind "no face" answers and behind inputs that seem to break things; this decides when the
canary has to speak, and whose fault a failed input is.
"""

from __future__ import annotations

from collections import deque

from worker.thresholds import Thresholds


def canary_overdue(last_good_s: float | None, now_s: float, max_age_s: float) -> bool:
    """Whether the last good canary is older than `max_age_s`, or there was none."""
    return last_good_s is None or now_s - last_good_s > max_age_s


class Doubt:
    """What the recent calls say about this worker."""

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._refusals_in_a_row = 0
        self._failed_at_s: dict[bytes, float] = {}
        self._answered_at_s: deque[float] = deque()

    def answered(self, now_s: float) -> None:
        """A call was answered: models find faces, and no stage is broken for everybody."""
        self._refusals_in_a_row = 0
        self._answered_at_s.append(now_s)
        self._forget(now_s)

    def refused(self) -> bool:
        """A photo was refused. True when the row of refusals is long enough to force a canary, and begins anew."""
        self._refusals_in_a_row += 1
        if self._refusals_in_a_row < self._thresholds.refusals_for_canary:
            return False
        self._refusals_in_a_row = 0
        return True

    def input_failed(self, digest: bytes, now_s: float) -> bool:
        """A stage raised on the input with `digest` while the canary passes.

        True when different inputs did so often enough that the worker is at fault after all, and more often than calls
        were answered: a stage that works for others is not broken, however many bad inputs one caller sends.

        The design counts different inputs alone. Then one caller with a folder of photos that break things would take
        down one worker after another (scenario 29). So answers weigh against them: while 30 calls were answered within
        the window, 25 failing inputs stay the inputs' fault. What that could hide, a stage that fails for some inputs
        only, each caller hears as `INPUT_FAILED`; a broken accelerator shows in the canary, which ran for every one.
        """
        self._failed_at_s[digest] = now_s
        self._forget(now_s)
        failed = len(self._failed_at_s)
        return failed >= self._thresholds.failed_inputs_limit and failed > len(self._answered_at_s)

    def _forget(self, now_s: float) -> None:
        oldest_s = now_s - self._thresholds.failed_inputs_window_s
        self._failed_at_s = {known: failed_s for known, failed_s in self._failed_at_s.items() if failed_s >= oldest_s}
        while self._answered_at_s and self._answered_at_s[0] < oldest_s:
            self._answered_at_s.popleft()
