"""A REST side over a scripted mesh, on a real loopback socket, in the test's own event loop."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvicorn
from google.protobuf.message import Message
from hair.analysis.v1 import growth_pb2, measure_pb2
from PIL import Image

from edge.app import RunningMesh, create_app
from edge.calls import Call, CallFailedError, ContactSnapshot, OnlineCounts, Outcome
from edge.command import server_config
from edge.local.thread import Load, load_engine
from edge.pool.config import PoolConfig
from edge.pool.figures import PoolFigures
from edge.pool.snapshot import EndpointSnapshot, HistoryEntry, PoolSnapshot
from edge.reload import ConfigFile, InForce
from edge.settings import Settings, parse
from edge.stream import COMMENT_EVERY_S
from edge.tls import HttpsCertificate
from edge.upstream.channel import ChannelSecurity
from edge.upstream.tally import MeshFigures, Tally

M = TypeVar("M", bound=Message)

PASSWORD = "loopback-secret"
MEASURE = "/api/v1/face/measure"
MASKS = "/api/v1/face/masks"
HAIRLINES = "/api/v1/hair/hairlines"
STYLES = "/api/v1/hair/styles"
GROW = "/api/v1/hair/grow"
FEATURES = "/api/v1/face/features"
SPECIAL_POINTS = "/api/v1/face/special-points"
CALLS = (MEASURE, MASKS, HAIRLINES, STYLES, GROW)
"""Those that run on workers."""
WORKER = "10.0.0.11:28187"


def picture(kind: str = "JPEG", size: tuple[int, int] = (240, 320), **options: Any) -> bytes:
    """A plain picture in any format Pillow writes."""
    buffer = io.BytesIO()
    Image.new("RGB", size, (200, 150, 120)).save(buffer, kind, **options)
    return buffer.getvalue()


PHOTO = picture()
ANNOTATED = picture("PNG", (64, 64))


def measured() -> measure_pb2.MeasureResponse:
    """A small good answer with a picture."""
    response = measure_pb2.MeasureResponse()
    response.annotated_image.data = ANNOTATED
    response.photo.format = "JPEG"
    response.scale.mm_per_px = 0.2
    response.measurements.face_height.px = 925.123
    return response


def endpoint(**changes: Any) -> EndpointSnapshot:
    """A worker that serves, but for the changes."""
    good: dict[str, Any] = {
        "target": WORKER,
        "primary": True,
        "state": "SERVING",
        "cause": "",
        "evidence": "probe: SERVING",
        "cooldown_left_s": 0.0,
        "call_id": "",
        "in_flight_s": None,
        "left_behind": False,
        "stage": "",
        "taken_by_others": False,
        "name": "",
        "boot_id": "5f0d6a5c",
        "capabilities": ("growth", "measure"),
        "leaving": False,
        "ejections": 0,
        "next_probe_in_s": 3.25,
        "history": (HistoryEntry(12.34, "UNKNOWN → SERVING: probe: SERVING"),),
    }
    return EndpointSnapshot(**{**good, **changes})


_SUMMARY = growth_pb2.GrowthSummary(seed=7, backend="local")


def grown_styles(*results: growth_pb2.StyleResult) -> tuple[Message, ...]:
    """What a stream brings beside progress: these results, and the summary."""
    messages = [growth_pb2.GrowStylesResponse(result=each) for each in results]
    return (*messages, growth_pb2.GrowStylesResponse(summary=_SUMMARY))


def grown_region(result: growth_pb2.RegionResult) -> tuple[Message, ...]:
    """The same of the other slow call."""
    return growth_pb2.GrowRegionResponse(result=result), growth_pb2.GrowRegionResponse(summary=_SUMMARY)


EJECTED = endpoint(
    target="10.0.0.12:28187",
    primary=False,
    state="EJECTED",
    cause="passive",
    evidence="call: DEADLINE_EXCEEDED",
    cooldown_left_s=47.36,
    call_id="7c1e44f0-9",
    in_flight_s=93.21,
    left_behind=True,
    stage="parsing",
    name="dns:///workers.example:28187",
    boot_id="",
    capabilities=(),
    ejections=2,
    next_probe_in_s=None,
    history=(HistoryEntry(12.6, "SERVING → EJECTED passive: call: DEADLINE_EXCEEDED"), HistoryEntry(90.0, "SERVING")),
)

SOME_ONLINE = OnlineCounts(total=5, healthy=3, primary_total=3, primary_healthy=3)


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for something that nothing announces: another thread, a socket's other end."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  (nothing to await: it is the outside that looks)
            await asyncio.sleep(0.005)


@dataclass
class FakeMesh:
    """Answers at once with `response`, or raises `failure`; with `gate` set, only once that is set."""

    counts: OnlineCounts = SOME_ONLINE
    response: Message = field(default_factory=measured)
    results: tuple[Message, ...] = ()
    """Of a slow call; the last one is its response."""
    failure: BaseException | None = None
    refuses: bool = False
    """Whether `failure` is the pool's word at once, before the call was queued."""
    gate: asyncio.Event | None = None
    calls: list[Call] = field(default_factory=list)
    called: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False
    edge_id: str = "7c1e44f0"
    endpoints: tuple[EndpointSnapshot, ...] = ()
    former: frozenset[str] = frozenset()
    braked: bool = False
    tally: Tally = field(default_factory=Tally)
    configured: list[tuple[PoolConfig, str, ChannelSecurity]] = field(default_factory=list)
    unacceptable: Exception | None = None

    async def start(self) -> None:
        """Nothing to probe."""

    async def close(self) -> None:
        """Remember it."""
        self.closed = True

    def online(self) -> OnlineCounts:
        """As scripted."""
        return self.counts

    async def reconfigure(self, config: PoolConfig, password: str, security: ChannelSecurity) -> None:
        """Remember it, or refuse it as scripted."""
        if self.unacceptable is not None:
            raise self.unacceptable
        self.configured.append((config, password, security))

    def snapshot(self) -> PoolSnapshot:
        """Scripted endpoints, and always the same queue."""
        queue: dict[str, Any] = {"waiting_fast": 3, "waiting_slow": 1, "waiting_outside": 2, "inside": 7}
        return PoolSnapshot(self.endpoints, **queue, braked=self.braked, growth_capable=1)

    def figures(self) -> MeshFigures:
        """The same as `snapshot` in numbers, and scripted counts."""
        standings = Counter((each.state, each.cause, each.primary) for each in self.endpoints)
        online = {each.target: each.state == "SERVING" for each in self.endpoints}
        queue: dict[str, Any] = {"waiting_fast": 3, "waiting_slow": 1, "outside": 2, "inside": 7, "slots_busy": 4}
        pool = PoolFigures(standings, online, growth_capable=1, braked=self.braked, **queue)
        return MeshFigures(pool, self.tally)

    def contacts(self) -> Mapping[str, ContactSnapshot]:
        """Scripted workers in `former` take the former password only."""
        return {each.target: ContactSnapshot(each.target in self.former) for each in self.endpoints}

    async def call(self, call: Call) -> Outcome:
        """As scripted."""
        call.trace.call_id = f"{self.edge_id}-{len(self.calls) + 1}"
        call.trace.workers.append(WORKER)
        self.calls.append(call)
        self.called.set()
        if self.failure is not None and self.refuses:
            raise self.failure
        if call.on_queued is not None:
            call.on_queued(0, 1)
        try:
            if self.gate is not None:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if self.failure is not None:
            raise self.failure
        response = self.results[-1] if self.results else self.response
        return Outcome(response, worker=WORKER, attempts=1, queue_s=0.25, results=self.results)

    @property
    def request(self) -> measure_pb2.MeasureRequest:
        """What a worker was asked last, to be measured."""
        return self.asked(measure_pb2.MeasureRequest)

    def asked(self, kind: type[M]) -> M:
        """What a worker was asked last."""
        message = self.calls[-1].message
        assert isinstance(message, kind)
        return message


@dataclass
class Rest:
    """A running REST side."""

    client: httpx.AsyncClient
    port: int
    settings: Settings
    server: uvicorn.Server
    config_path: Path
    content: dict[str, Any]
    """What the configuration file held at the start."""
    in_force: InForce

    async def configure(self, **changes: Any) -> None:
        """Write the configuration file anew, renamed over the old one; it is in force on return."""
        version = self.in_force.version
        part = self.config_path.with_suffix(".part")
        part.write_text(json.dumps({**self.content, **changes}))
        part.replace(self.config_path)
        await eventually(lambda: self.in_force.version > version)

    async def measure(self, photo: bytes = PHOTO, *, headers: dict[str, str] | None = None, **fields: str) -> Any:
        """One measure call as a form; the HTTP response."""
        return await self.post(MEASURE, photo, headers=headers, **fields)

    async def post(
        self, route: str, photo: bytes = PHOTO, *, headers: dict[str, str] | None = None, **fields: Any
    ) -> Any:
        """One call as a form; a field that is bytes is a file, one that is a list is repeated."""
        files = {name: (name, value) for name, value in fields.items() if isinstance(value, bytes)}
        data = {name: value for name, value in fields.items() if not isinstance(value, bytes)}
        return await self.client.post(route, files={"image": ("p.jpg", photo), **files}, data=data, headers=headers)

    async def raw(self, request: bytes, *, end: bool = False) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection of its own with bytes sent as they are."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        await writer.drain()
        if end:
            writer.write_eof()
        return reader, writer

    async def stop(self) -> None:
        """Stop serving in order; what is queued for the request log is on the disk then."""
        if not self.server.lifespan.shutdown_event.is_set():
            for listening in self.server.servers:  # what `Server.shutdown` does, without its waiting
                listening.close()
            await self.client.aclose()
            await eventually(lambda: not self.server.server_state.tasks)
            await self.server.lifespan.shutdown()
            connections = self.server.server_state.connections
            for connection in list(connections):  # whatever the test has left open, or the server has not seen closed
                connection.give_way()  # type: ignore[union-attr]  # ours
            await eventually(lambda: not connections)

    def log_lines(self) -> list[dict[str, Any]]:
        """The request log; complete after `stop`."""
        return [json.loads(line) for line in self.settings.request_log.path.read_text().splitlines()]


@asynccontextmanager
async def serving(
    folder: Path,
    mesh: RunningMesh,
    *,
    comment_every_s: float = COMMENT_EVERY_S,
    load_local: Load = load_engine,
    send_buffer_bytes: int | None = None,
    **changes: Any,
) -> AsyncIterator[Rest]:
    """Serve `mesh` with everything it writes in `folder`; `changes` are sections of the configuration.

    `send_buffer_bytes`: the system's own for each connection, where it must not be what the machine is set to.
    """
    # Told that it is TCP: asyncio leaves Nagle's algorithm on otherwise, and every answer takes 40 ms more.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        if send_buffer_bytes is not None:  # connections have it from their listener
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
        content = {
            "listen": f"127.0.0.1:{port}",
            "workers": ["127.0.0.1:1"],
            "shared_password": PASSWORD,
            "static": {"dir": str(folder / "pictures")},
            "request_log": {"path": str(folder / "request_log.jsonl")},
            **changes,
        }
        config_path = folder / "edge.json"
        config_path.write_text(json.dumps(content))
        config_path.chmod(0o600)
        file = ConfigFile.of(config_path)
        settings = parse(file.content)
        https = HttpsCertificate(settings.tls) if settings.tls.cert else None
        app = create_app(settings, mesh, file, https=https, comment_every_s=comment_every_s, load_local=load_local)
        config = server_config(settings, app, https)
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False)
        rest = Rest(client, port, settings, server, config_path, content, app.state.in_force)
        try:
            yield rest
        finally:
            await rest.stop()


def failed(reason: str, **options: Any) -> CallFailedError:
    """What the mesh raises for a call without an answer."""
    return CallFailedError(reason, worker=WORKER, attempts=1, **options)
