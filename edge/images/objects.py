"""Pictures in object storage: S3 and what speaks it, Google Cloud Storage, Azure. Takes the extra `edge-objects`.

Objects appear whole or not at all, and all edges that name the same place share it. An answer waits for its pictures;
nothing is kept in memory. The keys of a request's pictures stand under its tag, so that they are found by one listing.

Credentials come from the environment or from the machine's own identity, never from the configuration.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import obstore
import structlog
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from edge.images.condition import Condition
from edge.images.retention import Entry, Retention
from edge.images.stock import NO_ROOM, Stock
from edge.images.store import (
    CLOCKS_S,
    ID,
    TAG,
    TAG_DIGITS,
    RemovedError,
    StoreError,
    StoreFigures,
    all_done,
    is_removed,
    tag_of,
    unix_s,
)
from edge.images.sweep import sweep

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

IO_TIMEOUT_S = 10.0
"""After this anything that somebody waits for counts as failed."""
CONNECT_TIMEOUT_S, TRY_TIMEOUT_S = 3.0, 8.0
_RETRY: RetryConfig = {"max_retries": 2, "retry_timeout": timedelta(seconds=6)}
"""Of connections that break and answers of 5xx."""
_LIST_CHUNK = 100
"""Objects that are made Python's at a time, which holds the interpreter: a fraction of a millisecond."""
_PNG = {"Content-Type": "image/png", "Cache-Control": "private, no-store"}

_PICTURE = re.compile(rf"({TAG.pattern})/([0-9a-f]{{32}})\.png")
_HELPER = re.compile(rf"removed/{TAG.pattern}|probe/[0-9a-f]{{16}}")

_WORDS = (
    (re.compile(r"169\.254\.|metadata\.google"), "no credentials in the environment, nor has this machine an identity"),
    (re.compile(r"(?s)status code: (\d{3}).*<Code>([A-Za-z]{1,60})</Code>"), r"\1 \2"),
    (re.compile(r"status code: (\d{3})"), r"status \1"),
    (re.compile(r"BadScheme"), "plain HTTP is refused, unless AWS_ALLOW_HTTP (AZURE_, GOOGLE_) is true"),
    (re.compile(r"dns error"), "the name of its endpoint is not resolved"),
    (re.compile(r'message: "([^"]{1,100})"'), r"\1"),
    (re.compile(r"kind: Timeout"), "no answer in time"),
    (re.compile(r"error sending request|IncompleteMessage"), "the connection broke"),
)
"""What its client's words come to; the first that is found counts."""

T = TypeVar("T")
Remote = S3Store | GCSStore | AzureStore
_KINDS: Mapping[str, tuple[Callable[..., Remote], str]] = {
    "s3": (S3Store, "AWS"),
    "gs": (GCSStore, "GOOGLE"),
    "az": (AzureStore, "AZURE"),
}
"""By the scheme of a URL; and with what the names of its variables in the environment begin."""

log = structlog.get_logger()


def connect(url: str) -> Remote:
    """The place that a URL names, `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`, without
    asking it anything; raises `StoreError` where the environment lacks what that takes.
    """
    parts = urlsplit(url)
    kind, vendor = _KINDS[parts.scheme]
    client: ClientConfig = {
        "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_S),
        "timeout": timedelta(seconds=TRY_TIMEOUT_S),
        "allow_http": os.environ.get(f"{vendor}_ALLOW_HTTP", "").lower() in {"1", "true"},
    }
    try:
        return kind(parts.netloc, prefix=parts.path.strip("/") or None, client_options=client, retry_config=_RETRY)
    except (BaseError, ValueError) as error:
        raise StoreError(str(error).splitlines()[0]) from None


class ObjectStore:
    """An `ImageStore` at a place."""

    def __init__(self, remote: Remote, retention: Retention) -> None:
        self._remote = remote
        self._condition = Condition(self._no_room)
        self._stock = Stock(partial(sweep, _Bucket(remote)), retention, lambda: dict(self._writing))
        self._writing: dict[str, int] = {}
        """Pictures that are being written, by key, and their bytes."""
        self._probe_key = f"probe/{secrets.token_hex(8)}"
        """Of this edge: written again and again."""

    @property
    def writable(self) -> bool:
        """See `ImageStore.writable`."""
        return self._condition.writable

    def _no_room(self, needed_bytes: int) -> str:
        """Why there is none for so much; empty where there is."""
        return "" if self._stock.fits(needed_bytes) else NO_ROOM

    @property
    def figures(self) -> StoreFigures:
        """See `ImageStore.figures`."""
        return self._stock.figures()

    async def put(self, pictures: Mapping[str, bytes], began_s: float) -> None:
        """See `ImageStore.put`."""
        size = sum(map(len, pictures.values()))
        with self._condition.storing(size), self._stock.storing(len(pictures)):
            await self._stock.make_room(size)
            await all_done(self._put(each, data) for each, data in pictures.items())
            await self._heed_removal(pictures, unix_s(began_s))

    async def _put(self, picture_id: str, data: bytes) -> None:
        key = _key(picture_id)
        self._stock.add(len(data))
        self._writing[key] = len(data)
        try:
            await self._write(key, data, _PNG)
        except BaseException:
            self._stock.drop(1, len(data))
            raise
        finally:
            del self._writing[key]

    async def _write(self, key: str, data: bytes, attributes: dict[str, str]) -> None:
        try:
            await _answered(obstore.put_async(self._remote, key, data, attributes=attributes, use_multipart=False))
        except StoreError as error:
            self._condition.failed(str(error))
            raise
        self._condition.worked()

    async def _heed_removal(self, pictures: Mapping[str, bytes], began_s: float) -> None:
        """Remove what has just been stored where it was said meanwhile that it is not wanted; raises `RemovedError`."""
        for tag in {picture_id[:TAG_DIGITS] for picture_id in pictures}:
            try:
                mark = await _answered(obstore.head_async(self._remote, _mark(tag)))
            except NotThereError:
                continue
            if is_removed(mark["last_modified"].timestamp(), began_s, CLOCKS_S):
                await self.remove(pictures)
                raise RemovedError

    async def get(self, picture_id: str) -> bytes | None:
        """See `ImageStore.get`."""
        if ID.fullmatch(picture_id) is None:
            return None
        with suppress(NotThereError):
            return await _answered(self._read(_key(picture_id)))
        return None

    async def _read(self, key: str) -> bytes:
        found = await obstore.get_async(self._remote, key)
        return bytes(await found.bytes_async())

    async def remove(self, picture_ids: Iterable[str]) -> None:
        """See `ImageStore.remove`."""
        ids = set(picture_ids)
        for tag in {picture_id[:TAG_DIGITS] for picture_id in ids}:
            there = await _answered(self._tagged(tag))
            await self._delete({key: size for key, size in there.items() if key in set(map(_key, ids))})

    async def remove_request(self, request_id: str) -> int:
        """See `ImageStore.remove_request`."""
        tag = tag_of(request_id)
        removed: set[str] = set()
        await self._write(_mark(tag), b"", {})
        # Twice: what was put before there was a mark, and whose writer saw none, is there by now.
        for _ in range(2):
            there = await _answered(self._tagged(tag))
            await self._delete(there)
            removed |= there.keys()
        self._stock.removed_by_request(len(removed))
        return len(removed)

    async def _tagged(self, tag: str) -> dict[str, int]:
        """The pictures of a tag: keys and bytes."""
        chunks = obstore.list(self._remote, prefix=tag, chunk_size=_LIST_CHUNK)
        return {
            each["path"]: each["size"] async for chunk in chunks for each in chunk if _PICTURE.fullmatch(each["path"])
        }

    async def _delete(self, there: Mapping[str, int]) -> None:
        if there:
            with suppress(NotThereError):  # another edge was quicker
                await _answered(obstore.delete_async(self._remote, list(there)))
            self._stock.drop(len(there), sum(there.values()))

    async def probe(self) -> None:
        """See `ImageStore.probe`."""
        with suppress(StoreError):  # noted, and logged when it is news
            await self._write(self._probe_key, b"", {})
            await self._condition.make_room(self._stock.make_room)
        self._condition.look()

    async def sweep(self) -> None:
        """See `ImageStore.sweep`. Nothing but our own objects is touched."""
        await self._stock.sweep()

    async def nearly_full(self) -> None:
        """See `ImageStore.nearly_full`."""
        await self._stock.nearly_full()

    async def close(self) -> None:
        """Nothing waits: what was answered is stored."""
        self._stock.close()


class _Bucket:
    """What sweeps see of it; in their thread."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def walk(self) -> Iterator[Entry]:
        """See `Shelf.walk`. Listing waits for the network after every thousand: pauses enough."""
        try:
            for chunk in obstore.list(self._remote, chunk_size=_LIST_CHUNK):
                for each in chunk:
                    is_picture = _PICTURE.fullmatch(each["path"]) is not None
                    if is_picture or _HELPER.fullmatch(each["path"]):
                        yield Entry(each["path"], is_picture, each["last_modified"].timestamp(), each["size"])
        except (BaseError, OSError) as error:
            raise StoreError(_said(error)) from None

    def discard(self, names: Sequence[str]) -> Mapping[str, str]:
        """See `Shelf.discard`."""
        try:
            obstore.delete(self._remote, list(names))
        except FileNotFoundError:  # another edge was quicker
            return {}
        except (BaseError, OSError) as error:
            raise StoreError(_said(error)) from None
        return {}


class NotThereError(StoreError):
    """There is no such object, or no such bucket."""


async def _answered(work: Awaitable[T]) -> T:
    """Await what is asked of the storage; raises `StoreError` for what it refuses or takes too long for."""
    try:
        async with asyncio.timeout(IO_TIMEOUT_S):
            return await work
    except TimeoutError:
        raise StoreError(f"object storage did not answer within {IO_TIMEOUT_S:.0f} s") from None
    except FileNotFoundError as error:
        raise NotThereError(_said(error)) from None
    except (BaseError, OSError) as error:
        raise StoreError(_said(error)) from None


def _said(error: Exception) -> str:
    """What is wrong, without the address that was asked: it names the picture."""
    text = str(error)
    for form, words in _WORDS:
        if found := form.search(text):
            return f"object storage: {found.expand(words)}"
    return f"object storage: {type(error).__name__}"


def _key(picture_id: str) -> str:
    return f"{picture_id[:TAG_DIGITS]}/{picture_id[TAG_DIGITS:]}.png"


def _mark(tag: str) -> str:
    return f"removed/{tag}"
