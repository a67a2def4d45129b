"""What one edge was told about one worker, and the least that follows from it.

Not the pool's state machine again: only what forbids traffic, in the words of the design. Where the design leaves room,
so does this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.config import HealthCheckConfig

STRIKES = frozenset(
    {
        ev.Code.UNAVAILABLE,
        ev.Code.INTERNAL,
        ev.Code.UNKNOWN,
        ev.Code.DATA_LOSS,
        ev.Code.ABORTED,
        ev.Code.UNIMPLEMENTED,
        ev.Code.PERMISSION_DENIED,
        ev.Code.CANCELLED,
        ev.Code.UNAUTHENTICATED,
    }
)
"""Ends of a call that eject; DEADLINE_EXCEEDED depends on the attempt."""
OWN_WORDS = frozenset({"STARTING", "DISK", "DEPENDENCY", "STALLED", "MODELS", "ACCELERATOR"})
"""With UNAVAILABLE: the worker takes itself out, and no cooldown follows."""


@dataclass(slots=True, eq=False)
class Heard:
    """One worker, as one edge may know it."""

    health: HealthCheckConfig
    out: bool = True
    """Something speaks against it, and no good probe since has answered that."""
    why: str = "never probed"
    good: int = 0
    """Good probes in a row, begun after the last bad news."""
    bad: int = 0
    bad_s: float = -math.inf
    """When it last took itself out."""
    probed_s: float = -math.inf
    """When the last probe began."""
    overtaken: bool = False
    """Bad news came while the running probe was on its way."""
    old_password: bool = False
    """The password was changed while the running probe was on its way."""
    lost: bool = False
    confirming: bool = False
    ejected: bool = False
    ejected_s: float = -math.inf
    in_doubt: bool = False
    """A call has just failed on it by a fault that may not be its own: whether it is ejected, the pool says."""
    floor_s: float = -math.inf
    """End of the shortest cooldown that the design allows."""
    auth_floor_s: float = -math.inf
    """The same for ejections that a password change clears."""
    struck_s: float = -math.inf
    """When a call last failed by its fault."""
    struck_began_s: float = -math.inf
    """When the latest such call began."""
    doublings: int = 0
    counted: bool = False
    """Whether the last ejection made the next cooldown longer."""
    auth: bool = False
    """Whether it was for the password."""
    goods: int = 0
    draining: bool = False
    boot: str = ""
    booted_s: float = -math.inf
    missed: str = ""
    """Call that left its slot behind for so long that the log named it, and that no status has shown to be over."""
    unaccounted: bool = False
    """There is one, and no status that can be read now shows it."""
    taken: bool = False
    """The last status showed the call of another edge in its slot."""
    struck_by: list[tuple[str, str]] = field(default_factory=list)
    """Inputs and clients of the calls that the last ejection is for."""
    busy_until_s: float = -math.inf
    capabilities: frozenset[str] = field(default_factory=frozenset)

    def forbids(self, now_s: float) -> str:
        """Why it must not count as online; empty when nothing speaks against it."""
        if self.draining:
            return "draining"
        if now_s < self.cooldown_s:
            return "cooldown"
        return self.why if self.out else ""

    @property
    def cooldown_s(self) -> float:
        """When the last cooldown ends."""
        return max(self.floor_s, self.auth_floor_s)

    def went_out_since(self, since_s: float) -> bool:
        """Whether it is out, or may have been for a call that failed."""
        return self.out or max(self.struck_s, self.bad_s) >= since_s

    def returned(self) -> None:
        """The pool has it back."""
        self.ejected = False

    def probe_began(self, now_s: float) -> None:
        """A probe is on its way."""
        self.probed_s = now_s
        self.overtaken = self.old_password = False
        self.confirming, self.lost = self.lost, False

    def probe_ended(self, now_s: float, result: ev.ProbeResult) -> None:
        """It came back."""
        if result is ev.ProbeResult.AUTH and self.old_password:
            return
        if result is not ev.ProbeResult.GOOD:
            self.good, self.bad = 0, self.bad + 1
            gone = self.confirming and result is ev.ProbeResult.UNREACHABLE
            if gone or self.bad >= self.health.unhealthy_threshold:
                self.out, self.why = True, f"probe: {result.name}"
            return
        self.bad = 0
        if self.overtaken or self.draining:
            return
        self.good += 1
        enough = 1 if self.ejected else self.health.healthy_threshold
        if self.good >= enough and now_s >= self.cooldown_s:
            self.out = False

    def bad_news(self, now_s: float, why: str) -> None:
        """It takes itself out."""
        self.out, self.why, self.good, self.overtaken = True, why, 0, True
        self.bad_s = now_s

    def status(self, told: ev.StatusTold, *, ours: str) -> None:
        """Its own account of itself."""
        if told.boot_id != self.boot:
            if self.boot or self.draining:
                self.booted_s = told.now_s
            if self.draining:
                self.bad_news(told.now_s, "new process")
            self.boot, self.draining = told.boot_id, False
        self.missed = self.missed if told.call_id == self.missed else ""
        self.unaccounted = False
        self.taken = told.taken and not told.call_id.startswith(ours)
        self.capabilities = told.capabilities
        if not told.taken:
            self.busy_until_s = told.now_s
        if told.cause is not None:
            self.bad_news(told.now_s, f"status: {told.cause}")
            if told.cause is ev.Cause.DRAINING:
                self.drains(told.now_s)

    def slot_missed(self, call_id: str) -> None:
        """The log names the call that has not given its slot back."""
        self.missed, self.unaccounted = call_id, True

    def status_lost(self) -> None:
        """Its account of itself can be read no longer."""
        self.taken, self.unaccounted = False, bool(self.missed)

    def drains(self, now_s: float) -> None:
        """It is going. What failed on it in the same moment was a part of that; else a cooldown says more."""
        together = now_s - self.ejected_s <= fixed.SIMULTANEOUS_S
        self.draining = together or not self.ejected
        if self.ejected and together:
            self.end_cooldown(now_s)
            self.doublings -= self.counted
            self.counted = False

    def call_good(self) -> None:
        """A call was answered."""
        if self.doublings:
            self.goods += 1
            if self.goods >= fixed.DECAY_GOOD_CALLS:
                self.goods, self.doublings, self.counted = 0, self.doublings - 1, False

    def struck(self, now_s: float, *, began_s: float, auth: bool, shortest_s: float, by: tuple[str, str]) -> None:
        """A call begun at `began_s` failed by its fault; `shortest_s`: the cooldown that the brake allows, else inf.
        `by`: its input and its client.
        """
        self.struck_s, self.struck_began_s = now_s, max(self.struck_began_s, began_s)
        if self.draining:
            return
        if not self.ejected:
            self.struck_by.clear()
        if began_s < self.booted_s:  # on the last process
            self.spared(now_s, began_s)
            return
        self.struck_by.append(by)
        health = self.health
        lasts_s = health.cooldown_seconds
        if not self.ejected:
            lasts_s = min(lasts_s * 2**self.doublings, health.cooldown_max_seconds)
            promised_s = health.cooldown_seconds * 2**self.doublings
            self.counted = 0 < promised_s < health.cooldown_max_seconds and shortest_s == math.inf
            self.doublings += self.counted
            self.goods, self.auth, self.ejected_s = 0, auth, now_s
        until_s = now_s + min(lasts_s, shortest_s)
        if auth:
            self.auth_floor_s = max(self.auth_floor_s, until_s)
        else:
            self.floor_s = max(self.floor_s, until_s)
        self.bad_news(now_s, "a call failed on it")
        self.ejected = True

    def shorten(self, to_s: float) -> None:
        """A cause that many share: its cooldown is short, and counts for no later one."""
        self.floor_s = min(self.floor_s, self.struck_s + to_s)
        self.auth_floor_s = min(self.auth_floor_s, self.struck_s + to_s)
        self.doublings -= self.counted
        self.counted = False

    def excused(self, now_s: float) -> None:
        """An input, or a client, is to blame for the last ejection."""
        self.end_cooldown(now_s)
        self.doublings -= self.counted
        self.counted = False

    def spared(self, now_s: float, began_s: float) -> None:
        """A call failed on it, and whether that is its fault is the pool's to say."""
        if not self.ejected:
            self.struck_by.clear()
        self.struck_s, self.struck_began_s = now_s, max(self.struck_began_s, began_s)
        self.in_doubt = True

    def settled(self, now_s: float, *, ejected: bool) -> None:
        """The pool has heard of the failed call as well."""
        if ejected and not self.ejected:
            self.ejected_s = now_s
        self.ejected, self.in_doubt = ejected, False

    def pardon(self, now_s: float) -> None:
        """Another password: an ejection for the old one is over, and makes no later one longer."""
        self.auth_floor_s = min(self.auth_floor_s, now_s)
        self.old_password = True
        if self.ejected and self.auth:
            self.doublings -= self.counted
            self.counted = False

    def comes_back(self, health: HealthCheckConfig, now_s: float) -> Heard:
        """Its address is of the pool again: what calls have cost it stands."""
        cools = now_s < self.cooldown_s
        return Heard(
            health,
            ejected=cools,
            ejected_s=self.ejected_s if cools else -math.inf,
            floor_s=self.floor_s,
            auth_floor_s=self.auth_floor_s,
            doublings=self.doublings,
            counted=self.counted,
            auth=self.auth,
            goods=self.goods,
            struck_by=self.struck_by,
        )

    def reconfigured(self, now_s: float, health: HealthCheckConfig) -> None:
        """Other thresholds; a cooldown of 0 ends the running ones."""
        self.health = health
        if health.cooldown_seconds == 0:
            self.end_cooldown(now_s)

    def end_cooldown(self, now_s: float) -> None:
        """Something stated ended it."""
        self.floor_s, self.auth_floor_s = min(self.floor_s, now_s), min(self.auth_floor_s, now_s)
