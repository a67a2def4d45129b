"""Object storage that is away, frozen, or refuses; and what an object says of itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import obstore
import pytest
import structlog

from edge.images import objects
from edge.images.objects import ObjectStore, connect
from edge.images.opening import open_store
from edge.images.retention import Retention
from edge.images.store import StoreError, new_id
from edge.settings import ConfigError, Static
from tests.fakes.s3 import S3Server

KEEP = Retention(max_bytes=10_000, max_age_s=72 * 3600.0, min_age_s=600.0)
SECRET = "a-wrong-secret-key"


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[ObjectStore]:
    made = ObjectStore(connect(store_url), KEEP)
    await made.probe()
    assert made.writable
    yield made
    await made.close()


def below(store_url: str) -> str:
    return store_url.split("/", 3)[3]


async def test_an_object_says_what_it_is(store: ObjectStore, store_url: str) -> None:
    picture_id = new_id("r")
    await store.put({picture_id: b"x"}, time.monotonic())
    found = await obstore.get_async(connect(store_url), f"{picture_id[:16]}/{picture_id[16:]}.png")
    assert found.attributes["Content-Type"] == "image/png"
    assert found.attributes["Cache-Control"] == "private, no-store", "should the bucket be read by others"


async def test_a_sweep_touches_nothing_but_our_own(s3: S3Server, store: ObjectStore, store_url: str) -> None:
    foreign = {f"{below(store_url)}/notes.txt", f"{below(store_url)}/aaaaaaaaaaaaaaaa/index.html"}
    for key in foreign:
        s3.put(key, b"not ours")
    await store.put({new_id("r"): b"x"}, time.monotonic())
    await store.remove_request("another")
    await store.close()
    strict = ObjectStore(connect(store_url), Retention(max_bytes=10_000, max_age_s=-5.0, min_age_s=0.0))
    await strict.sweep()
    await strict.close()
    left = s3.keys(below(store_url))
    assert foreign < left
    assert {key.removeprefix(f"{below(store_url)}/").split("/")[0] for key in left - foreign} == {"removed", "probe"}


async def test_a_frozen_server_is_told_and_not_waited_for(
    s3: S3Server, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture_id, refused = new_id("r"), new_id("r")
    await store.put({picture_id: b"x"}, time.monotonic())
    monkeypatch.setattr(objects, "IO_TIMEOUT_S", 0.2)  # only now: before, a slow machine is not what is tested
    with s3.frozen(), structlog.testing.capture_logs() as said:
        for work in (
            store.put({refused: b"y"}, time.monotonic()),
            store.get(picture_id),
            store.remove([picture_id]),
            store.remove_request("r"),
        ):
            with pytest.raises(StoreError, match="did not answer within"):
                await work
        frozen = store.writable
    assert [line["event"] for line in said] == ["pictures_not_stored"]
    assert (frozen, store.figures.failures, store.figures.waiting) == (False, 1, 0)
    monkeypatch.setattr(objects, "IO_TIMEOUT_S", 60.0)
    await store.probe()
    assert store.writable
    assert await store.get(picture_id) == b"x"


async def test_one_that_is_not_there_is_named_and_heals(
    s3: S3Server, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    away = ObjectStore(connect(store_url), KEEP)
    with structlog.testing.capture_logs() as said:
        await asyncio.gather(away.probe(), away.sweep())
    assert not away.writable
    assert {line["event"] for line in said} == {"pictures_not_stored", "pictures_not_swept"}
    assert {line["problem"] for line in said} == {"object storage: Connection refused"}
    await away.close()


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({"AWS_SECRET_ACCESS_KEY": SECRET}, "403 SignatureDoesNotMatch"),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, "403 InvalidAccessKeyId"),
        ({"AWS_ALLOW_HTTP": "false"}, "plain HTTP is refused, unless AWS_ALLOW_HTTP (AZURE_, GOOGLE_) is true"),
        ({"AWS_ENDPOINT_URL": "http://no-such-host.invalid"}, "the name of its endpoint is not resolved"),
    ],
)
async def test_why_it_refuses_is_said_without_what_is_secret(
    store_url: str, environment: dict[str, str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    refused = ObjectStore(connect(store_url), KEEP)
    picture_id = new_id("r")
    with structlog.testing.capture_logs() as said, pytest.raises(StoreError) as caught:
        await refused.put({picture_id: b"x"}, time.monotonic())
    assert str(caught.value) == said[0]["problem"] == f"object storage: {problem}"
    text = f"{said} {caught.getrepr()} {vars(refused)}"
    assert SECRET not in text
    assert picture_id[16:] not in f"{said} {caught.value}", "whoever has the id has the picture"
    await refused.close()


async def test_a_put_that_is_cancelled_is_not_counted(s3: S3Server, store: ObjectStore) -> None:
    with s3.frozen():
        put = asyncio.create_task(store.put({new_id("r"): b"x"}, time.monotonic()))
        while store.figures.waiting == 0:
            assert not put.done()
            await asyncio.sleep(0.01)
        put.cancel()
        with pytest.raises(asyncio.CancelledError):
            await put
    assert (store.figures.waiting, store.figures.count, store.figures.bytes) == (0, 0, 0)


@pytest.mark.parametrize(("url", "kind"), [("gs://bucket/faces", "GCSStore"), ("az://container/faces", "AzureStore")])
def test_other_clouds_are_named_by_url(url: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their servers are not here to be asked: only that the place and the account are understood."""
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    remote = connect(url)
    assert (type(remote).__name__, remote.prefix) == (kind, "faces")


def test_what_the_environment_lacks_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(ConfigError, match=r"static\.store_url: .*Account must be specified"):
        open_store(Static(dir=tmp_path, store_url="az://container/faces"))


@pytest.fixture
async def answering(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[bytes], Awaitable[str]]]:
    """Where a server answers every request alike, and hangs up at once for b""; the URL of a store on it."""
    servers: list[asyncio.Server] = []

    async def serve(answer: bytes) -> str:
        async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

        servers.append(await asyncio.start_server(one, "127.0.0.1", 0))
        port = servers[0].sockets[0].getsockname()[1]
        for name, value in {"ACCESS_KEY_ID": "edge", "SECRET_ACCESS_KEY": SECRET, "REGION": "us-east-1"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        return "s3://no-such-bucket/faces"

    yield serve
    for server in servers:
        server.close()


NO_BUCKET = b"<Error><Code>NoSuchBucket</Code><BucketName>no-such-bucket</BucketName></Error>"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s" % (len(NO_BUCKET), NO_BUCKET), "404 NoSuchBucket"),
        (b"", "the connection broke"),
        (b"HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 0\r\n\r\n", "status 507"),
    ],
)
async def test_a_bucket_that_is_missing_or_broken_is_named(
    answering: Callable[[bytes], Awaitable[str]], answer: bytes, problem: str
) -> None:
    store = ObjectStore(connect(await answering(answer)), KEEP)
    with structlog.testing.capture_logs() as said:
        await store.probe()
        await store.sweep()
        for work in (store.put({new_id("r"): b"x"}, time.monotonic()), store.remove_request("r")):
            with pytest.raises(StoreError):
                await work
    assert not store.writable
    assert {line["event"] for line in said} == {"pictures_not_stored", "pictures_not_swept"}
    assert {line["problem"] for line in said} == {f"object storage: {problem}"}
    assert SECRET not in f"{said}"
    await store.close()
