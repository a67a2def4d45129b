"""The files for Prometheus, Alertmanager and the blackbox exporter: valid, tested rule by rule, in the handbook."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import edge.metrics
import worker.metrics
from tests.deploy.monitoring import FILES, RESEND_S, ROOT, faster, program

HERE = Path(__file__).parent
RULES = FILES / "hairmesh.rules.yml"
TESTS = sorted(HERE.glob("*.test.yml"))
PAGE = (ROOT / "docs" / "alerts.md").read_text()

# What Prometheus itself and the blackbox exporter make.
OF_OTHERS = {"up", "probe_success", "probe_ssl_earliest_cert_expiry"}
_METRIC = re.compile(r"\b((?:hairmesh|http|grpc|probe)[a-z_:]*_[a-z_]+|up)\b(?=[{\[ )]|$)", re.MULTILINE)


def rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from group["rules"]


ALERTS = [rule for rule in rules() if "alert" in rule]
NAMES = sorted({rule["alert"] for rule in ALERTS})


def passes(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_files_are_what_their_programs_take(tmp_path: Path) -> None:
    shutil.copytree(FILES, tmp_path, dirs_exist_ok=True)
    (tmp_path / "hairmesh_admin_token").write_text("token")
    passes(program("promtool"), "check", "config", tmp_path / "prometheus.yml")  # and the rules that it names
    passes(program("amtool"), "check-config", tmp_path / "alertmanager.yml")
    blackbox = f"--config.file={tmp_path / 'blackbox.yml'}"
    passes(program("prometheus-blackbox-exporter"), "--config.check", blackbox)


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_rules(file: Path) -> None:
    passes(program("promtool"), "test", "rules", file)


def test_every_alert_is_tested_firing() -> None:
    fired = {
        (case["alertname"], alert["exp_labels"]["severity"], alert["exp_labels"].get("drill"))
        for file in TESTS
        for test in yaml.safe_load(file.read_text())["tests"]
        for case in test["alert_rule_test"]
        for alert in case["exp_alerts"]
    }
    assert fired == {(rule["alert"], rule["labels"]["severity"], rule["labels"].get("drill")) for rule in ALERTS}


def test_rules_rest_on_metrics_that_there_are() -> None:
    made = {rule["record"] for rule in rules() if "record" in rule}
    histograms = {f"{name}_bucket" for name in edge.metrics.TABLE}
    there_are = {*edge.metrics.TABLE, *worker.metrics.TABLE, *histograms, *OF_OTHERS, *made}
    used = {name for rule in rules() for name in _METRIC.findall(re.sub(r'"[^"]*"', "", rule["expr"]))}
    assert used <= there_are
    assert made <= used
    assert {"probe_success", "hairmesh_alert_drill", "http_requests_total", "hairmesh_pool_workers"} < used


def test_the_handbook_tells_every_alert_and_no_other() -> None:
    headings = re.findall(r"^### (HairMesh\w+)$", PAGE, re.MULTILINE)
    assert sorted(headings) == NAMES
    for rule in ALERTS:
        assert rule["annotations"]["runbook"] == f"docs/alerts.md#{rule['alert'].lower()}"
        assert set(rule["annotations"]) == {"summary", "meaning", "action", "runbook"}
    told = dict(re.findall(r"^\| \[(HairMesh\w+)\]\(#\w+\) \| (\w+) \|", PAGE, re.MULTILINE))
    assert told == {rule["alert"]: rule["labels"]["severity"] for rule in ALERTS}


def test_whoever_hides_behind_an_outage_is_an_alert_that_there_is() -> None:
    routing = yaml.safe_load((FILES / "alertmanager.yml").read_text())
    text = str(routing["inhibit_rules"]) + str(routing["route"])
    named = {f"HairMesh{each}" for group in re.findall(r"HairMesh\(([\w|]+)\)", text) for each in group.split("|")}
    assert named | set(re.findall(r"HairMesh\w+", text)) <= set(NAMES)


def test_the_delay_that_the_tests_use_is_the_one_that_is_told() -> None:
    assert f"--rules.alert.resend-delay={RESEND_S // 60}m" in (FILES / "prometheus.yml").read_text()


def test_every_time_in_the_files_is_made_shorter() -> None:
    text = "for: 10m\nexpr: a[62s] + b[1h] == 5\n# 30 s\n{interval: 5s}\n"
    assert faster(text, 10) == "for: 60000ms\nexpr: a[6200ms] + b[360000ms] == 5\n# 30 s\n{interval: 500ms}\n"
