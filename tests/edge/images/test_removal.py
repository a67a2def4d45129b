"""`DELETE …/pictures` and shared stores, over HTTP, with more than one edge."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from edge.images.local import LocalStore
from tests.e2e.small_disk import SmallDisk
from tests.edge.rest import ANNOTATED, FakeMesh, Rest, eventually, serving
from tests.fakes.s3 import S3Server

TOKEN = "an-admin-token-of-mine"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}


def path(request_id: str) -> str:
    return f"/api/v1/requests/{request_id}/pictures"


async def asked(rest: Rest, request_id: str) -> httpx.Response:
    response: httpx.Response = await rest.measure(headers={"X-Request-ID": request_id})
    return response


async def picture_of(rest: Rest, request_id: str) -> str:
    """Where the picture of a new request is, without the edge's address."""
    response = await asked(rest, request_id)
    assert response.status_code == 200, response.text
    return "/static" + str(response.json()["data"]["annotated_image_url"]).partition("/static")[2]


async def removed(rest: Rest, request_id: str) -> int:
    response = await rest.client.delete(path(request_id), headers={**ADMIN, "X-Request-ID": "the-removal"})
    body = response.json()
    assert (response.status_code, body["code"], body["request_id"]) == (200, 0, "the-removal"), body
    return int(body["data"]["removed"])


async def test_they_are_gone_at_once_and_only_they(tmp_path: Path, mesh: FakeMesh) -> None:
    async with serving(tmp_path, mesh, admin_tokens=[TOKEN]) as rest:
        gone, kept = await picture_of(rest, "visit-1"), await picture_of(rest, "visit-2")
        assert await removed(rest, "visit-1") == 1
        assert (await rest.client.get(gone)).status_code == 404
        assert (await rest.client.get(kept)).content == ANNOTATED
        assert await removed(rest, "visit-1") == 0
        await rest.stop()
        lines = [line for line in rest.log_lines() if line["method"] == "DELETE"]
        assert {line["route"] for line in lines} == {"/api/v1/requests/{request_id}/pictures"}


async def test_a_new_request_with_the_same_id_has_its_picture_at_once(tmp_path: Path, mesh: FakeMesh) -> None:
    async with serving(tmp_path, mesh, admin_tokens=[TOKEN]) as rest:
        for _ in range(3):
            url = await picture_of(rest, "visit-1")
            assert (await rest.client.get(url)).content == ANNOTATED
            await eventually((tmp_path / "pictures" / url.rpartition("/")[2]).exists)
            assert (await rest.client.get(url)).content == ANNOTATED
            assert await removed(rest, "visit-1") == 1


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer another-token-of-16"},
        {"X-Internal-Token": "loopback-secret"},
        {"Authorization": f"Basic {TOKEN}"},
    ],
)
async def test_without_an_admin_token_nothing_goes(tmp_path: Path, mesh: FakeMesh, headers: dict[str, str]) -> None:
    async with serving(tmp_path, mesh, admin_tokens=[TOKEN]) as rest:
        url = await picture_of(rest, "visit-1")
        refused = await rest.client.delete(path("visit-1"), headers=headers)
        body = refused.json()
        assert (refused.status_code, body["code"], body["data"]["reason"]) == (401, 1008, "UNAUTHORIZED")
        assert refused.headers["www-authenticate"] == "Bearer"
        assert (await rest.client.get(url)).status_code == 200


async def test_where_no_token_is_configured_nobody_may(rest: Rest) -> None:
    assert (await rest.client.delete(path("r"), headers={"X-Admin-Token": ""})).status_code == 401
    assert (await rest.client.delete(path("r"))).status_code == 401


@pytest.mark.parametrize("name", ["a" * 65, "a%20b", "%2e%2e%5cx", "%00", "r%C3%A9", "*"])
async def test_what_is_no_request_id_is_refused(tmp_path: Path, mesh: FakeMesh, name: str) -> None:
    async with serving(tmp_path, mesh, admin_tokens=[TOKEN]) as rest:
        refused = await rest.client.delete(path(name), headers=ADMIN)
        assert (refused.status_code, refused.json()["data"]["details"]["field"]) == (400, "request_id")


async def test_other_methods_are_refused_in_the_envelope(rest: Rest) -> None:
    refused = await rest.client.get(path("r"))
    assert (refused.status_code, refused.headers["allow"], refused.json()["code"]) == (405, "DELETE", 1008)


@pytest.fixture(params=["folder", "s3"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The section of edges that share a store."""
    if request.param == "s3":
        return {"store_url": request.getfixturevalue("store_url")}
    return {"dir": str(tmp_path / "pictures"), "shared": True}


async def test_edges_that_share_a_store_serve_and_remove_each_others_pictures(
    tmp_path: Path, mesh: FakeMesh, shared: dict[str, Any]
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    sections: dict[str, Any] = {"static": shared, "admin_tokens": [TOKEN]}
    async with serving(tmp_path / "a", mesh, **sections) as here, serving(tmp_path / "b", mesh, **sections) as there:
        urls = [await picture_of(here, "visit-1") for _ in range(3)]
        for url in urls:  # in the moment its answer has arrived
            served = await there.client.get(url)
            assert (served.status_code, served.content) == (200, ANNOTATED)
            assert served.headers["cache-control"] == "private, no-store"
        assert await removed(there, "visit-1") == 3
        for url in urls:
            assert (await here.client.get(url)).status_code == 404


def refused_as_removed(response: httpx.Response) -> None:
    """Refused, in words that no program takes for an invitation to bring them back."""
    body = response.json()
    assert (response.status_code, body["code"], body["data"]["reason"]) == (409, 1008, "PICTURES_REMOVED")
    assert "retry-after" not in response.headers
    assert body["data"]["details"] == {}


async def test_a_request_that_still_runs_leaves_nothing_on_any_edge(
    tmp_path: Path, mesh: FakeMesh, shared: dict[str, Any]
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    sections: dict[str, Any] = {"static": shared, "admin_tokens": [TOKEN]}
    mesh.gate = asyncio.Event()
    async with serving(tmp_path / "a", mesh, **sections) as here, serving(tmp_path / "b", mesh, **sections) as there:
        running = asyncio.create_task(asked(here, "visit-1"))
        await mesh.called.wait()
        assert await removed(there, "visit-1") == 0
        mesh.gate.set()
        refused_as_removed(await running)
        assert not list(tmp_path.rglob("*.png"))
        assert await removed(there, "visit-1") == 0
        refused_as_removed(await asked(there, "visit-1"))  # whose clock is not behind, nobody knows
        url = await picture_of(there, "visit-2")
        assert (await here.client.get(url)).content == ANNOTATED


async def test_storage_that_is_frozen_makes_the_edge_unready_and_is_waited_for_by_nobody(
    tmp_path: Path, mesh: FakeMesh, s3: S3Server, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge.images.sweeper.PROBE_EVERY_S", 0.05)
    async with serving(tmp_path, mesh, static={"store_url": store_url}, admin_tokens=[TOKEN]) as rest:
        url = await picture_of(rest, "visit-1")
        assert (await rest.client.get("/readyz")).status_code == 200
        with s3.frozen():
            monkeypatch.setattr("edge.images.objects.IO_TIMEOUT_S", 0.3)
            refused = await rest.measure()
            body = refused.json()
            assert (refused.status_code, body["code"], body["data"]["reason"]) == (503, 1007, "STORE_FAILED")
            assert int(refused.headers["retry-after"]) >= 1
            ready = await rest.client.get("/readyz")
            assert (ready.status_code, ready.json()["picture_store_writable"]) == (503, False)
            assert (await rest.client.get("/monitor")).status_code == 200
            picture = await rest.client.get(url)
            assert (picture.status_code, picture.headers["retry-after"]) == (503, "10")
            removal = await rest.client.delete(path("visit-1"), headers=ADMIN)
            assert (removal.status_code, removal.json()["data"]["reason"]) == (503, "STORE_FAILED")
        monkeypatch.setattr("edge.images.objects.IO_TIMEOUT_S", 60.0)
        async with asyncio.timeout(60):  # by itself: the next probe
            while (await rest.client.get("/readyz")).status_code != 200:
                pass
        assert (await rest.measure()).status_code == 200
        assert await removed(rest, "visit-1") == 1


async def test_on_a_full_disk_pictures_can_be_removed_and_there_is_room_again(
    tmp_path: Path, mesh: FakeMesh, disk: SmallDisk
) -> None:
    mesh.response.annotated_image.data = bytes(200_000)  # type: ignore[attr-defined]
    async with serving(tmp_path, mesh, static={"dir": str(disk.path / "p")}, admin_tokens=[TOKEN]) as rest:
        for _ in range(2):
            await picture_of(rest, "visit-1")
        await eventually(lambda: len(list((disk.path / "p").glob("*.png"))) == 2)
        disk.fill()
        # Some are promised, and served from memory, until a write has failed.
        async with asyncio.timeout(60):
            while (answer := await rest.measure()).status_code == 200:
                pass
        assert answer.json()["data"]["reason"] == "STORE_FULL"
        assert await removed(rest, "visit-1") == 2
        assert (await rest.measure()).status_code == 200
        assert not list((disk.path / "p").glob("*.tmp"))


async def test_a_picture_that_is_being_served_arrives_whole_though_it_is_removed(
    tmp_path: Path, mesh: FakeMesh
) -> None:
    """Its reader is slow: more than the sockets' buffers hold is still to come when it goes."""
    size = 30_000_000
    mesh.response.annotated_image.data = bytes(size)  # type: ignore[attr-defined]
    async with serving(tmp_path, mesh, admin_tokens=[TOKEN]) as rest:
        url = await picture_of(rest, "visit-1")
        await eventually(lambda: len(list((tmp_path / "pictures").glob("*.png"))) == 1)
        async with rest.client.stream("GET", url) as response:
            chunks = response.aiter_bytes(65_536)
            received = len(await anext(chunks))
            assert await removed(rest, "visit-1") == 1
            assert (await rest.client.get(url)).status_code == 404
            received += sum([len(chunk) async for chunk in chunks])
        assert received == size


async def test_a_picture_that_is_being_written_is_not_there_afterwards(
    tmp_path: Path, mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer has been given, its picture is served from memory, and the disk is slow."""
    began, gate = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    write = LocalStore._write

    def slow(store: LocalStore, picture_id: str, data: bytes, began_s: float) -> None:
        loop.call_soon_threadsafe(began.set)
        asyncio.run_coroutine_threadsafe(gate.wait(), loop).result(60)
        write(store, picture_id, data, began_s)

    monkeypatch.setattr(LocalStore, "_write", slow)
    async with serving(tmp_path, mesh, admin_tokens=[TOKEN]) as rest:
        url = await picture_of(rest, "visit-1")
        await began.wait()
        assert (await rest.client.get(url)).status_code == 200
        assert await removed(rest, "visit-1") == 1
        assert (await rest.client.get(url)).status_code == 404
        gate.set()
        later = await picture_of(rest, "visit-2")
        await eventually((tmp_path / "pictures" / later.rpartition("/")[2]).exists)
        assert (await rest.client.get(url)).status_code == 404
    assert len(list((tmp_path / "pictures").glob("*.png"))) == 1
