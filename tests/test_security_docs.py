"""`docs/security.md`: its commands run, in order; what it says of evidence, limits and defaults is what there is."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edge.rate_limit import Policy
from edge.secrets import WRONG_TOKENS
from edge.settings import parse
from hairmesh import certs, pem
from hairmesh.stack import free_ports
from tests.edge.upstream.test_tls_causes import CASES

PAGE = (Path(__file__).parent.parent / "docs" / "security.md").read_text()
KEYS, CONFIGURE, START, REPLACE = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TOOLS = ("bash", "curl", "openssl", "sha256sum")

needs_tools = pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}")


def run(script: str, folder: Path, timeout_s: float = 100) -> subprocess.CompletedProcess[str]:
    """As somebody types it, with our programs in the path; what it started in the background is ended."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ended = "trap 'kill $(jobs -p) 2> /dev/null || true; wait' EXIT\nset -eu\n"
    return subprocess.run(
        ["bash", "-c", ended + script],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@needs_tools
def test_a_key_is_made_and_its_hash_goes_into_the_configuration(tmp_path: Path) -> None:
    done = run(KEYS, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    header, _, key = (tmp_path / "key.header").read_text().strip().partition(": ")
    assert header == "X-API-Key"
    assert pem.loose_permissions(tmp_path / "key.header") == ""
    assert len(bytes.fromhex(key)) * 8 >= 128
    digest = done.stdout.split()[0]
    assert digest == hashlib.sha256(key.encode()).hexdigest()
    (example,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    content = {"workers": ["127.0.0.1:1"], "shared_password": "x", **json.loads(example.replace("…", digest))}
    (entry,) = parse(json.dumps(content).encode()).api_keys
    level = Policy("key", entry.requests_per_minute or 0, entry.burst or 0)
    assert f'"key";q={level.burst};w={level.window_s}`' in PAGE


@needs_tools
def test_tls_step_by_step(tmp_path: Path) -> None:
    """One script, as the page has it, but for free ports."""
    script = CONFIGURE + START + REPLACE
    for port, free in zip(("28187", "8443"), free_ports(2), strict=True):
        script = script.replace(port, str(free))
    done = run(script, tmp_path)
    logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    assert done.stdout.count('{"status":"ok"') == 2
    assert '"workers":[{"address":"127.0.0.1:' in done.stdout
    assert "closed while connecting" not in done.stdout
    password = json.loads((tmp_path / "worker_config.json").read_text())["accept_passwords"][0]
    assert password not in done.stdout + done.stderr + logs
    for name in ("worker_config.json", "edge_config.json", "admin.header", "certs/worker.key"):
        assert pem.loose_permissions(tmp_path / name) == "", name


def test_every_evidence_that_tls_has_is_explained() -> None:
    table = PAGE.partition("### When it does not work")[2]
    for _credentials, _security, says in CASES.values():
        assert says in table or says.removeprefix("its certificate ") in table, says


def test_the_figures_are_those_of_the_code() -> None:
    assert WRONG_TOKENS.burst == 10
    assert f"one every {60 / WRONG_TOKENS.per_minute:.0f} s" in PAGE
    assert f"valid for {certs.VALID_DAYS} days" in PAGE
    assert "two weeks before the end, or at the last quarter" in PAGE
    assert pem.REPLACE_BEFORE.days == 14
