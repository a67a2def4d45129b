"""Every metric of a worker: the one table. gRPC metrics are of `hair.analysis.v1.AnalyzeService`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hairmesh.metrics import Exposition, Kind, Metric, Values, table
from hairmesh.wire import ANALYZE_SERVICE
from worker.certificates import PortCertificate
from worker.health.checks import DEPENDENCY_PREFIX, CheckState
from worker.health.monitor import HealthMonitor
from worker.runner import Runner
from worker.slot import SlotState
from worker.tally import Tally

OVERALL = "overall"
OTHER = "other"

TABLE = table(
    Metric(
        "grpc_server_handled_total",
        Kind.COUNTER,
        "Calls that have ended, by how; `UNAUTHENTICATED` are those without a good password, of any service.",
        ("grpc_service", "grpc_method", "grpc_code"),
    ),
    Metric("grpc_server_handling_seconds", Kind.HISTOGRAM, "How long calls took.", ("grpc_service", "grpc_method")),
    Metric(
        "hairmesh_stage_seconds",
        Kind.HISTOGRAM,
        "How long each stage of calls took that somebody waited for to the end.",
        ("stage",),
    ),
    Metric("hairmesh_slot_busy", Kind.GAUGE, "Whether the slot is taken, by a call or by the thread one left behind."),
    Metric(
        "hairmesh_health",
        Kind.GAUGE,
        "Whether each name of the health service is SERVING; `overall` is the one without a name.",
        ("check",),
    ),
    Metric("hairmesh_dependency_up", Kind.GAUGE, "Whether a server of `health.deps` answers as it should.", ("dep",)),
    Metric(
        "hairmesh_certificate_expires_timestamp_seconds",
        Kind.GAUGE,
        "When the certificate of the port stops to be valid, by the configuration's key: `tls`.",
        ("key",),
    ),
)


@dataclass(frozen=True, slots=True)
class WorkerMetrics:
    """Fills the table from where the numbers are kept. Belongs to the event loop."""

    tally: Tally
    runner: Runner
    monitor: HealthMonitor
    certificate: PortCertificate | None

    def exposition(self) -> Exposition:
        """What Prometheus reads."""
        return Exposition("worker", TABLE, self.values)

    def values(self) -> Mapping[str, Values]:
        """Every row of the table."""
        health, tally = self.monitor.report(), self.tally
        handled: dict[tuple[str, ...], float] = {
            (ANALYZE_SERVICE, method, code): count for (method, code), count in tally.handled.items()
        }
        for name, count in tally.turned_away.items():
            service, method = name.strip("/").split("/") if name else (OTHER, OTHER)
            handled[service, method, "UNAUTHENTICATED"] = count
        return {
            "grpc_server_handled_total": handled,
            "grpc_server_handling_seconds": {
                (ANALYZE_SERVICE, method): took.copy() for method, took in tally.took.items()
            },
            "hairmesh_stage_seconds": {(stage,): took.copy() for stage, took in tally.stages.items()},
            "hairmesh_slot_busy": {(): self.runner.slot.state is not SlotState.FREE},
            "hairmesh_health": {(name or OVERALL,): not reason for name, reason in health.why_not.items()},
            "hairmesh_dependency_up": {
                (check.name.removeprefix(DEPENDENCY_PREFIX),): check.state is not CheckState.FAILING
                for check in health.checks
                if check.name.startswith(DEPENDENCY_PREFIX)
            },
            "hairmesh_certificate_expires_timestamp_seconds": (
                {("tls",): self.certificate.validity.expires_at.timestamp()} if self.certificate else {}
            ),
        }
