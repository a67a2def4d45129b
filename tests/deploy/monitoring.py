"""A real Prometheus, blackbox exporter and Alertmanager over an edge, by the files of `deploy/prometheus`.

Only addresses are written into these files, and every time is divided by one factor.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import pytest
from typing_extensions import override

from hairmesh.stack import LOOPBACK, free_ports, write_private
from tests.e2e.service import Process

ROOT = Path(__file__).parents[2]
FILES = ROOT / "deploy" / "prometheus"
READY = {"prometheus-blackbox-exporter": "/-/healthy", "prometheus-alertmanager": "/-/ready", "prometheus": "/-/ready"}
"""The programs, and where each says that it is ready."""
RESEND_S = 120
"""`--rules.alert.resend-delay`, as `prometheus.yml` says."""
PATIENCE_S = 60.0
"""For what should take moments, on a busy machine."""
PROBES = 'probe_success{job="hairmesh-monitor"}'
EDGE = "face"
"""The name of the edge in these files."""

_TIME = re.compile(r"(?<=[\[ ])(\d+)([smh])(?=[\]\s,}])")
_UNIT_S = {"s": 1, "m": 60, "h": 3600}


def program(name: str) -> str:
    """Where `make setup` put it, or the system; skips the test where it is in neither place."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not here: `make setup` brings it where there is apt")
    return found


def faster(text: str, factor: float) -> str:
    """The same file with every time (`[62s]`, `for: 10m`) divided by `factor`."""
    return _TIME.sub(lambda match: f"{round(int(match[1]) * _UNIT_S[match[2]] * 1000 / factor)}ms", text)


async def until(condition: Callable[[], Awaitable[bool]], within_s: float = 0.0) -> None:
    """Wait for what other processes do and nothing announces. Raises `TimeoutError` when it takes `within_s` and more
    than any busy machine needs.
    """
    async with asyncio.timeout(PATIENCE_S + within_s):
        while not await condition():  # noqa: ASYNC110  (see above)
            await asyncio.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Notice:
    """One alert as a receiver was told of it."""

    receiver: str
    alert: str
    firing: bool
    drill: str
    """Empty for those that have no such label."""
    summary: str


class Receiver:
    """What stands at the end of Alertmanager's webhooks."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        notices = self.notices

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told = json.loads(self.rfile.read(int(self.headers["content-length"])))
                for alert in told["alerts"]:
                    name, drill = alert["labels"]["alertname"], alert["labels"].get("drill", "")
                    firing, summary = alert["status"] == "firing", alert["annotations"]["summary"]
                    notices.append(Notice(told["receiver"], name, firing, drill, summary))
                self.send_response(200)
                self.end_headers()

            @override
            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.address = f"{LOOPBACK}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def open(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def of(self, *alerts: str) -> list[Notice]:
        """What was told of these."""
        return [notice for notice in self.notices if notice.alert in alerts]

    def close(self) -> None:
        """Hear no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Monitoring:
    """All of it over the edge at `edge`, `factor` times faster than in production."""

    def __init__(self, folder: Path, edge: str, token: str, factor: float) -> None:
        self.factor = factor
        blackbox_exporter, alertmanager_itself, prometheus_itself = map(program, READY)
        prometheus, alertmanager, blackbox = (f"{LOOPBACK}:{port}" for port in free_ports(3))
        self._client = httpx.AsyncClient(trust_env=False, timeout=20)
        self._addresses = (blackbox, alertmanager, prometheus)
        self.receiver = Receiver()
        write_private(folder / "hairmesh_admin_token", token)
        rules = faster((FILES / "hairmesh.rules.yml").read_text(), factor)
        (folder / "hairmesh.rules.yml").write_text(rules)
        scraping = faster((FILES / "prometheus.yml").read_text(), factor)
        for theirs, ours in (
            ("https://face.example", f"http://{edge}"),
            ("face.example", edge),
            ("scheme: https", "scheme: http"),
            ("127.0.0.1:9115", blackbox),
            ("127.0.0.1:9093", alertmanager),
            # A probe has the time that it has in production, as far as its interval allows.
            (f"scrape_timeout: {round(6000 / factor)}ms", f"scrape_timeout: {round(min(6000, 30_000 / factor))}ms"),
        ):
            assert theirs in scraping
            scraping = scraping.replace(theirs, ours)
        (folder / "prometheus.yml").write_text(scraping)
        routing = faster((FILES / "alertmanager.yml").read_text(), factor)
        (folder / "alertmanager.yml").write_text(routing.replace("127.0.0.1:9080", self.receiver.address))
        self.blackbox = Process(
            "blackbox exporter",
            [
                blackbox_exporter,
                f"--config.file={FILES / 'blackbox.yml'}",
                f"--web.listen-address={blackbox}",
            ],
        )
        self.alertmanager = Process(
            "alertmanager",
            [
                alertmanager_itself,
                f"--config.file={folder / 'alertmanager.yml'}",
                f"--storage.path={folder / 'alertmanager'}",
                f"--web.listen-address={alertmanager}",
                "--cluster.listen-address=",
            ],
        )
        self.prometheus = Process(
            "prometheus",
            [
                prometheus_itself,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'prometheus'}",
                f"--web.listen-address={prometheus}",
                f"--rules.alert.resend-delay={round(RESEND_S * 1000 / factor)}ms",
            ],
        )

    async def __aenter__(self) -> Self:
        """Start it, and wait until /monitor was probed."""
        async with AsyncExitStack() as started:
            started.push_async_callback(self._client.aclose)
            self.receiver.open()
            started.callback(self.receiver.close)
            for process in self._processes:
                started.push_async_callback(self._end, process)
                await self.start(process)
            await self.until_probed()
            self._started = started.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all of it."""
        await self._started.aclose()

    @staticmethod
    async def _end(process: Process) -> None:
        if process.started:
            await process.end()

    @property
    def _processes(self) -> tuple[Process, Process, Process]:
        return self.blackbox, self.alertmanager, self.prometheus

    async def start(self, process: Process) -> None:
        """Start one of them, for the first time or again, and wait until it is ready."""
        at = self._processes.index(process)
        url = f"http://{self._addresses[at]}{list(READY.values())[at]}"
        await process.start()

        async def ready() -> bool:
            try:
                return (await self._client.get(url)).is_success
            except httpx.TransportError:
                assert process.running.returncode is None, "\n".join(process.lines)
                return False

        await until(ready)

    async def value(self, query: str) -> float | None:
        """What Prometheus says to that; None where there is nothing."""
        answer = await self._client.get(f"http://{self._addresses[2]}/api/v1/query", params={"query": query})
        found = answer.raise_for_status().json()["data"]["result"]
        return float(found[0]["value"][1]) if found else None

    async def failed_probes(self) -> int:
        """So far, of /monitor."""
        return int(await self.value(f"count_over_time({PROBES}[1d]) - sum_over_time({PROBES}[1d])") or 0)

    async def until_probed(self) -> None:
        """Until /monitor has been probed once more, and was good."""
        before = await self.value(f"timestamp({PROBES})")

        async def probed() -> bool:
            return await self.value(f"timestamp({PROBES} == 1)") not in (None, before)

        await until(probed, 90 / self.factor)

    async def until_told(self, what: Callable[[list[Notice]], bool], within_s: float = 180) -> None:
        """Until what the receiver has been told is that; `within_s` in production's time."""
        notices = self.receiver.notices

        async def told() -> bool:
            return what(notices)

        try:
            await until(told, within_s / self.factor)
        except TimeoutError:
            raise AssertionError(f"told were only {notices}") from None
