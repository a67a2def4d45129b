"""The rules that every schedule is held to, by name, and how a broken one is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.sim.edge import SimEdge


class ViolationError(AssertionError):
    """Something that must always hold did not."""

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(f"{invariant}: {message}")
        self.invariant = invariant
        """Its name, one of `INVARIANTS`."""


def require(edge: SimEdge, holds: object, invariant: str, message: str) -> None:
    """Raises `ViolationError` when it does not hold at this moment of this edge."""
    if not holds:
        raise ViolationError(invariant, f"{edge.clock.now_s:.6f} {edge.edge_id}: {message}")


INVARIANTS = {
    "slot": "a worker computes one call at a time, and no edge starts one on a worker that it knows taken",
    "cooldown": "no traffic in a cooldown; the brake shortens it, and the guilt of an input or of a client ends it",
    "offline": "nothing to a worker that is unknown, leaving or offline",
    "once": "every request is answered once, and nothing happens to it afterwards",
    "lost": "every request is answered, and the pool's books are those of the clients",
    "patience": "nobody waits longer than agreed, and no attempt outlives its request",
    "order": "first come, first served within a class; no slow request overtakes a fast one",
    "share": "slow calls never hold every online worker while a fast one waits",
    "idle": "no worker that counts as online stands idle while a request waits that it may take",
    "busy": "BUSY is said to who has waited as long as agreed, and at once only where there is no room for a body",
    "held": "a client is held to one worker for inputs that broke two, gets that one, and is not locked out",
    "capability": "who asks for a capability gets a worker that has it, if any is online",
    "priority": "backups only while no primary is online",
    "needless": "no worker is taken out without one of the stated reasons",
    "monitor": "what `/monitor` counts is what gets calls",
    "retry": "a request never goes to a worker that failed it",
    "budget": "retries stay within their budget",
    "poison": "an input that has broken two workers while others succeed is refused from then on",
    "brake": "a cause that most workers share is noticed, and answered with one trial call at a time",
    "recovery": "when the faults are over everybody is back in time, and works",
    "memory": "the pool forgets what is over",
    "confluence": "the end is the same whichever of two simultaneous events came first",
}
"""By name: what each says."""
