"""Whose turn it is: which request gets which worker, and that no worker stands idle for nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from edge.pool.endpoint import Endpoint
from edge.pool.snapshot import PoolSnapshot
from tests.sim.patience import held_places
from tests.sim.rules import require

if TYPE_CHECKING:
    from tests.sim.edge import Client, SimEdge


def check_turn(edge: SimEdge, running: Mapping[str, Client], client: Client, endpoint: Endpoint, call: str) -> None:
    """An attempt is to start on `endpoint`. `running`: by worker."""
    now_s, target, holds = edge.clock.now_s, endpoint.target, edge.checks.holds
    online = [each for each in edge.pool.endpoints() if each.online]
    spill_s = edge.config.dispatch.spill_after_seconds
    held = holds.may_be(client.client_key, now_s)
    spilled = False
    primaries = set() if endpoint.primary else {each.target for each in online if each.primary}
    if not endpoint.primary:
        better = primaries - client.failed_on
        spilled = held or (spill_s is not None and now_s >= client.waits_since_s + spill_s)
        require(edge, not better or spilled, "priority", f"{call}: {sorted(better)} are online")
    if not held:
        able = _able(edge, client, online, primary=endpoint.primary)
        require(edge, not able or target in able, "capability", f"{call}: {sorted(able)} can {client.capability}")
    fast_waits = False
    for other in edge.open.values():
        if other.running_on or other is client or (other.slow and not client.slow):
            continue
        fast_waits |= not other.slow
        if other.number > client.number or target in other.failed_on or spilled:
            continue
        if holds.may_be(other.client_key, now_s) or primaries - other.failed_on:  # it waits for one of those
            continue
        if other.capability and other.capability not in edge.checks.heard[target].capabilities:
            continue
        require(edge, False, "order", f"{call}: {other.call_id} came before")
    if client.slow and fast_waits and not spilled:
        sharing = [each for each in online if each.primary] or online
        slow = sum(running[each.target].slow for each in sharing if each.target in running)
        require(edge, len(sharing) < 2 or slow + 1 < len(sharing), "share", f"{call}: the last one for fast calls")


def able_and_idle(
    edge: SimEdge, running: Mapping[str, Client], endpoints: Sequence[Endpoint], *, braked: bool
) -> set[str]:
    """Those that may get a call now, but for slots that calls have left behind. `running`: by worker."""
    now_s, heard = edge.clock.now_s, edge.checks.heard
    able = [
        each
        for each in endpoints
        if each.online
        and each.target not in running
        and not heard[each.target].taken
        and each.busy_until_s <= now_s
        and not (braked and each.on_trial)
    ]
    if able and any(each.online and each.primary for each in endpoints):
        able = [each for each in able if each.primary]
    return {each.target for each in able}


def check_idle(
    edge: SimEdge,
    snapshot: PoolSnapshot,
    running: Mapping[str, Client],
    idle: set[str],
    online: Sequence[Endpoint],
) -> None:
    """A request that waits beside a worker in `idle` that it may use and whose slot is free. `running`: by worker."""
    now_s, holds = edge.clock.now_s, edge.checks.holds
    free = idle - {each.target for each in snapshot.endpoints if each.call_id}
    if not free:
        return
    waiting = [client for client in edge.open.values() if not client.running_on]
    patient = [client for client in waiting if not holds.may_be(client.client_key, now_s)]
    fast_waits = any(not client.slow for client in waiting)
    inside = len(running) + len(patient) + min(held_places(edge), len(waiting) - len(patient))
    all_inside = not snapshot.waiting_outside or inside <= edge.config.dispatch.max_in_flight
    for client in patient:
        if client.slow and (fast_waits or snapshot.waiting_outside):
            continue
        able = _able(edge, client, online, primary=any(each.primary for each in online))
        stuck = (free & able if able else free) - client.failed_on
        if all_inside and stuck:
            require(edge, False, "idle", f"{client.call_id} waits, {sorted(stuck)} stand idle")
    for client_key, worker in holds.surely(now_s):
        mine = [each for each in waiting if each.client_key == client_key and not (each.slow or each.failed_on)]
        if mine and not snapshot.waiting_outside:
            free_for_it = worker in free or (not worker and free == {each.target for each in online})
            why = f"{mine[0].call_id} of a held client waits, {sorted(free)} stand idle"
            require(edge, not free_for_it, "idle", why)


def _able(edge: SimEdge, client: Client, online: Sequence[Endpoint], *, primary: bool) -> set[str]:
    """Those online of one priority that can do what the client asks for, and have not failed it."""
    if not client.capability:
        return set()
    able = {each.target for each in online if each.primary is primary} - client.failed_on
    return {target for target in able if client.capability in edge.checks.heard[target].capabilities}
