"""Every metric of a worker: the one table. gRPC metrics are of `hair.analysis.v1.AnalyzeService`."""

from __future__ import annotations

from hairmesh.metrics import Kind, Metric, table

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
)
