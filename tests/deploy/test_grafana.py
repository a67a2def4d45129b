"""The dashboard: made of its table, every query read by Prometheus' own tool, every metric really shown."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hairmesh.stack import free_ports
from tests.deploy.monitoring import ROOT
from tests.deploy.promql import OF_OTHERS, check, labels_of, metrics_of, there_are
from tests.edge.process import Process as Edge
from tests.fakes.scrape import Scrape
from tests.fakes.worker import FakeWorker
from tests.worker.fakes import FakePipeline
from tests.worker.harness import running

DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "hairmesh.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {"$__rate_interval": "1m", "$edge": ".*"}
"""What Grafana puts in their place."""
TARGET_LABELS = {"job", "instance", "edge", "le", "alertname", "alertstate"}
"""Labels of Prometheus' own making, or of its configuration."""
QUERIES = {
    f"{panel['title']} {target['refId']}": re.sub(r"\$\w+", lambda match: VARIABLES[match[0]], target["expr"])
    for panel in PANELS
    for target in panel["targets"]
}


def test_the_file_is_what_the_table_makes() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "grafana_dashboard.py"), "--check"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_prometheus_reads_every_query(tmp_path: Path) -> None:
    assert len(QUERIES) > 40
    check(QUERIES.values(), tmp_path)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_labels_are_those_of_the_metric(query: str) -> None:
    known = {label for name in metrics_of(query) if name in there_are() for label in there_are()[name].labels}
    assert labels_of(query) <= known | TARGET_LABELS


def test_legends_name_labels_that_the_query_keeps() -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert named <= labels_of(target["expr"]) | {"instance"}, panel["title"]


async def test_every_metric_is_shown_by_a_real_edge_and_worker(tmp_path: Path) -> None:
    (at_edge,) = free_ports(1)
    fake = FakeWorker()
    await fake.start()
    try:
        async with Edge(tmp_path, fake.address, metrics={"listen": f"127.0.0.1:{at_edge}"}):
            edge = await Scrape.of_port(at_edge)
        async with running(FakePipeline().load, metrics={"listen": "127.0.0.1:0"}) as (running_worker, _client):
            worker = await Scrape.of_port(running_worker.metrics_port)
    finally:
        await fake.stop()
    shown = {name for scrape in (edge, worker) for name in re.findall(r"^# TYPE (\S+)", scrape.text, re.MULTILINE)}
    asked = {name for query in QUERIES.values() for name in metrics_of(query)} - OF_OTHERS
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked} <= shown


def test_everything_that_edges_and_workers_tell_is_somewhere() -> None:
    asked = {name for query in QUERIES.values() for name in metrics_of(query)}
    rows = {row.name: {name for name, each in there_are().items() if each == row} for row in there_are().values()}
    nowhere = {metric for metric, series in rows.items() if not series & asked}
    assert nowhere == {"grpc_server_handling_seconds"}  # the stages say it better


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
