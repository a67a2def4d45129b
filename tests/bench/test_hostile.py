"""The bench of hostile requests sees what it is to see; and a share of its requests against an edge without workers."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest
import structlog

from bench.hostile import SILENT, Seen, Watched, fire, marks_in, storm
from bench.hostile_requests import MARK, Arsenal, Shot
from tests.edge.documented import talkative_edge

WHOLE = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("ahead", range(4))
def test_a_mark_is_found_in_whatever_base64_it_is_part_of(ahead: int) -> None:
    text = base64.b64encode(bytes(ahead) + MARK + b"000123 and more")
    assert 0 < marks_in(b"..." + text) <= len(text)
    assert marks_in(base64.b64encode(bytes(ahead) + MARK[:-3])) == 0


def test_a_mark_is_found_as_it_is_and_in_json() -> None:
    assert marks_in(json.dumps({"\0": f"x{MARK.decode()}000001"}).encode() + MARK) == 2 * len(MARK)


def test_the_same_seed_makes_the_same_requests_and_others_make_others() -> None:
    first, again, other = ([arsenal.shot() for _ in range(300)] for arsenal in (Arsenal(3), Arsenal(3), Arsenal(4)))
    assert first == again != other
    assert set(Counter(shot.group for shot in first)) == set(Arsenal(3).groups)
    marked = [shot for shot in first if marks_in(shot.wire)]
    assert len(marked) > 0.8 * len(first), "most carry a mark"


@pytest.mark.parametrize(
    ("answer", "statuses"),
    [
        (WHOLE, {"400": 1}),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 Oh\r\n\r\n", {"500": 1}),
        (WHOLE + b"HTTP/1.1 503 No\r\n\r\n" + WHOLE, {"503": 1}),
        (b"", {"closed": 1}),
        (None, {SILENT: 1}),
    ],
)
def test_what_became_of_a_request(answer: bytes | None, statuses: dict[str, int]) -> None:
    seen = Seen()
    seen.note(Shot("x", b""), answer)
    assert seen.by_group["x"] == statuses
    assert seen.leaked_bytes == 0


def test_busy_is_told_from_broken() -> None:
    seen = Seen()
    for status, reason in (
        (503, "BUSY"),
        (504, "DEADLINE"),
        (503, "WORKER_FAILED"),
        (503, "EDGE_FAILED"),
        (400, "YAW"),
    ):
        seen.note(
            Shot("x", b""), f'HTTP/1.1 {status} X\r\n\r\n{{"reason":"{reason}","mark":"{MARK.decode()}"}}'.encode()
        )
    assert (seen.statuses("5"), seen.busy()) == (4, 2)
    assert seen.leaked_bytes == 5 * len(MARK)


def test_growth_leaves_out_the_warm_up_and_single_peaks() -> None:
    watched = Watched({"edge": 1})
    watched.sizes_mb["edge"] = [*range(20), *[100.0] * 20, *[100.0] * 19, 900.0, *[100.0] * 20, *[103.0] * 20]
    assert watched.growth_mb() == {"edge": 3.0}


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ([WHOLE], WHOLE),  # and the connection stays open
        ([WHOLE[:20], WHOLE[20:]], WHOLE),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", WHOLE], b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE),
        ([b""], b""),
    ],
)
async def test_an_answer_is_read_until_it_is_whole_or_its_connection_ends(said: list[bytes], found: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(5)
        for each in said:
            writer.write(each)
            await writer.drain()
        if found:
            with suppress(ConnectionError):
                await reader.read()  # until the other end has what it wants
        writer.close()
        over.set()

    over = asyncio.Event()
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await fire(port, Shot("x", b"hello")) == found
        await over.wait()


async def test_several_answers_on_one_connection_are_all_read() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(5)
        writer.write(WHOLE)
        await writer.drain()
        writer.write(WHOLE)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await fire(port, Shot("x", b"hello", to_the_end=True)) == WHOLE * 2


async def test_an_edge_answers_them_all_and_says_nothing_of_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen, arsenal = Seen(), Arsenal(11)
    with structlog.testing.capture_logs() as logs:
        async with talkative_edge(tmp_path) as edge:
            await storm(edge.port, arsenal, 300, Watched({}), seen)
            assert (await edge.client.get("/livez")).status_code == 200
            await edge.stop()
            log = edge.settings.request_log.path.read_text()
    said = "".join(capfd.readouterr()) + json.dumps(logs, default=repr) + log
    assert (seen.statuses("5"), seen.statuses(SILENT)) == (0, 0), seen.reasons
    assert (seen.leaked_bytes, marks_in(said.encode())) == (0, 0), seen.leaks
    assert sum(sum(answers.values()) for answers in seen.by_group.values()) == 300
    assert all(list(islice(answers, 1)) for answers in seen.by_group.values())
