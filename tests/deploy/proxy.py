"""nginx with the site of deploy/nginx, in front of whatever a test runs."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import ssl
import subprocess
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from hairmesh import certs
from hairmesh.stack import LOOPBACK, free_ports
from tests.deploy.monitoring import ROOT, program
from tests.edge.process import Process
from tests.fakes.worker import FakeWorker

SITE = (ROOT / "deploy" / "nginx" / "hairmesh.conf").read_text()
SYSCTL = (ROOT / "deploy" / "nginx" / "hairmesh-sysctl.conf").read_text()
(ELSEWHERE, *_) = re.findall(r"#server \S+ (.+);", SITE)
"""How the site names an edge on another machine, after its address."""
UNLIMITED = {"rate=100r/s": "rate=1000000r/s"}
"""For clients that ask without a pause: its limit for one address is not what is tested."""
ADMIN = "an-admin-token-of-sixteen-or-more"
AROUND = """\
daemon off;
pid {folder}/nginx.pid;
error_log stderr notice;
worker_processes 1;
events {{
	worker_connections 768;
}}
http {{
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/hairmesh.conf;
}}
"""


class Nginx:
    """One that runs inside `async with`, on a free port, with a certificate of its own; `edges` are `host:port`."""

    def __init__(
        self, folder: Path, *edges: str, server: str = "max_fails=0", changes: Mapping[str, str] | None = None
    ) -> None:
        """`server`: what follows each address. `changes`: what stands in the site's file, by what stands instead."""
        (self.port,) = free_ports(1)
        self.folder = folder
        folder.mkdir()
        certs.write_dev(folder / "tls")
        self.authority = folder / "tls" / "ca.pem"
        self.trust = ssl.create_default_context(cafile=self.authority)
        servers = "\n".join(f"    server {edge} {server};" for edge in edges)
        site, count = re.subn(r"(    server 127\S+ max_fails=0;\n?)+", f"{servers}\n", SITE)
        assert count == 1
        for theirs, ours in {
            "/etc/hairmesh/tls/": f"{folder}/tls/",
            "/var/log/nginx/": f"{folder}/",
            "/run/hairmesh-nginx": f"{folder}/bodies",
            "listen 443": f"listen {LOOPBACK}:{self.port}",
            "    listen [::]:443 ssl http2;\n": "",
            **(changes or {}),
        }.items():
            assert theirs in site, theirs
            site = site.replace(theirs, ours)
        (folder / "hairmesh.conf").write_text(site)
        (folder / "nginx.conf").write_text(AROUND.format(folder=folder))
        self.command = [program("nginx"), "-c", str(folder / "nginx.conf"), "-e", "stderr"]
        self.url = f"https://{LOOPBACK}:{self.port}"

    def check(self) -> str:
        """What `nginx -t` says; raises `CalledProcessError` when it is not content."""
        return subprocess.run([*self.command, "-t"], capture_output=True, text=True, check=True).stderr

    def client(self, *, from_address: str | None = None) -> httpx.AsyncClient:
        """Somebody outside."""
        transport = httpx.AsyncHTTPTransport(verify=self.trust, local_address=from_address)
        return httpx.AsyncClient(base_url=self.url, transport=transport, timeout=60)

    def log(self) -> list[dict[str, Any]]:
        """Its access log, complete once it has stopped."""
        return [json.loads(line) for line in (self.folder / "hairmesh.log").read_text().splitlines()]

    async def __aenter__(self) -> Self:
        """Start it and wait until it serves."""
        self._process = await asyncio.create_subprocess_exec(*self.command, stderr=asyncio.subprocess.PIPE)
        await self._until_said(b"start worker process ")
        return self

    async def reload(self) -> None:
        """What `systemctl reload nginx` does; until the former workers have gone."""
        self._process.send_signal(signal.SIGHUP)
        await self._until_said(b"exited with code 0")

    async def _until_said(self, words: bytes) -> None:
        assert self._process.stderr is not None
        said = b""
        while words not in said:
            line = await self._process.stderr.readline()
            assert line, said.decode()
            said += line

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self._process.terminate()
        await self._process.communicate()


class Site:
    """nginx and the edges behind it, over one worker."""

    def __init__(self, folder: Path, worker: FakeWorker, edges: int) -> None:
        folders = [folder / f"edge{number}" for number in range(edges)]
        for each in folders:
            each.mkdir()
        self.edges = [
            Process(
                each,
                worker.address,
                admin_tokens=[ADMIN],
                trusted_proxies=["127.0.0.1/32"],
                public_base_url="https://face.example",
                static={"dir": str(folder / "pictures"), "shared": True},
            )
            for each in folders
        ]
        addresses = (f"127.0.0.1:{edge.port}" for edge in self.edges)
        self.nginx = Nginx(folder / "nginx", *addresses, changes=UNLIMITED)
        self._running = AsyncExitStack()

    async def __aenter__(self) -> Site:
        await asyncio.gather(*(self._running.enter_async_context(edge) for edge in self.edges))
        await self._running.enter_async_context(self.nginx)
        self.client = await self._running.enter_async_context(self.nginx.client())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._running.aclose()
