"""Who holds which worker's slot.

A slot is leased to a call by its id. It comes back when the worker's own answer to that call has arrived. An attempt
that ends without one (cancelled, out of time, connection lost) leaves its lease behind: the worker's thread may still
compute. Such a lease ends when a status that was *asked for after that end* shows the slot without that call, be it the
same process with a later call or none, or another process; never by hope. A new process alone proves nothing: the call
may have reached it before the edge heard of it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Lease:
    """One worker's slot, held by one call."""

    call_id: str
    slow: bool
    began_s: float
    left_s: float | None = None
    """When its attempt ended without proof that the slot is free; None while it runs."""
    missed: bool = False
    """Left behind for so long that the log says so."""
    seen: bool = False
    """Left behind, and the status that can be read now shows it: the worker's thread computes on."""

    @property
    def unaccounted(self) -> bool:
        """Nobody says what has become of it, for too long."""
        return self.missed and not self.seen


class Leases:
    """At most one lease per endpoint."""

    def __init__(self) -> None:
        self._held: dict[str, Lease] = {}

    def __repr__(self) -> str:
        """Holders by endpoint; a left-behind lease in parentheses."""
        held = (
            f"{target}={lease.call_id if lease.left_s is None else f'({lease.call_id})'}"
            for target, lease in self._held.items()
        )
        return f"<Leases {' '.join(held)}>"

    def __len__(self) -> int:
        """How many there are, those left behind too."""
        return len(self._held)

    def on(self, target: str) -> Lease | None:
        """The lease on an endpoint's slot."""
        return self._held.get(target)

    def take(self, target: str, call_id: str, now_s: float, *, slow: bool) -> None:
        """Lease a free slot. Raises `RuntimeError` when it is not free: a fault of the pool itself."""
        if target in self._held:
            raise RuntimeError(f"{target} is leased to {self._held[target].call_id}, not free for {call_id}")
        self._held[target] = Lease(call_id, slow, now_s)

    def give_back(self, target: str, call_id: str) -> None:
        """The worker has answered this call: its slot is free. Another call's lease stays."""
        lease = self._held.get(target)
        if lease is not None and lease.call_id == call_id:
            del self._held[target]

    def forget(self, target: str) -> Lease | None:
        """The endpoint is no longer of the pool. What it left behind."""
        return self._held.pop(target, None)

    def restore(self, target: str, lease: Lease) -> None:
        """It is of the pool again."""
        self._held[target] = lease

    def leave_behind(self, target: str, call_id: str, now_s: float) -> Lease:
        """The attempt ended, its thread perhaps not: a status must be asked for. Raises `RuntimeError` like `take`."""
        lease = self._held.get(target)
        if lease is None or lease.call_id != call_id:
            raise RuntimeError(f"{target} is not leased to {call_id}")
        lease.left_s = now_s
        return lease

    def unheard(self, target: str) -> None:
        """Its status can be read no longer."""
        lease = self._held.get(target)
        if lease is not None:
            lease.seen = False

    def told(self, target: str, *, asked_s: float, call_id: str) -> bool:
        """A status asked for at `asked_s` shows `call_id` in the slot. Whether a lease left behind ended by it."""
        lease = self._held.get(target)
        if lease is None or lease.left_s is None or asked_s < lease.left_s:
            return False
        if call_id == lease.call_id:
            lease.seen = True
            return False
        del self._held[target]
        return True
