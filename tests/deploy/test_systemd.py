"""The units for systemd: what systemd says of them, what they leave to the programs, and the programs under them."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from pydantic import SecretStr

from edge.command import GRACE_S
from hairmesh.child import console_script
from tests.conftest import studio_portrait
from tests.deploy.monitoring import ROOT
from tests.deploy.sandbox import values
from tests.e2e.service import Process, Service
from vision.models import MANIFEST, ModelFiles
from worker.settings import Settings
from worker.thresholds import Thresholds

FILES = ROOT / "deploy" / "systemd"
UNITS = sorted(FILES.glob("*.service"))
TEXTS = {path.name: path.read_text() for path in UNITS}
EDGE, WORKER = TEXTS["hairmesh-edge@.service"], TEXTS["hairmesh-worker@.service"]
SINCE_254 = {"RestartSteps", "RestartMaxDelaySec"}
"""Keys that an older systemd ignores, and says so."""
EXPOSURE_MAX = 2.0
"""`systemd-analyze security`: 10 is a process that may do anything."""

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")


def said_of(unit: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *command, str(unit)], capture_output=True, text=True, check=False)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder of the units, for programs where they are here."""
    shutil.copytree(FILES, tmp_path / "system")
    for path in (tmp_path / "system").glob("*.service"):
        path.write_text(path.read_text().replace("/opt/hairmesh/.venv/bin", str(Path(sys.executable).parent)))
    return tmp_path / "system"


@needs_systemd
@pytest.mark.parametrize("name", TEXTS)
def test_systemd_takes_them(installed: Path, name: str) -> None:
    verified = said_of(installed / name, "verify")
    complaints = [line for line in verified.stderr.splitlines() if "hairmesh" in line]
    ignored = re.findall(r"Unknown key (?:name )?'(\w+)'", verified.stderr)
    assert verified.returncode == 0
    assert len(complaints) == len(ignored), verified.stderr
    assert set(ignored) <= SINCE_254


@needs_systemd
@pytest.mark.parametrize("name", TEXTS)
def test_they_leave_little_open(installed: Path, name: str) -> None:
    judged = said_of(installed / name, "security", "--offline=true", f"--threshold={EXPOSURE_MAX * 10:.0f}")
    assert judged.returncode == 0, judged.stdout


@pytest.mark.parametrize("unit", [EDGE, WORKER], ids=["edge", "worker"])
def test_what_ends_is_started_again_later_and_later_unless_its_configuration_is_refused(unit: str) -> None:
    assert values(unit, "Restart") == ["on-failure"]
    assert values(unit, "RestartSec") == ["3"]
    assert values(unit, "RestartMaxDelaySec") == ["60"]
    assert values(unit, "StartLimitIntervalSec") == ["0"]  # else systemd gives up after five
    assert values(unit, "RestartPreventExitStatus") == ["2"]
    assert values(unit, "Type") == ["notify"]
    assert values(unit, "WatchdogSec") == ["30"]


def test_stopping_waits_for_the_drain() -> None:
    assert float(values(EDGE, "TimeoutStopSec")[0]) > GRACE_S
    settings, t = Settings(accept_passwords=(SecretStr("secret"),)), Thresholds()
    drain_s = settings.drain_delay_seconds + settings.drain_grace_seconds
    # Callers are cut off and the server is closed, each in `close_s`; then the thread may go on.
    assert float(values(WORKER, "TimeoutStopSec")[0]) > drain_s + 2 * t.close_s + t.thread_end_s


def test_only_edges_reach_a_worker() -> None:
    assert values(WORKER, "IPAddressDeny") == ["any"]
    assert values(WORKER, "IPAddressAllow") == ["localhost"]
    (more,) = (FILES / "hairmesh-worker@.service.d").glob("*.conf")
    assert values(more.read_text(), "IPAddressAllow") == [], "as it is, it lets in nobody: addresses here are nobody's"


def confined(unit: str, program: str) -> list[str]:
    """That program under what its unit allows."""
    return [sys.executable, "-m", "tests.deploy.sandbox", str(FILES / unit), str(console_script(program)), "--config"]


@needs_systemd
@pytest.mark.models
async def test_a_real_edge_and_a_real_worker_do_their_work_under_them(tmp_path: Path, model_files: ModelFiles) -> None:
    """What torch, mediapipe, onnxruntime, gRPC and the decoders' processes ask of the system is allowed."""
    service = Service(tmp_path / "service")
    service.add_worker(*confined("hairmesh-worker@.service", "hairmesh-worker"))
    edge = [*confined("hairmesh-edge@.service", "hairmesh-edge"), str(service.folder / "edge.json")]
    service.edge = Process("edge", edge)
    bmp = bmp_of(studio_portrait())
    try:
        await service.start(limits={"max_body_bytes": len(bmp) + 10_000})
        for call in ("face/measure", "face/special-points"):
            answer = await service.client.post(f"/api/v1/{call}", files={"image": ("p.bmp", bmp)})
            assert answer.json()["code"] == 0, (answer.text, service.edge.lines[-5:], service.workers[0].lines[-5:])
        assert await service.workers[0].end(signal.SIGTERM) == 0
    finally:
        await service.stop()


def bmp_of(photo: Path) -> bytes:
    """A format that is decoded in a process of its own."""
    buffer = io.BytesIO()
    with Image.open(photo) as image:
        image.resize((700, 700)).save(buffer, "BMP")
    return buffer.getvalue()


@pytest.mark.models
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("systemd-tmpfiles"), reason="needs root, and systemd")
def test_the_page_installs_them(tmp_path: Path, model_files: ModelFiles) -> None:
    """Line by line, into a folder; there the units find what they name. The two files to fetch are there already."""
    (cache := tmp_path / "var" / "lib" / "hairmesh" / "models").mkdir(parents=True)
    for file in (model_files.face_landmarker, model_files.parser_weights):
        shutil.copyfile(file, cache / file.name)
        (cache / file.name).chmod(0o644)
    page = (ROOT / "docs" / "one-machine.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    script = "\n".join(["umask 022", *blocks, "umask"]).replace("ROOT= ", f"ROOT={tmp_path} ")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("configuration is good") == 2
    assert done.stdout.splitlines()[-1] == "0022", "what root does next in that shell is not for root alone"
    drop_in = tmp_path / "etc" / "systemd" / "system" / "hairmesh-worker@.service.d" / "edges.conf"
    (edges,) = re.findall(r'^EDGES="(.*?)"', script, re.MULTILINE)
    assert values(drop_in.read_text(), "IPAddressAllow") == [edges]
    hook = tmp_path / "etc" / "letsencrypt" / "renewal-hooks" / "deploy" / "hairmesh"
    assert os.access(hook, os.X_OK)
    assert hook.read_text().endswith("systemctl reload nginx\n")
    passwd = (tmp_path / "etc" / "passwd").read_text()
    for name, unit in TEXTS.items():
        assert (tmp_path / "etc" / "systemd" / "system" / name).read_text() == unit
        for user in values(unit, "User"):
            assert re.search(rf"^{user}:", passwd, re.MULTILINE)
    assert_operators_have_their_secrets(tmp_path / "etc" / "hairmesh")
    for unit in (EDGE, WORKER):
        (config,) = re.findall(r"--config /(\S+)", unit)
        file = tmp_path / config.replace("%i", "1")
        assert file.stat().st_mode & 0o777 == 0o640
        (group,) = re.findall(rf"^{values(unit, 'User')[0]}:[^:]*:\d+:(\d+):", passwd, re.MULTILINE)
        assert (file.stat().st_uid, file.stat().st_gid) == (0, int(group))
        (models,) = re.findall(r"HAIRMESH_MODELS_DIR=/(\S+)", unit)
        for file in (tmp_path / models).iterdir():
            assert others_read(file, below=tmp_path), f"{values(unit, 'User')[0]} cannot read {file.name}"
    assert len(list(cache.iterdir())) == len(MANIFEST) + 1, "the parser's ONNX form is made there"


def assert_operators_have_their_secrets(folder: Path) -> None:
    """Where the pages for operators read them, root's alone, and the very ones that the programs have."""
    pages = [(ROOT / "docs" / name).read_text() for name in ("operations.md", "by-hand.md")]
    named = {Path(path) for page in pages for path in re.findall(r"=(/etc/hairmesh/secrets\S*)", page)}
    assert {path if len(path.parts) == 4 else path.parent for path in named} == {Path("/etc/hairmesh/secrets")}
    read = {name for page in pages for name in re.findall(r"(?:\$SECRETS|/secrets)/(\w+)\b(?!\.)", page)}
    assert {file.name for file in (folder / "secrets").iterdir()} == read
    assert (folder / "secrets").stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in (folder / "secrets").iterdir()} == {0o600}
    token, password = ((folder / "secrets" / name).read_text().strip() for name in ("admin_token", "worker_password"))
    edges = [json.loads((folder / f"edge-{number}.json").read_text()) for number in (1, 2)]
    worker = json.loads((folder / "worker-1.json").read_text())
    assert [(edge["admin_tokens"], edge["shared_password"]) for edge in edges] == [([token], password)] * 2
    assert worker["accept_passwords"] == [password]
    assert len({token, password}) == 2


def others_read(file: Path, *, below: Path) -> bool:
    """Whether a user that owns nothing there gets to the file, and may read it."""
    way = [folder for folder in file.parents if folder.is_relative_to(below) and folder != below]
    return bool(file.stat().st_mode & stat.S_IROTH) and all(each.stat().st_mode & stat.S_IXOTH for each in way)
