"""`/admin/`: what operators may see. With an admin token, without the business envelope, never with a password."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response

import hairmesh
from edge import outside
from edge.calls import ContactSnapshot, Mesh
from edge.local.thread import LocalThread
from edge.metrics import CountedMesh
from edge.monitor import Monitor, answer, refusal, turned_away
from edge.outside import said
from edge.pool.snapshot import EndpointSnapshot, PoolSnapshot, ProbeSnapshot
from edge.reload import InForce
from edge.secrets import CHALLENGE, Finding, Gate
from edge.stats import WINDOWS_S, Stats
from hairmesh.metrics import CONTENT_TYPE, Exposition


class SeenMesh(Mesh, CountedMesh, Protocol):
    """A mesh that shows what it decides by."""

    @property
    def edge_id(self) -> str:
        """With which the id of every call of this edge begins."""

    def snapshot(self) -> PoolSnapshot:
        """Workers and queue at this moment."""

    def contacts(self) -> Mapping[str, ContactSnapshot]:
        """By worker: what the pool does not know of it."""


class Admin:
    """Handlers for operators."""

    def __init__(
        self,
        mesh: SeenMesh,
        local: LocalThread,
        in_force: InForce,
        monitor: Monitor,
        *,
        stats: Stats,
        exposition: Exposition,
        gate: Gate,
    ) -> None:
        self._mesh = mesh
        self._local = local
        self._in_force = in_force
        self._monitor = monitor
        self._stats = stats
        self._exposition = exposition
        self._gate = gate
        self._started_s = time.monotonic()

    async def pool(self, request: Request) -> Response:
        """Every worker with why it is where it is, the queue, and the configuration in force."""
        return self._refused(request) or answer(self.describe_pool())

    async def stats(self, request: Request) -> Response:
        """How requests went, route by route."""
        return self._refused(request) or answer(self.describe_stats())

    async def metrics(self, request: Request) -> Response:
        """Everything that is counted, for Prometheus."""
        if (refused := self._refused(request)) is not None:
            return refused
        text = await self._exposition.text()
        return Response(text, headers={"Cache-Control": "no-store"}, media_type=CONTENT_TYPE)

    def _refused(self, request: Request) -> Response | None:
        """What somebody is told who brings no admin token that is in force."""
        if not self._in_force.settings.admin_tokens:
            return refusal(403, said(outside.ADMIN_OFF, request))
        verdict = self._gate.judge_admin(request)
        if verdict.finding is Finding.GOOD:
            return None
        missing = verdict.finding is Finding.MISSING
        words = outside.ADMIN_TOKEN_MISSING if missing else outside.ADMIN_TOKEN_WRONG
        response = turned_away(request, verdict, words, outside.ADMIN_TOKENS_TOO_MANY)
        response.headers.update(CHALLENGE)
        return response

    def describe_stats(self) -> dict[str, Any]:
        """What `stats` tells, for whoever has shown already that they may see it."""
        now_s = time.monotonic()
        uptime_s = now_s - self._started_s
        return {
            "edge": {"id": self._mesh.edge_id, "version": hairmesh.__version__, "uptime_s": _rounded(uptime_s)},
            "windows_s": {name: _rounded(min(window_s, uptime_s)) for name, window_s in WINDOWS_S.items()},
            "routes": self._stats.describe(now_s),
        }

    def describe_pool(self) -> dict[str, Any]:
        """The same, for whoever has shown already that they may see it."""
        pool, online, in_force = self._mesh.snapshot(), self._mesh.online(), self._in_force
        contacts = self._mesh.contacts()
        return {
            "edge": {
                "id": self._mesh.edge_id,
                "version": hairmesh.__version__,
                "uptime_s": _rounded(time.monotonic() - self._started_s),
            },
            "configuration": {
                "version": in_force.version,
                "content_hash": in_force.content_hash,
                "applied_at": in_force.applied_at.isoformat(timespec="seconds"),
                "awaiting_restart": in_force.awaiting_restart,
                "problems": in_force.problems,
            },
            "online": {
                "workers_total": online.total,
                "workers_healthy": online.healthy,
                "workers_primary_total": online.primary_total,
                "workers_primary_healthy": online.primary_healthy,
                "growth_capable": pool.growth_capable,
            },
            "braked": pool.braked,
            "shared_cause": pool.shared_cause or None,
            "drill": self._monitor.drill,
            "queue": {
                "inside": pool.inside,
                "max_in_flight": in_force.settings.dispatch.max_in_flight,
                "waiting_fast": pool.waiting_fast,
                "waiting_slow": pool.waiting_slow,
                "waiting_outside": pool.waiting_outside,
            },
            "local_vision": asdict(self._local.state),
            "workers": [_worker(endpoint, contacts.get(endpoint.target)) for endpoint in pool.endpoints],
        }


def _worker(endpoint: EndpointSnapshot, contact: ContactSnapshot | None) -> dict[str, Any]:
    call = None
    if endpoint.in_flight_s is not None:
        call = {
            "call_id": endpoint.call_id,
            "age_s": _rounded(endpoint.in_flight_s),
            "left_behind": endpoint.left_behind,
        }
    return {
        "address": endpoint.target,
        "name": endpoint.name or None,
        "primary": endpoint.primary,
        "state": endpoint.state,
        "cause": endpoint.cause or None,
        "evidence": endpoint.evidence,
        "cooldown_left_s": _rounded(endpoint.cooldown_left_s),
        "last_probe": None if endpoint.last_probe is None else _probe(endpoint.last_probe),
        "next_probe_in_s": None if endpoint.next_probe_in_s is None else _rounded(endpoint.next_probe_in_s),
        "ejections": endpoint.ejections,
        "leaving": endpoint.leaving,
        "boot_id": endpoint.boot_id or None,
        "capabilities": endpoint.capabilities,
        "lacks": endpoint.lacks,
        "in_flight": call,
        "stage": endpoint.stage or None,
        "taken_by_others": endpoint.taken_by_others,
        "former_password": contact is not None and contact.former_password,
        "history": [{"age_s": _rounded(entry.age_s), "what": entry.what} for entry in endpoint.history],
    }


def _probe(probe: ProbeSnapshot) -> dict[str, Any]:
    return {"result": probe.result, "evidence": probe.evidence, "age_s": _rounded(probe.age_s)}


def _rounded(seconds: float) -> float:
    return round(seconds, 1)
