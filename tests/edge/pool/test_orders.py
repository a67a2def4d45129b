"""Reports of one moment come in any order: the end is the same.

Each case is a set of events that may fall together. They are told in every order, and what the pool knows of its
workers afterwards must not depend on it. Whom the next call gets may: those two are as good as each other.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.config import HealthCheckConfig, PoolConfig
from tests.edge.pool.bench import GOOD, REFUSED, SILENT, A, B, Bench, C

NOW_S = 10.0
OK = ev.Code.OK
WATCH = ev.HealthTold(NOW_S, A, serving=False)
WATCH_GOOD = ev.HealthTold(NOW_S, A, serving=True)
LOST = ev.ConnectionLost(NOW_S, A)
STATUS_LOST = ev.StatusLost(NOW_S, A)
FAILED = ev.CallEnded(NOW_S, "edge-1", ev.Code.INTERNAL, "WORKER_FAILED", None, "x")
GONE = ev.CallEnded(NOW_S, "edge-1", ev.Code.UNAVAILABLE, "", None, "x")
REFUSED_AS_FULL = ev.CallEnded(NOW_S, "edge-1", ev.Code.UNAVAILABLE, "DISK", None, "x")
REFUSED_AS_DRAINING = ev.CallEnded(NOW_S, "edge-1", ev.Code.UNAVAILABLE, "DRAINING", None, "x")
WRONG_PASSWORD = ev.CallEnded(NOW_S, "edge-1", ev.Code.UNAUTHENTICATED, "WRONG_PASSWORD", None, "x")
ANSWERED = ev.CallEnded(NOW_S, "edge-1", OK)
LEFT = ev.CallGone(NOW_S, "edge-1")
WITHOUT_A = PoolConfig(workers=(B, C), health=HealthCheckConfig(cooldown_seconds=30))
RECONFIGURED = ev.Configured(NOW_S, WITHOUT_A, WITHOUT_A.targets())
SHORTER = PoolConfig(workers=(A, B), health=HealthCheckConfig(cooldown_seconds=30))
SHORTENED = ev.Configured(NOW_S, SHORTER, SHORTER.targets())


def status(boot: str = "boot-1", cause: ev.Cause | None = None) -> ev.StatusTold:
    """Over the stream that is open; what it says of the slot may be from before a call ended."""
    return ev.StatusTold(NOW_S, A, 1.0, boot, cause, "why" if cause else "")


def probed(result: ev.ProbeResult) -> ev.ProbeEnded:
    return ev.ProbeEnded(NOW_S, A, result, result.name)


CASES: dict[str, tuple[ev.Event, ...]] = {
    "watch and a failed call": (WATCH, FAILED),
    "the process dies": (GONE, LOST, STATUS_LOST, probed(REFUSED)),
    "the process is a new one": (GONE, status("boot-2"), LOST),
    "a disk is full": (WATCH, status(cause=ev.Cause.DISK), REFUSED_AS_FULL),
    "a disk is full and the call fails of it": (WATCH, status(cause=ev.Cause.DISK), FAILED),
    "a disk is full and a good probe comes back": (status(cause=ev.Cause.DISK), probed(GOOD)),
    "draining, and the call is cut off": (status(cause=ev.Cause.DRAINING), GONE, WATCH),
    "draining, and the call is refused": (status(cause=ev.Cause.DRAINING), REFUSED_AS_DRAINING, WATCH),
    "a bad probe and a failed call": (probed(SILENT), FAILED),
    "a good probe and a failed call": (probed(GOOD), FAILED),
    "a good probe and watch": (probed(GOOD), WATCH),
    "a refused probe and a lost connection": (probed(REFUSED), LOST),
    "watch says well and a probe is good": (WATCH_GOOD, probed(GOOD)),
    "the password changes as a call is refused": (ev.PasswordChanged(NOW_S), WRONG_PASSWORD),
    "it leaves the configuration as its call ends": (RECONFIGURED, ANSWERED),
    "it leaves the configuration as its call fails": (RECONFIGURED, FAILED),
    "it leaves the configuration as the client leaves": (RECONFIGURED, LEFT),
    "it leaves the configuration as it says it is down": (RECONFIGURED, WATCH, status(cause=ev.Cause.DISK)),
    "the cooldown changes as a call fails": (SHORTENED, FAILED),
    "the client leaves as the worker loses its streams": (LEFT, STATUS_LOST, LOST),
}


def end(events: tuple[ev.Event, ...], *, probing: bool) -> tuple[object, ...]:
    """What is known after these, told in this order at one moment."""
    bench = Bench(A, B).online()
    bench.status(A, 1.0)
    assert bench.runs_on(bench.call(9.0)) == A
    bench.tell(ev.HealthTold(9.0, B, serving=False))
    if probing:
        bench.tell(ev.ConnectionLost(9.9, A))
        bench.probed(A, GOOD, 9.95)
        bench.tell(ev.Tick(NOW_S - 0.001))
        bench[A].probe_began()
    for event in events:
        bench.tell(event)
    bench.tell(ev.Tick(NOW_S))
    return (
        [replace(each, evidence="", history=(), next_probe_in_s=None) for each in bench.pool.snapshot(NOW_S).endpoints],
        [endpoint.online for endpoint in bench.pool.endpoints()],
    )


@pytest.mark.parametrize("case", CASES)
def test_the_end_does_not_depend_on_the_order(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed, "COOLDOWN_JITTER", 0.0)
    probing = any(isinstance(event, ev.ProbeEnded) for event in CASES[case])
    ends = {repr(end(order, probing=probing)): order for order in permutations(CASES[case])}
    assert len(ends) == 1, "\n".join(f"{found}\n   after {order}" for found, order in ends.items())
