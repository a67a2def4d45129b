"""Parameters as programs have them, and functions that cannot be called."""

from __future__ import annotations

import asyncio
import os
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest

from hairmesh.client import AsyncClient, Client
from hairmesh.client.options import GrowCall, form_fields
from tests.edge.rest import PHOTO
from tests.hairmesh.client.scripted import SPECIAL, Reply, Server, refused

BEGUN = Reply(200, {"content-type": "text/event-stream"}, b'event: queued\ndata: {"position":2,"attempt":1}\n\n')


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ([(1, 2), (3.5, 4)], "[[1, 2], [3.5, 4]]"),
        ([[1, 2], [3.5, 4]], "[[1, 2], [3.5, 4]]"),
        (np.array([[1, 2], [3.5, 4]]), "[[1.0, 2.0], [3.5, 4.0]]"),
        (np.array([[1, 2], [3, 4]], np.int16), "[[1, 2], [3, 4]]"),
        ([np.array([1, 2]), (np.float32(0.5), Decimal("1.5"))], "[[1, 2], [0.5, 1.5]]"),
        (zip((1, 3), (2, 4), strict=True), "[[1, 2], [3, 4]]"),
        (np.float32(63.5), "63.5"),
        (np.float64(63.5), "63.5"),
        (np.int64(7), "7"),
        (np.bool_(False), "false"),
        (Decimal("63.5"), "63.5"),
        (np.array(["round", "m"]), "round,m"),
    ],
)
def test_numbers_and_lists_of_any_kind(value: object, sent: str) -> None:
    assert form_fields({"parameter": value}) == ({"parameter": sent}, {})


@pytest.mark.parametrize("value", [object(), [object()], [[1, 1j]], 1j])
def test_what_cannot_be_sent_is_named(server: Server, client: Client, value: Any) -> None:
    with pytest.raises(TypeError, match=r"^region: nothing that can be sent: (object|complex)$"):
        client.grow(PHOTO, region=value)
    assert server.seen == []


def test_bytes_that_are_no_text_are_named(server: Server, client: Client) -> None:
    with pytest.raises(ValueError, match=r"^styles: bytes"):
        client.hairlines(PHOTO, styles=["m", os.fsdecode(b"\xff")])
    assert server.seen == []


def test_a_region_is_typed_as_programs_have_it() -> None:
    """Held by mypy."""
    array: np.ndarray[Any, np.dtype[np.float64]] = np.zeros((3, 2))
    regions: list[GrowCall] = [{"region": [(1, 2)]}, {"region": [[1, 2.5]]}, {"region": array}]
    assert len(regions) == 3


class Told:
    """An object that is called."""

    async def __call__(self, *_: object) -> None:
        raise AssertionError


async def told(*_: object) -> None:
    raise AssertionError


@pytest.mark.parametrize("callback", [told, partial(told, 1), Told(), asyncio.Queue().put])
async def test_a_function_that_would_have_to_be_awaited_is_refused_at_once(server: Server, callback: Any) -> None:
    async with AsyncClient(server.url) as client:
        for name, call in (
            ("on_progress", client.styles(PHOTO, on_progress=callback)),
            ("on_wait", client.measure(PHOTO, on_wait=callback)),
            ("on_wait", client.picture("/static/annotations/1.png", on_wait=callback)),
        ):
            with pytest.raises(TypeError, match=f"{name} is an ordinary function"):
                await call
    with Client(server.url) as client, pytest.raises(TypeError, match="on_progress is"):
        client.styles(PHOTO, on_progress=callback)
    assert server.seen == []


async def test_a_coroutine_that_comes_out_of_an_ordinary_function_is_not_lost(server: Server) -> None:
    def hidden(*said: object) -> Any:
        return told(*said)

    async with AsyncClient(server.url) as client:
        server.replies = [BEGUN]
        with pytest.raises(TypeError, match="on_progress is"):
            await client.styles(PHOTO, on_progress=hidden)
        server.replies = [refused(1007, "BUSY", retry_after_s=1), SPECIAL]
        with pytest.raises(TypeError, match="on_wait is"):
            await client.special_points(PHOTO, on_wait=hidden)
