"""Whom `hairmesh status` gives the token, and what it takes from whoever answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from edge.openapi_admin import POOL_EXAMPLE
from hairmesh import status

TOKEN = "SENTINEL-admin-token"
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(status.TOKEN_VARIABLE, TOKEN)


def once(url: str, folder: Path, **options: Any) -> int:
    return status.run(url, None, once=True, as_json=False, interval_s=1.0, out=folder, **options)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:SENTINEL@127.0.0.1:1",
        "https://SENTINEL@face.example",
        "user:SENTINEL@127.0.0.1:1",
        "http://127.0.0.1:1/?token=SENTINEL",
        "http://127.0.0.1:1/#SENTINEL",
    ],
)
def test_a_url_that_may_hold_a_secret_is_refused_and_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    assert once(url, tmp_path) == 64
    said = capsys.readouterr()
    assert said.err.startswith("status: the URL: no user name")
    assert "SENTINEL" not in said.err + said.out


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1:1", "http://face.example", "http://[2001:db8::1]:1", "http://0.0.0.0:1"]
)
def test_no_token_over_a_network_in_plain_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    asked: list[str] = []

    def noting(asker: status.Asker) -> dict[str, Any]:
        asked.append(asker.url)
        return POOL_EXAMPLE

    monkeypatch.setattr(status.Asker, "ask", noting)
    assert once(url, tmp_path) == 64
    assert "plain text: use https://, or allow it with --insecure" in capsys.readouterr().err
    assert asked == []
    assert once(url, tmp_path, insecure=True) == 1
    for fine in ("http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1", "https://face.example"):
        assert once(fine, tmp_path) == 1
    assert len(asked) == 5


@asynccontextmanager
async def answering(answer: Answer) -> Any:
    """The URL of a server that answers whatever it hears with this; and what it hears."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        try:
            await answer(writer)
        except ConnectionError:  # the asker has had enough
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


async def _drips_body(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\n \r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


async def _drips_head(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD)
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def _says_nothing(writer: asyncio.StreamWriter) -> None:
    await writer.wait_closed()


async def _never_ends(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 65_536 + b"\r\n")
        await writer.drain()


async def _nests(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"content-length: 100000\r\n\r\n" + b"[" * 100_000)


async def _refuses_with_commands(writer: asyncio.StreamWriter) -> None:
    body = json.dumps({"message": "\x1b[2J\x1b]0;x\x07\nstatus: all is well" + "x" * 10_000}).encode()
    writer.write(b"HTTP/1.1 401 U\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (_drips_body, "no answer within"),
        (_drips_head, "no answer within"),
        (_says_nothing, "no answer within"),
        (_never_ends, "is no edge: more than"),
        (_nests, "is no edge"),
        (_refuses_with_commands, r"refused: \x1b[2J"),
    ],
)
async def test_whatever_answers_a_look_ends_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: Answer, words: str
) -> None:
    quickly = "within" in words
    monkeypatch.setattr(status, "TIMEOUT_S", 0.5 if quickly else 60.0)
    monkeypatch.setattr(status, "MAX_BODY_BYTES", 1_000_000)
    async with answering(answer) as (url, heard), asyncio.timeout(50):
        assert await asyncio.to_thread(once, url, tmp_path) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert line.isprintable()
    assert len(line) < 600
    (request,) = heard
    assert f"authorization: bearer {TOKEN}".lower() in request.decode().lower()
