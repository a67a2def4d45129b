"""Probes, the alerting endpoint and its drill. Everything is answered from memory."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping

import orjson
import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from edge import outside
from edge.calls import Mesh
from edge.images.store import ImageStore
from edge.local.thread import LocalThread
from edge.messages import Text
from edge.outside import said
from edge.reload import InForce
from edge.secrets import Door, Finding, Gate, Verdict

NO_WORKER = "没有可用的 worker"
DRILL = "模拟故障：监控测试中，真实 worker 未摘除"
DRILL_NO_WORKER = "模拟故障：监控测试中，当前没有可用的 worker"
DRILL_ON = "已开启模拟故障，GET /monitor 将返回 503"
DRILL_OFF = "已关闭模拟故障，GET /monitor 恢复真实状态"

MAX_SMALL_BODY_BYTES = 1024
BODY_TIMEOUT_S = 5.0

log = structlog.get_logger()


class Monitor:
    """Handlers outside `/api/`. The drill lives here: in memory, off after a restart, changing `/monitor` alone."""

    def __init__(self, mesh: Mesh, store: ImageStore, local: LocalThread, in_force: InForce, gate: Gate) -> None:
        self._mesh = mesh
        self._store = store
        self._local = local
        self._in_force = in_force
        self._gate = gate
        self._drill = False

    @property
    def drill(self) -> bool:
        """Whether one is on."""
        return self._drill

    async def health(self, _request: Request) -> Response:
        """Whether the process is up: always 200."""
        online = self._mesh.online()
        return answer({"status": "ok", **_SERVICE, "workers_total": online.total, "workers_healthy": online.healthy})

    async def livez(self, _request: Request) -> Response:
        """Whether a restart would not help: this answer is the proof."""
        return answer({"status": "ok", **_SERVICE})

    async def readyz(self, _request: Request) -> Response:
        """Whether calls may come here: configuration loaded (else there is no answer), picture store writable.

        Local vision that hangs is told and changes nothing: without it the calls of workers go on.
        """
        ready = self._store.writable
        body = {
            "status": "ok" if ready else "unavailable",
            **_SERVICE,
            "picture_store_writable": ready,
            "local_vision_stuck": self._local.state.stuck,
        }
        return answer(body, 200 if ready else 503)

    async def monitor(self, _request: Request) -> Response:
        """Whether anybody can compute: 503 when no worker is online, or during a drill."""
        status, body = self.verdict()
        return answer(body, status)

    def verdict(self) -> tuple[int, dict[str, object]]:
        """What `/monitor` answers at this moment: HTTP status and body."""
        online = self._mesh.online()
        healthy = online.healthy > 0 and not self._drill
        body: dict[str, object] = {
            "status": "ok" if healthy else "unhealthy",
            **_SERVICE,
            "workers_total": online.total,
            "workers_healthy": online.healthy,
            "workers_primary_total": online.primary_total,
            "workers_primary_healthy": online.primary_healthy,
        }
        if self._drill:
            body["simulated"] = True
            body["message"] = DRILL if online.healthy else DRILL_NO_WORKER
        elif not healthy:
            body["message"] = NO_WORKER
        return 200 if healthy else 503, body

    async def fault(self, request: Request) -> Response:
        """Switch the drill. The token is checked before the body is read."""
        tokens = request.headers.getlist("x-internal-token")
        shown = tokens[0].encode("latin-1") if len(tokens) == 1 else None
        verdict = self._gate.judge(Door.DRILL, request, shown, (self._in_force.settings.shared_password,))
        if verdict.finding is not Finding.GOOD:
            return turned_away(request, verdict, outside.DRILL_TOKEN_WRONG, outside.DRILL_TOKENS_TOO_MANY)
        return await self.switch_drill(request)

    async def switch_drill(self, request: Request) -> Response:
        """The same for a request whose sender has shown already that they may."""
        body = await small_body(request)
        if body is None:
            return refusal(400, said(outside.DRILL_BODY_LARGE, request))
        try:
            wanted = orjson.loads(body)
        except orjson.JSONDecodeError:
            wanted = None
        if not isinstance(wanted, dict) or set(wanted) != {"enabled"} or not isinstance(wanted["enabled"], bool):
            return refusal(400, said(outside.DRILL_BODY_WRONG, request))
        enabled: bool = wanted["enabled"]
        if enabled != self._drill:
            log.warning("alert_drill", enabled=enabled)
        self._drill = enabled
        return answer({"status": "ok", "simulated": enabled, "message": DRILL_ON if enabled else DRILL_OFF})


_SERVICE = {"service": "gateway"}
_HEADERS = {"Cache-Control": "no-store"}


def answer(body: Mapping[str, object], status: int = 200) -> Response:
    """Any answer outside `/api/`: what it says is true for the moment only."""
    return Response(orjson.dumps(body), status, _HEADERS, "application/json")


def refusal(status: int, message: str) -> Response:
    """Any refusal outside `/api/`: there is no business envelope there."""
    return answer({"status": "error", "message": message}, status)


def turned_away(request: Request, verdict: Verdict, message: Text, too_many: Text) -> Response:
    """A refusal of whoever showed no token that is good: in words for one, and for too many wrong ones."""
    if verdict.finding is not Finding.TOO_MANY:
        return refusal(401, said(message, request))
    response = refusal(429, said(too_many, request))
    response.headers["Retry-After"] = str(math.ceil(verdict.retry_after_s))
    return response


async def small_body(request: Request) -> bytes | None:
    """A body of at most `MAX_SMALL_BODY_BYTES`; None when there is more, or when it does not arrive."""
    body = b""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_SMALL_BODY_BYTES:
                    return None
    except (TimeoutError, ClientDisconnect):
        return None
    return body
