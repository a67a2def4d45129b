"""How long a request may wait and run, how often it may be tried again, and when it may be told BUSY."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edge.pool import config as fixed
from edge.pool import events as ev
from tests.sim.rules import require

if TYPE_CHECKING:
    from tests.sim.edge import Client, SimEdge

SLACK_S = 0.01
"""By which an answer may be late, in s: what the wire takes."""


def check_time(edge: SimEdge, client: Client, start: ev.Start, call: str) -> None:
    """An attempt is to start: the time that it is given."""
    full_s = edge.config.dispatch.attempt_timeout_s(slow=client.slow)
    require(edge, 0 < start.timeout_s <= full_s, "patience", f"{call}: {start.timeout_s} s for an attempt")
    late_s = edge.clock.now_s + start.timeout_s - _deadline_s(edge, client)
    require(edge, late_s <= SLACK_S, "patience", f"{call}: may run {late_s} s past its deadline")


def check_patience(edge: SimEdge, client: Client, answer: str, *, measured: bool) -> None:
    """A request is to be answered: not too late, and BUSY not too early. `measured`: that it would wait in vain."""
    now_s, woke_s, dispatch = edge.clock.now_s, edge.woke_s, edge.config.dispatch
    call = f"{client.call_id}: {answer}"
    at_s = max(_deadline_s(edge, client), woke_s)
    require(edge, now_s <= at_s + SLACK_S, "patience", f"{call} after its deadline")
    longest_s = dispatch.max_queue_wait_seconds + dispatch.queue_wait_seconds
    waited_s = max(client.waits_since_s + longest_s, client.ended_s)
    if woke_s > client.waits_since_s:  # whoever was to be let in meanwhile is let in now
        waited_s = max(waited_s, woke_s + dispatch.queue_wait_seconds)
    require(edge, now_s <= waited_s + SLACK_S, "patience", f"{call} after too long a wait")
    if answer == "BUSY" and not measured:
        _check_busy(edge, client, call)


def _check_busy(edge: SimEdge, client: Client, call: str) -> None:
    """Only who has waited as long as agreed, has no room for its body, or is one of too many of held clients."""
    now_s, dispatch, holds = edge.clock.now_s, edge.config.dispatch, edge.checks.holds
    waited_s = now_s - client.waits_since_s
    if waited_s >= min(dispatch.queue_wait_seconds, dispatch.max_queue_wait_seconds) - SLACK_S:
        return
    waiting = [each for each in edge.open.values() if not each.running_on]
    if now_s == client.submitted_s and sum(each.size_bytes for each in waiting) > dispatch.max_queued_bytes:
        return
    held = sum(holds.may_be(each.client_key, now_s) for each in waiting)
    require(edge, holds.may_be(client.client_key, now_s), "busy", f"{call} after {waited_s:.3f} s")
    alone = held <= held_places(edge) and not holds.killed_its_worker(client.client_key)
    require(edge, not alone, "held", f"{call}: locked out, and {held} of held clients wait")


class Budget:
    """Of retries."""

    def __init__(self) -> None:
        self._saved = fixed.RETRY_BURST
        self._spent_s = 0.0

    def submitted(self) -> None:
        """A request arrives."""
        self._saved = min(fixed.RETRY_BURST, self._saved + fixed.RETRY_SHARE)

    def check(self, edge: SimEdge, call_id: str) -> None:
        """Whether an attempt that has just failed may be tried again; it is, when its request is still open."""
        client = edge.open.get(call_id)
        if client is None or len(client.failed_on) == client.retries:
            return
        now_s, most = edge.clock.now_s, edge.config.dispatch.max_retries
        client.retries = len(client.failed_on)
        require(edge, client.retries <= most, "budget", f"{call_id}: retry {client.retries} of {most}")
        self._saved = min(fixed.RETRY_BURST, self._saved + (now_s - self._spent_s) * fixed.RETRY_FLOOR_PER_S)
        self._spent_s = now_s
        require(edge, self._saved > 1 - 1e-6, "budget", f"{call_id}: a retry, and {self._saved:.3f} are left")
        self._saved -= 1


def held_places(edge: SimEdge) -> int:
    """Requests of held clients that may wait."""
    return max(1, int(edge.config.dispatch.max_in_flight * fixed.HELD_SHARE_INSIDE))


def _deadline_s(edge: SimEdge, client: Client) -> float:
    dispatch = edge.config.dispatch
    patience_s = dispatch.default_timeout_s(slow=client.slow) if client.timeout_s is None else client.timeout_s
    return client.submitted_s + patience_s
