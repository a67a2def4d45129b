"""Queries of dashboards and scalers, read as Prometheus reads them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

import edge.metrics
import worker.metrics
from hairmesh.metrics import Kind, Metric
from tests.deploy.monitoring import program

OF_OTHERS = {"up", "ALERTS", "probe_success"}
"""Metrics that Prometheus itself and the blackbox exporter make."""
PARTS = {Kind.HISTOGRAM: ("_bucket", "_sum", "_count")}

_LABELS = re.compile(r"\{[^}]*\}|\b(?:by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)")
_IDENTIFIER = re.compile(r"(?<![\w:.$])([a-zA-Z_:][\w:]*)\b(?!\s*\()")
_WORDS = {"and", "or", "unless", "by", "on", "bool", "offset", "without", "ignoring", "group_left", "group_right"}


def there_are() -> dict[str, Metric]:
    """Every series that edges and workers show, with the row of the table it comes from."""
    rows: dict[str, Metric] = {**edge.metrics.TABLE, **worker.metrics.TABLE}
    return {name + part: row for name, row in rows.items() for part in PARTS.get(row.kind, ("",))}


def metrics_of(query: str) -> set[str]:
    """Names of the metrics that a query asks for."""
    bare = re.sub(r"\[[^]]*\]", "", _LABELS.sub("", query))
    return {name for name in _IDENTIFIER.findall(bare) if name not in _WORDS}


def labels_of(query: str) -> set[str]:
    """Names of the labels that a query picks by or keeps."""
    matched = {name for group in re.findall(r"\{([^}]*)\}", query) for name in re.findall(r"(\w+)\s*(?:=|!)", group)}
    kept = re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", query)
    return matched | {name.strip() for group in kept for name in group.split(",") if name.strip()}


def check(queries: Iterable[str], folder: Path) -> None:
    """Have Prometheus' own tool read them; fails with what it says."""
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    file = folder / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    _run("check", "rules", file)


def evaluate(query: str, series: Mapping[str, str], at: str, expected: float | None, folder: Path) -> None:
    """Have it compute `query` at the moment `at` over `series` (a value each 15 s); None: no answer."""
    samples = [] if expected is None else [{"value": expected}]
    test = {
        "interval": "15s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": at, "exp_samples": samples}],
    }
    file = folder / "query.test.yml"
    file.write_text(json.dumps({"evaluation_interval": "15s", "tests": [test]}))
    _run("test", "rules", file)


def _run(*arguments: object) -> None:
    command = [program("promtool"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
