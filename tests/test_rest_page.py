"""docs/rest.md: its lines and its program run, as they are printed, against an edge and a worker that are processes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from edge.pool.config import DispatchConfig
from edge.settings import Limits, Static
from edge.stream import COMMENT_EVERY_S
from hairmesh.stack import write_private
from scripts import reference
from tests.e2e.breakable_worker import photo
from tests.e2e.service import Service
from vision.types import Stage

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "rest.md").read_text()
BIN = Path(sys.executable).parent
NODE_MODULES = ROOT / "protos" / "typescript" / "node_modules"
ADMIN_TOKEN, API_KEY = "token-of-an-operator-1", "SENTINEL-key-of-a-clinic"

VARIABLES, FOLDER, CALL, REFUSED, PROGRESS, PICTURE, REMOVE = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
(PROGRAM,) = re.findall(r"^```ts\n(.*?)^```$", PAGE, re.M | re.S)
(REFUSAL,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.M | re.S)

EVENT = re.compile(r"event: (.*)\ndata: (.*)")
"""As the page says that one is written, and as its program reads it."""

pytestmark = pytest.mark.skipif(not all(map(shutil.which, ("curl", "jq"))), reason="needs curl and jq")


@dataclass(frozen=True, slots=True)
class Desk:
    """Where somebody sits who has typed what the first section says."""

    service: Service
    folder: Path

    async def run(self, *command: str, succeeds: bool = True) -> tuple[str, str]:
        """Standard output and error of a command; it must end well, or must not."""
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self.folder,
            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HAIRMESH_API_KEY": API_KEY},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, complained = (each.decode() for each in await process.communicate())
        assert (process.returncode == 0) == succeeds, said + complained
        return said, complained

    async def type(self, lines: str, **instead: object) -> str:
        """What lines of the page print, after those of its first section."""
        values = {"EDGE": self.service.url, "KEY_FILE": "key", "PHOTO": "photo.jpg", **instead}
        variables = re.sub(r"^(\w+)=.*", lambda found: f"{found[1]}={values[found[1]]}", VARIABLES, flags=re.M)
        said, _ = await self.run("bash", "-euo", "pipefail", "-c", f"{variables}\n{lines}")
        return said


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    service = Service(tmp_path / "service")
    service.add_worker()
    folder = tmp_path / "desk"
    folder.mkdir()
    key = {"name": "clinic", "sha256": hashlib.sha256(API_KEY.encode()).hexdigest()}
    try:
        await service.start(api_keys=[key], admin_tokens=[ADMIN_TOKEN], public_base_url=service.url)
        desk = Desk(service, folder)
        write_private(folder / "key", f"{API_KEY}\n")
        write_private(folder / "admin.header", f"Authorization: Bearer {ADMIN_TOKEN}\n")
        (folder / "photo.jpg").write_bytes(photo())
        await desk.type(FOLDER.replace('cd "$(mktemp -d)"', ":"))
        assert (folder / "header").stat().st_mode & 0o077 == 0
        yield desk
    finally:
        await service.stop()


async def test_its_lines_in_order(desk: Desk) -> None:
    """Both kinds of body, a refusal as the page prints it, progress, a picture, and its end."""
    code, request_id, scale, *styles, grown = (await desk.type(CALL)).split()
    assert (code, styles, grown) == ("0", ['"round"', '"m"'], '[0,"grown"]')
    assert float(scale) > 0

    said = json.loads(await desk.type(REFUSED))
    assert said == json.loads(REFUSAL)

    *streamed, rest = (await desk.type(PROGRESS)).split("\n\n")
    assert rest == ""
    (example,) = re.findall(r"^((?: {4}.*\n|\n)+)An event is", PAGE, re.M)
    shown, came = (
        {found[1]: found[2] for each in some if (found := EVENT.fullmatch(each))}
        for some in (re.sub("^ {4}", "", example, flags=re.M).strip().split("\n\n"), streamed)
    )
    assert list(shown) == list(came) == ["queued", "progress", "result"]
    assert json.loads(shown["progress"]).keys() == json.loads(came["progress"]).keys()
    assert json.loads(came["result"])["code"] == 0
    assert all(EVENT.fullmatch(each) or each.startswith(":") for each in streamed)

    await desk.type(PICTURE)
    with Image.open(desk.folder / "measured.png") as picture:
        assert picture.format == "PNG"
    assert (await desk.type(REMOVE)).strip() == "1"
    await desk.type(PICTURE)
    assert b"PNG" not in (desk.folder / "measured.png").read_bytes()
    assert request_id.strip('"') == json.loads((desk.folder / "measured.json").read_text())["request_id"]


async def test_its_program_follows_growth_and_says_refusals(desk: Desk) -> None:
    (desk.folder / "grow.mts").write_text(PROGRAM)
    (command,) = re.findall(r"`node (grow\.mts .*?)`", PAGE)
    assert command == 'grow.mts "$EDGE" "$PHOTO"'
    said, complained = await desk.run("node", "grow.mts", desk.service.url, "photo.jpg")
    assert complained == ""  # no warning either
    assert said
    assert all(re.fullmatch(r"(\w+) \d+/\d+", line) for line in said.splitlines())
    assert {line.split()[0] for line in said.splitlines()} <= set(Stage)
    with Image.open(desk.folder / "round.png") as picture:
        assert picture.format == "PNG"

    (desk.folder / "letter.txt").write_text("Dear clinic")
    _, complained = await desk.run("node", "grow.mts", desk.service.url, "letter.txt", succeeds=False)
    assert complained.startswith("UNSUPPORTED_FORMAT ")


async def test_no_page_of_another_origin_is_let_in(desk: Desk) -> None:
    answer = await desk.service.client.get("/health", headers={"Origin": "https://elsewhere.example"})
    assert [name for name in answer.headers if name.startswith("access-control-")] == []


async def test_its_program_is_told_within_the_stream_what_goes_wrong_later(desk: Desk) -> None:
    (desk.folder / "grow.mts").write_text(PROGRAM)
    desk.service.workers[0].send(signal.SIGUSR1)  # its models find no face any more
    (desk.folder / "photo.jpg").write_bytes(photo(seconds=1))
    said, complained = await desk.run("node", "grow.mts", desk.service.url, "photo.jpg", succeeds=False)
    assert said.startswith(f"{Stage.PARSING} ")
    assert complained.startswith("NO_FACE ")


def test_its_program_is_typed(tmp_path: Path) -> None:
    if not NODE_MODULES.is_dir():
        pytest.skip("needs the packages of protos/typescript/package-lock.json: `make setup` with the npm registry")
    (tmp_path / "grow.mts").write_text(PROGRAM)
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    options = ["--strict", "--noUncheckedIndexedAccess", "--noEmit", "--module", "nodenext", "--target", "es2023"]
    command = [str(NODE_MODULES / ".bin" / "tsc"), *options, "--types", "node", "grow.mts"]
    environment = {"PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_types_that_it_names_are_in_the_document() -> None:
    named = re.findall(r'\["(\w+)"\]`', PAGE)
    assert len(named) == 2
    assert set(named) <= set(reference.document()["components"]["schemas"])


def test_its_figures_are_the_defaults() -> None:
    limits, static = Limits(), Static()
    assert f"**As large as** {limits.max_body_bytes / 2**20:g} MiB" in PAGE
    assert f"and so a photo in JSON {limits.max_body_bytes * 3 / 4 / 2**20:g} MiB" in PAGE
    assert f"for {static.max_age_hours:g} hours" in PAGE
    assert f"up to {DispatchConfig().max_queue_wait_seconds:g} s" in PAGE
    assert f"every {COMMENT_EVERY_S:g} s" in PAGE
