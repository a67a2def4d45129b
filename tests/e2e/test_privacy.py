"""What becomes of a photo: nothing of it on a disk, in a log or in a tag, nothing leaves, and pictures go in time."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hairmesh.client import HAIRLINES_ROUTE
from tests.e2e.breakable_worker import photo
from tests.e2e.secluded import ADMIN_TOKEN, CALLS, ROUTES, SLOW
from tests.e2e.service import ROOT, Service
from tests.e2e.tagged import FORMATS, MARK

ADMIN = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
HOUR_S = 3600.0
WALK_TIMEOUT_S = 580
"""The walk takes half a minute; a machine that does much else beside it takes longer."""
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_PIXELS_ALONE = {b"IHDR", b"IDAT", b"IEND"}
_OWN_FILES = re.compile(
    r"service\d+/pictures(/\.?[0-9a-f]{48}\.(png|tmp))?"
    r"|service\d+/request_log\.jsonl"
    r"|home/state(/hairmesh(/[0-9a-f-]+\.jobs)?)?"  # open jobs on the diffusion server, by random names
    r"|mark-[0-9a-f-]+"  # the test's own
)
_CITED = {"source", "population"}
"""Where a norm stands in the literature: as it was published."""
_VERSIONS = {"parser_runtime"}
_NAME = re.compile(r"[A-Za-z0-9_.:/-]+")


@pytest.fixture(scope="module")
def walk(model_files: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of one walk through every call and every format."""
    folder = tmp_path_factory.mktemp("walk")
    command = [sys.executable, "-m", "tests.e2e.secluded", str(folder)]
    # In continuous integration a library that reports to its maker keeps quiet: not here.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    alone = next((option for option in _ALONE if _possible(option)), [])
    subprocess.run([*alone, *command], cwd=ROOT, env=environment, check=True, timeout=WALK_TIMEOUT_S)
    return folder


_ALONE = (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"])
"""Ways into a network of one's own: as root, and as somebody else where the kernel lets them."""


def _possible(option: list[str]) -> bool:
    return shutil.which(option[0]) is not None and subprocess.run([*option, "true"], check=False).returncode == 0


@pytest.fixture(scope="module")
def seen(walk: Path) -> dict[str, Any]:
    """What was seen on it: `tests.e2e.secluded.Seen`."""
    found: dict[str, Any] = json.loads((walk / "seen.json").read_text())
    assert {(call["route"], call["format"]) for call in found["calls"]} >= {
        (route, form) for form in FORMATS for route in CALLS[form]
    }
    assert [call for call in found["calls"] if call["body"]["code"] != 0] == []
    return found


def leaves(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a JSON value with the key it stands under."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from leaves(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, key)
    elif isinstance(value, str):
        yield key, value


def urls(call: dict[str, Any]) -> list[str]:
    """Of every picture in an answer."""
    return [text for key, text in leaves(call["body"]) if key.endswith("image_url")]


def kinds(png: bytes) -> set[bytes]:
    """Of all chunks of a PNG file, to whose end nothing is added."""
    assert png.startswith(_PNG_MAGIC)
    found, at = set(), len(_PNG_MAGIC)
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        found.add(kind)
        at += 12 + length
    return found


@pytest.mark.models
@pytest.mark.timeout(WALK_TIMEOUT_S + 20)
class TestWalk:
    """One photo with every tag a phone writes, in six formats, through seven calls and two growth backends."""

    def test_nothing_appears_on_a_disk_but_pictures_and_the_request_log(self, walk: Path, seen: dict[str, Any]) -> None:
        assert [name for name in set(seen["files"]) if not _OWN_FILES.fullmatch(name)] == []
        opened = {line["path"] for line in seen["opened"]} - {"/dev/null"}
        place = f"{walk / 'place'}/"
        assert [path for path in opened if not _OWN_FILES.fullmatch(path.removeprefix(place))] == []
        pictures = {path.name for path in walk.glob("place/service*/pictures/*")}
        assert pictures == {urlsplit(url).path.rpartition("/")[2] for call in seen["calls"] for url in urls(call)}
        assert len(pictures) > len(ROUTES)

    def test_nothing_of_a_photo_is_held_when_its_answer_is_there(self, seen: dict[str, Any]) -> None:
        """Neither a deleted file that is still open, nor the memory through which rare formats are decoded."""
        assert seen["held"] == []

    def test_no_tag_of_the_photo_and_no_file_name_is_anywhere(self, walk: Path, seen: dict[str, Any]) -> None:
        marks = (MARK.encode(), MARK.encode("utf-16-be"), MARK.encode("utf-16-le"))
        files = [path for path in (walk / "place").rglob("*") if path.is_file()]
        assert [path for path in files if any(mark in path.read_bytes() for mark in marks)] == []
        assert MARK not in json.dumps([seen["lines"], seen["calls"], seen["files"], seen["opened"]])

    def test_operators_are_shown_nothing_of_a_photo_nor_where_its_pictures_are(self, seen: dict[str, Any]) -> None:
        shown = json.dumps(seen["shown"])
        assert "DEADLINE" in seen["shown"]["/console/state"], "what failed is shown"
        assert MARK not in shown
        assert [url for call in seen["calls"] for url in urls(call) if urlsplit(url).path[-52:-4] in shown] == []

    def test_pictures_are_pixels_and_nothing_else(self, walk: Path, seen: dict[str, Any]) -> None:
        grown = [url for call in seen["calls"] if call["route"] in SLOW for url in urls(call)]
        assert len(grown) > 2 * len(SLOW)
        for path in walk.glob("place/service*/pictures/*"):
            assert kinds(path.read_bytes()) == _PIXELS_ALONE, path

    def test_a_diffusion_server_is_given_pixels_and_nothing_else(self, seen: dict[str, Any]) -> None:
        sent = [bytes.fromhex(text) for text in seen["sent_out"]]
        assert len(sent) >= 2 * len(SLOW)
        assert [kinds(data) for data in sent if not kinds(data) <= _PIXELS_ALONE] == []

    def test_as_it_comes_the_edge_speaks_to_its_workers_and_nobody_speaks_to_anybody_else(
        self, seen: dict[str, Any]
    ) -> None:
        if seen["left"] is None:
            pytest.skip("needs a network of its own (unshare --net), which is refused here")
        assert {name: count for name, count in seen["left"].items() if count} == {}
        assert set(seen["ports"]) == set(seen["known_ports"])

    def test_words_are_in_the_language_asked_for(self, seen: dict[str, Any]) -> None:
        """And whatever is no word is a name that programs branch on."""
        words: dict[str, set[str]] = {"zh": set(), "en": set()}
        for call in seen["calls"]:
            for key, text in leaves(call["body"]):
                chinese = bool(re.search("[\u3400-\u9fff]", text))
                if key in _CITED or key in _VERSIONS:
                    assert not chinese, (key, text)
                elif chinese or not _NAME.fullmatch(text):
                    assert chinese == (call["lang"] == "zh"), (key, text)
                    words[call["lang"]].add(key)
        assert words["zh"] >= {"text", "style_text"}
        assert words["en"] >= {"text", "style_text"}


async def test_pictures_go_with_age_and_at_once_when_that_is_asked(mesh: Service) -> None:
    """Whoever has the URLs: gone for them, gone from the folder."""
    mesh.add_worker()
    await mesh.start(admin_tokens=[ADMIN_TOKEN], static={"dir": str(mesh.pictures), "max_age_hours": 2})
    answers = [await mesh.client.post(HAIRLINES_ROUTE, files={"image": photo()}) for _ in range(3)]
    old, young, unwanted = (urls({"body": each.json()}) for each in answers)
    assert all(len(named) > 1 for named in (old, young, unwanted))

    path = f"/api/v1/requests/{answers[2].json()['request_id']}/pictures"
    assert (await mesh.client.delete(path)).status_code == 401
    assert await statuses(mesh, unwanted) == {200}
    assert (await mesh.client.delete(path, headers=ADMIN)).json()["code"] == 0
    assert await statuses(mesh, unwanted) == {404}
    assert await statuses(mesh, old + young) == {200}

    await mesh.edge.end()  # the first sweep after a start comes at once
    for url in old:
        os.utime(mesh.pictures / Path(urlsplit(url).path).name, times=(time.time() - 2.1 * HOUR_S,) * 2)
    mesh.edge.forget()
    await mesh.start_edge(static={"dir": str(mesh.pictures), "max_age_hours": 2})
    await mesh.until(urlsplit(old[-1]).path, lambda answer: answer.status_code == 404)
    await mesh.until(urlsplit(old[0]).path, lambda answer: answer.status_code == 404)
    assert await statuses(mesh, young) == {200}
    left = {path.name for path in mesh.pictures.glob("*.png")}
    assert left == {Path(urlsplit(url).path).name for url in young}


async def statuses(mesh: Service, pictures: list[str]) -> set[int]:
    """What the edge answers for each of these URLs."""
    answers = await asyncio.gather(*(mesh.client.get(url) for url in pictures))
    return {answer.status_code for answer in answers}
