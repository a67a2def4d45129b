"""Every metric of the edge: the one table. Dashboards, alerts and the console build on these names.

HTTP metrics are of requests under `/api/`, as the request log is. Labels are bounded: a route is one that is declared,
a reason one of `edge.errors`, a worker one of the pool at this moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from edge.api_keys import Access
from edge.certificates import Certificates
from edge.images.store import ImageStore
from edge.local.thread import LocalThread
from edge.monitor import Monitor
from edge.pool.endpoint import State
from edge.pool.events import Cause
from edge.reload import InForce
from edge.request_log import RequestLog
from edge.room import Room
from edge.secrets import Door, Finding, Gate
from edge.server.crowd import Closed, Crowd
from edge.stats import Stats
from edge.upstream.tally import FAST, SLOW, MeshFigures
from hairmesh.metrics import Exposition, Kind, Metric, Values, table
from hairmesh.wire import ANALYZE_SERVICE

TABLE = table(
    Metric(
        "http_requests_total",
        Kind.COUNTER,
        "Requests that have ended, by route, HTTP method and status, the envelope's code and its reason.",
        ("route", "method", "status", "code", "reason"),
    ),
    Metric(
        "http_request_duration_seconds",
        Kind.HISTOGRAM,
        "From the first byte of a request to its answer.",
        ("route", "method", "status"),
    ),
    Metric("http_requests_in_flight", Kind.GAUGE, "Requests that have not ended.", ("route",)),
    Metric(
        "grpc_client_handled_total",
        Kind.COUNTER,
        "Attempts of calls on workers that have ended, by how.",
        ("grpc_service", "grpc_method", "grpc_code"),
    ),
    Metric(
        "grpc_client_handling_seconds",
        Kind.HISTOGRAM,
        "How long such attempts took.",
        ("grpc_service", "grpc_method"),
    ),
    Metric(
        "hairmesh_pool_workers",
        Kind.GAUGE,
        "Workers by pool state, why they do not serve (`none` for those that do), and whether they are primary.",
        ("state", "cause", "primary"),
    ),
    Metric(
        "hairmesh_pool_worker_online",
        Kind.GAUGE,
        "Whether calls go to this worker; those that are in the pool at this moment.",
        ("worker",),
    ),
    Metric(
        "hairmesh_pool_ejections_total",
        Kind.COUNTER,
        "Workers taken out because a call failed on them, by cause.",
        ("cause",),
    ),
    Metric("hairmesh_pool_growth_capable", Kind.GAUGE, "Workers online that can grow hair."),
    Metric("hairmesh_pool_brake", Kind.GAUGE, "Whether the brake is on: most workers went out for one cause."),
    Metric("hairmesh_alert_drill", Kind.GAUGE, "Whether `/monitor` says 503 for a drill."),
    Metric(
        "hairmesh_queue_waiting", Kind.GAUGE, "Calls that wait, inside and outside, by class: fast or slow.", ("class",)
    ),
    Metric("hairmesh_queue_outside", Kind.GAUGE, "Calls that wait beyond `dispatch.max_in_flight`."),
    Metric("hairmesh_queue_inside", Kind.GAUGE, "Calls that run or wait for a worker."),
    Metric(
        "hairmesh_queue_wait_seconds",
        Kind.HISTOGRAM,
        "How long calls that have ended waited for workers, all their attempts together, by class.",
        ("class",),
    ),
    Metric("hairmesh_slots_busy", Kind.GAUGE, "Workers' slots that hold a call of this edge, left behind or not."),
    Metric("hairmesh_store_pictures", Kind.GAUGE, "Pictures kept."),
    Metric("hairmesh_store_bytes", Kind.GAUGE, "Size of all of them together."),
    Metric("hairmesh_store_max_bytes", Kind.GAUGE, "How large they may be together: `static.max_bytes`."),
    Metric("hairmesh_store_writable", Kind.GAUGE, "Whether pictures could be stored at the last look."),
    Metric("hairmesh_store_failures_total", Kind.COUNTER, "Pictures that could not be stored."),
    Metric(
        "hairmesh_store_removed_total",
        Kind.COUNTER,
        "Pictures removed: for their `age`, to make `room`, on `request`.",
        ("why",),
    ),
    Metric("hairmesh_store_waiting_bytes", Kind.GAUGE, "Size of those that are being written."),
    Metric("hairmesh_connections", Kind.GAUGE, "Connections of clients."),
    Metric("hairmesh_connections_waiting", Kind.GAUGE, "Those of them that have no request."),
    Metric(
        "hairmesh_connections_closed_total",
        Kind.COUNTER,
        "Connections that the edge ended before their clients did, by what broke its limits.",
        ("why",),
    ),
    Metric("hairmesh_uploading_bytes", Kind.GAUGE, "Request bodies that arrive or are taken apart."),
    Metric("hairmesh_local_vision_inside", Kind.GAUGE, "The edge's own calls that run or wait for their turn."),
    Metric("hairmesh_local_vision_stuck", Kind.GAUGE, "Whether these are refused until a restart."),
    Metric("hairmesh_configuration_version", Kind.GAUGE, "Counts the configurations that were in force."),
    Metric("hairmesh_configuration_refused", Kind.GAUGE, "Whether the file, as it is now, is wrong and not in force."),
    Metric("hairmesh_request_log_lost_total", Kind.COUNTER, "Lines of the request log that could not be written."),
    Metric(
        "hairmesh_tokens_refused_total",
        Kind.COUNTER,
        "Requests without a token that is good, by what it would have opened and what was wrong.",
        ("door", "why"),
    ),
    Metric(
        "hairmesh_api_key_requests_total",
        Kind.COUNTER,
        "Requests with an API key, by its name and whether its limit took them: `taken` or `limited`.",
        ("key", "result"),
    ),
    Metric(
        "hairmesh_certificate_expires_timestamp_seconds",
        Kind.GAUGE,
        "When our own certificates in force stop to be valid, by the configuration's key: `tls`, `worker_tls`.",
        ("key",),
    ),
)


class CountedMesh(Protocol):
    """A mesh that tells its numbers."""

    def figures(self) -> MeshFigures:
        """At this moment, and since the start."""


@dataclass(frozen=True, slots=True)
class EdgeMetrics:
    """Fills the table from where the numbers are kept. Belongs to the event loop."""

    mesh: CountedMesh
    stats: Stats
    store: ImageStore
    local: LocalThread
    monitor: Monitor
    in_force: InForce
    request_log: RequestLog
    gate: Gate
    access: Access
    certificates: Certificates
    room: Room
    crowd: Crowd

    def exposition(self) -> Exposition:
        """What Prometheus reads."""
        return Exposition("edge", TABLE, self.values)

    def values(self) -> Mapping[str, Values]:
        """Every row of the table. With a thousand workers it takes a millisecond."""
        return {**self._http(), **self._mesh(), **self._own()}

    def _http(self) -> Mapping[str, Values]:
        whole = self.stats.since_start
        return {
            "http_requests_total": {
                (o.route, o.method, str(o.status), o.code, o.reason): count for o, count in whole.counts.items()
            },
            "http_request_duration_seconds": {
                (s.route, s.method, str(s.status)): durations.copy() for s, durations in whole.durations.items()
            },
            "http_requests_in_flight": {(route,): count for route, count in self.stats.in_flight.items()},
        }

    def _mesh(self) -> Mapping[str, Values]:
        figures = self.mesh.figures()
        pool, calls = figures.pool, figures.calls
        workers: dict[tuple[str, ...], float] = {
            (str(State.SERVING), _NO_CAUSE, primary): 0 for primary in _FLAGS.values()
        }
        for (state, cause, primary), count in pool.standings.items():
            workers[state, cause or _NO_CAUSE, _FLAGS[primary]] = count
        return {
            "grpc_client_handled_total": {
                (ANALYZE_SERVICE, method, str(code)): count for (method, code), count in calls.attempts.items()
            },
            "grpc_client_handling_seconds": {
                (ANALYZE_SERVICE, method): took.copy() for method, took in calls.took.items()
            },
            "hairmesh_pool_workers": workers,
            "hairmesh_pool_worker_online": {(worker,): online for worker, online in pool.online.items()},
            "hairmesh_pool_ejections_total": {(str(cause),): calls.ejections[str(cause)] for cause in Cause},
            "hairmesh_pool_growth_capable": {(): pool.growth_capable},
            "hairmesh_pool_brake": {(): pool.braked},
            "hairmesh_queue_waiting": {(FAST,): pool.waiting_fast, (SLOW,): pool.waiting_slow},
            "hairmesh_queue_outside": {(): pool.outside},
            "hairmesh_queue_inside": {(): pool.inside},
            "hairmesh_queue_wait_seconds": {(name,): waits.copy() for name, waits in calls.waits.items()},
            "hairmesh_slots_busy": {(): pool.slots_busy},
        }

    def _own(self) -> Mapping[str, Values]:
        store, local, in_force = self.store.figures, self.local.state, self.in_force
        return {
            "hairmesh_alert_drill": {(): self.monitor.drill},
            "hairmesh_store_pictures": {(): store.count},
            "hairmesh_store_bytes": {(): store.bytes},
            "hairmesh_store_max_bytes": {(): store.max_bytes},
            "hairmesh_store_writable": {(): self.store.writable},
            "hairmesh_store_failures_total": {(): store.failures},
            "hairmesh_store_removed_total": {
                ("age",): store.removed_old,
                ("room",): store.removed_for_room,
                ("request",): store.removed_by_request,
            },
            "hairmesh_store_waiting_bytes": {(): store.waiting_bytes},
            "hairmesh_connections": {(): len(self.crowd)},
            "hairmesh_connections_waiting": {(): self.crowd.waiting},
            "hairmesh_connections_closed_total": {(str(why),): self.crowd.closed[why] for why in Closed},
            "hairmesh_uploading_bytes": {(): self.room.body_bytes},
            "hairmesh_local_vision_inside": {(): local.inside},
            "hairmesh_local_vision_stuck": {(): local.stuck},
            "hairmesh_configuration_version": {(): in_force.version},
            "hairmesh_configuration_refused": {(): bool(in_force.problems)},
            "hairmesh_request_log_lost_total": {(): self.request_log.lost},
            "hairmesh_tokens_refused_total": {
                (str(door), str(why)): self.gate.refused[door, why]
                for door in Door
                for why in Finding
                if why is not Finding.GOOD
            },
            "hairmesh_api_key_requests_total": dict[tuple[str, ...], float](self.access.requests),
            "hairmesh_certificate_expires_timestamp_seconds": {
                (key,): moment.timestamp() for key, moment in self.certificates.expires_at.items()
            },
        }


_NO_CAUSE = "none"
_FLAGS: Mapping[bool, str] = {True: "true", False: "false"}
