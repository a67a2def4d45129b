"""The page for people with nothing but a terminal: every line runs, against a real worker, and nothing is left out."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from PIL import Image

from hairmesh import certs
from tests.protos.tls_worker import TlsWorker, tls_worker
from vision.models import ModelFiles
from worker.refusals import CODES
from worker.server import METHODS, REFLECTED

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "by-hand.md").read_text()
BIN = Path(sys.executable).parent
RELEASED = sorted((ROOT / "protos" / "released").glob("*.binpb"))[-1]
LINE_TIMEOUT_S = 120
"""Each takes a second or three; a machine that does something else beside it takes longer."""

pytestmark = pytest.mark.timeout(300)

SECTIONS = {
    title: text for title, _, text in (part.partition("\n") for part in re.split(r"^## ", PAGE, flags=re.M)[1:])
}
TITLES = list(SECTIONS)
FIRST, *READING, LAST = TITLES


def blocks(text: str, language: str = "sh") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def lines(title: str) -> list[str]:
    return [line for block in blocks(SECTIONS[title]) for line in block.splitlines()]


VARIABLES, FOLDER, ASK_BUF, WHY = blocks(SECTIONS[FIRST])
(ASK_GRPCURL,) = blocks(SECTIONS[FIRST], "grpcurl")


@dataclass(frozen=True, slots=True)
class Desk:
    """Where somebody sits who has typed what the first section says."""

    worker: TlsWorker
    folder: Path
    ask: str

    def script(self, line: str, **instead: str) -> list[str]:
        """The shell with all that was set, and one line; `instead`: other values of variables."""
        values = {
            "WORKER": f"https://{self.worker.address}",
            "CA": str(self.worker.ca),
            "PASSWORD_FILE": str(self.worker.password_file),
            "PHOTO": str(self.worker.photo),
            "PROTOS": str(RELEASED),
        }
        typed = re.sub(
            r"^(\w+)=.*",
            lambda found: f"{found[1]}={values.get(found[1], found[0].partition('=')[2])}",
            VARIABLES,
            flags=re.M,
        )
        assert set(values) <= set(re.findall(r"^(\w+)=", VARIABLES, re.M))
        others = "\n".join(f"{name}={value}" for name, value in instead.items())
        return ["bash", "-euo", "pipefail", "-c", "\n".join([typed, self.ask, WHY, others, line])]

    def type(self, line: str, **instead: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.script(line, **instead),
            cwd=self.folder,
            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LINE_TIMEOUT_S,
            check=False,
        )

    def watch(self, line: str) -> str:
        """What a line that runs until Ctrl-C says first."""
        process = subprocess.Popen(
            self.script(line),
            cwd=self.folder,
            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        stop = threading.Timer(LINE_TIMEOUT_S, os.killpg, (process.pid, signal.SIGKILL))
        stop.start()
        try:
            assert process.stdout is not None
            said = ""
            for piece in process.stdout:
                said += piece
                if said.count("{") == said.count("}") > 0:
                    break
            return said
        finally:
            stop.cancel()
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


TOOLS = ["buf", *(["grpcurl"] if shutil.which("grpcurl") else [])]


@pytest.fixture(scope="module", params=[pytest.param(tool, marks=pytest.mark.models) for tool in TOOLS])
def desk(
    request: pytest.FixtureRequest, model_files: ModelFiles, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("by-hand")
    with tls_worker(tmp_path_factory.mktemp("worker")) as worker:
        desk = Desk(worker, folder, ASK_BUF if request.param == "buf" else ASK_GRPCURL)
        prepared = desk.type(FOLDER.replace('cd "$(mktemp -d)"', ":"))
        assert prepared.returncode == 0, prepared.stdout
        assert (folder / "header").stat().st_mode & 0o077 == 0
        yield desk


def remark(line: str) -> str:
    return line.rpartition(" # ")[2].strip() if " # " in line else ""


def check(desk: Desk, line: str) -> None:
    """It does what the page says of it."""
    if "Ctrl-C" in line:
        assert "{" in desk.watch(line), line
        return
    done = desk.type(line)
    if line.partition(" # ")[0].rstrip().endswith("| why"):
        assert done.returncode != 0, line
        assert all(word in done.stdout for word in remark(line).split()), f"{line}\n{done.stdout}"
        assert remark(line).split()[0] in done.stdout.splitlines()[0], f"something stands before it\n{done.stdout}"
    else:
        assert done.returncode == 0, f"{line}\n{done.stdout}"


@pytest.mark.parametrize("title", [title for title in READING if title != "No answer at all"])
def test_every_line_does_what_the_page_says(desk: Desk, title: str) -> None:
    assert lines(title)
    for line in lines(title):
        check(desk, line)


def test_pictures_that_were_taken_out_of_answers_are_pictures(desk: Desk) -> None:
    check(desk, next(line for line in lines("One photo through every call") if line.endswith("measured.png")))
    for name in ("measured.png", "designed.png", "masked.png", "grown.png"):
        with Image.open(desk.folder / name) as picture:
            assert picture.format == "PNG", name
            assert min(picture.size) > 100, name


def test_every_name_of_health_is_asked_for(desk: Desk) -> None:
    listed = json.loads(desk.type("ask $H/List <<< '{}'").stdout)["statuses"]
    checks = re.findall(r"^ask \$H/Check <<< '(.*?)'", SECTIONS["Is it well?"], re.M)
    assert set(listed) == {json.loads(request).get("service", "") for request in checks}


def test_no_line_shows_the_password(desk: Desk) -> None:
    password = desk.worker.password_file.read_text().strip()
    said = [desk.type(line).stdout for line in lines("Is it well?") if "-v" in line]
    assert said
    assert not any(password in each for each in said)
    ran = desk.type(f"set -x\n{lines('Is it well?')[0]}").stdout
    assert "x-internal-token" not in ran.replace("'x-internal-token: ${PASSWORD}'", "")
    assert password not in ran


@contextmanager
def stranger(credentials: grpc.ServerCredentials | None) -> Iterator[int]:
    """Some gRPC server; its port."""
    server = grpc.server(ThreadPoolExecutor(1))
    port = (
        server.add_secure_port("localhost:0", credentials) if credentials else server.add_insecure_port("localhost:0")
    )
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


SCHEMA_LINE = lines("No answer at all")[0]


def test_what_it_says_where_there_is_no_answer(desk: Desk) -> None:
    """Every row of the table: somebody makes the mistake, and finds it there by what is said."""
    table = [re.findall(r"`([^`]+)`", row) for row in re.findall(r"^\| (`.*?) \|", SECTIONS["No answer at all"], re.M)]
    seen: set[str] = set()

    def said(line: str = SCHEMA_LINE, **instead: str) -> None:
        done = desk.type(line, **instead)
        assert done.returncode != 0, line
        rows = [row[0] for row in table if any(phrase in done.stdout for phrase in row)]
        assert len(rows) == 1, f"{line} {instead}\n{done.stdout}"
        seen.update(rows)

    port = desk.worker.port
    authority = certs.Authority(["localhost"])
    other, known = desk.folder / "other.pem", desk.folder / "known.pem"
    other.write_bytes(authority.certificate)
    known.write_bytes(authority.certificate)
    pair = authority.sign("worker")
    said(SCHEMA_LINE.replace("-H @header", "-H 'x-internal-token: guess'"))
    said(WORKER="https://localhost:1")
    said(CA=str(other))
    said(WORKER=f"https://127.0.0.1:{port}")
    said(SCHEMA_LINE.replace('--cacert "$CA"', ""), WORKER=f"http://localhost:{port}")
    with stranger(None) as plain:
        said(WORKER=f"https://localhost:{plain}")
    with stranger(grpc.ssl_server_credentials([(pair.key, pair.certificate)], authority.certificate, True)) as asking:
        said(WORKER=f"https://localhost:{asking}", CA=str(known))
    said("""ask $A/Measure <<< '{"foto": {}}'""")
    said("""ask $A/Measure <<< '{"photo": {"data": "@"}}'""")
    said("""ask $H/Check <<< '{"service": "hair"}'""")
    said(f"{SCHEMA_LINE.replace('GetStatus', 'WatchStatus')} --timeout 1s")
    assert seen == {row[0] for row in table}


def test_a_wrong_password_is_called_a_missing_service_by_reflection(desk: Desk) -> None:
    (phrase,) = re.findall(r"`(failed to find service named) …`", PAGE)
    done = desk.type(
        f"echo 'x-internal-token: guess' > wrong; {ASK_BUF.replace('@header', '@wrong')}\nask $W/GetStatus <<< '{{}}'"
    )
    assert phrase in done.stdout


def test_a_drained_worker_says_so_and_nothing_is_left(desk: Desk) -> None:
    drain, remove = lines(LAST)
    check(desk, drain)
    refused = desk.type("ask $A/Measure < photo.json 2>&1 | why")
    assert "DRAINING" in refused.stdout
    (why_not,) = [line for line in lines("Is it well?") if "-v" in line]
    assert re.search(r"x-health-reason: draining", desk.type(why_not.replace("disk", "")).stdout, re.I)
    check(desk, remove)
    assert not desk.folder.exists()


def test_every_rpc_is_on_the_page() -> None:
    names = dict(re.findall(r"^([AWH])=(.*)$", VARIABLES, re.M))
    asked = {f"/{names[letter]}/{method}" for letter, method in re.findall(r"ask \$([AWH])/(\w+)", PAGE)}
    assert asked == METHODS
    assert any(f"ask {service}/ServerReflectionInfo" in PAGE for service in REFLECTED)


def test_every_reason_is_on_the_page_with_its_code() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([A-Z_]+) \| \S.*\|$", PAGE, re.M)
    assert dict(rows) == {str(reason): code.name for reason, code in CODES.items()}
    assert len(rows) == len(CODES)


NOTES_ARGUMENTS = """#!/usr/bin/env bash
printf '%s\\n' "$@" > "$NOTES"
cat >> "$NOTES"
"""


def test_both_tools_make_the_same_call(tmp_path: Path) -> None:
    """By their arguments, since grpcurl need not be here; their names as its documentation has them."""
    noted = {}
    for tool, ask in (("buf", ASK_BUF), ("grpcurl", ASK_GRPCURL)):
        program = tmp_path / tool
        program.write_text(
            NOTES_ARGUMENTS + ('printf %s "$PASSWORD" > "$NOTES.password"\n' if tool == "grpcurl" else "")
        )
        program.chmod(0o700)
        values = "WORKER=https://host:1 CA=ca.pem PASSWORD_FILE=password"
        script = f"""{values}\n{ask}\nask pkg.Service/Call -v <<< '{{"a": 1}}'"""
        (tmp_path / "password").write_text("secret\n")
        subprocess.run(
            ["bash", "-euc", script],
            cwd=tmp_path,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "NOTES": str(tmp_path / f"{tool}.txt")},
            check=True,
        )
        noted[tool] = (tmp_path / f"{tool}.txt").read_text().splitlines()
    assert noted["buf"] == [
        *(
            "curl",
            "--protocol",
            "grpc",
            "--cacert",
            "ca.pem",
            "-H",
            "@header",
            "--reflect-header",
            "*",
            "-d",
            "@-",
            "-v",
        ),
        *("https://host:1/pkg.Service/Call", '{"a": 1}'),
    ]
    assert noted["grpcurl"] == [
        *("-cacert", "ca.pem", "-expand-headers", "-H", "x-internal-token: ${PASSWORD}", "-max-msg-sz", "67108864"),
        *("-format-error", "-d", "@", "-v", "host:1", "pkg.Service/Call", '{"a": 1}'),
    ]
    assert (tmp_path / "grpcurl.txt.password").read_text() == "secret"
