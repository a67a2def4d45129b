"""The process around a worker: wiring, port, signals, drain."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import grpc
import structlog
from grpc import aio
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server
from grpc_reflection.v1alpha import reflection
from hair.analysis.v1 import analyze_service_pb2
from hair.analysis.v1.analyze_service_pb2_grpc import add_AnalyzeServiceServicer_to_server
from hair.worker.v1.worker_service_pb2_grpc import add_WorkerServiceServicer_to_server

from hairmesh import pem
from hairmesh.wire import SERVER_OPTIONS, WORKER_SERVICE
from worker.drain import Drain
from worker.engine import Engine, PipelineLoader
from worker.health.checks import DiskCheck, ModelsCheck
from worker.health.disk import DiskProbe
from worker.health.monitor import HealthMonitor
from worker.health.reporter import HealthReporter
from worker.identity import Identity
from worker.news import News
from worker.passwords import PasswordInterceptor, Passwords
from worker.reload import PasswordReload
from worker.runner import Runner
from worker.servicer import AnalyzeServicer
from worker.settings import Settings, SettingsError
from worker.status import StatusBook, WorkerServicer
from worker.thresholds import Thresholds
from worker.warmup import real_pipeline, warm_up

HEALTH_SERVICE: str = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
# By its descriptor too: reflection knows only files that were imported, and nothing else here imports this one.
ANALYZE_SERVICE: str = analyze_service_pb2.DESCRIPTOR.services_by_name["AnalyzeService"].full_name
REFLECTED = (ANALYZE_SERVICE, WORKER_SERVICE, HEALTH_SERVICE, reflection.SERVICE_NAME)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})

log = structlog.stdlib.get_logger("worker.server")


class CannotListenError(Exception):
    """The port is taken, or the address is not of this machine. The message says which."""


class Worker:
    """One worker on one port. `await Worker.start(…)`, later `await worker.stop()`; usable inside any event loop."""

    def __init__(self, settings: Settings, load_pipeline: PipelineLoader, thresholds: Thresholds) -> None:
        self._settings = settings
        self._thresholds = thresholds
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping: asyncio.Task[bool] | None = None
        loop = asyncio.get_running_loop()
        clock = time.monotonic
        health = settings.health
        self._news = News()

        def stage_entered() -> None:
            with suppress(RuntimeError):  # the loop was closed before a thread that nobody waited for ended
                loop.call_soon_threadsafe(self._news.touch)

        self.identity = Identity()
        self.broken: asyncio.Future[BaseException] = loop.create_future()
        """Set when a background task of the worker itself died: the process has to end."""
        self.port = 0
        self.passwords = Passwords(settings.accept_passwords)
        self._models = ModelsCheck()
        self._engine = Engine(load_pipeline, clock=clock, on_stage=stage_entered)
        self._runner = Runner(
            self._engine,
            self._models,
            thresholds=thresholds,
            canary_max_age_s=health.canary_max_age_seconds,
            clock=clock,
            on_change=self._news.touch,
        )
        self._drain = Drain(settings.drain_delay_seconds, self._news.touch)
        self._disk_probe = DiskProbe(health.disk_paths, thresholds, clock)
        self._monitor = HealthMonitor(
            identity=self.identity,
            engine=self._engine,
            runner=self._runner,
            models=self._models,
            drain=self._drain,
            disk=DiskCheck(
                min_free_gib=health.min_free_gb,
                resume_free_gib=health.resume_free_gb,
                started_s=clock(),
                thresholds=thresholds,
            ),
            disk_probe=self._disk_probe,
            canary_max_age_s=health.canary_max_age_seconds,
            stall_after_s=health.stall_after_seconds,
            thresholds=thresholds,
            clock=clock,
            on_change=self._news.touch,
        )
        self._analyze = AnalyzeServicer(self._engine, self._runner, self._monitor, self._drain, thresholds)
        book = StatusBook(
            identity=self.identity, engine=self._engine, runner=self._runner, monitor=self._monitor, clock=clock
        )
        doorman = PasswordInterceptor(self.passwords, log_period_s=thresholds.turned_away_log_s, clock=clock)
        self._server = aio.server(interceptors=[doorman], options=SERVER_OPTIONS)
        add_AnalyzeServiceServicer_to_server(self._analyze, self._server)
        add_WorkerServiceServicer_to_server(
            WorkerServicer(book, self._drain, self._runner, self._news, thresholds), self._server
        )
        add_HealthServicer_to_server(HealthReporter(self._monitor, self.passwords, self._news), self._server)
        reflection.enable_server_reflection(REFLECTED, self._server)

    @classmethod
    async def start(
        cls,
        settings: Settings,
        *,
        load_pipeline: PipelineLoader | None = None,
        thresholds: Thresholds | None = None,
    ) -> Self:
        """Open the port at once, load the models behind it. Raises `CannotListenError`, `SettingsError`."""
        worker = cls(settings, load_pipeline or real_pipeline(settings), thresholds or Thresholds())
        worker.port = _listen(worker._server, settings)
        if settings.health.min_free_gb:
            worker._disk_probe.start()
        await worker._server.start()
        worker._in_background(worker._monitor.run())
        worker._in_background(
            warm_up(
                worker._engine,
                worker._models,
                worker._runner,
                retry_s=worker._thresholds.load_retry_s,
                on_change=worker._news.touch,
            )
        )
        log.info(
            "listening",
            address=worker.address,
            tls=settings.tls.cert is not None,
            boot_id=worker.identity.boot_id,
            pid=os.getpid(),
        )
        return worker

    @property
    def address(self) -> str:
        """Host and port it listens on."""
        return f"{self._settings.host}:{self.port}"

    async def stop(self) -> bool:
        """Drain, finish the running call within the grace time, close. Asking twice is asking once.

        False when the compute thread did not end: only the end of the process ends it.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop())
        return await asyncio.shield(self._stopping)

    async def _stop(self) -> bool:
        self._drain.begin()
        await self._drain.wait_refusing()
        if not await self._runner.free_within(self._settings.drain_grace_seconds):
            log.warning("grace_over", advice="the running call is cut off; its caller may try another worker")
            await self._analyze.cut_off(self._thresholds.close_s)
        self._news.close()
        await self._server.stop(self._thresholds.close_s)
        for task in self._tasks:
            task.cancel()
        self._disk_probe.stop()
        ended = await self._engine.close(self._thresholds.close_s)
        log.info("stopped", compute_thread_ended=ended)
        return ended

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) and not self.broken.done():
            log.error("worker_broken", exc_info=error)
            self.broken.set_result(error)


async def serve(
    settings: Settings,
    *,
    load_pipeline: PipelineLoader | None = None,
    config_path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    listen: str | None = None,
    thresholds: Thresholds | None = None,
) -> int:
    """Run a worker until SIGTERM or SIGINT; the exit code. A second signal ends the process at once.

    `config_path`, `environ` and `listen` are those the settings were read from: the file is watched for passwords.
    """
    thresholds = thresholds or Thresholds()
    asked = _watch_signals()  # first of all: a signal while the port opens ends the worker in order as well
    worker = await Worker.start(settings, load_pipeline=load_pipeline, thresholds=thresholds)
    reload = None
    if config_path:
        reload = PasswordReload(
            config_path, environ or {}, worker.passwords, settings, listen=listen, poll_s=thresholds.config_poll_s
        )
        reload.start()
    ends: set[asyncio.Future[Any]] = {asked, worker.broken}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if reload:
        reload.stop()
    code = 1 if worker.broken.done() else 0
    if not await worker.stop():
        os._exit(code)  # the interpreter would wait for the compute thread for ever
    return code


def _watch_signals() -> asyncio.Future[signal.Signals]:
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[signal.Signals] = loop.create_future()

    def on_signal(number: signal.Signals) -> None:
        if asked.done():
            log.warning("second_signal", signal=number.name)
            os._exit(128 + number)
        log.info("signal", signal=number.name)
        asked.set_result(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    return asked


def _listen(server: aio.Server, settings: Settings) -> int:
    if not settings.tls.cert and settings.host not in LOOPBACK:
        log.warning(
            "plaintext_port",
            listen=settings.listen,
            advice="pictures of faces and the password cross the network readable; set tls.cert and tls.key",
        )
    try:
        if settings.tls.cert and settings.tls.key:
            credentials = _credentials(settings.tls.cert, settings.tls.key, settings.tls.client_ca)
            return server.add_secure_port(settings.listen, credentials)
        return server.add_insecure_port(settings.listen)
    except RuntimeError as error:
        raise CannotListenError(
            f"cannot listen on {settings.listen}: another process has that port, or the address is not of this machine"
        ) from error


def _credentials(cert: Path, key: Path, client_ca: Path | None) -> grpc.ServerCredentials:
    try:
        pair = pem.key_and_certificate(key, cert)
        authority = pem.authority(client_ca) if client_ca else None
    except pem.PemError as error:
        raise SettingsError(f"tls: {error}") from None
    return grpc.ssl_server_credentials([pair], root_certificates=authority, require_client_auth=authority is not None)
