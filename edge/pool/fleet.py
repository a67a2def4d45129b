"""The endpoints together: when each is probed, what is heard of it, what is logged."""

from __future__ import annotations

import math
import random

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.config import PoolConfig
from edge.pool.endpoint import Endpoint, State
from edge.pool.outbox import Outbox
from edge.pool.picker import tier


class Fleet:
    """All endpoints of the configuration, by target."""

    def __init__(self, config: PoolConfig, chance: random.Random, outbox: Outbox) -> None:
        self._health = config.health
        self._chance = chance
        self._outbox = outbox
        self.by_target = {
            target: Endpoint(target, primary=config.is_primary(target), health=config.health)
            for target in config.workers
        }
        self.by_use = list(self.by_target.values())
        """The one idle for longest first."""

    def __repr__(self) -> str:
        """Every endpoint with its state."""
        return f"<Fleet {' '.join(map(repr, self.by_target.values()))}>"

    def used(self, endpoint: Endpoint) -> None:
        """It gets a call."""
        self.by_use.remove(endpoint)
        self.by_use.append(endpoint)

    def any_online(self) -> bool:
        """Whether calls can go anywhere."""
        return any(endpoint.online for endpoint in self.by_use)

    def at_work(self) -> list[Endpoint]:
        """The online ones among which calls are shared now."""
        return tier(self.by_use)

    def next_probe_s(self) -> float:
        """When the next probe is due; infinity when all are on their way."""
        return min((e.next_probe_s for e in self.by_use if not e.probing), default=math.inf)

    def back_in_s(self, now_s: float) -> float:
        """Soonest that one may be back, in s, as a promise to clients when none is online."""
        return min(e.cooldown_left_s(now_s) or self._health.interval_seconds for e in self.by_use)

    def start(self, now_s: float) -> None:
        """First probe of every endpoint, slightly spread."""
        step_s = min(fixed.START_STEP_S, fixed.START_SPREAD_S / len(self.by_target))
        for number, endpoint in enumerate(self.by_target.values()):
            self.probe_at(endpoint, now_s + number * step_s)
        self.probe_due(now_s)

    def startup_over(self) -> None:
        """Say what the pool begins with."""
        endpoints = self.by_target.values()
        facts = {
            "interval_s": self._health.interval_seconds,
            "timeout_s": self._health.timeout_seconds,
            "unhealthy_threshold": self._health.unhealthy_threshold,
            "healthy_threshold": self._health.healthy_threshold,
            "cooldown_s": self._health.cooldown_seconds,
            "cooldown_max_s": self._health.cooldown_max_seconds,
            "workers_total": len(endpoints),
            "workers_online": sum(e.online for e in endpoints),
            "workers_primary": sum(e.primary for e in endpoints),
            "workers_primary_online": sum(e.online and e.primary for e in endpoints),
        }
        self._outbox.add(ev.Log("info", "pool_started", facts))
        never = [e.target for e in endpoints if not e.ever_online]
        if never:
            self._outbox.add(ev.Log("warning", "workers_never_online", {"workers": never}))

    def probe_at(self, endpoint: Endpoint, at_s: float) -> None:
        """Have it probed at this moment, or before."""
        endpoint.next_probe_s = min(endpoint.next_probe_s, at_s)
        self._outbox.wake(endpoint.next_probe_s)

    def probe_due(self, now_s: float) -> None:
        """Send the probes whose time has come."""
        for endpoint in self.by_target.values():
            if endpoint.next_probe_s <= now_s and not endpoint.probing:
                endpoint.probe_began()
                endpoint.next_probe_s = math.inf
                self._outbox.add(ev.Probe(endpoint.target))

    def probe_ended(self, event: ev.ProbeEnded) -> None:
        """Judge it and plan the next one."""
        now_s, endpoint = event.now_s, self.by_target[event.endpoint]
        before = endpoint.standing
        endpoint.probe_ended(now_s, event.result, event.evidence)
        self.log_change(endpoint, before, now_s)
        cooldown_left_s = endpoint.cooldown_left_s(now_s)
        settled = event.result is ev.ProbeResult.GOOD and (endpoint.online or cooldown_left_s > 0)
        wait_s = self._health.interval_seconds if settled else fixed.REPROBE_S
        jitter = 1 + fixed.PROBE_JITTER * (2 * self._chance.random() - 1)
        self.probe_at(endpoint, now_s + wait_s * jitter)
        if cooldown_left_s > 0:
            self.probe_at(endpoint, now_s + cooldown_left_s)
        if endpoint.connection_lost:
            self.probe_at(endpoint, now_s)

    def health_told(self, event: ev.HealthTold) -> None:
        """`Watch` takes out at once, and brings nothing back but a probe."""
        now_s, endpoint = event.now_s, self.by_target[event.endpoint]
        before = endpoint.standing
        if not event.serving:
            endpoint.told_down(now_s, None, "Watch: NOT_SERVING")
        else:
            endpoint.told_serving()
            self._probe_for_return(endpoint, now_s)
        self.log_change(endpoint, before, now_s)

    def connection_lost(self, event: ev.ConnectionLost) -> None:
        """Probe at once; refused as well means gone."""
        endpoint = self.by_target[event.endpoint]
        endpoint.connection_lost = True
        self.probe_at(endpoint, event.now_s)

    def status_told(self, event: ev.StatusTold) -> None:
        """The worker's own account of itself, but for its slot."""
        now_s, endpoint = event.now_s, self.by_target[event.endpoint]
        before = endpoint.standing
        new_boot = endpoint.boot_seen(now_s, event.boot_id)
        if event.cause is not None:
            endpoint.told_down(now_s, event.cause, f"status: {event.evidence}")
        elif endpoint.told_serving() or new_boot:
            self._probe_for_return(endpoint, now_s)
        self.log_change(endpoint, before, now_s)

    def log_change(self, endpoint: Endpoint, before: tuple[State, ev.Cause | None], now_s: float) -> None:
        """One line when its state or cause is another than before."""
        if endpoint.standing == before:
            return
        state, _ = before
        fields: dict[str, object] = {
            "worker": endpoint.target,
            "from": str(state),
            "to": str(endpoint.state),
            "cause": "" if endpoint.cause is None else str(endpoint.cause),
            "evidence": endpoint.evidence,
            "cooldown_s": round(endpoint.cooldown_left_s(now_s), 3),
        }
        self._outbox.add(ev.Log("info" if endpoint.online else "warning", "worker_state", fields))

    def _probe_for_return(self, endpoint: Endpoint, now_s: float) -> None:
        """Something speaks for it: see whether it may come back. A cooldown ends with a probe of its own."""
        if not endpoint.online and endpoint.cooldown_left_s(now_s) == 0:
            self.probe_at(endpoint, now_s)
