"""Composition root: settings in, ASGI application out. Who talks to whom is decided here and nowhere else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from functools import wraps
from typing import Any, Protocol

import structlog
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import hairmesh
from edge import openapi, openapi_admin, openapi_calls, openapi_stats
from edge.admin import Admin, SeenMesh
from edge.api_keys import Access
from edge.certificates import Certificates
from edge.console.handlers import Console
from edge.documentation import DocumentedApp, add_pages
from edge.errors import FRAMEWORK_REASONS, ApiError
from edge.exchange import PREFIX, ApiExchanges
from edge.images import openapi as openapi_images
from edge.images import removal, serve
from edge.images.opening import open_store
from edge.images.sweeper import look_after
from edge.local import openapi as openapi_local
from edge.local.calls import LocalCalls
from edge.local.llm import VisionLlm
from edge.local.thread import Load, LocalThread, load_engine
from edge.metrics import EdgeMetrics
from edge.monitor import Monitor, refusal
from edge.pool.config import PoolConfig
from edge.recent_errors import RecentErrors
from edge.reload import ConfigFile, InForce, Looking, Reloader, content_hash
from edge.request_log import RequestLog
from edge.room import Room
from edge.routes import Calls
from edge.secrets import Gate
from edge.server.crowd import Crowd
from edge.settings import Settings
from edge.stats import Stats
from edge.stream import COMMENT_EVERY_S
from edge.tls import HttpsCertificate
from edge.tracing import Tracing
from edge.unread import WithoutUnread
from edge.upstream.channel import ChannelSecurity

log = structlog.get_logger()

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
Handler = Callable[[Request], Awaitable[Response]]


class RunningMesh(SeenMesh, Protocol):
    """A mesh with a life of its own."""

    async def start(self) -> None:
        """Return when every worker has been asked once."""

    async def close(self) -> None:
        """End calls, probes and channels."""

    async def reconfigure(self, config: PoolConfig, password: str, security: ChannelSecurity) -> None:
        """Take others over without losing a call; what cannot be is raised before anything has changed."""


def create_app(
    settings: Settings,
    mesh: RunningMesh,
    file: ConfigFile | None = None,
    *,
    https: HttpsCertificate | None = None,
    comment_every_s: float = COMMENT_EVERY_S,
    load_local: Load = load_engine,
    looking: Looking = nullcontext,
) -> FastAPI:
    """The whole REST side over `mesh`, which starts and ends with the application.

    `file` is where the settings came from: it is watched, and changes are in force while the edge runs.
    `https` is the certificate that the server listens with. `comment_every_s`: how often a streamed answer shows that
    it lives. `load_local` loads what the edge computes itself with, when that is asked for. `looking`: entered while
    the file is looked at because somebody asked for it.
    """
    log_file = settings.request_log
    store = open_store(settings.static)
    request_log = RequestLog(log_file.path, max_bytes=log_file.max_bytes, keep=log_file.keep)
    in_force = InForce(settings, content_hash(file.content) if file else "")
    certificates = Certificates(in_force, https, mesh.reconfigure)
    local = LocalCalls(LocalThread(settings.local_vision, load_local), VisionLlm(), in_force)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as end:  # the last one first, each though another one fails
            if tracing is not None:
                await end.enter_async_context(_closing(tracing))
            for part in (request_log, store, local, mesh, certificates, gate, exposition):
                await end.enter_async_context(_closing(part))
            if settings.metrics.listen:
                exposition.serve(settings.metrics.listen)
            await store.probe()
            await mesh.start()  # the first round of probes: the port opens after it
            await end.enter_async_context(_background(look_after(store)))
            if file is not None:
                reloader = Reloader(file, in_force, mesh.reconfigure, certificates.look, looking)
                await end.enter_async_context(_background(reloader.run()))
            yield

    app = _framework(settings, lifespan)
    room = Room(in_force)
    crowd = Crowd(lambda: in_force.settings.limits, time.monotonic)
    app.state.room, app.state.crowd = room, crowd  # for the server: see `edge.command`
    app.state.in_force = in_force
    picture_url = f"{settings.picture_base_url}{serve.PATH}"
    calls = Calls(mesh, store, in_force, picture_url, comment_every_s)
    gate = Gate(in_force)
    access = Access(in_force, gate)
    monitor = Monitor(mesh, store, local.vision, in_force, gate)
    stats = Stats()
    exposition = EdgeMetrics(
        mesh, stats, store, local.vision, monitor, in_force, request_log, gate, access, certificates, room, crowd
    ).exposition()
    tracing = Tracing.to(settings.tracing.otlp_endpoint)
    admin = Admin(mesh, local.vision, in_force, monitor, stats=stats, exposition=exposition, gate=gate)
    recent = RecentErrors()
    picture, remove = serve.Pictures(store).picture, removal.Removal(store, gate.judge_admin).remove
    plain_calls = _add_calls(app, calls, local)
    _add_routes(app, monitor=monitor, admin=admin, picture=picture, remove=remove)
    console = Console(in_force, monitor, pool=admin.describe_pool, recent=recent, stats=stats, gate=gate)
    for method, path, respond in console.routes():
        app.add_route(path, respond, methods=[method], include_in_schema=False)
    app.add_middleware(WithoutUnread)
    app.add_middleware(  # around that one: it refuses what stands in the query of a call
        ApiExchanges,
        request_log=request_log,
        recent=recent,
        stats=stats,
        room=room,
        admit=access.admit,
        calls=plain_calls,
        trace=None if tracing is None else tracing.tell,
    )
    return app


def _add_calls(app: FastAPI, calls: Calls, local: LocalCalls) -> dict[tuple[str, str], Handler]:
    """The calls by method and path, for `ApiExchanges` to run. What the framework has of them is their documentation.

    The framework is less strict about a path than a table is (it takes one that ends with a line feed): who reached a
    call through it would have been asked for no key, and counted by nobody.
    """
    added: dict[tuple[str, str], Handler] = {}
    for path, call, documentation in (
        ("/api/v1/face/measure", calls.measure, openapi_calls.MEASURE),
        ("/api/v1/face/masks", calls.masks, openapi_calls.MASKS),
        ("/api/v1/hair/hairlines", calls.hairlines, openapi_calls.HAIRLINES),
        ("/api/v1/hair/styles", calls.styles, openapi_calls.STYLES),
        ("/api/v1/hair/grow", calls.grow, openapi_calls.GROW),
        ("/api/v1/face/features", local.features, openapi_local.FEATURES),
        ("/api/v1/face/special-points", local.special_points, openapi_local.SPECIAL_POINTS),
    ):
        app.add_api_route(path, _documented(call), methods=["POST"], **documentation)
        added["POST", path] = call
    return added


def _documented(call: Handler) -> Handler:
    """What describes itself as the call does, and is not there for anybody who asks."""

    @wraps(call)
    async def not_here(request: Request) -> Response:
        del request.scope["route"]  # nor is it counted as that call
        raise HTTPException(404)

    return not_here


def _add_routes(app: FastAPI, *, monitor: Monitor, admin: Admin, picture: Handler, remove: Handler) -> None:
    """Every other documented path, with who answers there and what is documented of it."""
    app.add_api_route("/monitor/fault", monitor.fault, methods=["POST"], **openapi.FAULT)
    for path, handler, documentation in (
        ("/health", monitor.health, openapi.HEALTH),
        ("/gateway-health", monitor.health, openapi.HEALTH),
        ("/livez", monitor.livez, openapi.LIVEZ),
        ("/readyz", monitor.readyz, openapi.READYZ),
        ("/monitor", monitor.monitor, openapi.MONITOR),
        ("/admin/pool", admin.pool, openapi_admin.POOL),
        ("/admin/stats", admin.stats, openapi_stats.STATS),
        ("/metrics", admin.metrics, openapi_stats.METRICS),
        (f"{serve.PATH}{{name}}", picture, openapi.PICTURE),
    ):
        app.add_api_route(path, handler, methods=["GET"], **documentation)
        app.add_route(path, handler, methods=["HEAD"], include_in_schema=False)
    app.add_api_route(removal.PATH, remove, methods=["DELETE"], **openapi_images.REMOVAL)


class _Closable(Protocol):
    """A part of the application."""

    def close(self) -> Awaitable[None] | None:
        """End it."""


@asynccontextmanager
async def _closing(part: _Closable) -> AsyncIterator[None]:
    """It is closed at the end; an error has the one before as its context, which a stack's own callbacks would lose."""
    try:
        yield
    finally:
        if (closing := part.close()) is not None:
            await closing


@asynccontextmanager
async def _background(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Inside, it runs; it does not end by itself."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _framework(settings: Settings, lifespan: Lifespan) -> FastAPI:
    """FastAPI, told to refuse in our words, never to redirect, and to bring its documentation pages itself."""
    options: dict[str, Any] = {
        "title": openapi.TITLE,
        "description": openapi.DESCRIPTION,
        "version": hairmesh.__version__,
        "lifespan": lifespan,
        "redirect_slashes": False,  # a redirect would be built from the Host header
        "exception_handlers": {HTTPException: _refuse},
    }
    app = DocumentedApp(openapi_url=None, **options)
    if settings.docs.enabled:
        add_pages(app)
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    """The framework's own refusals: the envelope under `/api/`, the short form elsewhere."""
    if not isinstance(error, HTTPException):
        raise error
    if request.url.path.startswith(PREFIX):
        raise ApiError(FRAMEWORK_REASONS.get(error.status_code, "EDGE_FAILED"), headers=error.headers) from None
    response = refusal(error.status_code, error.detail)
    response.headers.update(error.headers or {})
    if response.headers.get("allow") == "GET":  # HEAD is a route of its own wherever GET is one
        response.headers["allow"] = "GET, HEAD"
    return response
