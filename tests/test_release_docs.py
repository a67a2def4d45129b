"""`docs/releasing.md`, then `docs/install.md` with what came of it, in a clone and from end to end; `hairmesh demo`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.test_distribution import BIN, ROOT, empty_environment, run
from vision.models import default_cache_dir

pytestmark = [pytest.mark.long, pytest.mark.models, pytest.mark.timeout(1800)]

VERSION = "9.8.7"
NOT_IN_THE_SOURCES = {".gitignore"}
"""Of no use without git."""


def blocks(page: str) -> list[str]:
    """What the page has somebody type."""
    return re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.M | re.S)


def as_typed(*scripts: str, folder: Path, **environment: str) -> str:
    """Runs them as one; the first line that fails ends it."""
    return run("bash", "-euo", "pipefail", "-c", "\n".join(scripts), folder=folder, **environment)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which the page was followed; its `dist` is what was released."""
    folder = tmp_path_factory.mktemp("release") / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, folder], check=True)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / "protos" / "typescript" / "node_modules").symlink_to(ROOT / "protos" / "typescript" / "node_modules")
    name = {f"GIT_{who}_{what}": "release@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    commit, give_out = blocks("releasing.md")
    commit, changed = re.subn(r"^VERSION=.*", f"VERSION={VERSION}", commit, flags=re.M)
    assert changed == 1
    as_typed(commit, give_out, folder=folder, **name)
    return folder


def test_sources_are_whole_and_a_second_build_gives_the_same(clone: Path, tmp_path: Path) -> None:
    sums = (clone / "dist" / "SHA256SUMS").read_text()
    files = {each.name for each in (clone / "dist").iterdir()}
    assert {line.split()[1] for line in sums.splitlines()} | {"SHA256SUMS"} == files
    assert all(VERSION in name for name in files - {"SHA256SUMS"})
    assert json.loads((clone / "dist" / f"hairmesh-{VERSION}.openapi.json").read_text())["info"]["version"] == VERSION
    with tarfile.open(clone / "dist" / f"hairmesh-{VERSION}.tar.gz") as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    tree = subprocess.run(["git", "ls-tree", "-rz", "--name-only", "HEAD"], cwd=clone, capture_output=True, check=True)
    assert set(tree.stdout.decode().split("\0")) - sources - {""} == NOT_IN_THE_SOURCES
    (clone / "README.md").write_text("not committed: in no release")
    run(clone / "scripts" / "release.sh", tmp_path / "again", f"v{VERSION}", folder=tmp_path)
    assert (tmp_path / "again" / "SHA256SUMS").read_text() == sums


def test_installing_with_and_without_internet_and_back(clone: Path, tmp_path: Path) -> None:
    """An edge, which is small; the models are already where they would be fetched to."""
    names, online, link, models, wheelhouse, offline, back = blocks("install.md")
    names = f"VERSION={VERSION}\nHOUSE={tmp_path}/house\nEXTRAS=edge"
    dist = tmp_path / "dist"
    shutil.copytree(clone / "dist", dist)
    shutil.copytree(default_cache_dir(), dist / "models")
    assert as_typed(names, online, link, folder=dist).splitlines()[-1] == VERSION
    as_typed(models, folder=dist, PATH=f"{BIN}:/usr/bin:/bin")
    as_typed(names, wheelhouse, folder=dist)

    shutil.rmtree(tmp_path / "house")
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_NO_CACHE_DIR": "1"}
    (tmp_path / "there").mkdir()
    shutil.copytree(dist / "wheelhouse", tmp_path / "there" / "wheelhouse")
    assert as_typed(names, offline, link, folder=tmp_path / "there", **nowhere).splitlines()[-1] == VERSION
    example = (ROOT / "edge_config.example.json").read_text()
    (tmp_path / "there" / "edge_config.json").write_text(example.replace("change-me", "our-own-secret"))
    as_typed(names, back, folder=tmp_path / "there")
    assert (tmp_path / "house" / ".venv").resolve() == tmp_path / "house" / VERSION


def test_demo_runs_in_an_empty_environment(clone: Path, tmp_path: Path) -> None:
    python = empty_environment(tmp_path / "venv")
    (service,) = (clone / "dist").glob("hairmesh-*.whl")
    (stubs,) = (clone / "dist").glob("hairmesh_protos-*.whl")
    pip = (BIN / "python", "-m", "pip", "--python", python, "install", "-q", "-c", ROOT / "requirements.lock")
    run(*pip, f"{service}[demo]", stubs, folder=tmp_path)
    bare = {"PATH": f"{python.parent}:/usr/bin:/bin"}
    run(python.parent / "hairmesh", "models", "fetch", folder=tmp_path, **bare)
    said = run(python.parent / "hairmesh", "demo", folder=tmp_path, **bare)
    assert said.splitlines()[-1] == "demo: ok"
    assert (tmp_path / "out" / "demo" / "index.html").exists()
