"""`python -m bench.overload_clients PORT CLIENTS SECONDS PHOTO…`: impatient clients of an edge, in one process.

Each posts a photo, two thirds of them as a form, the others in JSON, every other one with its base64 in lines. It keeps
its connection, waits for the answer however long it takes, and posts the next one at
once; after a refusal it waits as long as `Retry-After` says, though never longer than `IMPATIENT_S`. After SECONDS
nobody begins anew, and what is under way is waited for. A first line
tells that they begin (`BEGUN`), a JSON line how it went (`Tally`).
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import uvloop

from bench.edge_overhead import ROUTE, multipart
from hairmesh.stack import LOOPBACK

BEGUN = b"begun\n"
IMPATIENT_S = 1.0
ANSWER_S = 700.0
"""Longer than the edge makes anybody wait by default."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A request as it goes over the line."""

    head: bytes
    body: bytes = field(repr=False)

    @classmethod
    def of(cls, body: bytes, headers: Mapping[str, str]) -> Upload:
        """With this body."""
        lines = [f"POST {ROUTE} HTTP/1.1", "Host: edge", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return cls("\r\n".join([*lines, "", ""]).encode(), body)


def form(photo: bytes) -> Upload:
    """As apps send it."""
    return Upload.of(*multipart(photo))


def plain(photo: bytes) -> Upload:
    """In JSON, its base64 in one line."""
    return _in_json(base64.b64encode(photo))


def wrapped(photo: bytes) -> Upload:
    """In JSON, its base64 in lines of 76."""
    return _in_json(base64.encodebytes(photo))


def _in_json(text: bytes) -> Upload:
    return Upload.of(json.dumps({"image_base64": text.decode()}).encode(), {"Content-Type": "application/json"})


DRESSES = (form, form, plain, form, form, wrapped)


@dataclass(slots=True)
class Tally:
    """What became of the requests."""

    requests: int = 0
    unanswered: int = 0
    """No whole answer came: a connection that broke off, or silence."""
    by_status: Counter[int] = field(default_factory=Counter)
    good_s: list[float] = field(default_factory=list)
    """From a request's first byte to the end of its answer, where that was 200."""
    refused_s: list[float] = field(default_factory=list)
    """The same of all others."""
    problems: Counter[str] = field(default_factory=Counter)


class Client:
    """One of them."""

    def __init__(self, port: int, upload: Upload, tally: Tally) -> None:
        self._upload = upload
        self._port = port
        self._tally = tally
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self, until_s: float) -> None:
        """Post until then."""
        while time.monotonic() < until_s:
            self._tally.requests += 1
            began_s = time.monotonic()
            try:
                status, retry_after_s = await asyncio.wait_for(self._post(), ANSWER_S)
            except (OSError, EOFError, TimeoutError) as error:  # IncompleteReadError is an EOFError
                self._tally.unanswered += 1
                self._tally.problems[type(error).__name__] += 1
                self._close()
                continue
            self._tally.by_status[status] += 1
            (self._tally.good_s if status == 200 else self._tally.refused_s).append(time.monotonic() - began_s)
            await asyncio.sleep(min(retry_after_s, IMPATIENT_S))
        self._close()

    async def _post(self) -> tuple[int, float]:
        """Status of one answer, and the wait that it asks for in s, 0 where it asks for none."""
        if self._ends is None:
            self._ends = await asyncio.open_connection(LOOPBACK, self._port)
        reader, writer = self._ends
        writer.write(self._upload.head)
        writer.write(self._upload.body)
        status_line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if "content-length" in headers:
            await reader.readexactly(int(headers["content-length"]))
        if headers.get("connection") == "close":
            self._close()
        return int(status_line.split()[1]), float(headers.get("retry-after", 0))

    def _close(self) -> None:
        if self._ends is not None:
            self._ends[1].close()
            self._ends = None


async def crowd(port: int, clients: int, seconds: float, photos: list[bytes]) -> Tally:
    """All of them at once."""
    tally = Tally()
    uploads = [dress(photo) for photo, dress in product(photos, DRESSES)]
    sys.stdout.buffer.write(BEGUN)
    sys.stdout.flush()
    until_s = time.monotonic() + seconds
    await asyncio.gather(*(Client(port, uploads[n % len(uploads)], tally).run(until_s) for n in range(clients)))
    return tally


def main() -> None:
    """Run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("clients", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("photos", type=Path, nargs="+")
    args = parser.parse_args()
    photos = [path.read_bytes() for path in args.photos]
    tally = uvloop.run(crowd(args.port, args.clients, args.seconds, photos))
    print(json.dumps({name: getattr(tally, name) for name in Tally.__slots__}))


if __name__ == "__main__":
    main()
