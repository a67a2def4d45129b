"""`python -m tests.e2e.secluded FOLDER`: photos full of tags through every call, in a network of their own.

Run by `unshare --net` it has loopback and nothing else, and the kernel counts what wanted to leave. First an edge and
a worker as they come, with no setting that sends anything anywhere; then a worker that has hair painted by a diffusion
server. What was seen is written to `FOLDER/seen.json`; edge and worker run in `FOLDER/place`, pictures and the request
log lie there.
"""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import socket
import struct
import sys
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
import watchfiles
from PIL import Image

from edge.console.protection import ASKS
from hairmesh import client as api
from hairmesh.child import console_script
from tests.conftest import studio_portrait
from tests.e2e.service import ROOT, Process, Service
from tests.e2e.tagged import FORMATS, MARK, tagged
from tests.fakes.comfyui_server import ComfyUiServer
from vision import models

WORKFLOW = ROOT / "deploy" / "comfyui" / "inpaint_sdxl.json"
ROUTES = (
    api.MEASURE_ROUTE,
    api.STYLES_ROUTE,
    api.GROW_ROUTE,
    api.FEATURES_ROUTE,
    api.HAIRLINES_ROUTE,
    api.MASKS_ROUTE,
    api.SPECIAL_POINTS_ROUTE,
)
SLOW = frozenset({api.STYLES_ROUTE, api.GROW_ROUTE})
CALLS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(FORMATS, (api.MEASURE_ROUTE, api.SPECIAL_POINTS_ROUTE)),
    "JPEG": [route for route in ROUTES if route not in SLOW],
    "HEIF": ROUTES,
}
"""By format: what it goes through. One on a worker and one on the edge, at least."""
LANGS: Mapping[str, str] = {"HEIF": "zh"}
"""By format: the language asked for; English for all others."""
ADMIN_TOKEN = "an-admin-token-of-the-test"
SHOWN = ("/admin/pool", "/admin/stats", "/metrics", "/console/state", "/console/stats?window=since_start")
_REGION_PX = ((-40, -30), (40, -30), (40, 12), (-40, 12))
"""Around the trichion of the portrait."""
_UP, _SIOCGIFFLAGS, _SIOCSIFFLAGS = 1, 0x8913, 0x8914


@dataclass(frozen=True, slots=True)
class Call:
    """One call and what came of it."""

    route: str
    format: str
    lang: str
    http_status: int
    body: dict[str, Any]


@dataclass(slots=True)
class Seen:
    """All that a test may want to look at."""

    calls: list[Call] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Whatever appeared or changed in the folder, for however short a time."""
    opened: list[dict[str, str]] = field(default_factory=list)
    """What edge, worker and their children opened for writing."""
    held: list[str] = field(default_factory=list)
    """Deleted files, and photos in memory, that were still open or mapped when all calls had their answers."""
    left: dict[str, int] | None = None
    """By counter of the kernel: what wanted to leave; None without a network of our own."""
    ports: list[int] = field(default_factory=list)
    """Every port at which a connection on loopback ended."""
    known_ports: list[int] = field(default_factory=list)
    """Those of edge and worker."""
    sent_out: list[str] = field(default_factory=list)
    """What the diffusion server was given, in hexadecimal."""
    shown: dict[str, str] = field(default_factory=dict)
    """By path: what operators are shown of all this."""
    lines: list[str] = field(default_factory=list)
    """Logs of every process."""


def main(folder: Path) -> None:
    """See the module."""
    alone = _loopback_up()
    seen = asyncio.run(_Walk(folder, alone).all())
    (folder / "seen.json").write_text(json.dumps(asdict(seen)))


def _loopback_up() -> bool:
    """Whether this is a network of our own, whose loopback is up from now on."""
    if any(name != "lo" for _index, name in socket.if_nameindex()):
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0))
        (flags,) = struct.unpack_from("16xH", request)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _UP))
    return True


class _Walk:
    def __init__(self, folder: Path, alone: bool) -> None:
        self._alone = alone
        self._place = folder / "place"
        self._watch = _Watch(self._place, folder / "opened.jsonl")
        self._environment = {
            "HOME": str(self._place / "home"),
            "TMPDIR": str(self._place / "tmp"),
            "XDG_CACHE_HOME": str(self._place / "home" / "cache"),
            "XDG_STATE_HOME": str(self._place / "home" / "state"),
            "HAIRMESH_MODELS_DIR": str(models.default_cache_dir()),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(Path(__file__).parent / "witness"),
            "WITNESS": str(folder / "opened.jsonl"),
        }
        for name in ("HOME", "TMPDIR"):
            Path(self._environment[name]).mkdir(parents=True)
        self._seen = Seen()
        with Image.open(studio_portrait()) as portrait:
            self._photos = {name: tagged(portrait, name) for name in FORMATS}

    async def all(self) -> Seen:
        """Both services, one after the other."""
        async with self._watch:
            await self._as_it_comes()
            await self._with_a_diffusion_server()
        self._seen.files, self._seen.opened = self._watch.files, self._watch.opened
        return self._seen

    async def _as_it_comes(self) -> None:
        async with self._running(growth={}) as service:
            for form in FORMATS:
                for route in CALLS[form]:
                    await self._call(service, route, form)
            await self._look(service)
            self._seen.known_ports = [int(url.rpartition(":")[2]) for url in (service.url, service.workers[0].address)]
            if self._alone:
                self._seen.left, self._seen.ports = _left(), _ports()

    async def _look(self, service: Service) -> None:
        """As operators do, when a photo was refused and a call has failed, too."""
        refused = {"image": (f"{MARK}-name.jpg", _nobody() + MARK.encode())}
        await service.client.post(api.MEASURE_ROUTE, files=refused)
        late = {"image": (f"{MARK}-name.jpg", self._photos["JPEG"])}
        await service.client.post(api.MEASURE_ROUTE, files=late, headers={"X-Request-Timeout-Ms": "1"})
        page = {ASKS: "1", "Origin": service.url}
        entered = await service.client.post("/console/session", json={"token": ADMIN_TOKEN}, headers=page)
        entered.raise_for_status()
        for path in SHOWN:
            answer = await service.client.get(path, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
            answer.raise_for_status()
            self._seen.shown[path] = answer.text

    async def _with_a_diffusion_server(self) -> None:
        with ComfyUiServer() as server:
            keep = server.engine.upload

            def note(data: bytes, *key: Any, **how: Any) -> Any:
                self._seen.sent_out.append(data.hex())
                return keep(data, *key, **how)

            server.engine.upload = note  # type: ignore[method-assign]
            growth = {"backend": "comfyui", "comfyui_url": server.url, "workflow": str(WORKFLOW)}
            async with self._running(growth) as service:
                for route in SLOW:
                    await self._call(service, route, "JPEG")

    @asynccontextmanager
    async def _running(self, growth: Mapping[str, str]) -> AsyncIterator[Service]:
        """A service that has loaded what it needs; inside, whatever it writes is noted."""
        service = self._service(growth)
        try:
            await service.start(admin_tokens=[ADMIN_TOKEN])
            for route in (api.FEATURES_ROUTE, api.SPECIAL_POINTS_ROUTE) if not growth else ():
                await service.client.post(route, files={"image": _nobody()})
            async with self._watch.noting():
                yield service
            self._seen.held += _held(service)
        finally:
            await service.stop()
            for process in _processes(service):
                self._seen.lines += process.lines

    def _service(self, growth: Mapping[str, str]) -> Service:
        folder = self._place / f"service{len(self._seen.lines)}"
        service = Service(folder)
        program = (str(console_script("hairmesh-worker")), "--config")
        service.add_worker(*program, config={"growth": growth}, environment=self._environment)
        service.edge.set_environment(self._environment)
        for process in _processes(service):
            process.cwd = self._place
        return service

    async def _call(self, service: Service, route: str, form: str) -> None:
        lang = LANGS.get(form, "en")
        answer = await service.client.post(
            route,
            files={"image": (f"{MARK}-name.{form.lower()}", self._photos[form])},
            data=self._parameters(route),
            headers={"Accept-Language": lang},
        )
        self._seen.calls.append(Call(route, form, lang, answer.status_code, answer.json()))

    def _parameters(self, route: str) -> dict[str, str]:
        if route == api.STYLES_ROUTE:
            return {"styles": "round", "sex": "female", "seed": "7"}
        if route == api.GROW_ROUTE:
            measured = next(call for call in self._seen.calls if call.route == api.MEASURE_ROUTE)
            point = measured.body["data"]["hairline"]["trichion"]["point"]
            return {"region": json.dumps([[point["x_px"] + x, point["y_px"] + y] for x, y in _REGION_PX]), "seed": "7"}
        return {}


class _Watch:
    """What is written in a folder, and what processes with the witness in their path open for writing anywhere."""

    def __init__(self, folder: Path, witness: Path) -> None:
        self.files: list[str] = []
        self.opened: list[dict[str, str]] = []
        self._folder = folder
        self._witness = witness
        self._fresh: list[str] = []
        self._news = asyncio.Condition()
        self._enough = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        """Watch."""
        self._task = asyncio.create_task(self._read())

    async def __aexit__(self, *_error: object) -> None:
        """Enough."""
        self._enough.set()
        if self._task is not None:
            await self._task

    @asynccontextmanager
    async def noting(self) -> AsyncIterator[None]:
        """What is written inside is noted. Outside libraries look for others by way of temporary files, and cache
        fonts: no photo is there yet.
        """
        await self._now()
        self._fresh.clear()
        opened_before = self._opened()
        yield
        await self._now()
        self.files += self._fresh
        self.opened += self._opened()[len(opened_before) :]

    async def _now(self) -> None:
        """Until everything that was written so far has been told."""
        mark = self._folder / f"mark-{uuid.uuid4()}"
        mark.touch()
        async with self._news:
            await self._news.wait_for(lambda: mark.name in self._fresh)
        mark.unlink()

    async def _read(self) -> None:
        async for changes in watchfiles.awatch(self._folder, watch_filter=None, step=10, stop_event=self._enough):
            async with self._news:
                self._fresh += [str(Path(path).relative_to(self._folder)) for _change, path in changes]
                self._news.notify_all()

    def _opened(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self._witness.read_text().splitlines()]


def _nobody() -> bytes:
    """A picture without a face."""
    file = io.BytesIO()
    Image.new("RGB", (256, 256)).save(file, "PNG")
    return file.getvalue()


def _processes(service: Service) -> Sequence[Process]:
    return (service.edge, *service.workers)


def _held(service: Service) -> list[str]:
    """Deleted files that are open in a process of the service, and files in memory that are open or mapped."""
    found = []
    for process in _processes(service):
        root = psutil.Process(process.running.pid)
        for each in (root, *root.children(recursive=True)):
            with suppress(FileNotFoundError):
                for descriptor in Path(f"/proc/{each.pid}/fd").iterdir():
                    with suppress(FileNotFoundError):
                        target = str(descriptor.readlink())
                        found += [f"{process.name}: {target}"] if target.endswith(" (deleted)") else []
                maps = Path(f"/proc/{each.pid}/maps").read_text().splitlines()
                found += [f"{process.name}: {line[73:]}" for line in maps if line.endswith("(deleted)")]
    return found


def _left() -> dict[str, int]:
    """Counters of this network: datagrams, and whatever found no way out."""
    counts = {name: int(value) for name, value in (line.split() for line in _network("snmp6"))}
    found = {name: counts[name] for name in ("Ip6OutNoRoutes", "Udp6OutDatagrams")}
    lines = _network("snmp")
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        kind = names.partition(":")[0]
        row = dict(zip(names.split()[1:], values.split()[1:], strict=True))
        for name in {"Ip": ("OutNoRoutes",), "Udp": ("OutDatagrams",)}.get(kind, ()):
            found[f"{kind}{name}"] = int(row[name])
    return found


def _ports() -> list[int]:
    """Where connections on loopback ended or end, those just closed included: of each the lower port, as that of
    whoever opens one is drawn from higher ones.
    """
    found = set()
    for name in ("tcp", "tcp6"):
        for line in _network(name)[1:]:
            ours, theirs = (int(end.rpartition(":")[2], 16) for end in line.split()[1:3])
            found.add(min(ours, theirs or ours))
    return sorted(found)


def _network(name: str) -> list[str]:
    return Path(f"/proc/self/net/{name}").read_text().splitlines()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
