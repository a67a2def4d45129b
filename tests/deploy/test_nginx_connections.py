"""Edges have room for more calls than Debian's nginx has connections for: the pages raise those, far enough."""

from __future__ import annotations

import asyncio
import re
import subprocess
from asyncio import StreamReader, StreamWriter
from pathlib import Path

from edge.settings import Limits
from tests.deploy.monitoring import ROOT
from tests.deploy.proxy import SITE, UNLIMITED, Nginx
from tests.edge.rest import MEASURE

ONE_MACHINE, LIMITS = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("one-machine", "limits"))
(RAISE,) = re.findall(r"^sed .* /etc/nginx/nginx\.conf$", ONE_MACHINE, re.MULTILINE)
EDGES = len(re.findall(r"^    server 127\S+ ", SITE, re.MULTILINE))
CALLS = 400
"""Each takes two connections: more than Debian's 768, and less than the 1,024 descriptors of a test."""
CALL = f"POST {MEASURE} HTTP/1.1\r\nHost: face.example\r\nContent-Length: 1\r\n\r\n.".encode()


def raised(conf: Path) -> dict[str, int]:
    """What the page's command makes of nginx's own file."""
    subprocess.run(["bash", "-euc", RAISE.replace("/etc/nginx/nginx.conf", str(conf))], check=True)
    found = re.findall(r"(worker_connections|worker_rlimit_nofile) (\d+);", conf.read_text())
    return {name: int(value) for name, value in found}


def test_there_is_room_for_whatever_the_edges_take(tmp_path: Path) -> None:
    """With the defaults; and the pages and the site say the same."""
    needed = 2 * EDGES * Limits().max_connections
    nginx = Nginx(tmp_path / "nginx", "127.0.0.1:8080")
    conf = nginx.folder / "nginx.conf"
    numbers = raised(conf)
    assert needed < numbers["worker_connections"] < numbers["worker_rlimit_nofile"]
    once = conf.read_text()
    assert raised(conf) == numbers
    assert conf.read_text() == once, "typed again it changes nothing"
    assert "[warn]" not in nginx.check()
    each = f"{Limits().max_connections:,}"
    assert f"2 × {EDGES} × {each} = {needed:,}" in ONE_MACHINE
    assert f"2 × {EDGES} × {each} = {needed:,}" in LIMITS
    assert f"2 x {EDGES} x {each}" in SITE
    for name, value in numbers.items():
        assert f"{name} {value}" in SITE


class Silent:
    """An edge that takes calls and answers none."""

    def __init__(self) -> None:
        self.calls = 0
        self.all_there = asyncio.Event()
        self._end = asyncio.Event()

    async def take(self, reader: StreamReader, writer: StreamWriter) -> None:
        """One connection: one call of nginx's."""
        await reader.readuntil(b"\r\n\r\n")
        self.calls += 1
        if self.calls == CALLS:
            self.all_there.set()
        await self._end.wait()
        writer.close()

    def end(self) -> None:
        """Let them go."""
        self._end.set()


async def test_more_calls_wait_behind_nginx_than_debian_gives_it_connections(tmp_path: Path) -> None:
    edge = Silent()
    server = await asyncio.start_server(edge.take, "127.0.0.1", 0, backlog=CALLS)
    host, port = server.sockets[0].getsockname()
    nginx = Nginx(tmp_path / "nginx", f"{host}:{port}", changes=UNLIMITED)
    raised(nginx.folder / "nginx.conf")
    clients: list[StreamWriter] = []
    ends: list[asyncio.Task[bytes]] = []
    async with server, nginx:
        there = asyncio.create_task(edge.all_there.wait())
        try:
            for _call in range(CALLS):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", nginx.port, ssl=nginx.trust, server_hostname="localhost"
                )
                clients.append(writer)
                writer.write(CALL)
                ends.append(asyncio.create_task(reader.read(1)))
            await asyncio.wait({there, *ends}, return_when=asyncio.FIRST_COMPLETED)
            assert [end for end in ends if end.done()] == [], "cut off, or refused"
            assert edge.calls == CALLS
        finally:
            there.cancel()
            for end in ends:
                end.cancel()
            await asyncio.gather(there, *ends, return_exceptions=True)
            for writer in clients:
                writer.transport.abort()
            edge.end()
