"""Whatever answers, and however: a `HairMeshError` or an answer, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hairmesh.client import AsyncClient, Client, HairMeshError, NotAnEnvelopeError, UnexpectedAnswerError
from hairmesh.client.core import (
    FEATURES,
    GROW,
    HAIRLINES,
    MASKS,
    MEASURE,
    SPECIAL_POINTS,
    STYLES,
    Call,
    answer_of,
)
from hairmesh.client.pictures import pictures
from hairmesh.client.reply import Reply
from tests.edge.rest import PHOTO
from tests.hairmesh.client.scripted import SPECIAL, Server, envelope
from tests.hairmesh.client.scripted import Reply as Scripted

GARBLED = Scripted(200, {"content-encoding": "gzip"}, b"not gzip")
EVENTS = {"content-type": "text/event-stream"}
PICTURE = "/static/annotations/SENTINEL.png"


async def test_an_answer_that_is_not_compressed_as_it_says(server: Server, client: Client, tmp_path: Path) -> None:
    server.replies = [GARBLED]
    asks: list[Callable[[], object]] = [
        lambda: client.measure(PHOTO),
        lambda: client.styles(PHOTO, on_progress=print),
        lambda: client.picture(PICTURE),
        lambda: client.save_picture(PICTURE, tmp_path / "a.png"),
        lambda: client.remove_pictures("r-1", admin_token="t"),
    ]
    for ask in asks:
        with pytest.raises(UnexpectedAnswerError, match="compressed"):
            ask()
    async with AsyncClient(server.url) as asynchronous:
        for awaited in (asynchronous.measure(PHOTO), asynchronous.picture(PICTURE)):
            with pytest.raises(UnexpectedAnswerError, match="compressed"):
                await awaited
    assert len(server.seen) == len(asks) + 2, "none is sent again"
    assert list(tmp_path.iterdir()) == []


def test_an_event_whose_name_is_no_text_is_passed_over(server: Server, client: Client) -> None:
    result = b"event: result\ndata: " + envelope(0, results=[]) + b"\n\n"
    server.replies = [Scripted(200, EVENTS, b"event: \xff\xfe\ndata: {}\n\n" + result)]
    with pytest.raises(UnexpectedAnswerError, match="GrownStyles"):
        client.styles(PHOTO, on_progress=print)


@pytest.mark.parametrize(
    "content",
    [
        b'{"code": Infinity, "message": "", "request_id": "", "data": {}}',
        b'{"code": 0, "message": "", "request_id": "", "data": {"points": ' + b"[" * 500 + b"]" * 500 + b"}}",
        b"[" * 100_000,
        b'{"code": 0, "message": "", "request_id": "", "data": [1]}',
        b'{"code": 1008, "message": "", "request_id": "", "data": {"reason": 5, "details": "all"}}',
    ],
)
def test_json_that_is_none_of_ours(server: Server, client: Client, content: bytes) -> None:
    for reply in (Scripted(200, {}, content), Scripted(200, EVENTS, b"event: result\ndata: " + content + b"\n\n")):
        server.replies = [reply]
        with pytest.raises(NotAnEnvelopeError):
            client.styles(PHOTO, on_progress=print)


def test_a_number_that_is_too_large(server: Server, client: Client) -> None:
    large = SPECIAL.content.replace(b"2.5", b"1" + b"0" * 400)
    server.replies = [Scripted(200, {}, large)]
    with pytest.raises(UnexpectedAnswerError, match=r"points.menton.y_px: float expected"):
        client.special_points(PHOTO)


NO_ADDRESSES = [
    "http://face.example:x/x.png",
    "ftp://face.example/x.png",
    f"http://{'a' * 64}.example/x.png",
    "http://a\0b/",
]


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_a_pictures_address_that_is_none(server: Server, client: Client, address: str, tmp_path: Path) -> None:
    with pytest.raises(UnexpectedAnswerError, match="address"):
        client.picture(address)
    answer = client.special_points(PHOTO)
    answer.raw["annotated_image_url"] = address  # type: ignore[index]
    with pytest.raises(UnexpectedAnswerError, match="address"):
        client.save_pictures(answer, tmp_path)
    assert len(server.seen) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "address", ["http://face.example:x", f"https://{'a' * 64}.example", "http://face..example", "http://a\nb"]
)
def test_an_edges_address_that_is_none(address: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(ValueError, match="url must"):
            kind(address)


def test_no_name_of_a_picture_leads_out_of_its_folder() -> None:
    urls = {f"{name}image_url": "u" for name in ("../../x_", "/etc/x_", "a\0_", "x" * 300, "a/b_", "annotated_", "")}
    assert pictures({**urls, "results": [{"style": "../x", "image_url": "u"}]}) == {
        "annotated": "u",
        "picture": "u",
        "1": "u",
    }


WORDS = "code message request_id data reason details retry_after_s advice results points face"
NAMES = st.sampled_from(tuple(WORDS.split(" ")))
JSON: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**400),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(NAMES | st.text(max_size=4), inside, max_size=4),
    max_leaves=12,
)
ENVELOPES = st.fixed_dictionaries(
    {"code": st.sampled_from([0, 1001, 1008, 7]) | JSON, "message": JSON, "request_id": JSON, "data": JSON}
)
BODIES = st.binary(max_size=60) | (JSON | ENVELOPES).map(json.dumps).map(str.encode)


CALLS: list[Call[Any]] = [MEASURE, STYLES, GROW, FEATURES, HAIRLINES, MASKS, SPECIAL_POINTS]


@given(
    body=BODIES,
    name=st.sampled_from([b"result", b"queued", b"progress", b"\xff"]),
    stream=st.booleans(),
    status=st.sampled_from([200, 400, 502, 503]),
    told=st.none() | st.text(st.characters(codec="latin-1", exclude_characters="\r\n\0")),
)
def test_whatever_comes_is_an_answer_or_an_error_of_ours(
    body: bytes, name: bytes, stream: bool, status: int, told: str | None
) -> None:
    headers = (EVENTS if stream else {}) | ({} if told is None else {"retry-after": told})
    sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    response = httpx.Response(status, headers=sent, request=httpx.Request("POST", "http://face.example/api/"))
    for call in CALLS:
        reply = Reply(response, lambda: None, print if stream else None)
        with suppress(HairMeshError):
            reply.feed(b"event: " + name + b"\ndata: " + body + b"\n\n" if stream else body)
            assert answer_of(call, reply.envelope()).pictures is not None
