"""The process around a worker: wiring, port, signals, drain."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import structlog
from grpc import aio
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server
from grpc_reflection.v1alpha import reflection
from hair.analysis.v1 import analyze_service_pb2
from hair.analysis.v1.analyze_service_pb2_grpc import add_AnalyzeServiceServicer_to_server
from hair.worker.v1 import worker_service_pb2
from hair.worker.v1.worker_service_pb2_grpc import add_WorkerServiceServicer_to_server

from hairmesh.spans import Collector
from hairmesh.wire import SERVER_OPTIONS, WORKER_SERVICE
from worker.bare_checks import BareChecks
from worker.calls import Calls
from worker.certificates import PortCertificate
from worker.drain import Drain
from worker.engine import Engine, PipelineLoader
from worker.health.checks import DiskCheck, ModelsCheck
from worker.health.disk import DiskProbe
from worker.health.growth import GrowthCheck
from worker.health.monitor import HealthMonitor
from worker.health.prober import Dependencies
from worker.health.report import Report
from worker.health.reporter import HealthReporter
from worker.identity import Identity
from worker.metrics import WorkerMetrics
from worker.news import News
from worker.notify import SystemdNotify
from worker.outside import check_tracing
from worker.passwords import PasswordInterceptor, Passwords
from worker.port import CannotListenError, listen_on
from worker.reload import PasswordReload
from worker.runner import Runner
from worker.servicer import AnalyzeServicer
from worker.settings import Settings, TracingSettings
from worker.status import StatusBook, WorkerServicer
from worker.tally import Tally
from worker.thresholds import Thresholds
from worker.warmup import real_pipeline, warm_up

__all__ = ["EXIT_ACCELERATOR_LOST", "EXIT_BROKEN", "REFLECTED", "CannotListenError", "Worker", "serve"]

_HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"]
HEALTH_SERVICE: str = _HEALTH.full_name
# By its descriptor too: reflection knows only files that were imported, and nothing else here imports this one.
_ANALYZE = analyze_service_pb2.DESCRIPTOR.services_by_name["AnalyzeService"]
ANALYZE_SERVICE: str = _ANALYZE.full_name
METHODS = frozenset(
    f"/{service.full_name}/{method.name}"
    for service in (_HEALTH, _ANALYZE, worker_service_pb2.DESCRIPTOR.services_by_name["WorkerService"])
    for method in service.methods
)
"""Every RPC there is, but for reflection's."""
REFLECTED = (ANALYZE_SERVICE, WORKER_SERVICE, HEALTH_SERVICE, reflection.SERVICE_NAME)

EXIT_BROKEN = 1
"""A background task of the worker itself died."""
EXIT_ACCELERATOR_LOST = 4
"""Nothing but a new process brings the accelerator back: whoever started this one is to start another."""

log = structlog.stdlib.get_logger("worker.server")


class Worker:
    """One worker on one port. `await Worker.start(…)`, later `await worker.stop()`; usable inside any event loop."""

    def __init__(
        self,
        settings: Settings,
        load_pipeline: PipelineLoader,
        thresholds: Thresholds,
        notify: SystemdNotify | None = None,
    ) -> None:
        self._settings = settings
        self._notify = notify
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
        self.accelerator_lost: asyncio.Future[None] = loop.create_future()
        """Set when the accelerator is gone for good: a new process has to take over."""
        self.port = 0
        self.metrics_port = 0
        """Where Prometheus reads; 0: nowhere."""
        self.passwords = Passwords(settings.accept_passwords)
        self._certificate = PortCertificate.of(settings.tls, poll_s=thresholds.config_poll_s)
        self._models = ModelsCheck()
        self._engine = Engine(load_pipeline, clock=clock, on_stage=stage_entered)
        self._runner = Runner(
            self._engine,
            self._models,
            thresholds=thresholds,
            canary_max_age_s=health.canary_max_age_seconds,
            clock=clock,
            on_change=self._changed,
        )
        self._drain = Drain(settings.drain_delay_seconds, self._news.touch)
        self._disk_probe = DiskProbe(health.disk_paths, thresholds, clock)
        self._dependencies = Dependencies(
            health.deps,
            checked=health.check_deps,
            interval_s=health.deps_cache_seconds,
            thresholds=thresholds,
            clock=clock,
        )
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
            dependencies=self._dependencies,
            growth=GrowthCheck(configured=settings.growth.configured, thresholds=thresholds),
            canary_max_age_s=health.canary_max_age_seconds,
            stall_after_s=health.stall_after_seconds,
            thresholds=thresholds,
            clock=clock,
            on_change=self._changed,
            on_beat=self._beat,
        )
        tally = Tally()
        self._collector = _collector(settings.tracing)
        self._calls = Calls(
            self._engine,
            self._runner,
            self._monitor,
            self._drain,
            thresholds,
            tally=tally,
            collector=self._collector,
        )
        self._exposition = WorkerMetrics(tally, self._runner, self._monitor, self._certificate).exposition()
        book = StatusBook(
            identity=self.identity, engine=self._engine, runner=self._runner, monitor=self._monitor, clock=clock
        )
        self._doorman = PasswordInterceptor(
            self.passwords,
            tally=tally,
            known=METHODS,
            bare_checks=BareChecks(prompt_s=thresholds.check_prompt_s, late_s=thresholds.check_late_s),
            log_period_s=thresholds.turned_away_log_s,
            clock=clock,
        )
        self._server = aio.server(interceptors=[self._doorman], options=SERVER_OPTIONS)
        add_AnalyzeServiceServicer_to_server(AnalyzeServicer(self._calls, self._engine), self._server)
        add_WorkerServiceServicer_to_server(
            WorkerServicer(book, self._drain, self._calls.wait_ended, self._news, thresholds), self._server
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
        notify: SystemdNotify | None = None,
    ) -> Self:
        """Open the port at once, load the models behind it. Raises `CannotListenError`, `SettingsError`."""
        worker = cls(settings, load_pipeline or real_pipeline(settings), thresholds or Thresholds(), notify)
        worker.port = listen_on(worker._server, settings, worker._certificate)
        worker._serve_metrics()
        if settings.health.min_free_gb:
            worker._disk_probe.start()
        worker._dependencies.start()
        await worker._server.start()
        if worker._certificate:
            worker._certificate.start()
        worker._in_background(worker._monitor.run())
        worker._in_background(
            warm_up(
                worker._engine,
                worker._models,
                worker._runner,
                retry_s=worker._thresholds.load_retry_s,
                on_change=worker._changed,
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
        if self._notify:
            self._notify.stopping()
        self._drain.begin()
        await self._drain.wait_refusing()
        try:
            async with asyncio.timeout(self._settings.drain_grace_seconds):
                await self._calls.wait_ended()
        except TimeoutError:
            log.warning("grace_over", advice="the running call is cut off; its caller may try another worker")
        with _going_on("calls"):
            await self._calls.cut_off(self._thresholds.close_s)
        with _going_on("news"):
            self._news.close()
        with _going_on("server"):
            await self._server.stop(self._thresholds.close_s)
        self._doorman.close()
        for task in self._tasks:
            task.cancel()
        self._disk_probe.stop()
        self._dependencies.stop()
        if self._certificate:
            self._certificate.stop()
        with _going_on("metrics"):
            await self._exposition.close()
        with _going_on("tracing"):
            if self._collector is not None:
                await asyncio.to_thread(self._collector.close)
        ended = True
        with _going_on("pipeline"):
            ended = await self._engine.close(self._thresholds.thread_end_s)
        if self._notify:
            self._notify.close()
        log.info("stopped", compute_thread_ended=ended)
        return ended

    def _serve_metrics(self) -> None:
        listen = self._settings.metrics.listen
        if listen is None:
            return
        try:
            self.metrics_port = self._exposition.serve(listen)
        except OSError as error:
            raise CannotListenError(f"cannot listen on metrics.listen {listen}: {error.strerror}") from error

    def _changed(self) -> None:
        self._news.touch()
        if self._models.accelerator_lost and not self.accelerator_lost.done():
            self.accelerator_lost.set_result(None)

    def _beat(self, report: Report, now_s: float) -> None:
        if self._notify:
            self._notify.beat(report, now_s)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) and not self.broken.done():
            log.error("worker_broken", exc_info=error)
            self.broken.set_result(error)


@contextmanager
def _going_on(part: str) -> Iterator[None]:
    """Whatever fails in closing a part is told, and the others are closed all the same."""
    try:
        yield
    except Exception:
        log.exception("part_not_closed", part=part)


def _collector(tracing: TracingSettings) -> Collector | None:
    """None where there is none; raises `SettingsError` where it could not be used."""
    check_tracing(tracing)
    return Collector(tracing.otlp_endpoint, "hairmesh-worker") if tracing.otlp_endpoint else None


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

    It ends by itself when it is broken (`EXIT_BROKEN`) or has lost its accelerator for good (`EXIT_ACCELERATOR_LOST`):
    then, after edges had time to hear why, in the same order.

    `config_path`, `environ` and `listen` are those the settings were read from: the file is watched for passwords.
    """
    thresholds = thresholds or Thresholds()
    sys.setswitchinterval(thresholds.gil_switch_s)
    asked = _watch_signals()  # first of all: a signal while the port opens ends the worker in order as well
    notify = SystemdNotify.from_environment(thresholds)
    worker = await Worker.start(settings, load_pipeline=load_pipeline, thresholds=thresholds, notify=notify)
    reload = None
    if config_path:
        reload = PasswordReload(
            config_path, environ or {}, worker.passwords, settings, listen=listen, poll_s=thresholds.config_poll_s
        )
        reload.start()
    code = await _until_the_end(worker, asked, settings.drain_delay_seconds)
    if reload:
        reload.stop()
    if not await worker.stop():
        os._exit(code)  # the interpreter would wait for the compute thread for ever
    return code


async def _until_the_end(worker: Worker, asked: asyncio.Future[signal.Signals], delay_s: float) -> int:
    """Until there is a reason to stop; the exit code that says which."""
    ends: set[asyncio.Future[Any]] = {asked, worker.broken}
    await asyncio.wait({*ends, worker.accelerator_lost}, return_when=asyncio.FIRST_COMPLETED)
    if not asked.done() and not worker.broken.done():
        # NOT_SERVING is said already, every call is refused: let edges hear the cause before they hear of draining.
        log.error("accelerator_lost_for_good", exit_code=EXIT_ACCELERATOR_LOST, in_s=delay_s)
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED, timeout=delay_s)
        if not asked.done() and not worker.broken.done():
            return EXIT_ACCELERATOR_LOST
    return EXIT_BROKEN if worker.broken.done() else 0


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
