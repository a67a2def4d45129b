"""Every metric of the edge: the one table. Dashboards, alerts and the console build on these names.

HTTP metrics are of requests under `/api/`, as the request log is. Labels are bounded: a route is one that is declared,
a reason one of `edge.errors`, a worker one of the pool at this moment.
"""

from __future__ import annotations

from hairmesh.metrics import Kind, Metric, table

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
    Metric("hairmesh_store_bytes", Kind.GAUGE, "Size of all pictures kept."),
    Metric("hairmesh_store_max_bytes", Kind.GAUGE, "How large they may be together: `static.max_bytes`."),
    Metric("hairmesh_store_writable", Kind.GAUGE, "Whether pictures could be stored at the last look."),
    Metric("hairmesh_store_failures_total", Kind.COUNTER, "Pictures that could not be stored."),
    Metric("hairmesh_store_removed_total", Kind.COUNTER, "Pictures removed for their age or to make room."),
    Metric("hairmesh_local_vision_inside", Kind.GAUGE, "The edge's own calls that run or wait for their turn."),
    Metric("hairmesh_local_vision_stuck", Kind.GAUGE, "Whether these are refused until a restart."),
    Metric("hairmesh_configuration_version", Kind.GAUGE, "Counts the configurations that were in force."),
    Metric("hairmesh_configuration_refused", Kind.GAUGE, "Whether the file, as it is now, is wrong and not in force."),
    Metric("hairmesh_request_log_lost_total", Kind.COUNTER, "Lines of the request log that could not be written."),
)
