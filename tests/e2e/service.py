"""A whole service of real processes for one test: an edge, its workers, clients that call all the time.

What happens is read from the processes' own logs, as operators read it: every line is an event that can be awaited.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import ssl
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from hairmesh.child import console_script
from hairmesh.client import MEASURE_ROUTE
from hairmesh.stack import LOOPBACK, free_ports, write_private
from tests.e2e.breakable_worker import photo
from tests.e2e.network import Host

ROOT = Path(__file__).parents[2]
EVENT_TIMEOUT_S = 120.0
"""For anything awaited: a busy machine is no reason to fail."""
POLITE_S = 0.05
"""What a client waits after a refusal."""
LINE_BYTES = 1 << 20

_NO_LIMITS = httpx.Limits(max_connections=None)

Record = dict[str, Any]


def said_at_s(record: Record) -> float:
    """When a log line was written, s since the epoch."""
    return datetime.fromisoformat(record["timestamp"]).timestamp()


class Process:
    """A child that dies with this process; `records` are its JSON lines so far, over all its lives."""

    def __init__(self, name: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.records: list[Record] = []
        self.cwd = ROOT
        """Where it starts."""
        self._lines: list[str] = []
        self._arguments = arguments
        self._environment = environment or {}
        self._read_up_to = 0
        self._news = asyncio.Condition()
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def lines(self) -> Sequence[str]:
        """All that it has written, its logs and what libraries say."""
        return self._lines

    def set_environment(self, environment: Mapping[str, str]) -> None:
        """For its next start."""
        self._environment = environment

    @property
    def started(self) -> bool:
        """Whether it ever was."""
        return self._process is not None

    @property
    def running(self) -> asyncio.subprocess.Process:
        """The child."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    async def start(self) -> None:
        """Start it; a second start is another life."""
        tether = [sys.executable, "-m", "hairmesh.tether", str(os.getpid())]
        self._process = await asyncio.create_subprocess_exec(
            *tether,
            *self._arguments,
            cwd=self.cwd,
            env={**os.environ, **self._environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=LINE_BYTES,
        )
        self._reader = asyncio.create_task(self._read(self._process))

    async def event(self, name: str, **fields: object) -> Record:
        """The next line of that event with these fields, after the last one that was awaited."""
        found: Record | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(EVENT_TIMEOUT_S):
                found = await self._next(name, fields)
        said = "\n".join(self._lines[-30:])
        assert found is not None, f"{self.name} never said {name} {fields}, but at last:\n{said}"
        return found

    async def several(self, *wanted: tuple[str, Mapping[str, object]]) -> None:
        """Until each of these was said, with these fields, after the last line that was awaited; in whatever order."""
        from_here, last = self._read_up_to, self._read_up_to
        for name, fields in wanted:
            self._read_up_to = from_here
            await self.event(name, **fields)
            last = max(last, self._read_up_to)
        self._read_up_to = last

    def forget(self) -> None:
        """Let the next `event` be one that was not said yet."""
        self._read_up_to = len(self.records)

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.running.send_signal(number)

    async def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal that ends it, unless it has ended; its return code, when all its lines were read."""
        process, reader = self.running, self._reader
        with suppress(ProcessLookupError):
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)  # a stopped one would wait for ever
        code = await process.wait()
        if reader is not None:
            await reader
        return code

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            self._lines.append(line.decode(errors="replace").rstrip())
            with suppress(ValueError):  # what libraries say is no JSON
                self.records.append(json.loads(line))
            await self._tell()
        await process.wait()
        await self._tell()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def _next(self, name: str, fields: Mapping[str, object]) -> Record | None:
        """None when the process has ended without it."""
        while True:
            for at in range(self._read_up_to, len(self.records)):
                record = self.records[at]
                if record.get("event") == name and fields.items() <= record.items():
                    self._read_up_to = at + 1
                    return record
            if self.running.returncode is not None:
                return None
            async with self._news:
                await self._news.wait()


def _listen_on(host: Host | None) -> str:
    """A free address: on a host of its own any port is, and one of a real server is easier to read."""
    return f"{LOOPBACK}:{free_ports(1)[0]}" if host is None else f"{host.address}:28187"


def _run_on(host: Host | None, *program: str) -> list[str]:
    """The command that runs it there."""
    return list(program) if host is None else host.run(*program)


class Worker(Process):
    """A worker, of whatever kind."""

    def __init__(
        self, name: str, address: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(name, arguments, environment)
        self.address = address

    async def start(self) -> None:
        """Start it and wait until it listens."""
        await super().start()
        await self.event("listening")

    def calls_begun_after(self, moment_s: float) -> list[Record]:
        """Calls that reached it after that moment (s since the epoch), by its own log."""
        return [
            record
            for record in self.records
            if record.get("event") == "call" and said_at_s(record) - record["duration_ms"] / 1000 > moment_s
        ]


@dataclass(frozen=True, slots=True)
class Seen:
    """One answer as a client saw it; times in s since the epoch."""

    began_s: float
    ended_s: float
    http_status: int
    code: int
    reason: str
    data: Mapping[str, Any]
    retry_after: str


class Service:
    """An edge and its workers in `folder`. Workers are added before `start`."""

    def __init__(self, folder: Path, host: Host | None = None) -> None:
        """`host`: where the edge runs, if not on loopback here; whoever asks it has to be in its network."""
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.token = secrets.token_urlsafe(24)
        self.workers: list[Worker] = []
        self.primaries: list[Worker] = []
        self.pictures = folder / "pictures"
        self.request_log = folder / "request_log.jsonl"
        self._listen = _listen_on(host)
        self._config = folder / "edge.json"
        program = _run_on(host, str(console_script("hairmesh-edge")), "--config", str(self._config))
        self.edge = Process("edge", program)
        self.url = f"http://{self._listen}"
        self.client = self._client()

    def speak_tls(self, trust: ssl.SSLContext) -> None:
        """Ask the edge over HTTPS from now on."""
        self.url = f"https://{self._listen}"
        self.client = self._client(trust)

    def _client(self, trust: ssl.SSLContext | bool = True) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, verify=trust, trust_env=False, timeout=120, limits=_NO_LIMITS)

    def add_worker(
        self,
        *program: str,
        config: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
        host: Host | None = None,
    ) -> Worker:
        """A real worker; `program` defaults to the breakable one. The configuration's path follows it."""
        address = _listen_on(host)
        number = len(self.workers) + 1
        path = self.folder / f"worker{number}.json"
        values = {
            "listen": address,
            "accept_passwords": [self.token],
            "health": {"min_free_gb": 0},
            "drain_delay_seconds": 0.5,
            **(config or {}),
        }
        write_private(path, json.dumps(values))
        arguments = [*(program or (sys.executable, "-m", "tests.e2e.breakable_worker")), str(path)]
        worker = Worker(f"worker{number}", address, _run_on(host, *arguments), environment)
        self.workers.append(worker)
        return worker

    def add_liar(self) -> Worker:
        """A fake worker whose health lies."""
        (port,) = free_ports(1)
        arguments = [sys.executable, "-m", "tests.e2e.lying_worker", str(port)]
        worker = Worker("liar", f"{LOOPBACK}:{port}", arguments, {"FAKE_WORKER_PASSWORD": self.token})
        self.workers.append(worker)
        return worker

    async def start(self, **edge_config: Any) -> None:
        """Start everything and wait until every worker is online."""
        await asyncio.gather(*(worker.start() for worker in self.workers))
        await self.start_edge(**edge_config)

    async def start_edge(self, online: int | None = None, /, **edge_config: object) -> None:
        """Start the edge alone and wait until so many workers are online: every one, unless `online` says otherwise."""
        values: dict[str, object] = {
            "listen": self._listen,
            "workers": [worker.address for worker in self.workers],
            "primary_workers": [worker.address for worker in self.primaries],
            "shared_password": self.token,
            "static": {"dir": str(self.pictures)},
            "request_log": {"path": str(self.request_log)},
            **edge_config,
        }
        write_private(self._config, json.dumps(values))
        await self.edge.start()
        await self.edge.event("edge_ready")
        await self.until_online(len(self.workers) if online is None else online)

    def change_edge(self, **values: object) -> None:
        """Rewrite its configuration."""
        write_private(self._config, json.dumps(json.loads(self._config.read_text()) | values))

    def change_worker(self, number: int, **values: object) -> None:
        """Rewrite that of one, counted from 0."""
        path = self.folder / f"worker{number + 1}.json"
        write_private(path, json.dumps(json.loads(path.read_text()) | values))

    async def stop(self) -> None:
        """End whatever runs."""
        await self.client.aclose()
        await asyncio.gather(*(process.end() for process in (self.edge, *self.workers) if process.started))

    async def monitor(self) -> httpx.Response:
        """`GET /monitor`."""
        return await self.client.get("/monitor")

    async def until_online(self, count: int) -> httpx.Response:
        """Until `/monitor` counts exactly so many workers online; its answer then."""
        return await self.until("/monitor", lambda answer: answer.json()["workers_healthy"] == count)

    async def until(
        self, path: str, good: Callable[[httpx.Response], bool], within_s: float = EVENT_TIMEOUT_S
    ) -> httpx.Response:
        """Ask until the answer is `good`, as a monitor does; that answer."""
        answer: httpx.Response | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while True:
                    with suppress(httpx.ConnectError):  # the port opens after the first round of probes
                        answer = await self.client.get(path)
                        if good(answer):
                            return answer
                    await asyncio.sleep(0.05)
        raise AssertionError(f"{path} answers {answer and answer.text}")

    async def leaves(self, worker: Worker, cause: str) -> Record:
        """The edge's line that takes `worker` out, when it has also said that `cause` is the reason."""
        first = await self.edge.event("worker_state", **{"worker": worker.address, "from": "SERVING"})
        if first["cause"] != cause:
            await self.edge.event("worker_state", worker=worker.address, cause=cause)
        return first

    def changes(self, worker: Worker) -> list[Record]:
        """Every change of that worker that the edge has told."""
        return [
            record
            for record in self.edge.records
            if record.get("event") == "worker_state" and record["worker"] == worker.address
        ]

    def requests(self) -> list[Record]:
        """The request log so far; whole when the edge has ended in order."""
        return [json.loads(line) for line in self.request_log.read_text().splitlines()]

    async def measure(self, image: bytes) -> Seen:
        """One call."""
        began_s = time.time()
        answer = await self.client.post(MEASURE_ROUTE, files={"image": ("p.jpg", image, "image/jpeg")})
        body = answer.json()
        return Seen(
            began_s=began_s,
            ended_s=time.time(),
            http_status=answer.status_code,
            code=body["code"],
            reason=(body["data"] or {}).get("reason", ""),
            data=body["data"] or {},
            retry_after=answer.headers.get("retry-after", ""),
        )


class Load:
    """Clients that call all the time: each sends its next photo when the last one was answered."""

    def __init__(self, target: Service, *, clients: int, image: bytes | None = None) -> None:
        self.answers: list[Seen] = []
        self._target = target
        self._clients = clients
        self._image = photo(seconds=0.05) if image is None else image
        self._news = asyncio.Condition()
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def failed(self) -> list[Seen]:
        """Answers that are no result."""
        return [answer for answer in self.answers if answer.code != 0]

    async def more(self, count: int) -> None:
        """Until so many calls that begin after this moment were answered."""
        now_s = time.time()
        async with asyncio.timeout(EVENT_TIMEOUT_S), self._news:
            await self._news.wait_for(
                lambda: (
                    sum(answer.began_s > now_s for answer in self.answers) >= count
                    or any(task.done() for task in self._tasks)
                )
            )

    async def __aenter__(self) -> Self:
        """Begin."""
        self._tasks = [asyncio.create_task(self._call()) for _ in range(self._clients)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let every client have its last answer."""
        self._stopping = True
        await asyncio.gather(*self._tasks)

    async def _call(self) -> None:
        while not self._stopping:
            answer = await self._target.measure(self._image)
            async with self._news:
                self.answers.append(answer)
                self._news.notify_all()
            if answer.code != 0:
                await asyncio.sleep(POLITE_S)
