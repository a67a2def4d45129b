"""A lone edge behind nginx that is restarted: what clients of every kind see meanwhile, and how ours gets through."""

from __future__ import annotations

import asyncio
import socket
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from edge.errors import SYSTEM, TABLE
from hairmesh.client import AsyncClient, HairMeshError, RefusedError, UnavailableError
from tests.deploy.proxy import Nginx, Site
from tests.edge.rest import MEASURE, PHOTO, STYLES
from tests.fakes.worker import FakeWorker

FORM = {"image": ("p.jpg", PHOTO)}


class Waits:
    """What a call is told of its further tries."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.told = defaultdict[str, asyncio.Event](asyncio.Event)

    def __call__(self, error: HairMeshError, _pause_s: float) -> None:
        """One more."""
        self.reasons.append(error.reason if isinstance(error, RefusedError) else type(error).__name__)
        self.told[self.reasons[-1]].set()


def client_of(nginx: Nginx) -> AsyncClient:
    """With more time for a restart than by default: this machine is busy."""
    return AsyncClient(nginx.url, authority=nginx.authority, unreachable_s=60)


def says(answer: httpx.Response, reason: str) -> None:
    """It is the envelope for that, whole, in the language asked for; and it says twice when to come back."""
    told, row = answer.json(), TABLE[reason]
    assert (answer.status_code, told["code"], told["data"]["reason"]) == (row.http_status, SYSTEM, reason)
    assert (told["message"], told["data"]["advice"]) == (row.message.en, "Please try again later.")
    assert told["data"]["details"] == {"retry_after_s": row.retry_after_s}
    assert answer.headers["retry-after"] == str(row.retry_after_s)
    assert answer.headers["x-request-id"] == told["request_id"]


async def test_a_restart_costs_our_client_time_and_others_an_envelope(tmp_path: Path, worker: FakeWorker) -> None:
    """One call is inside as the edge is killed, a fast and a slow one come while it is not there."""
    held = worker.hold()
    english = {"Accept-Language": "en"}
    async with Site(tmp_path, worker, 1) as site, client_of(site.nginx) as ours:
        inside, before, slow_before = Waits(), Waits(), Waits()
        lost = asyncio.create_task(ours.measure(PHOTO, on_wait=inside, lang="en"))
        await held.started.wait()
        site.edges[0].process.kill()
        await site.edges[0].process.wait()
        held.release.set()
        await inside.told["NO_EDGE"].wait()
        early = asyncio.create_task(ours.measure(PHOTO, on_wait=before))
        slow_early = asyncio.create_task(ours.styles(PHOTO, styles=["round"], on_wait=slow_before))
        await asyncio.gather(*(waits.told["NO_EDGE"].wait() for waits in (before, slow_before)))
        for route in (MEASURE, STYLES):
            says(await site.client.post(route, files=FORM, headers=english), "NO_EDGE")
        monitored = await site.client.get("/monitor", headers=english)
        assert (monitored.status_code, monitored.json()["message"]) == (503, TABLE["NO_EDGE"].message.en)
        await site.edges[0].restart()
        for call in (lost, early, slow_early):
            assert (await call).data is not None
        assert inside.reasons[0] == "EDGE_FAILED"
        assert {*inside.reasons[1:], *before.reasons, *slow_before.reasons} == {"NO_EDGE"}
    assert {line["refused"] for line in site.nginx.log()} == {"", "NO_EDGE", "EDGE_FAILED"}


async def test_a_slow_call_that_its_edge_took_along_is_not_made_again(tmp_path: Path, worker: FakeWorker) -> None:
    held = worker.hold()
    async with Site(tmp_path, worker, 2) as site, client_of(site.nginx) as ours:
        call = asyncio.create_task(ours.styles(PHOTO, request_id="slow"))
        await held.started.wait()
        site.edges[0].process.kill()  # the first request goes to the first edge
        with pytest.raises(UnavailableError, match="EDGE_FAILED"):
            await call
        held.release.set()
    assert [seen.metadata["x-request-id"] for seen in worker.seen].count("slow") == 1


@contextmanager
def deaf() -> Iterator[str]:
    """The address of a machine that answers no attempt to connect, as one that is off: its queue is full."""
    with ExitStack() as opened:
        listener = opened.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = opened.enter_context(socket.socket())
        waiting.connect(listener.getsockname())
        yield "127.0.0.1:{1}".format(*listener.getsockname())


@contextmanager
def mute() -> Iterator[str]:
    """The address of an edge that takes every call and answers none."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield "127.0.0.1:{1}".format(*listener.getsockname())


async def test_an_edge_that_cannot_be_reached_in_time_is_no_edge_and_a_late_answer_is_late(tmp_path: Path) -> None:
    """Both are timeouts for nginx; only after the second one somebody may have begun the call."""
    changes = {
        "proxy_read_timeout 1000s": "proxy_read_timeout 1s",
        "proxy_connect_timeout 2s": "proxy_connect_timeout 1s",
    }
    for number, (edge, reason) in enumerate(((deaf, "NO_EDGE"), (mute, "DEADLINE"))):
        with edge() as address:
            async with Nginx(tmp_path / f"{number}", address, changes=changes) as nginx, nginx.client() as client:
                says(await client.post(MEASURE, files=FORM, headers={"Accept-Language": "en"}), reason)
