"""Two reports about one worker in the same moment: the outcome is the same, whichever the pool heard first.

Compared are state, cause, whether it counts as online, the cooldown but for its jitter, how many ejections count, the
lease on its slot, and what became of the call; at once, and again when probes have had their say. With a cooldown of 0
EJECTED and NOT_SERVING are one: both are out until the next good probe.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest

from edge.pool import endpoint as endpoints
from edge.pool import events as ev
from edge.pool.config import HealthCheckConfig, PoolConfig
from edge.pool.manager import Pool

A, B = "a:1", "b:1"
CALL = "edge-1"
NOW_S = 10.0

Report = Callable[[float], ev.Event]


def ended(code: ev.Code, reason: str = "") -> Report:
    return lambda now_s: ev.CallEnded(now_s, CALL, code, reason, input_key="input")


def status(cause: ev.Cause | None = None, *, boot: str = "boot-1", taken: bool = False) -> Report:
    call_id = CALL if taken else ""
    return lambda now_s: ev.StatusTold(now_s, A, 0.5, boot, cause, "evidence", taken, call_id)


ENDS: dict[str, Report] = {
    "call: died": ended(ev.Code.UNAVAILABLE),
    "call: INTERNAL": ended(ev.Code.INTERNAL),
    "call: DISK": ended(ev.Code.UNAVAILABLE, "DISK"),
    "call: STALLED": ended(ev.Code.UNAVAILABLE, "STALLED"),
    "call: DRAINING": ended(ev.Code.UNAVAILABLE, "DRAINING"),
    "call: wrong password": ended(ev.Code.UNAUTHENTICATED, "WRONG_PASSWORD"),
    "call: NO_FACE": ended(ev.Code.FAILED_PRECONDITION, "NO_FACE"),
    "call: OK": ended(ev.Code.OK),
    "client left": lambda now_s: ev.CallGone(now_s, CALL),
}
"""What may end the call that runs there; one of them, once."""
WORDS: dict[str, Report] = {
    "Watch: NOT_SERVING": lambda now_s: ev.HealthTold(now_s, A, serving=False),
    "status: disk": status(ev.Cause.DISK),
    "status: stalled": status(ev.Cause.STALLED),
    "status: draining": status(ev.Cause.DRAINING),
    "status: new process": status(boot="boot-2"),
    "connection lost": lambda now_s: ev.ConnectionLost(now_s, A),
    "status stream lost": lambda now_s: ev.StatusLost(now_s, A),
    "password changed": ev.PasswordChanged,
    "probe: NOT_SERVING": lambda now_s: ev.ProbeEnded(now_s, A, ev.ProbeResult.NOT_SERVING, "probe"),
    "probe: TIMEOUT": lambda now_s: ev.ProbeEnded(now_s, A, ev.ProbeResult.TIMEOUT, "probe"),
}
"""What may be heard beside it."""
REPORTS = ENDS | WORDS

ONE_VOICE = (
    {"status: disk", "status: stalled", "status: draining", "status: new process"},  # one stream has an order
    {"call: DISK", "status: stalled"},  # a worker has one reason at a time
    {"call: STALLED", "status: disk"},
    {"probe: NOT_SERVING", "probe: TIMEOUT"},  # one probe ends once
    {"probe: TIMEOUT", "status: disk"},  # it answers, or it does not
    {"probe: TIMEOUT", "call: DISK"},
    {"probe: TIMEOUT", "call: STALLED"},
    {"probe: TIMEOUT", "status: stalled"},
    {"probe: TIMEOUT", "Watch: NOT_SERVING"},
    {"status: new process", "call: OK"},  # an answer of the last process comes before its end
)
"""No worker sends two of these in the same moment, in either order."""
IN_THE_END = {frozenset({"call: DRAINING", "status: new process"})}
"""The new process may or may not have to be probed first."""
PAIRS = [
    pair
    for pair in combinations(REPORTS, 2)
    if not set(pair) <= set(ENDS) and not any(set(pair) <= voice for voice in ONE_VOICE)
]


class Hand:
    """A pool with two workers online. A call runs on A, whose last probe was bad and whose next one is on its way."""

    def __init__(self, *, cooldown_s: float) -> None:
        health = HealthCheckConfig(cooldown_seconds=cooldown_s, unhealthy_threshold=2)
        self.pool = Pool(PoolConfig(workers=(A, B), health=health), seed=1, edge_id="edge")
        self.probing: set[str] = set()
        self.fate: list[str] = []
        """What became of the call."""
        self.feed(ev.Started(0.0))
        self.feed(ev.Tick(0.02))
        self.answer_probes(0.1)
        for target in (A, B):
            self.feed(ev.HealthTold(0.5, target, serving=True))
            self.feed(ev.StatusTold(0.5, target, 0.5, "boot-1"))
        self.feed(ev.Submitted(1.0, CALL))
        assert self.fate == [f"Start {A}"]
        self.feed(ev.Tick(9.3))
        assert A in self.probing
        self.feed(ev.ProbeEnded(9.3, A, ev.ProbeResult.TIMEOUT, "probe"))
        self.answer_probes(9.3)
        self.feed(ev.Tick(NOW_S + 0.5))
        assert A in self.probing

    def feed(self, event: ev.Event) -> None:
        if isinstance(event, ev.ProbeEnded):
            self.probing.discard(event.endpoint)
        for decision in self.pool.handle(event):
            if isinstance(decision, ev.Probe):
                self.probing.add(decision.endpoint)
            elif isinstance(decision, (ev.Start, ev.Finish, ev.Fail)):
                self.fate.append(f"{type(decision).__name__} {decision.endpoint}")

    def answer_probes(self, now_s: float) -> None:
        for target in sorted(self.probing):
            self.feed(ev.ProbeEnded(now_s, target, ev.ProbeResult.GOOD, "probe"))

    def outcome(self, now_s: float, *, cooldown_s: float) -> tuple[object, ...]:
        a = next(each for each in self.pool.snapshot(now_s).endpoints if each.target == A)
        endpoint = next(each for each in self.pool.endpoints() if each.target == A)
        standing = (a.state, a.cause, round(a.cooldown_left_s / 60), endpoint.ejections) if cooldown_s else ()
        return endpoint.online, standing, a.call_id, a.left_behind, tuple(self.fate)


def outcomes(first: str, second: str, *, cooldown_s: float) -> list[tuple[object, ...]]:
    """Right after both, and after some good probes."""
    hand, now_s = Hand(cooldown_s=cooldown_s), NOW_S + 1.0
    for name in (first, second):
        hand.feed(REPORTS[name](now_s))
    seen = [hand.outcome(now_s, cooldown_s=cooldown_s)]
    for _ in range(4):
        hand.answer_probes(now_s)
        now_s += 2.0
        hand.feed(ev.Tick(now_s))
    hand.answer_probes(now_s)
    return [*seen, hand.outcome(now_s, cooldown_s=cooldown_s)]


@pytest.mark.parametrize("cooldown_s", [0.0, 60.0])
@pytest.mark.parametrize(("first", "second"), [pytest.param(*pair, id=" + ".join(pair)) for pair in PAIRS])
def test_either_order_ends_alike(first: str, second: str, cooldown_s: float) -> None:
    one, other = outcomes(first, second, cooldown_s=cooldown_s), outcomes(second, first, cooldown_s=cooldown_s)
    assert one[-1] == other[-1]
    assert one == other or frozenset({first, second}) in IN_THE_END


def test_a_pool_in_which_the_order_counts_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a failed call does not eject one that has just said that it is down."""
    table = {state: dict(row) for state, row in endpoints.TRANSITIONS.items()}
    table[endpoints.State.NOT_SERVING][endpoints.Trigger.CALL_FAILED] = endpoints.STAYS
    monkeypatch.setattr(endpoints, "TRANSITIONS", table)
    pair = ("Watch: NOT_SERVING", "call: INTERNAL")
    assert outcomes(*pair, cooldown_s=60.0) != outcomes(*reversed(pair), cooldown_s=60.0)
