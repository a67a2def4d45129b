"""The Dockerfile as far as it can be judged without a build: linted, and each image has what its program imports."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import psutil
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hairmesh.stack import free_ports, write_private
from tests.deploy.monitoring import ROOT

DOCKERFILE = ROOT / "deploy" / "docker" / "Dockerfile"
TEXT = DOCKERFILE.read_text()
EXTRAS = {
    target: frozenset(extras.split(","))
    for target, extras in re.findall(r"AS (\S+)-packages\n(?:#.*\n|ARG.*\n)*RUN .*install-hairmesh (\S+)", TEXT)
}
"""What each image installs."""
OURS = {"hairmesh": ".", "hairmesh-protos": "protos"}
"""Our distributions, and where they are made."""
STARTS = {
    "edge": "edge.app, edge.command, hairmesh.health",
    "edge-vision": "edge.app, edge.local.engine",
    "worker": "worker.server, vision.pipeline, hairmesh.health",
}
"""What the program of each image imports, those parts included that it imports late."""
IMPORTED = """
import json, sys

class OnlyWhatIsInstalled:
    missing = set(json.loads(sys.argv[1]))

    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in self.missing:
            raise ModuleNotFoundError(f"no {{name}} in this image", name=name)

sys.meta_path.insert(0, OnlyWhatIsInstalled())
import {modules}
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""
"""Of the packages that are installed here, those in the first argument cannot be imported."""


def _requirements(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    """What a distribution needs with these extras: ours by the files in the tree, which may be newer than what is
    installed.
    """
    if name in OURS:
        project = tomllib.loads((ROOT / OURS[name] / "pyproject.toml").read_text())["project"]
        more = [line for extra in extras for line in project["optional-dependencies"][extra]]
        yield from map(Requirement, project["dependencies"] + more)
        return
    for line in metadata.distribution(name).requires or ():
        needed = Requirement(line)
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            yield needed


def closure(extras: frozenset[str]) -> set[str]:
    """Every distribution that pip would install for hairmesh with these extras."""
    asked = {("hairmesh", extras)}
    seen: set[tuple[str, frozenset[str]]] = set()
    while asked:
        seen.add(one := asked.pop())
        needed = {(canonicalize_name(each.name), frozenset(each.extras)) for each in _requirements(*one)}
        asked |= needed - seen
    return {name for name, _extras in seen}


def not_in(extras: frozenset[str]) -> list[str]:
    """Names of what is installed here and would not be in an image."""
    theirs = closure(extras)
    here = metadata.packages_distributions().items()
    return [name for name, from_ in here if not theirs & {canonicalize_name(each) for each in from_}]


def test_the_dockerfile_is_linted() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("target", STARTS)
def test_an_image_has_what_its_program_imports(target: str, tmp_path: Path) -> None:
    missing = not_in(EXTRAS[target])
    assert "pytest" in missing
    command = [sys.executable, "-I", "-c", IMPORTED.format(modules=STARTS[target]), json.dumps(missing)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"edge", "worker"} & set(json.loads(done.stdout)) == {target.partition("-")[0]}


def test_the_edge_is_slim() -> None:
    heavy = {"torch", "mediapipe", "onnx", "onnxruntime", "numpy", "matplotlib", "opencv-contrib-python", "pillow"}
    assert not heavy & closure(EXTRAS["edge"])
    assert "torch" not in closure(EXTRAS["edge-vision"])
    assert "torch" in closure(EXTRAS["worker"])


@pytest.mark.parametrize("target", STARTS)
def test_everything_in_an_image_is_pinned(target: str) -> None:
    pinned = {line.partition("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines()}
    assert closure(EXTRAS[target]) - set(OURS) <= {canonicalize_name(name) for name in pinned}
    assert "PIP_CONSTRAINT=/src/requirements.lock" in TEXT


def test_weights_that_are_not_for_everybody_get_into_an_image_on_purpose(tmp_path: Path) -> None:
    """There is no default: who builds says whether the image may be given out."""
    (step,) = re.findall(r"^ARG MODELS\nRUN --mount=\S+ ((?:.*\\\n)*.*)$", TEXT, re.MULTILINE)
    (programs := tmp_path / "bin").mkdir()
    (programs / "hairmesh").write_text('#!/bin/sh\necho "$@" > "$4/fetched"\n')
    (programs / "hairmesh").chmod(0o755)
    results = {}
    for chosen in ("baked", "mounted", ""):
        models = tmp_path / f"models-{chosen}"
        done = subprocess.run(
            ["sh", "-c", step.replace("/opt/models", str(models))],
            env={"PATH": f"{programs}:{os.environ['PATH']}", "MODELS": chosen},
            capture_output=True,
            text=True,
            check=False,
        )
        results[chosen] = (done.returncode, done.stderr, (models / "fetched").exists())
    refused = "say --build-arg MODELS=baked or MODELS=mounted: docs/containers.md\n"
    assert results == {"baked": (0, "", True), "mounted": (0, "", False), "": (1, refused, False)}


def test_only_what_an_image_is_made_of_gets_to_the_builder() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {line[1:] for line in rules if line.startswith("!")}
    packages = {"edge", "hairmesh", "protos", "vision", "worker"}
    files = {"LICENSE", "README.md", "pyproject.toml", "requirements.lock", "deploy/docker/install.sh"}
    assert allowed == packages | files
    assert {"**/*.pem", "**/*.key"} <= set(rules)


def test_programs_run_without_rights_as_the_first_process_and_say_how_they_are() -> None:
    stages = re.split(r"^FROM ", TEXT, flags=re.MULTILINE)[1:]
    images = {name: stage for stage in stages if (name := stage.split()[2]) in STARTS}
    assert set(images) == set(STARTS)
    for name, stage in images.items():
        last_user = re.findall(r"^USER (.*)$", stage, re.MULTILINE)[-1]
        assert last_user == "10001:10001"
        # Not through a shell, which would keep the signal to itself.
        assert f'ENTRYPOINT ["hairmesh-{name.partition("-")[0]}"]' in stage
        (check,) = re.findall(r"^HEALTHCHECK .*\\\n *CMD (.*)$", stage, re.MULTILINE)
        port = re.findall(r"^EXPOSE (.*)$", stage, re.MULTILINE)[0]
        assert json.loads(check) == ["hairmesh", "health", f"{'http://' if name != 'worker' else ''}127.0.0.1:{port}"]


@pytest.mark.parametrize("program", ["edge", "worker"])
def test_the_first_process_of_a_container_ends_in_order_when_told(program: str, tmp_path: Path) -> None:
    """To process 1 no signal does anything that it does not handle itself."""
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("a process namespace of its own cannot be had here")
    secret = "a-secret-of-the-tests"
    config: dict[str, object] = {"listen": f"127.0.0.1:{free_ports(1)[0]}"}
    if program == "edge":
        config |= {"workers": ["127.0.0.1:1"], "shared_password": secret}
    else:
        models = {"dir": str(tmp_path / "none")}
        config |= {"accept_passwords": [secret], "models": models, "drain_delay_seconds": 0}
    write_private(tmp_path / "config.json", json.dumps(config))
    command = [sys.executable, "-m", program, "--config", str(tmp_path / "config.json")]
    with subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", *command], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        ready = {"edge": '"edge_ready"', "worker": '"listening"'}[program]
        while (line := running.stderr.readline()) and ready not in line:
            pass
        (first,) = psutil.Process(running.pid).children()
        first.send_signal(signal.SIGTERM)
        said = running.stderr.read()
        assert running.wait() == 0, said
