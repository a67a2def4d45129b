"""The bench of overload on a small scale, without its timing: what has to hold however busy the machine is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from bench import overload
from bench.overload_clients import DRESSES
from bench.overload_monitor import EVERY_S, Answers, ask_for
from edge.base64_text import decoded


async def test_in_overload_monitor_answers_and_so_does_every_request(tmp_path: Path) -> None:
    photos = overload.portraits(tmp_path, count=1, side_px=1000, size=300_000)

    limits = {"max_body_bytes": 1_000_000, "max_uploading_bytes": 2_000_000}
    with overload.fake_workers(tmp_path, call_s=0.05, picture_bytes=50_000, limits=limits) as served:
        found = await overload.measure(served, photos, clients=30, seconds=1.0)
    assert found.monitor.statuses == {200}
    assert len(found.monitor.taken_s) == len(found.beside.taken_s) == 20
    assert found.clients["problems"] == {}
    assert found.clients["unanswered"] == 0
    assert found.clients["requests"] == sum(found.clients["by_status"].values()) >= 30
    assert found.clients["by_status"].keys() <= {"200", "503"}
    assert len(found.clients["good_s"]) == found.clients["by_status"]["200"] > 0


async def test_a_stall_is_found_by_all_who_would_have_come_meanwhile() -> None:
    """Until the tenth asks nobody is answered: each one before it waits for the rest of that time."""
    looks, open_again = iter(range(20)), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await open_again.wait()
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    def look() -> None:
        if next(looks) == 10:
            open_again.set()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        answers = Answers(server.sockets[0].getsockname()[1])
        await ask_for(20 * EVERY_S, [answers], look)
    assert answers.statuses == {200}
    assert len(answers.taken_s) == 20
    waits_s = sorted(answers.taken_s, reverse=True)
    assert all(waits_s[number] >= (10 - number) * EVERY_S - 0.001 for number in range(10)), waits_s


def test_a_third_of_the_clients_send_json_and_all_the_same_photo() -> None:
    photo = bytes(range(256)) * 40
    uploads = [dress(photo) for dress in DRESSES]
    in_json = [json.loads(each.body)["image_base64"] for each in uploads if b"application/json" in each.head]
    assert len(in_json) * 3 == len(uploads)
    assert ["\n" in text for text in in_json] == [False, True]
    assert [b"".join(decoded(text)) for text in in_json] == [photo, photo]
    assert sum(photo in each.body for each in uploads) == 4
