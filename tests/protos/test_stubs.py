"""Stubs as other teams take them: built, installed where nothing else is, used by the programs of docs/stubs.md."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from PIL import Image

import hairmesh
from tests.protos.conftest import NODE_MODULES, ROOT, Artefacts
from tests.protos.empty_environment import Environment, environment_of
from tests.protos.tls_worker import TlsWorker, tls_worker
from vision.models import ModelFiles
from vision.types import Stage
from worker.server import METHODS

PAGE = (ROOT / "docs" / "stubs.md").read_text()
BIN = Path(sys.executable).parent
TSC = NODE_MODULES / ".bin" / "tsc"
TYPES = ("types-grpcio", "types-protobuf")

pytestmark = pytest.mark.timeout(300)  # builds, type checkers and a worker with models, on a machine that may be busy


def program(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)
    return str(found)


def run(*command: object, cwd: Path, problem: bool = False) -> str:
    """What it said; it must end well, or must not."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == problem, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def environment(artefacts: Artefacts, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return environment_of(artefacts.wheel, tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's program in Python."""
    folder = tmp_path_factory.mktemp("python")
    (folder / "measure.py").write_text(program("python"))
    return folder


@pytest.fixture(scope="module")
def typescript(artefacts: Artefacts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's program in TypeScript, the package, and what the page has installed beside it."""
    folder = tmp_path_factory.mktemp("typescript")
    (folder / "measure.ts").write_text(program("ts"))
    (folder / "package.json").write_text('{"type": "module"}')
    options = {
        "strict": True,
        "noUncheckedIndexedAccess": True,
        "module": "nodenext",
        "target": "es2023",
        "noEmit": True,
    }
    (folder / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": {**options, "types": ["node"]}, "include": ["*.ts"]})
    )
    ours = folder / "node_modules" / "@hairmesh"
    ours.mkdir(parents=True)
    with tarfile.open(artefacts.package) as package:
        package.extractall(ours, filter="data")
    (ours / "package").rename(ours / "protos")
    for name in ("@bufbuild", "@connectrpc", "@types", "undici-types"):
        (folder / "node_modules" / name).symlink_to(NODE_MODULES / name)
    return folder


def test_nothing_but_stubs_is_shipped(artefacts: Artefacts) -> None:
    with zipfile.ZipFile(artefacts.wheel) as wheel:
        names = wheel.namelist()
        assert wheel.read(next(name for name in names if name.endswith("LICENSE"))) == (ROOT / "LICENSE").read_bytes()
    assert {"hair/py.typed", "hair/analysis/v1/measure_pb2.pyi"} <= set(names)
    assert all(re.match(r"hair/|hairmesh_protos-[\d.]+\.dist-info/", name) for name in names)
    with tarfile.open(artefacts.package) as package:
        names = package.getnames()
    beside = {name for name in names if not re.fullmatch(r"package/(hair|google)/.*_pb\.(js|d\.ts)", name)}
    assert beside == {f"package/{name}" for name in ("package.json", "README.md", "LICENSE")}
    with tarfile.open(artefacts.sdist) as sdist:
        assert any(name.endswith("python/hair/py.typed") for name in sdist.getnames())


def test_all_have_the_version_of_the_service(artefacts: Artefacts) -> None:
    for path in (artefacts.wheel, artefacts.sdist, artefacts.package, artefacts.descriptors):
        assert f"protos-{hairmesh.__version__}" in path.name
        assert path.name in PAGE or path == artefacts.sdist


def test_wheel_asks_for_all_that_it_imports(environment: Environment) -> None:
    assert {"hairmesh-protos", "protobuf", "grpcio"} <= set(environment.distributions)
    assert set(environment.distributions) <= {"hairmesh-protos", "protobuf", "grpcio", "typing-extensions"}
    modules = sorted(
        ".".join(path.relative_to(environment.site_packages).with_suffix("").parts)
        for path in environment.site_packages.glob("hair/**/*_pb2*.py")
    )
    assert "hair.worker.v1.worker_service_pb2_grpc" in modules
    script = (
        f"import {', '.join(modules)}, sys; print(*(set(sys.modules) & {{'hairmesh', 'edge', 'worker', 'vision'}}))"
    )
    assert run(environment.python, "-Werror", "-c", script, cwd=environment.folder).strip() == ""


def test_python_program_is_typed_to_the_last_field(environment: Environment, python: Path) -> None:
    for name in TYPES:
        environment.copy(name)
    mypy = (sys.executable, "-m", "mypy", "--strict", "--python-executable", environment.python, "--cache-dir=.cache")
    run(*mypy, "measure.py", cwd=python)
    wrong = program("python").replace("answer.measurements.face_width", "answer.measurements.face_with")
    (python / "wrong.py").write_text(wrong.replace("lang=common_pb2.LANGUAGE_EN", 'lang="en"'))
    said = run(*mypy, "wrong.py", cwd=python, problem=True)
    assert "face_with" in said
    assert 'Argument "lang"' in said


def test_typescript_program_is_typed_to_the_last_field(typescript: Path) -> None:
    run(TSC, cwd=typescript)
    wrong = program("ts").replace("faceWidth", "faceWith").replace("Language.EN", '"en"')
    (typescript / "wrong.ts").write_text(wrong)
    try:
        said = run(TSC, cwd=typescript, problem=True)
    finally:
        (typescript / "wrong.ts").unlink()
    assert "'faceWith' does not exist" in said
    assert re.search(r"^wrong\.ts\(\d+,\d+\): error TS2345: .*lang: string", said, re.M)


def test_descriptor_set_is_enough_for_any_client(artefacts: Artefacts) -> None:
    pool, files = DescriptorPool(), FileDescriptorSet.FromString(artefacts.descriptors.read_bytes())
    for file in files.file:
        pool.Add(file)
    services = [f"{file.package}.{service.name}" for file in files.file for service in file.service]
    found = {f"/{name}/{method.name}" for name in services for method in pool.FindServiceByName(name).methods}
    assert found == {method for method in METHODS if "/hair." in method}
    assert any(location.leading_comments for file in files.file for location in file.source_code_info.location)


@pytest.fixture(scope="module")
def worker(model_files: ModelFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsWorker]:
    with tls_worker(tmp_path_factory.mktemp("worker")) as running:
        yield running


def wall(folder: Path) -> Path:
    path = folder / "wall.png"
    Image.new("RGB", (400, 400), "grey").save(path)
    return path


@pytest.mark.models
def test_python_program_measures(worker: TlsWorker, environment: Environment, python: Path) -> None:
    command = (environment.python, "-I", "measure.py", worker.address, worker.ca, worker.password_file)
    said = run(*command, worker.photo, cwd=python)
    assert re.fullmatch(r"1\d\d\.\d mm, 1\d\d\.\d to 1\d\d\.\d\n", said)
    with Image.open(python / "measured.png") as picture:
        assert picture.format == "PNG"
    assert run(*command, wall(python), cwd=python, problem=True) == "FAILED_PRECONDITION NO_FACE\n"


@pytest.mark.models
def test_typescript_program_measures_and_follows_growth(worker: TlsWorker, typescript: Path) -> None:
    command = (BIN / "node", "measure.ts", f"https://{worker.address}", worker.ca, worker.password_file)
    said = run(*command, worker.photo, cwd=typescript).splitlines()
    assert re.fullmatch(r"1\d\d\.\d mm", said[0])
    assert set() < set(said[1:]) <= set(Stage)
    with Image.open(typescript / "grown.png") as picture:
        assert picture.format == "PNG"
    assert "FailedPrecondition NO_FACE {}" in run(*command, wall(typescript), cwd=typescript, problem=True)
