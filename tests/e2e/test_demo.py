"""The README's second command, run as a newcomer runs it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from PIL import Image

from hairmesh.child import console_script
from hairmesh.demo_calls import PAGE, PICTURES

ROOT = Path(__file__).parent.parent.parent
FIRST_PAGE = (ROOT / "README.md").read_text()
DEMO_TIMEOUT_S = 550
"""The demonstration takes half a minute; a machine that does something else beside it takes longer."""

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]


def environment() -> dict[str, str]:
    """As in a fresh terminal: not inside the `make test` that may run this."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}


@pytest.fixture(scope="module")
def demo() -> subprocess.CompletedProcess[str]:
    """One run for all checks, in the very folder the README names."""
    (ROOT / "out" / "demo" / PAGE).unlink(missing_ok=True)
    return subprocess.run(
        ["make", "demo"],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEMO_TIMEOUT_S,
        check=False,
    )


def test_demo_ends_well(demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.returncode == 0, demo.stdout[-3000:] + demo.stderr[-3000:]
    assert demo.stdout.splitlines()[-1] == "demo: ok"


def test_demo_shows_measurements_refusals_and_failover(demo: subprocess.CompletedProcess[str]) -> None:
    for part in ("thirds.upper", "face_width", "NO_FACE", "UPSIDE_DOWN", "BODY_TOO_LARGE", "NO_WORKER", "SIGKILL"):
        assert part in demo.stdout, part
    assert re.search(r"(\d+) of \1 answered with code 0; \d ran again", demo.stdout)
    assert '"workers_healthy": 1' in demo.stdout
    assert "GET /monitor: 503" in demo.stdout


def test_demo_leaves_a_page_with_every_picture_and_no_secret(demo: subprocess.CompletedProcess[str]) -> None:
    folder = ROOT / "out" / "demo"
    page = (folder / PAGE).read_text()
    shown = set(re.findall(r'<img src="([^"]+)"', page))
    assert shown == {str(path.relative_to(folder)) for path in (folder / PICTURES).glob("*")}
    names = {Path(name).stem for name in shown}
    assert {"measure", "design_bell", "style_round_design", "region_marked", "mask_hair"} <= names
    assert sum(name.endswith("_grown") for name in names) >= 2, "hair was grown"
    for name in shown:
        with Image.open(folder / name) as picture:
            assert picture.format == ("JPEG" if name.endswith("photo.jpg") else "PNG")
            assert max(picture.size) <= 2048
    for route in ("face/measure", "hair/styles", "hair/grow", "face/features", "hair/hairlines", "face/masks"):
        assert f"POST /api/v1/{route}" in page
    assert "POST /api/v1/face/special-points" in page
    assert not list(folder.glob("*_config*"))
    assert not (folder / "pictures").exists()
    assert demo.returncode == 0


def run_printed(pattern: str, text: str) -> dict[str, Any]:
    """The JSON that a printed command answers when a person copies it; `pattern` finds it in `text`."""
    command = re.search(pattern, text, re.MULTILINE)
    assert command
    shell = ["bash", "-c", command[1]]
    return dict(json.loads(subprocess.run(shell, cwd=ROOT, capture_output=True, check=True).stdout))


def figures(answer: str) -> dict[str, float]:
    """Those that the first page shows of an answer: of its scale, its trichion and its upper third."""
    upper = answer.partition('"upper": ')[2]
    where = {"mm_per_px": answer, "fit_pct": answer, "x_px": answer.partition('"trichion": ')[2]}
    where |= {"y_px": where["x_px"], "px": upper, "mm": upper, "low": upper, "high": upper, "ratio": upper}
    return {name: float(re.findall(rf'"{name}": (-?[\d.]+)', text)[0]) for name, text in where.items()}


def killed_and_back(contact: Path, serve: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Kill the only worker and wait until it runs and serves again; what `contact` tells of it then."""
    told = json.loads(contact.read_text())
    (before,) = told["workers"]
    os.kill(before["pid"], signal.SIGKILL)
    until_s = time.monotonic() + 120
    while True:
        (worker,) = json.loads(contact.read_text())["workers"]
        online = httpx.get(f"{told['url']}/monitor", trust_env=False, timeout=60).json().get("workers_healthy")
        if worker["pid"] not in (None, before["pid"]) and online == 1:
            return dict(worker)
        assert serve.poll() is None
        assert time.monotonic() < until_s, (worker, online)
        time.sleep(0.2)


@pytest.mark.skipif(shutil.which("curl") is None, reason="one of the printed lines is for curl")
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_serve_until_interrupted(tmp_path: Path, *, tls: bool) -> None:
    """`serve.json` appears when everything answers, tells the truth, is private, and goes away at the end."""
    contact = tmp_path / "serve.json"
    log = tmp_path / "serve.txt"
    command = [str(console_script("hairmesh")), "serve", "--workers", "1", "--out", str(tmp_path), *["--tls"] * tls]
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT) as process:
        try:
            until_s = time.monotonic() + 120
            while not contact.exists():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until_s
                time.sleep(0.1)
            assert contact.stat().st_mode & 0o777 == 0o600
            told = json.loads(contact.read_text())
            assert set(told) == {"url", "token", "admin_token", "edge_pid", "workers", *["authority"] * tls}
            assert told["url"].startswith("https://" if tls else "http://")
            verify = ssl.create_default_context(cafile=told["authority"]) if tls else True
            (worker,) = told["workers"]
            answer = httpx.get(f"{told['url']}/monitor", trust_env=False, verify=verify, timeout=60)
            assert (answer.status_code, answer.json()["workers_healthy"]) == (200, 1)
            drill = httpx.post(
                f"{told['url']}/monitor/fault",
                json={"enabled": True},
                headers={"x-internal-token": told["token"]},
                trust_env=False,
                verify=verify,
                timeout=60,
            )
            assert drill.status_code == 200
            measured = run_printed(r"^  (curl .*)$", log.read_text())
            assert measured["code"] == 0
            assert figures(json.dumps(measured["data"])) == pytest.approx(figures(FIRST_PAGE), rel=1e-2)
            described = run_printed(r"^  (\(printf .*\n .*)$", log.read_text())
            assert described["scale"]["source"] == "SCALE_SOURCE_IRIS"
            seen = [str(console_script("hairmesh")), "status", "--once", "--out", str(tmp_path)]
            assert worker["address"] in subprocess.run(seen, capture_output=True, text=True, check=True).stdout
            for pid in (told["edge_pid"], worker["pid"]):
                assert told["token"] not in " ".join(psutil.Process(pid).cmdline())
                assert told["token"] not in psutil.Process(pid).environ().values()
            if not tls:
                worker = killed_and_back(contact, process)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
    assert process.returncode == 0, log.read_text()
    assert not contact.exists()
    assert list(tmp_path.rglob("*.key")) == []
    assert not psutil.pid_exists(told["edge_pid"])
    assert not psutil.pid_exists(worker["pid"])
