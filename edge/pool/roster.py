"""Who belongs to the pool: endpoints come, stay and go while calls run.

One that goes gets no new calls; what runs there ends, then its channel is closed. Where its going would leave nobody
online it goes on serving until somebody else is, or for `REPLACE_WAIT_S`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import partial

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.agenda import Agenda, look_again
from edge.pool.config import PoolConfig, Target
from edge.pool.endpoint import Endpoint
from edge.pool.fleet import Fleet
from edge.pool.leases import Leases
from edge.pool.outbox import Outbox


class Roster:
    """Carries out changes of the configuration."""

    def __init__(self, config: PoolConfig, *, fleet: Fleet, leases: Leases, outbox: Outbox, agenda: Agenda) -> None:
        self._config = config
        self._fleet = fleet
        self._leases = leases
        self._outbox = outbox
        self._agenda = agenda
        self.outgoing: list[Endpoint] = []
        """Those that are to leave as soon as somebody else is online."""
        self._serve_until_s = 0.0

    def reconfigure(self, config: PoolConfig, targets: Sequence[Target], now_s: float) -> None:
        """Exactly these targets from now on."""
        fleet = self._fleet
        wanted = _unique(targets)
        before = fleet.by_target
        new = [fleet.make(target, now_s) for address, target in wanted.items() if address not in before]
        going = [e for address, e in before.items() if address not in wanted and not e.leaving]
        moved = [e.target for e in before.values() if e.target in wanted and e.primary != wanted[e.target].primary]
        self._note(config, new, going, moved)
        arriving = {endpoint.target: endpoint for endpoint in new}
        fleet.by_target = {address: before.get(address) or arriving[address] for address in wanted}
        fleet.by_target |= before  # those that are leaving come last
        for address, target in wanted.items():
            endpoint = fleet.by_target[address]
            endpoint.primary, endpoint.name = target.primary, target.name
            if endpoint.leaving or endpoint.awaits_replacement:
                fleet.note(endpoint, now_s, "stays after all", "worker_stays")
            endpoint.awaits_replacement = False
            fleet.stay(endpoint, now_s)
        fleet.start(new, now_s)
        self._config = config
        self._say_goodbye(going, now_s)

    def _say_goodbye(self, going: list[Endpoint], now_s: float) -> None:
        """Let them leave now, or have those that are online wait for their replacement."""
        online = [endpoint for endpoint in going if endpoint.online]
        self.outgoing = online if len(online) == self._fleet.ranks.online() else []
        for endpoint in going:
            if endpoint in self.outgoing:
                endpoint.awaits_replacement = True
                endpoint.remember(now_s, "is to leave, serves until it is replaced")
            else:
                self._leave(endpoint, now_s)
        if self.outgoing:
            self._serve_until_s = now_s + fixed.REPLACE_WAIT_S
            self._agenda.at(self._serve_until_s, look_again)
            self._log("warning", "replacement_awaited", workers=[e.target for e in online], wait_s=fixed.REPLACE_WAIT_S)

    def settle(self, now_s: float) -> None:
        """Whoever waits to be replaced leaves when it is, when it serves no longer, or when the wait is over."""
        serving = [endpoint for endpoint in self.outgoing if endpoint.online]
        replaced = self._fleet.ranks.online() > len(serving)
        over = now_s >= self._serve_until_s
        if not replaced and not over and len(serving) == len(self.outgoing):
            return
        if over and not replaced:
            self._log("warning", "workers_left_unreplaced", workers=[endpoint.target for endpoint in serving])
        outgoing, self.outgoing = self.outgoing, [] if replaced or over else serving
        for endpoint in outgoing:
            if endpoint not in self.outgoing:
                self._leave(endpoint, now_s)

    def _leave(self, endpoint: Endpoint, now_s: float) -> None:
        endpoint.awaits_replacement = False
        endpoint.remember(now_s, "leaves")
        lease = self._leases.on(endpoint.target)
        self._log("info", "worker_leaves", worker=endpoint.target, call_id="" if lease is None else lease.call_id)
        if lease is not None:
            self._agenda.at(now_s + fixed.LEAVING_MAX_S, partial(self._close, endpoint))
        self._fleet.leave(endpoint, now_s)

    def _close(self, endpoint: Endpoint, now_s: float) -> None:
        """It has had its time: what runs there still ends, what was left behind there does not matter any more."""
        lease = self._leases.on(endpoint.target)
        if not endpoint.leaving or lease is None:
            return
        if lease.left_s is None:
            self._agenda.at(now_s + fixed.LEAVING_MAX_S, partial(self._close, endpoint))
            return
        self._log("warning", "worker_left_with_slot_taken", worker=endpoint.target, call_id=lease.call_id)
        self._fleet.close(endpoint, now_s)

    def _note(self, config: PoolConfig, new: list[Endpoint], going: list[Endpoint], moved: list[str]) -> None:
        """One line that says what is different."""
        changes = {
            f"{section}.{each.name}": f"{old} → {now}"
            for section in ("health", "dispatch")
            for each in fields(getattr(config, section))
            if (old := getattr(getattr(self._config, section), each.name))
            != (now := getattr(getattr(config, section), each.name))
        }
        self._log(
            "info",
            "pool_configured",
            added=[endpoint.target for endpoint in new],
            removed=[endpoint.target for endpoint in going],
            priority_changed=moved,
            settings=changes,
        )

    def _log(self, level: ev.Level, event: str, **facts: object) -> None:
        self._outbox.add(ev.Log(level, event, facts))


def _unique(targets: Sequence[Target]) -> dict[str, Target]:
    """By address, in order; one that several names lead to is primary if any of them is."""
    unique: dict[str, Target] = {}
    for target in targets:
        known = unique.get(target.address)
        if known is None or (target.primary and not known.primary):
            unique[target.address] = target
    return unique
