"""Stubs as other teams take them: built, installed where nothing else is, used by the programs of docs/stubs.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum, auto
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from PIL import Image

import hairmesh
from hairmesh.child import console_script
from tests.protos.conftest import NODE_MODULES, ROOT, Artefacts
from tests.protos.empty_environment import Environment, environment_of
from tests.protos.tls_worker import START_S, tls_worker
from vision.models import ModelFiles
from vision.types import Stage
from worker.server import METHODS

PAGE = (ROOT / "docs" / "stubs.md").read_text()
BIN = Path(sys.executable).parent
TSC = NODE_MODULES / ".bin" / "tsc"
TYPES = ("types-grpcio", "types-protobuf")

pytestmark = pytest.mark.timeout(300)  # builds, type checkers and a worker with models, on a machine that may be busy


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


class Wants(StrEnum):
    """What a worker wants of a connection, in the order in which the page has it."""

    PLAIN_TEXT = auto()
    TLS = auto()
    MUTUAL_TLS = auto()


CONNECTS = {
    "python": r"^with grpc\.insecure_channel.*\n",
    "ts": r"^const transport.*\n",
}
"""The line in whose place others come."""


def program(language: str, wants: Wants = Wants.PLAIN_TEXT) -> str:
    """As it is printed, or with the lines that the page puts in the place of that one."""
    printed, *instead = blocks(language)
    assert len(instead) == len(Wants) - 1
    if wants is Wants.PLAIN_TEXT:
        return printed
    lines = instead[list(Wants).index(wants) - 1]
    changed, count = re.subn(CONNECTS[language], lambda _: lines, printed, flags=re.M)
    assert count == 1
    return changed


def run(*command: object, cwd: Path, problem: bool = False, path: str = "") -> str:
    """What it said; it must end well, or must not. `path`: where programs are looked for first."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PATH": f"{path}:{BIN}:{os.environ['PATH']}".lstrip(":")},
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
    """A folder with the page's program in Python, for each kind of worker."""
    folder = tmp_path_factory.mktemp("python")
    for wants in Wants:
        (folder / f"{wants}.py").write_text(program("python", wants))
    return folder


@pytest.fixture(scope="module")
def typescript(artefacts: Artefacts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's program in TypeScript, the package, and what the page has installed beside it."""
    folder = tmp_path_factory.mktemp("typescript")
    for wants in Wants:
        (folder / f"{wants}.mts").write_text(program("ts", wants))
    options = {
        "strict": True,
        "noUncheckedIndexedAccess": True,
        "module": "nodenext",
        "target": "es2023",
        "noEmit": True,
    }
    (folder / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": {**options, "types": ["node"]}, "include": ["*.mts"]})
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


def test_page_names_the_node_that_the_packages_ask_for() -> None:
    transport = NODE_MODULES / "@connectrpc" / "connect-node"
    for folder in (NODE_MODULES.parent, transport):
        (oldest,) = re.findall(r"^>=(\d+)$", json.loads((folder / "package.json").read_text())["engines"]["node"])
        assert f"JavaScript, Node {oldest} or later" in PAGE, folder


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
    for wants in Wants:
        run(*mypy, f"{wants}.py", cwd=python)
    wrong = program("python").replace("answer.measurements.face_width", "answer.measurements.face_with")
    (python / "wrong.py").write_text(wrong.replace("lang=common_pb2.LANGUAGE_EN", 'lang="en"'))
    said = run(*mypy, "wrong.py", cwd=python, problem=True)
    assert "face_with" in said
    assert 'Argument "lang"' in said


def test_typescript_program_is_typed_to_the_last_field(typescript: Path) -> None:
    run(TSC, cwd=typescript)
    wrong = program("ts").replace("faceWidth", "faceWith").replace("Language.EN", '"en"')
    (typescript / "wrong.mts").write_text(wrong)
    try:
        said = run(TSC, cwd=typescript, problem=True)
    finally:
        (typescript / "wrong.mts").unlink()
    assert "'faceWith' does not exist" in said
    assert re.search(r"^wrong\.mts\(\d+,\d+\): error TS2345: .*lang: string", said, re.M)


def test_descriptor_set_is_enough_for_any_client(artefacts: Artefacts) -> None:
    pool, files = DescriptorPool(), FileDescriptorSet.FromString(artefacts.descriptors.read_bytes())
    for file in files.file:
        pool.Add(file)
    services = [f"{file.package}.{service.name}" for file in files.file for service in file.service]
    found = {f"/{name}/{method.name}" for name in services for method in pool.FindServiceByName(name).methods}
    assert found == {method for method in METHODS if "/hair." in method}
    assert any(location.leading_comments for file in files.file for location in file.source_code_info.location)


@dataclass(frozen=True, slots=True)
class Checkout:
    """Where `hairmesh serve` runs, as far as the page's lines see it, with stubs and programs."""

    folder: Path
    path: str
    """Of programs: the interpreter that has the stubs comes first."""

    def type(self, lines: str, *, problem: bool = False) -> str:
        return run("bash", "-euo", "pipefail", "-c", lines, cwd=self.folder, path=self.path, problem=problem)


@pytest.fixture
def checkout(environment: Environment, typescript: Path, tmp_path: Path) -> Checkout:
    (tmp_path / "node_modules").symlink_to(typescript / "node_modules")
    return Checkout(tmp_path, str(environment.python.parent))


@contextmanager
def serve(checkout: Checkout, *options: str) -> Iterator[None]:
    """`hairmesh serve` there, when it has said that all is up."""
    command = [str(console_script("hairmesh")), "serve", "--workers", "1", *options]
    with (checkout.folder / "serve.log").open("w+") as log:
        service = subprocess.Popen(command, cwd=checkout.folder, stdout=subprocess.PIPE, stderr=log, text=True)
        stop = threading.Timer(START_S, service.kill)
        stop.start()
        try:
            assert service.stdout is not None
            assert any(line.startswith("Ctrl-C") for line in service.stdout), (
                checkout.folder / "serve.log"
            ).read_text()
            yield
        finally:
            stop.cancel()
            service.send_signal(signal.SIGINT)
            service.communicate()


def wall(folder: Path) -> Path:
    path = folder / "wall.png"
    Image.new("RGB", (400, 400), "grey").save(path)
    return path


def check_measured(said: str, folder: Path) -> None:
    """By the program in Python."""
    assert re.fullmatch(r"1\d\d\.\d mm, 1\d\d\.\d to 1\d\d\.\d\n", said)
    with Image.open(folder / "measured.png") as picture:
        assert picture.format == "PNG"


@pytest.mark.models
@pytest.mark.parametrize(
    ("wants", "options"),
    [(Wants.PLAIN_TEXT, ()), pytest.param(Wants.MUTUAL_TLS, ("--tls",), marks=pytest.mark.long)],
)
def test_programs_run_against_what_a_newcomer_starts(
    model_files: ModelFiles, checkout: Checkout, wants: Wants, options: tuple[str, ...]
) -> None:
    """The page's lines as they are, but for the checkout's place; only `https` for TLS, as it says."""
    (lines,) = blocks("sh")
    lines = lines.replace("OUT=$HOME/hairmesh/out", "OUT=$PWD/out")
    set_variables, in_python, in_typescript = re.split(r"^(?=python|node)", lines, flags=re.M)
    if wants is not Wants.PLAIN_TEXT:
        in_typescript = in_typescript.replace("http:", "https:")
    (checkout.folder / "measure.py").write_text(program("python", wants))
    (checkout.folder / "measure.mts").write_text(program("ts", wants))
    with serve(checkout, *options):
        check_measured(checkout.type(set_variables + in_python), checkout.folder)
        width, *stages = checkout.type(set_variables + in_typescript).splitlines()
    assert re.fullmatch(r"1\d\d\.\d mm", width)
    assert set() < set(stages) <= set(Stage)  # and no word of Node's
    with Image.open(checkout.folder / "round.png") as picture:
        assert picture.format == "PNG"
    assert (checkout.folder / "password").stat().st_mode & 0o077 == 0


@pytest.mark.models
@pytest.mark.parametrize("wants", [Wants.TLS, Wants.MUTUAL_TLS])
def test_programs_with_tls_say_refusals_and_why_nothing_is_grown(
    model_files: ModelFiles, environment: Environment, python: Path, typescript: Path, tmp_path: Path, wants: Wants
) -> None:
    with tls_worker(tmp_path, mutual=wants is Wants.MUTUAL_TLS, growth={"backend": "none"}) as worker:
        for folder in (python, typescript):
            (folder / "certs").mkdir(exist_ok=True)
            for name in ("ca.pem", "client.pem", "client.key"):
                shutil.copy(worker.ca.with_name(name), folder / "certs")
        call = (worker.address, worker.password_file)
        in_python = (environment.python, "-I", f"{wants}.py", *call)
        check_measured(run(*in_python, worker.photo, cwd=python), python)
        assert run(*in_python, wall(python), cwd=python, problem=True) == "FAILED_PRECONDITION NO_FACE\n"
        (phrase,) = re.findall(r"^`(UNAVAILABLE .*?)`", PAGE, re.M)
        for other in set(Wants) - {wants, Wants.MUTUAL_TLS}:  # a worker that wants no certificate minds none
            said = run(environment.python, "-I", f"{other}.py", *call, worker.photo, cwd=python, problem=True)
            assert said.startswith(phrase), other

        in_typescript = ("node", f"{wants}.mts", f"https://{worker.address}", worker.password_file)
        assert run(*in_typescript, worker.photo, cwd=typescript).splitlines()[-1] == "round BACKEND_NONE"
        assert "FailedPrecondition NO_FACE {}" in run(*in_typescript, wall(typescript), cwd=typescript, problem=True)
