"""`hairmesh-edge --config FILE`: the REST side as one process."""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import NoReturn, cast
from urllib.parse import urlsplit

import structlog
import uvicorn
from fastapi import FastAPI
from typing_extensions import override
from uvicorn.lifespan.on import LifespanOn

from edge.app import create_app
from edge.notify import SystemdNotify
from edge.reload import ConfigFile
from edge.server.connection import Connection
from edge.server.crowd import Crowd
from edge.server.door import Door
from edge.settings import ConfigError, Settings, check_tls_files, parse
from edge.tls import HttpsCertificate
from edge.upstream.channel import ChannelSecurityError
from edge.upstream.driver import Driver
from hairmesh import __version__, logs, spans
from hairmesh.memory import keep_small_return_large
from hairmesh.pem import loose_permissions

EXIT_REFUSED = 2
"""The same configuration would be refused again."""
EXIT_NOT_NOW = 3
"""What the configuration asks of this machine is not to be had: an address that is taken, a certificate that is just
being replaced. Somebody else may mend it, and the next try succeeds.
"""
GRACE_S = 30
"""How long running requests may take after SIGTERM; then they are answered 503."""
LEAVING_S = 0.5
"""How long connections that wait for a request may still bring one after SIGTERM."""
KEEP_ALIVE_S = 75
"""Idle connections; longer than what proxies in front usually keep, so that they close first."""


_DESCRIPTION = """\
The REST side of HairMesh: takes photos over HTTP, has them computed by workers over gRPC, keeps the pictures of answers
and tells alerting who is online. One process, one event loop: the pool's memory cannot be shared between several.
"""
_EPILOG = """\
The configuration is one JSON file: edge_config.example.json names every key, `hairmesh config explain` says what each
means and whether a change needs a restart. It is watched: a change is in force within 5 s without losing a request, a
broken one changes nothing and is one error in the log, what waits for a restart is named there. Logs are JSON lines on
standard error. SIGHUP: look at the file now. SIGTERM: no new connections, running requests are finished. Exit status 2:
the configuration is refused; 3: the address cannot be had, or a file that it names cannot be used: try again later.
"""


def main(arguments: list[str] | None = None) -> None:
    """Run until stopped by a signal."""
    parser = argparse.ArgumentParser(
        "hairmesh-edge",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the configuration file (JSON)")
    parser.add_argument(
        "--check", action="store_true", help="only say whether the configuration is good: keys, certificates, folders"
    )
    parser.add_argument("--version", action="version", version=__version__)
    options = parser.parse_args(arguments)
    _refuse_several_processes()
    try:
        file = ConfigFile.of(options.config)
        settings = parse(file.content)
    except ConfigError as error:
        _refuse(options.config, str(error).splitlines())
    complaints = list(_wrong_outside(settings, folders=options.check))
    if options.check:
        _warn_of_permissions(options.config, settings)
    if complaints:
        _refuse(options.config, complaints, EXIT_REFUSED if options.check else EXIT_NOT_NOW)
    if options.check:
        sys.stdout.write(f"hairmesh-edge: {options.config}: configuration is good\n")
        return
    driver = Driver(settings.pool(), settings.shared_password.get_secret_value(), settings.worker_tls)
    _check_metrics_address(settings.metrics.listen)
    listener = _listener(settings)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the file is watched; it has just been read
    keep_small_return_large()
    _raise_descriptor_limit()
    logs.configure("edge", level=settings.log_level)
    structlog.get_logger().info("edge_starts", version=__version__, config=str(options.config))
    # It stops in order when told, then raises the signal again: that ends the process as `edge.__main__` laid down.
    https = HttpsCertificate(settings.tls) if settings.tls.cert else None
    notify = SystemdNotify.from_environment(driver)
    app = create_app(settings, driver, file, https=https, looking=notify.reloading if notify else nullcontext)
    _Server(settings, app, https, listener, notify).run([listener])


def _warn_of_permissions(config: Path, settings: Settings) -> None:
    for path, holds in ((config, "passwords"), (settings.tls.key, "a key"), (settings.worker_tls.key, "a key")):
        if path and (mode := loose_permissions(path)):
            sys.stderr.write(f"hairmesh-edge: {path}: warning: holds {holds} and has mode {mode}\n")


class _Lifespan(LifespanOn):
    """Opens the port when the application has started: when its first round of probes is over.

    Here, since uvloop neither raises nor goes on when it cannot listen; and it cannot where another one, started in the
    same instant, got the address too and was quicker.
    """

    def __init__(
        self, settings: Settings, listener: socket.socket, notify: SystemdNotify | None, config: uvicorn.Config
    ) -> None:
        super().__init__(config)
        self._settings = settings
        self._notify = notify
        self._listener = listener

    @override
    async def startup(self) -> None:
        await super().startup()
        if self.should_exit:
            return
        settings = self._settings
        try:
            self._listener.listen(self.config.backlog)
        except OSError as error:
            await self.shutdown()
            _end_without_address("listen", settings.listen, error)
        pictures, docs = str(settings.static.dir), settings.docs.enabled
        structlog.get_logger().info("edge_ready", listen=settings.listen, pictures=pictures, docs=docs)
        if self._notify:
            self._notify.ready()


class _Server(uvicorn.Server):
    """uvicorn on an address that is taken already, which says when it was told to stop."""

    def __init__(
        self,
        settings: Settings,
        app: FastAPI,
        https: HttpsCertificate | None,
        listener: socket.socket,
        notify: SystemdNotify | None = None,
    ) -> None:
        super().__init__(server_config(settings, app, https))
        self._notify = notify
        self._crowd: Crowd = app.state.crowd
        self.config.load()
        self.config.lifespan_class = partial(_Lifespan, settings, listener, notify)

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Let connections in by a door of our own."""
        await super().startup(sockets=[])
        make = partial(
            cast(Callable[..., asyncio.Protocol], self.config.http_protocol_class),
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        doors = [Door(each, self._crowd, make, self.config.ssl) for each in sockets or ()]
        for door in doors:
            door.open()
        self.servers = doors  # type: ignore[assignment]  # closed by uvicorn

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        running = len(self.server_state.tasks)
        structlog.get_logger().info("edge_stops", requests_running=running, grace_s=GRACE_S)
        if self._notify:
            self._notify.stopping(running)
        for listening in (*self.servers, *(sockets or ())):
            listening.close()
        await self._let_go()
        await super().shutdown()
        if self._notify:
            self._notify.close()

    async def _let_go(self) -> None:
        """Answer what still comes, and close each connection behind its answer.

        A proxy may just be sending a request over a connection that it keeps: closing that would lose the request, and
        no proxy sends a POST twice.
        """
        state = self.server_state
        state.default_headers = [*state.default_headers, (b"connection", b"close")]
        until_s = time.monotonic() + LEAVING_S
        while state.connections and time.monotonic() < until_s:  # noqa: ASYNC110  (uvicorn tells of none that ends)
            await asyncio.sleep(0.05)


def _listener(settings: Settings) -> socket.socket:
    """The address, taken before anything is probed or said; nobody is let in before the server starts.

    Until one of them listens, two that start in the same instant both get it; `_Lifespan` sees the second off.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what a former edge left behind is no hindrance
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        _end_without_address("listen", settings.listen, error)
    return listener


def _check_metrics_address(listen: str | None) -> None:
    """Exit with `EXIT_NOT_NOW` where the port for Prometheus cannot be had; it is opened later, by the application."""
    if listen is None:
        return
    address = urlsplit(f"//{listen}")
    try:
        socket.create_server(
            (address.hostname or "", address.port or 0),
            family=socket.AF_INET6 if ":" in (address.hostname or "") else socket.AF_INET,
        ).close()
    except OSError as error:
        _end_without_address("metrics.listen", listen, error)


def _end_without_address(key: str, address: str, error: OSError) -> NoReturn:
    """Exit with `EXIT_NOT_NOW`."""
    problem = str(error.strerror).partition(" (")[0]  # Python may add the address
    sys.stderr.write(f"hairmesh-edge: {key} {address}: {problem}\n")
    sys.exit(EXIT_NOT_NOW)


def _refuse(config: Path, complaints: Iterable[str], status: int = EXIT_REFUSED) -> NoReturn:
    """Exit, having said every complaint."""
    for complaint in complaints:
        sys.stderr.write(f"hairmesh-edge: {config}: {complaint}\n")
    sys.exit(status)


def _wrong_outside(settings: Settings, *, folders: bool) -> Iterator[str]:
    """What is wrong with the files that the configuration names, and with its folders if asked.

    A folder must be there, or be one that can be made, and take new files.
    """
    try:
        check_tls_files(settings.tls)
    except ConfigError as error:
        yield str(error)
    if settings.tracing.otlp_endpoint and spans.packages_missing():
        yield f"tracing.otlp_endpoint {spans.MISSING}"
    try:
        settings.worker_tls.read()
    except ChannelSecurityError as error:
        yield str(error)
    if not folders:  # made when the edge starts
        return
    for key, folder in (("static.dir", settings.static.dir), ("request_log.path", settings.request_log.path.parent)):
        existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
            yield f"{key}: {existing} is no folder that can be written"


def server_config(settings: Settings, app: FastAPI, https: HttpsCertificate | None = None) -> uvicorn.Config:
    """How the application is served: one process, nothing believed that a proxy header says."""
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        workers=1,
        loop="uvloop",
        http=partial(Connection, room=app.state.room, crowd=app.state.crowd),  # type: ignore[arg-type]  # called as a class
        ws="none",
        lifespan="on",
        ssl_context_factory=None if https is None else lambda _config, _default: https.context,
        proxy_headers=False,
        server_header=False,
        access_log=False,  # the request log tells more, and no query strings
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )


def _raise_descriptor_limit() -> None:
    """Take as many descriptors as the system lets us have: it begins with 1,024, for programs that know no better, and
    without one nobody is let in, alerting included. `limits.max_connections` bounds what is open; where the system
    allows less than that, `edge.server.door` makes room.
    """
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _refuse_several_processes() -> None:
    """Exit with `EXIT_REFUSED` where the environment asks for what would split the pool's memory."""
    if os.environ.get("WEB_CONCURRENCY", "1") != "1":
        sys.stderr.write(
            "hairmesh-edge: WEB_CONCURRENCY is set: the edge is one process, since several would each count on their"
            " own\n"
        )
        sys.exit(EXIT_REFUSED)
