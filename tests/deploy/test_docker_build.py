"""The images themselves: every step of the Dockerfile run over a Debian that was just made, and what comes out started.

The base is debootstrap's, as Debian's own image is. No Docker: buildah builds and runs here, in a chroot.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hairmesh.stack import free_ports, write_private
from tests.deploy import debian
from tests.deploy.monitoring import ROOT
from tests.deploy.test_docker_images import TEXT
from tests.fakes.worker import PASSWORD

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

USER = 10001
RELEASE = TEXT.partition("ARG BASE=debian:")[2].partition("-")[0]
BASE = f"docker.io/library/debian:{RELEASE}-slim"
PINS = """
import json, importlib.metadata as m
print(json.dumps({d.name: d.version for d in m.distributions()}))
"""


class Builder:
    """buildah with a store of its own, and a copy of the source that nobody changes meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._own = ["buildah", "--root", str(folder / "store"), "--runroot", str(folder / "run")]
        self._source = folder / "source"
        debian.copy_source(self._source)
        self._pip = folder / "pip.conf"
        self._pip.write_text(debian.pip_settings())

    def __call__(self, *arguments: object) -> str:
        """Its standard output; fails with all that it said."""
        done = subprocess.run(
            [*self._own, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=self._source
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout.strip()

    def build(self, target: str, *options: str) -> str:
        """A container of the image that the Dockerfile makes."""
        tag = f"localhost/{target}"
        mounts = [f"--volume={self._pip}:/etc/pip.conf:ro"]
        mounts += [f"--volume={folder}:{folder}:ro" for folder in debian.wheel_folders()]
        asked = ["--isolation=chroot", "--network=host", "--pull-never", "--format=docker", "--layers", *mounts]
        asked += [
            "--build-arg=TORCH_INDEX=",
            "--build-arg=MODELS=baked",
            "--file=deploy/docker/Dockerfile",
            f"--target={target}",
            f"--tag={tag}",
        ]
        self("bud", *asked, *options, ".")
        return self("from", "--pull-never", tag)

    def run(self, container: str, *command: str) -> str:
        """What a command says in it, as the image's user."""
        return self(*self._in(container), *command)

    def start(self, container: str) -> subprocess.Popen[bytes]:
        """The program of the image."""
        settings = self.settings(container)
        assert settings["User"] == f"{USER}:{USER}"
        command = [*self._own, *self._in(container), *settings["Entrypoint"], *settings["Cmd"]]
        return subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE)

    def healthy(self, container: str) -> bool:
        """What the image's own check says."""
        kind, *check = self.settings(container)["Healthcheck"]["Test"]
        assert kind == "CMD"
        command = [*self._own, *self._in(container), *check]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    @staticmethod
    def _in(container: str) -> list[str]:
        return ["run", "--isolation=chroot", "--network=host", f"--user={USER}", container, "--"]

    def settings(self, container: str) -> dict[str, Any]:
        """What the image says of how it is run."""
        found: dict[str, Any] = json.loads(self("inspect", container))["Docker"]["config"]
        return found

    def file(self, container: str, path: str, content: object) -> None:
        """Put a configuration there, as a mounted secret would lie: only the user's group reads it."""
        place = Path(self("mount", container)) / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        write_private(place, json.dumps(content))
        os.chown(place, 0, USER)
        place.chmod(0o440)


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    debian.skip_without("debootstrap", "buildah", package="buildah debootstrap")
    folder = tmp_path_factory.mktemp("images")
    try:
        root = folder / "debian"
        debian.install(RELEASE, root)
        debian.trust_whom_this_machine_trusts(root)
        build = Builder(folder)
        scratch = build("from", "scratch")
        build("add", "--quiet", scratch, root, "/")
        build("commit", "--quiet", scratch, BASE)
        build("rm", scratch)
        shutil.rmtree(root)
        yield build
        build("umount", "--all")
        build("rm", "--all")
    finally:
        shutil.rmtree(folder)  # some 10 GB


def pinned() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return {name.lower().replace("_", "-"): version for name, _, version in (line.partition("==") for line in lines)}


def assert_pinned(installed: dict[str, str]) -> None:
    ours = {"hairmesh", "hairmesh-protos"}
    found = {name.lower().replace("_", "-"): version.partition("+")[0] for name, version in installed.items()}
    assert ours <= set(found)
    assert {name: version for name, version in found.items() if name not in ours and pinned()[name] != version} == {}


def until_logged(running: subprocess.Popen[bytes], event: str) -> dict[str, Any]:
    """Its line of that event."""
    assert running.stderr is not None
    said = []
    for line in running.stderr:
        said.append(line)
        if line.startswith(b"{") and (entry := json.loads(line))["event"] == event:
            found: dict[str, Any] = entry
            return found
    raise AssertionError(b"".join(said).decode())


def end(running: subprocess.Popen[bytes]) -> None:
    os.killpg(running.pid, signal.SIGTERM)
    assert running.stderr is not None
    running.stderr.read()
    running.stderr.close()
    running.wait()


def test_the_edge_is_slim_pinned_and_healthy(builder: Builder) -> None:
    edge = builder.build("edge")
    installed = json.loads(builder.run(edge, "python", "-c", PINS))
    assert_pinned(installed)
    assert not {"torch", "mediapipe", "numpy", "onnxruntime"} & set(installed)
    config = {
        "listen": "127.0.0.1:8080",
        "workers": [f"127.0.0.1:{free_ports(1)[0]}"],
        "shared_password": PASSWORD,
    }
    builder.file(edge, "/etc/hairmesh/edge_config.json", config)
    running = builder.start(edge)
    try:
        until_logged(running, "edge_ready")
        assert builder.healthy(edge)
    finally:
        end(running)
    assert not builder.healthy(edge)


def test_the_same_source_makes_the_same_packages(builder: Builder) -> None:
    trees = []
    for attempt in range(2):
        edge = builder.build("edge", *(["--no-cache"] if attempt else []))
        listed = builder.run(edge, "sh", "-c", "find /opt/hairmesh -type f -print0 | sort -z | xargs -0 sha256sum")
        trees.append(listed)
    assert trees[0].splitlines() == trees[1].splitlines()


def test_a_worker_has_its_models_and_is_healthy(builder: Builder) -> None:
    worker = builder.build("worker")
    assert_pinned(json.loads(builder.run(worker, "python", "-c", PINS)))
    assert "face_landmarker.task: good" in builder.run(worker, "hairmesh", "models", "verify")
    config = {
        "listen": "127.0.0.1:28187",
        "accept_passwords": [PASSWORD],
        "device": "cpu",
        "health": {"min_free_gb": 0},
    }
    builder.file(worker, "/etc/hairmesh/worker_config.json", config)
    running = builder.start(worker)
    try:
        until_logged(running, "models_loaded")
        assert builder.healthy(worker)
    finally:
        end(running)


def test_an_edge_with_vision_has_no_torch(builder: Builder) -> None:
    edge = builder.build("edge-vision")
    installed = json.loads(builder.run(edge, "python", "-c", PINS))
    assert_pinned(installed)
    assert "mediapipe" in installed
    assert "torch" not in installed
    builder.run(edge, "python", "-c", "import edge.local.engine, mediapipe")
    assert "face_landmarker.task: good" in builder.run(edge, "hairmesh", "models", "verify")
