"""`hairmesh-worker --check`: what is wrong on this machine is said before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from hairmesh import certs, spans
from worker.command import run

app = typer.Typer()
app.command()(run)


def judged(path: Path, environ: dict[str, str] | None = None, **changes: Any) -> tuple[int, str, list[str]]:
    """Exit status, standard output, and each line of standard error, without what they begin with."""
    path.write_text(json.dumps({"accept_passwords": ["SENTINEL"], **changes}))
    path.chmod(0o600)
    result = CliRunner().invoke(app, ["--config", str(path), "--check"], env=environ)
    assert "SENTINEL" not in result.output
    lines = result.stderr.splitlines()
    return result.exit_code, result.stdout, [line.removeprefix(f"hairmesh-worker: {path}: ") for line in lines]


def test_a_good_configuration_is_called_good_and_nothing_is_made(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    status, said, complaints = judged(path, growth={"state_dir": str(tmp_path / "state")})
    assert (status, said, complaints) == (0, f"hairmesh-worker: {path}: configuration is good\n", [])
    assert list(tmp_path.iterdir()) == [path]


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "packages_missing", lambda: True)
    gone = str(tmp_path / "gone")
    status, said, complaints = judged(
        tmp_path / "w.json",
        tls={"cert": gone, "key": gone},
        tracing={"otlp_endpoint": "http://127.0.0.1:4318"},
        growth={"backend": "comfyui", "workflow": gone},
        models={"parser_weights": gone, "parser_weights_sha256": "ab" * 32},
        health={"disk_paths": [gone]},
    )
    assert (status, said) == (2, "")
    keys = ["tls", "tracing.otlp_endpoint", "growth.workflow", "models.parser_weights", "health.disk_paths"]
    assert [complaint.replace(":", " ").split()[0] for complaint in complaints] == keys


def test_a_certificate_and_the_key_of_another(tmp_path: Path) -> None:
    authority = certs.Authority(certs.LOCAL_HOSTS)
    for name in ("one", "other"):
        signed = authority.sign("worker")
        (tmp_path / f"{name}.pem").write_bytes(signed.certificate)
        (tmp_path / f"{name}.key").write_bytes(signed.key)
        (tmp_path / f"{name}.key").chmod(0o600)
    pair = {"cert": str(tmp_path / "one.pem"), "key": str(tmp_path / "one.key")}
    assert judged(tmp_path / "w.json", tls=pair)[0] == 0
    status, _said, (complaint,) = judged(tmp_path / "w.json", tls=pair | {"key": str(tmp_path / "other.key")})
    assert status == 2
    assert complaint.startswith("tls: ")


def test_a_key_that_others_can_read_is_warned_of(tmp_path: Path) -> None:
    signed = certs.Authority(certs.LOCAL_HOSTS).sign("worker")
    cert, key = tmp_path / "one.pem", tmp_path / "one.key"
    cert.write_bytes(signed.certificate)
    key.write_bytes(signed.key)
    for mode, warnings in (
        (0o640, []),
        (0o644, [f"hairmesh-worker: warning: {key} is open to others (mode 0644); chmod 600 it"]),
    ):
        key.chmod(mode)
        status, _said, warned = judged(tmp_path / "w.json", tls={"cert": str(cert), "key": str(key)})
        assert (status, warned) == (0, warnings)


def test_the_environment_counts(tmp_path: Path) -> None:
    assert judged(tmp_path / "w.json", {"HEALTH_MIN_FREE_GB": "7"})[0] == 2
    assert judged(tmp_path / "w.json", {"HEALTH_MIN_FREE_GB": "0.5"})[0] == 0


def test_what_is_wrong_in_the_file_is_said_line_by_line(tmp_path: Path) -> None:
    status, _said, complaints = judged(tmp_path / "w.json", helth={}, device="gpu")
    assert status == 2
    assert complaints == ["device: must be one of auto, cpu, cuda", "helth: there is no such key; did you mean health?"]
