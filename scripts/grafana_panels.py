"""What stands on the dashboard: rows, panels and their queries. `grafana_dashboard.py` makes Grafana's file of it.

Jobs and labels are those of deploy/prometheus/prometheus.yml.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EDGE = 'job="hairmesh-edge",edge=~"$edge"'
WORKER = 'job="hairmesh-worker"'
SERVING = ',state="SERVING"'

Kind = Literal["stat", "timeseries", "state-timeline", "table"]


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: what it asks, what each series is called, and what the number is."""

    title: str
    kind: Kind
    width: int
    """Of the 24 columns."""
    queries: tuple[tuple[str, str], ...]
    """Query and legend."""
    means: str
    """For whoever asks what this is."""
    unit: str = "short"
    """Grafana's name of it."""
    bad: Literal["zero", "not zero", ""] = ""
    """What is red."""
    flag: bool = False
    """0 or 1: shown as no or yes."""
    stacked: bool = False


def p(quantile: float, metric: str, by: str, labels: str) -> str:
    """A quantile of a histogram."""
    kept = ", ".join(part for part in (by, "le") if part)
    return f"histogram_quantile({quantile}, sum by ({kept}) (rate({metric}_bucket{{{labels}}}[$__rate_interval])))"


def rate(metric: str, by: str, labels: str) -> str:
    """How many a second."""
    return f"sum by ({by}) (rate({metric}{{{labels}}}[$__rate_interval]))"


def of_edges(metric: str, by: str = "edge", how: str = "sum", more: str = "") -> str:
    """A gauge of edges."""
    return f"{how} by ({by}) ({metric}{{{EDGE}{more}}})"


FAILED = f'sum(rate(http_requests_total{{{EDGE},code="1007"}}[5m]))'
ALL = f"sum(rate(http_requests_total{{{EDGE}}}[5m]))"

ROWS: dict[str, tuple[Panel, ...]] = {
    "Is all well?": (
        Panel(
            "Workers online",
            "stat",
            4,
            ((f"min({of_edges('hairmesh_pool_workers', more=SERVING)})", "online"),),
            "Workers that get calls, as the edge sees it that sees fewest. None: /monitor is 503.",
            bad="zero",
        ),
        Panel(
            "Able to grow hair",
            "stat",
            4,
            ((f"min(hairmesh_pool_growth_capable{{{EDGE}}})", "able"),),
            "Those of them that can grow hair.",
            bad="zero",
        ),
        Panel(
            "Calls that fail",
            "stat",
            4,
            ((f"{FAILED} / {ALL} or 0 * {ALL}", "fail"),),
            "Share of answers with code 1007, over five minutes.",
            unit="percentunit",
            bad="not zero",
        ),
        Panel(
            "Pictures can be stored",
            "stat",
            4,
            ((f"min(hairmesh_store_writable{{{EDGE}}})", "writable"),),
            "No: calls with a picture get 1007, and /readyz is 503.",
            flag=True,
            bad="zero",
        ),
        Panel(
            "Brake",
            "stat",
            4,
            ((f"max(hairmesh_pool_brake{{{EDGE}}})", "on"),),
            "Yes: most workers went out for one cause. Mend what they share.",
            flag=True,
            bad="not zero",
        ),
        Panel(
            "Drill",
            "stat",
            4,
            ((f"max(hairmesh_alert_drill{{{EDGE}}})", "on"),),
            "Yes: /monitor says 503 on purpose.",
            flag=True,
            bad="not zero",
        ),
        Panel(
            "Alerts that fire",
            "table",
            24,
            (('ALERTS{alertname=~"HairMesh.*",alertname!="HairMeshWatchdog",alertstate="firing"}', ""),),
            "What to do about each: docs/alerts.md.",
        ),
    ),
    "Requests": (
        Panel(
            "Requests by route",
            "timeseries",
            8,
            ((rate("http_requests_total", "route", EDGE), "{{route}}"),),
            "Ended, a second.",
            unit="reqps",
            stacked=True,
        ),
        Panel(
            "Refusals by reason",
            "timeseries",
            8,
            ((rate("http_requests_total", "code, reason", EDGE + ',code!="0"'), "{{code}} {{reason}}"),),
            "1007 is ours; 1001 to 1006 and 1008 are the photo's or the client's.",
            unit="reqps",
            stacked=True,
        ),
        Panel(
            "In flight",
            "timeseries",
            8,
            ((of_edges("http_requests_in_flight", "route"), "{{route}}"),),
            "Requests that have not ended.",
            stacked=True,
        ),
        Panel(
            "Connections",
            "timeseries",
            8,
            (
                (f"sum(hairmesh_connections{{{EDGE}}})", "of clients"),
                (f"sum(hairmesh_connections_waiting{{{EDGE}}})", "without a request"),
            ),
            "Of all edges together.",
        ),
        Panel(
            "Connections that the edge ended",
            "timeseries",
            8,
            ((rate("hairmesh_connections_closed_total", "why", EDGE), "{{why}}"),),
            "By what broke its limits.",
            unit="cps",
        ),
        Panel(
            "Uploads",
            "timeseries",
            8,
            ((of_edges("hairmesh_uploading_bytes"), "{{edge}}"),),
            "Request bodies that arrive or are taken apart.",
            unit="bytes",
        ),
        Panel(
            "Time to the answer",
            "timeseries",
            12,
            tuple((p(q, "http_request_duration_seconds", "", EDGE), f"p{q * 100:.0f}") for q in (0.5, 0.95, 0.99)),
            "From the first byte of a request, all routes.",
            unit="s",
        ),
        Panel(
            "Time to the answer by route, p95",
            "timeseries",
            12,
            ((p(0.95, "http_request_duration_seconds", "route", EDGE), "{{route}}"),),
            "19 of 20 took less.",
            unit="s",
        ),
    ),
    "Pool": (
        Panel(
            "Workers by state and cause",
            "timeseries",
            12,
            ((of_edges("hairmesh_pool_workers", "edge, state, cause"), "{{edge}} {{state}} {{cause}}"),),
            "Each edge has its own pool. Causes: docs/operations.md.",
            stacked=True,
        ),
        Panel(
            "Online, worker by worker",
            "state-timeline",
            12,
            ((of_edges("hairmesh_pool_worker_online", "worker", "min"), "{{worker}}"),),
            "Whether calls go there, from every edge.",
            flag=True,
            bad="zero",
        ),
        Panel(
            "Ejections by cause",
            "timeseries",
            8,
            ((f"sum by (cause) (increase(hairmesh_pool_ejections_total{{{EDGE}}}[$__rate_interval]))", "{{cause}}"),),
            "Workers taken out because a call failed on them.",
        ),
        Panel(
            "Attempts by how they ended",
            "timeseries",
            8,
            ((rate("grpc_client_handled_total", "grpc_code", EDGE), "{{grpc_code}}"),),
            "Calls on workers, the second tries too.",
            unit="reqps",
            stacked=True,
        ),
        Panel(
            "Time of an attempt, p95",
            "timeseries",
            8,
            ((p(0.95, "grpc_client_handling_seconds", "grpc_method", EDGE), "{{grpc_method}}"),),
            "Without the waiting before it.",
            unit="s",
        ),
    ),
    "Queue and slots": (
        Panel(
            "Calls that wait",
            "timeseries",
            8,
            (
                (of_edges("hairmesh_queue_waiting", "class"), "{{class}}"),
                (f"sum(hairmesh_queue_outside{{{EDGE}}})", "beyond max_in_flight"),
            ),
            "For a worker; the last line: those that wait to get in.",
        ),
        Panel(
            "Time in the queue",
            "timeseries",
            8,
            tuple(
                (p(q, "hairmesh_queue_wait_seconds", "class", EDGE), f"{{{{class}}}} p{q * 100:.0f}")
                for q in (0.5, 0.95)
            ),
            "All attempts of a call together. Beyond queue_wait_seconds it gets 1007 BUSY.",
            unit="s",
        ),
        Panel(
            "Slots",
            "timeseries",
            8,
            (
                (f"sum(hairmesh_slots_busy{{{EDGE}}})", "busy"),
                (f"max({of_edges('hairmesh_pool_workers', more=SERVING)})", "workers online"),
                (f"sum(hairmesh_queue_inside{{{EDGE}}})", "calls inside"),
            ),
            "Each worker computes one call at a time.",
        ),
    ),
    "Workers": (
        Panel(
            "Stages, p95",
            "timeseries",
            8,
            ((p(0.95, "hairmesh_stage_seconds", "stage", WORKER), "{{stage}}"),),
            "How long each part of a call takes.",
            unit="s",
        ),
        Panel(
            "Busy",
            "timeseries",
            8,
            ((f"avg(avg_over_time(hairmesh_slot_busy{{{WORKER}}}[$__rate_interval]))", "share of the time"),),
            "By the workers' own word, whoever calls.",
            unit="percentunit",
        ),
        Panel(
            "Calls by how they ended",
            "timeseries",
            8,
            ((rate("grpc_server_handled_total", "grpc_method, grpc_code", WORKER), "{{grpc_method}} {{grpc_code}}"),),
            "UNAUTHENTICATED: somebody has no good password.",
            unit="reqps",
        ),
        Panel(
            "Health, check by check",
            "state-timeline",
            12,
            ((f"min by (instance, check) (hairmesh_health{{{WORKER}}})", "{{instance}} {{check}}"),),
            "Names of the health service; `overall` is the one without a name.",
            flag=True,
            bad="zero",
        ),
        Panel(
            "Dependencies",
            "state-timeline",
            12,
            ((f"min by (instance, dep) (hairmesh_dependency_up{{{WORKER}}})", "{{instance}} {{dep}}"),),
            "Servers of health.deps, such as a diffusion server.",
            flag=True,
            bad="zero",
        ),
    ),
    "Pictures": (
        Panel(
            "Picture store",
            "timeseries",
            8,
            (
                (of_edges("hairmesh_store_bytes", how="max"), "{{edge}}"),
                (of_edges("hairmesh_store_waiting_bytes", how="max"), "{{edge}} being written"),
                (f"min(hairmesh_store_max_bytes{{{EDGE}}})", "max_bytes"),
            ),
            "Several edges that share a store each count all of it.",
            unit="bytes",
        ),
        Panel(
            "Pictures kept",
            "timeseries",
            8,
            ((of_edges("hairmesh_store_pictures", how="max"), "{{edge}}"),),
            "At most static.max_age_hours.",
        ),
        Panel(
            "Removed and failed",
            "timeseries",
            8,
            (
                (
                    f"sum by (why) (increase(hairmesh_store_removed_total{{{EDGE}}}[$__rate_interval]))",
                    "removed: {{why}}",
                ),
                (f"sum(increase(hairmesh_store_failures_total{{{EDGE}}}[$__rate_interval]))", "not stored"),
            ),
            "`room`: the oldest go before their time.",
        ),
    ),
    "The processes": (
        Panel(
            "Features and special points",
            "timeseries",
            8,
            (
                (of_edges("hairmesh_local_vision_inside"), "{{edge}} inside"),
                (of_edges("hairmesh_local_vision_stuck"), "{{edge}} stuck"),
            ),
            "The edge's own calls. Stuck: refused until a restart.",
        ),
        Panel(
            "Tokens refused",
            "timeseries",
            8,
            ((rate("hairmesh_tokens_refused_total", "door, why", EDGE), "{{door}} {{why}}"),),
            "Somebody tries, or has an old one.",
            unit="reqps",
        ),
        Panel(
            "API keys",
            "timeseries",
            8,
            ((rate("hairmesh_api_key_requests_total", "key, result", EDGE), "{{key}} {{result}}"),),
            "Where api_keys are configured.",
            unit="reqps",
        ),
        Panel(
            "Memory",
            "timeseries",
            8,
            (('process_resident_memory_bytes{job=~"hairmesh-(edge|worker)"}', "{{job}} {{instance}}"),),
            "Of each process.",
            unit="bytes",
        ),
        Panel(
            "CPU",
            "timeseries",
            8,
            (
                (
                    'rate(process_cpu_seconds_total{job=~"hairmesh-(edge|worker)"}[$__rate_interval])',
                    "{{job}} {{instance}}",
                ),
            ),
            "In processors.",
        ),
        Panel(
            "Certificates",
            "timeseries",
            8,
            (
                (
                    "min by (job, instance, key) (hairmesh_certificate_expires_timestamp_seconds"
                    '{job=~"hairmesh-(edge|worker)"} - time())',
                    "{{job}} {{instance}} {{key}}",
                ),
            ),
            "How long each is still valid.",
            unit="s",
        ),
        Panel(
            "Configuration refused",
            "state-timeline",
            12,
            ((of_edges("hairmesh_configuration_refused", how="max"), "{{edge}}"),),
            "Yes: the file is wrong and not in force, and the next start will fail.",
            flag=True,
            bad="not zero",
        ),
        Panel(
            "Configuration in force, and lines of the request log that were lost",
            "timeseries",
            12,
            (
                (of_edges("hairmesh_configuration_version", how="max"), "{{edge}} version"),
                (of_edges("hairmesh_request_log_lost_total"), "{{edge}} lines lost"),
            ),
            "The version counts changes since the edge's start.",
        ),
    ),
}
