"""One worker as the pool sees it: the state machine, its thresholds and its cooldown.

All transitions stand in `TRANSITIONS`. Two rules stand above it:

- A cooldown outranks every probe and everything the worker says of itself: EJECTED ends only after it, by the next good
  probe (SERVING) or by enough bad ones (NOT_SERVING). One exception: a worker that says it drains in the moment in
  which a call fails on it was leaving, not failing, whichever of the two was heard first.
- Nothing but good probes, begun after its last bad news, ever brings a worker back. What it says (`Watch`,
  `WatchStatus`) can take it out at once, and otherwise only causes a probe.

An illegal transition raises `IllegalTransitionError` and changes nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from types import MappingProxyType
from typing import Final, NamedTuple

from edge.pool import config as fixed
from edge.pool.config import HealthCheckConfig
from edge.pool.cooldown import Cooldown
from edge.pool.events import Cause, ProbeResult


class State(StrEnum):
    """Where a worker stands. Only SERVING is online."""

    UNKNOWN = "UNKNOWN"
    """Not judged yet."""
    SERVING = "SERVING"
    """Gets calls."""
    NOT_SERVING = "NOT_SERVING"
    """Offline by probes or by its own word; back after `healthy_threshold` good probes."""
    EJECTED = "EJECTED"
    """A call failed on it; out for the whole cooldown."""
    DRAINING = "DRAINING"
    """Said that it is going; out until a new process answers at its address."""


class Trigger(Enum):
    """What moves a state, after thresholds."""

    PROBES_GOOD = auto()
    PROBES_BAD = auto()
    TOLD_DOWN = auto()
    """The worker itself said that it cannot serve."""
    TOLD_DRAINING = auto()
    DRAINED_ALREADY = auto()
    """Said that it is going, and the failure that ejected it a moment ago was a part of that."""
    CALL_FAILED = auto()
    NEW_BOOT = auto()
    """Another process answers at its address."""


STAYS: Final = None
"""Heard, and nothing changes, not even the cause."""

TRANSITIONS: Mapping[State, Mapping[Trigger, State | None]] = {
    State.UNKNOWN: {
        Trigger.PROBES_GOOD: State.SERVING,
        Trigger.PROBES_BAD: State.NOT_SERVING,
        Trigger.TOLD_DOWN: State.NOT_SERVING,
        Trigger.TOLD_DRAINING: State.DRAINING,
        Trigger.NEW_BOOT: STAYS,
        # no CALL_FAILED: it never got a call in this life
    },
    State.SERVING: {
        Trigger.PROBES_GOOD: STAYS,
        Trigger.PROBES_BAD: State.NOT_SERVING,
        Trigger.TOLD_DOWN: State.NOT_SERVING,
        Trigger.TOLD_DRAINING: State.DRAINING,
        Trigger.CALL_FAILED: State.EJECTED,
        Trigger.NEW_BOOT: STAYS,
    },
    State.NOT_SERVING: {
        Trigger.PROBES_GOOD: State.SERVING,
        Trigger.PROBES_BAD: State.NOT_SERVING,
        Trigger.TOLD_DOWN: State.NOT_SERVING,
        Trigger.TOLD_DRAINING: State.DRAINING,
        Trigger.CALL_FAILED: State.EJECTED,  # the same end, whether Watch or the failed call came first
        Trigger.NEW_BOOT: STAYS,
    },
    State.EJECTED: {  # PROBES_GOOD and PROBES_BAD only once the cooldown is over
        Trigger.PROBES_GOOD: State.SERVING,
        Trigger.PROBES_BAD: State.NOT_SERVING,
        Trigger.TOLD_DOWN: STAYS,
        Trigger.TOLD_DRAINING: STAYS,
        Trigger.DRAINED_ALREADY: State.DRAINING,
        Trigger.CALL_FAILED: STAYS,  # a call begun before: it may lengthen the cooldown, never counts again
        Trigger.NEW_BOOT: STAYS,
    },
    State.DRAINING: {
        Trigger.PROBES_GOOD: STAYS,
        Trigger.PROBES_BAD: STAYS,
        Trigger.TOLD_DOWN: STAYS,
        Trigger.TOLD_DRAINING: STAYS,
        Trigger.CALL_FAILED: STAYS,
        Trigger.NEW_BOOT: State.UNKNOWN,
    },
}

PROBE_CAUSES: Mapping[ProbeResult, Cause] = {
    ProbeResult.NOT_SERVING: Cause.PROBE,
    ProbeResult.UNREACHABLE: Cause.UNREACHABLE,
    ProbeResult.TIMEOUT: Cause.PROBE,
    ProbeResult.AUTH: Cause.AUTH,
    ProbeResult.ERROR: Cause.PROBE,
}
"""Cause of a worker taken out by bad probes."""


NO_ANSWER = frozenset({ProbeResult.UNREACHABLE, ProbeResult.TIMEOUT, ProbeResult.ERROR})
"""What a probe may find that has not heard the worker itself."""


class IllegalTransitionError(RuntimeError):
    """A trigger that cannot come in this state: a fault of the pool itself."""


class Probed(NamedTuple):
    """What the last active check found."""

    at_s: float
    result: ProbeResult
    evidence: str


class Endpoint:
    """One worker address: state, counters, cooldown. Times in s on the shell's clock."""

    lacks: Mapping[str, str] = MappingProxyType({})
    """Capabilities that it says it has not now, each with its reason. Nothing is decided by it."""

    def __init__(self, target: str, *, primary: bool, health: HealthCheckConfig, name: str = "") -> None:
        self.target = target
        self.primary = primary
        self.name = name
        """The `dns:///name:port` that led to it."""
        self.health = health
        self.turn = 0
        """Who gets the next call: of those that are free, the lowest."""
        self.leaving = False
        """No longer of the pool: gets no new calls."""
        self.awaits_replacement = False
        """To leave as soon as somebody else is online."""
        self.state = State.UNKNOWN
        self.cause: Cause | None = None
        self.evidence = ""
        self.ever_online = False
        self.history: deque[tuple[float, str]] = deque(maxlen=fixed.HISTORY)
        """Its last changes and what was decided about it, with their moments; the latest last."""

        self.good_probes = self.bad_probes = 0
        self.probing, self.probing_since_s, self.next_probe_s = False, -math.inf, math.inf
        self.last_probe: Probed | None = None
        self.probes_bad = False
        """Enough of the last ones were, be it that nothing follows in a cooldown."""
        self.connection_lost = False
        """A stream broke since the last probe began."""
        self._confirming = False
        """The running probe began after a stream broke: no connection again means gone."""
        self._overtaken = False
        """Since the running probe began the worker said otherwise, or failed: its good answer is out of date."""
        self._old_password = False
        """Since the running probe began there is another password: that it was refused is out of date."""

        self.cooldown = Cooldown()
        self.on_trial = False
        """It went out for a cause that many share: its cooldowns are short, and it comes back by a trial call."""
        self.good_s = -math.inf
        """When it last answered a call well, or came online."""
        self.fails_since_s = math.inf
        """Since when it fails on inputs of held clients, and answers nothing well."""

        self.boot_id = ""
        self._booted_s = -math.inf
        self._drained = False
        """Its last process said that it was going."""
        self.told: Cause | None = None
        """Why the worker last said that it does not serve; None when it last said that it does."""
        self.capabilities: frozenset[str] = frozenset()

        self.busy_until_s = -math.inf
        """It refused as busy: left alone until then."""
        self.taken = False
        """Its slot is taken, and not by us."""
        self.stage = ""
        """What the call in its slot does, by its own word."""

    def __repr__(self) -> str:
        """State first: tests and logs read it."""
        cause = f"({self.cause})" if self.cause else ""
        until = f" until {self.cooldown_until_s:.3f} s" if self.state is State.EJECTED else ""
        return f"<{self.target} {self.state}{cause}{until}{' leaving' if self.leaving else ''}>"

    @property
    def online(self) -> bool:
        """The flag by which calls are dispatched and `/monitor` counts."""
        return self.state is State.SERVING and not self.leaving

    @property
    def standing(self) -> tuple[State, Cause | None]:
        """What a log line about a change compares."""
        return self.state, self.cause

    @property
    def ejections(self) -> int:
        """Of late: doublings that its next cooldown gets."""
        return self.cooldown.doublings

    @property
    def cooldown_until_s(self) -> float:
        """When probes may decide again; minus infinity unless it is ejected."""
        if self.state is not State.EJECTED:
            return -math.inf
        return self.cooldown.until_s(self.health)

    def probe_late_s(self, now_s: float) -> float:
        """How long ago its next probe should have begun, or the running one ended, in s; not above 0: it is in time."""
        due_s = self.probing_since_s + self.health.timeout_seconds if self.probing else self.next_probe_s
        return now_s - due_s

    def cooldown_left_s(self, now_s: float) -> float:
        """Time until probes may decide again, in s; 0 outside a cooldown, and always with `cooldown_seconds: 0`."""
        if self.state is not State.EJECTED or self.health.cooldown_seconds == 0:
            return 0.0
        return max(0.0, self.cooldown_until_s - now_s)

    def succeed(self, former: Endpoint, now_s: float) -> None:
        """This is the address of `former`, which left the pool a moment ago."""
        self.cooldown, self.history = former.cooldown, former.history
        former.health = self.health
        if former.cooldown_left_s(now_s) > 0:
            self.state, self.cause, self.evidence = former.state, former.cause, former.evidence

    def remember(self, now_s: float, what: str) -> None:
        """Have it in the history."""
        self.history.append((now_s, what))

    def probe_began(self) -> None:
        """An active check is on its way."""
        self.probing = True
        self._overtaken = self._old_password = False
        self._confirming, self.connection_lost = self.connection_lost, False

    def probe_ended(self, now_s: float, result: ProbeResult, evidence: str, *, slept: bool = False) -> None:
        """Count one active check and let the thresholds decide. `slept`: this process stood still while it ran, so
        that no answer says nothing.
        """
        self.probing = False
        self.last_probe = Probed(now_s, result, evidence)
        outdated = self._overtaken if result is ProbeResult.GOOD else self._old_password and result is ProbeResult.AUTH
        outdated |= slept and result in NO_ANSWER
        if outdated:
            return  # the next one decides
        cooling = self.cooldown_left_s(now_s) > 0
        if result is ProbeResult.GOOD:
            self.good_probes += 1
            self.bad_probes, self.probes_bad = 0, False
            enough = self.state is State.EJECTED or self.good_probes >= self.health.healthy_threshold
            if enough and not cooling:
                self.told = None
                self._fire(now_s, Trigger.PROBES_GOOD, None, evidence)
            return
        self.bad_probes += 1
        self.good_probes = 0
        gone = self._confirming and result is ProbeResult.UNREACHABLE
        enough = gone or self.bad_probes >= self.health.unhealthy_threshold
        self.probes_bad |= enough
        if enough and not cooling:
            cause = PROBE_CAUSES[result]
            if result is ProbeResult.NOT_SERVING and self.told is not None:
                cause = self.told
            self._fire(now_s, Trigger.PROBES_BAD, cause, evidence)

    def told_down(self, now_s: float, cause: Cause | None, evidence: str) -> None:
        """The worker said that it does not serve; `cause` None: it did not say why."""
        if cause is None and self.told is not None:  # it has said why: that stands, and so does its evidence
            cause, evidence = self.told, self.evidence
        self.told = cause or Cause.PROBE
        trigger = Trigger.TOLD_DRAINING if self.told is Cause.DRAINING else Trigger.TOLD_DOWN
        just_ejected = self.state is State.EJECTED and now_s - self.cooldown.began_s <= fixed.SIMULTANEOUS_S
        if trigger is Trigger.TOLD_DRAINING and just_ejected:
            self.cooldown.uncount()
            trigger = Trigger.DRAINED_ALREADY
        self._fire(now_s, trigger, self.told, evidence)

    def refused(self, now_s: float, *, began_s: float, cause: Cause, evidence: str) -> None:
        """A call begun at `began_s` was refused, or cut off, for a reason of the worker's own: it is its word."""
        if began_s >= self._booted_s:  # else it is the word of a process that is gone
            self.told_down(now_s, cause, evidence)

    def told_serving(self) -> bool:
        """The worker said that it serves, which restores nothing. Whether it had said otherwise before."""
        news = self.told is not None
        self.told = None
        return news

    def boot_seen(self, now_s: float, boot_id: str) -> bool:
        """The process behind the address said who it is. Whether it is another one than before."""
        if boot_id == self.boot_id:
            return False
        first, self.boot_id = self.boot_id == "", boot_id
        if first and self.state is not State.DRAINING:
            return False  # nothing known before to compare with; if it still drains, the same message says so
        self._booted_s, self._drained = now_s, self.state is State.DRAINING
        self.told = None
        self._fire(now_s, Trigger.NEW_BOOT, None, "new process")
        return True

    def password_changed(self) -> bool:
        """There is another password. Whether it was out for the old one; then the next good probe brings it back."""
        self._old_password = self.probing
        if self.cause is not Cause.AUTH:
            return False
        if self.state is State.EJECTED:
            self.cooldown.pardon()
        return True

    def pardon(self, failed_s: float) -> bool:
        """The call that failed at `failed_s` was not its fault. Whether the last ejection was for that."""
        if self.cooldown.began_s != failed_s or self.cooldown.pardoned:
            return False
        self.cooldown.pardon()
        return True

    def call_good(self, now_s: float) -> None:
        """A call was answered: enough of them take one doubling off the next cooldown."""
        self.good_s, self.fails_since_s = now_s, math.inf
        self.cooldown.call_good()

    def spare(self, now_s: float) -> bool:
        """A held client's input failed on it. Whether that is the input's fault: not if it goes on for too long."""
        self.fails_since_s = min(self.fails_since_s, now_s)
        return now_s - self.fails_since_s <= fixed.WITNESS_S

    def call_failed(self, now_s: float, *, began_s: float, cause: Cause, evidence: str, chance: float) -> None:
        """A call begun at `began_s` failed by the worker's fault: eject it, or lengthen its cooldown.

        `chance` in [0, 1) is the cooldown's jitter.
        """
        before_boot, unjudged = began_s < self._booted_s, self._drained or self.state is State.UNKNOWN
        if before_boot and (unjudged or now_s - self._booted_s > fixed.SIMULTANEOUS_S):
            return  # on a process that is gone: says nothing about this one
        if self.state is State.EJECTED:
            self.cooldown.lengthen(now_s)
        self._fire(now_s, Trigger.CALL_FAILED, cause, evidence, chance=chance)

    def _fire(self, now_s: float, trigger: Trigger, cause: Cause | None, evidence: str, *, chance: float = 0.0) -> None:
        row = TRANSITIONS[self.state]
        by_probe = trigger in {Trigger.PROBES_GOOD, Trigger.PROBES_BAD}
        if trigger not in row or (by_probe and self.cooldown_left_s(now_s) > 0):
            raise IllegalTransitionError(f"{self!r}: {trigger.name}")
        if not by_probe:  # good probes of before speak for what it was then
            self._overtaken, self.good_probes = True, 0
        after = row[trigger]
        if after is STAYS:
            return
        if after is State.EJECTED:
            self.cooldown.begin(now_s, self.health, chance, short=self.on_trial)
        if after is State.SERVING:
            self.good_s = now_s
        self.state, self.cause, self.evidence = after, cause, evidence
        self.ever_online |= self.online
