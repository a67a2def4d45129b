"""Makes deploy/grafana/hairmesh.json out of `grafana_panels.py`; `--check` only says whether it is current.

Exit status 1 with --check: the file is stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from grafana_panels import ROWS, Panel

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "deploy" / "grafana" / "hairmesh.json"

WIDTH, ROW_HEIGHT = 24, 1
HEIGHT = {"stat": 4, "timeseries": 8, "state-timeline": 7, "table": 8}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
GOOD, BAD = "green", "red"
YES_NO = {"0": {"text": "no", "index": 0}, "1": {"text": "yes", "index": 1}}


def panels() -> Iterator[dict[str, object]]:
    """Rows and panels as Grafana takes them, from left to right and down."""
    number, y = 1, 0
    for title, row in ROWS.items():
        grid = {"h": ROW_HEIGHT, "w": WIDTH, "x": 0, "y": y}
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": grid, "panels": []}
        number, y, x, height = number + 1, y + ROW_HEIGHT, 0, 0
        for panel in row:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            yield {"id": number, **_panel(panel, x, y)}
            number, x, height = number + 1, x + panel.width, max(height, HEIGHT[panel.kind])
        y += height


def _panel(panel: Panel, x: int, y: int) -> dict[str, object]:
    targets = [
        {"refId": chr(ord("A") + number), "datasource": SOURCE, "expr": query, "legendFormat": legend}
        for number, (query, legend) in enumerate(panel.queries)
    ]
    if panel.kind in {"stat", "table"}:
        targets = [{**target, "instant": True, "range": False} for target in targets]
    if panel.kind == "table":
        targets = [{**target, "format": "table"} for target in targets]
    colours = {"zero": (BAD, GOOD), "not zero": (GOOD, BAD), "": (GOOD, GOOD)}[panel.bad]
    # A share is bad from a hundredth, everything else from one.
    bound = 0.01 if panel.unit == "percentunit" else 1
    defaults: dict[str, object] = {
        "unit": panel.unit,
        "color": {"mode": "thresholds" if panel.bad else "palette-classic"},
        "thresholds": {
            "mode": "absolute",
            "steps": [{"color": colours[0], "value": None}, {"color": colours[1], "value": bound}],
        },
    }
    if panel.flag:
        defaults["mappings"] = [{"type": "value", "options": YES_NO}]
    if panel.kind == "timeseries":
        defaults["min"] = 0
        defaults["custom"] = {
            "fillOpacity": 25 if panel.stacked else 0,
            "showPoints": "never",
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        }
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.means,
        "datasource": SOURCE,
        "gridPos": {"h": HEIGHT[panel.kind], "w": panel.width, "x": x, "y": y},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _options(panel),
        "targets": targets,
        **({"transformations": [_ALERT_COLUMNS]} if panel.kind == "table" else {}),
    }


_ALERT_COLUMNS = {
    "id": "organize",
    "options": {"excludeByName": {"Value": True, "__name__": True, "alertstate": True, "job": True}},
}


def _options(panel: Panel) -> dict[str, object]:
    match panel.kind:
        case "stat":
            return {
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
                "colorMode": "background",
            }
        case "timeseries":
            return {
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }
        case "state-timeline":
            return {"mergeValues": True, "showValue": "never", "legend": {"displayMode": "list", "placement": "bottom"}}
        case "table":
            return {"showHeader": True}


def dashboard() -> dict[str, object]:
    """All of it."""
    edges = {
        "name": "edge",
        "label": "edge",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": 'label_values(hairmesh_build_info{job="hairmesh-edge"}, edge)', "refId": "edges"},
        "refresh": 2,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "title": "HairMesh",
        "uid": "hairmesh",
        "description": "Edges, pool, workers and pictures. Metrics: docs/metrics.md. Alerts: docs/alerts.md.",
        "tags": ["hairmesh"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [source, edges]},
        "panels": list(panels()),
    }


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    text = json.dumps(dashboard(), indent=1) + "\n"
    if check:
        stale = not FILE.exists() or FILE.read_text() != text
        sys.stdout.write(f"{FILE.relative_to(ROOT)} is stale: run {Path(__file__).name}\n" if stale else "")
        return int(stale)
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
