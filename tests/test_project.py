"""What holds the project together: pins, versions, ignored secrets, generated code, make targets."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import edge.settings
import hairmesh
import worker.settings

ROOT = Path(__file__).parent.parent
OURS = {"hairmesh", "hairmesh-protos"}


def pyproject(folder: Path = ROOT) -> dict[str, Any]:
    return dict(tomllib.loads((folder / "pyproject.toml").read_text())["project"])


def pins() -> dict[str, str]:
    lines = [line.split("#")[0].strip() for line in (ROOT / "requirements.lock").read_text().splitlines()]
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines if line)}


def direct_dependencies() -> list[Requirement]:
    project = pyproject()
    texts = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        texts += extra
    return [requirement for text in texts if (requirement := Requirement(text)).name not in OURS]


@pytest.mark.parametrize("requirement", direct_dependencies(), ids=str)
def test_every_direct_dependency_is_pinned_as_pyproject_allows(requirement: Requirement) -> None:
    version = pins().get(canonicalize_name(requirement.name))
    assert version, f"{requirement} is not in requirements.lock: run `make lock`"
    assert requirement.specifier.contains(version), f"{requirement} but {version} is locked: run `make lock`"


def test_lock_names_no_index_and_no_build() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"https?://|^-|\+cpu", text, re.MULTILINE)


def test_stubs_and_service_have_one_version() -> None:
    stubs = pyproject(ROOT / "protos")["version"]
    assert stubs == hairmesh.__version__ == metadata.version("hairmesh")
    assert f"hairmesh-protos=={stubs}" in pyproject()["optional-dependencies"]["serving"]


def test_stubs_need_protobuf_and_grpc_only() -> None:
    names = {Requirement(text).name for text in pyproject(ROOT / "protos")["dependencies"]}
    assert names == {"protobuf", "grpcio"}


def test_stubs_ask_for_the_versions_their_code_refuses_to_run_below() -> None:
    asked = {name.name: name.specifier for name in map(Requirement, pyproject(ROOT / "protos")["dependencies"])}
    for path in (ROOT / "protos" / "python").rglob("*_pb2*.py"):
        code = path.read_text()
        if path.name.endswith("_grpc.py"):
            package, numbers = "grpcio", re.findall(r"GRPC_GENERATED_VERSION = '([\d.]+)'", code)[0].split(".")
        else:
            package, numbers = "protobuf", re.findall(r"Domain\.PUBLIC,\s+(\d+),\s+(\d+),\s+(\d+)", code)[0]
        assert f">={'.'.join(numbers)}" in str(asked[package]).split(","), path


def test_generated_code_is_current() -> None:
    script = ROOT / "scripts" / "gen_protos.sh"
    result = subprocess.run([script, "--check"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    "path",
    [
        "edge_config.json",
        "worker_config.json",
        "deploy/edge_config.json",
        "deploy/worker_config.json",
        "worker1_config.local.json",
        "out/serve.json",
        "tls/server.pem",
        "tls/server.key",
        "static/annotations/a.png",
        "request_log.jsonl",
        "request_log.jsonl.1",
        "79999_iter.pth",
    ],
)
def test_secrets_and_patients_are_ignored_by_git(path: str) -> None:
    assert subprocess.run(["git", "check-ignore", "-q", path], cwd=ROOT, check=False).returncode == 0


def test_examples_are_not_ignored() -> None:
    listed = subprocess.run(["git", "ls-files", "*.example.json"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = {Path(line).name for line in listed.stdout.split()}
    assert {"edge_config.example.json", "worker_config.example.json"} <= names


def test_make_lists_every_target() -> None:
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("setup", "demo", "serve", "test", "test-long", "lint", "format", "protos", "bench"):
        assert re.search(rf"^make {target} +\S", listed, re.MULTILINE), target


def test_what_takes_minutes_is_run_by_somebody() -> None:
    nightly = ROOT / ".ci" / "nightly"
    assert os.access(nightly, os.X_OK)
    assert nightly.read_text().endswith("exec make test-long\n")
    assert "](../.ci/nightly)" in (ROOT / "docs" / "releasing.md").read_text()


def test_images_are_not_skipped_at_night(tmp_path: Path) -> None:
    (tmp_path / "dirname").symlink_to("/usr/bin/dirname")
    nightly = ["/bin/bash", str(ROOT / ".ci" / "nightly")]
    done = subprocess.run(nightly, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "buildah is not here" in done.stderr


def test_readme_names_both_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make test" in readme
    assert "make demo" in readme


def test_example_configurations_parse_but_for_their_secrets() -> None:
    example = (ROOT / "edge_config.example.json").read_text()
    with pytest.raises(edge.settings.ConfigError, match=r"^shared_password: .*\nadmin_tokens\.0: .*$"):
        edge.settings.parse(example.encode())
    edge.settings.parse(example.replace("change-me", "own").encode())
    example = (ROOT / "worker_config.example.json").read_text()
    with pytest.raises(worker.settings.SettingsError, match=r"accept_passwords\.0: is still the example's placeholder"):
        worker.settings.parse(example, {}, origin="w.json")
    worker.settings.parse(example.replace("replace-me", "own"), {}, origin="w.json")
