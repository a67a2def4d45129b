"""A whole service on this machine: workers and an edge as child processes on free loopback ports.

Passwords are made anew for every start and reach the children through configuration files that only this user can read,
never through arguments or the environment. The children never outlive this process (see `hairmesh.tether`).
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import secrets
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import httpx

from hairmesh.certs import AUTHORITY, write_dev
from hairmesh.child import Child, StackError, console_script
from hairmesh.client.plain import Client
from vision import models
from vision.errors import ModelError

LOOPBACK = "127.0.0.1"
PORTS = range(20_000, 32_000)
"""Below what operating systems give to outgoing connections, so that a restarted worker finds its port still free."""
START_TIMEOUT_S = 120.0
"""For workers to load their models and warm up, on two busy cores."""
STOP_TIMEOUT_S = 40.0
"""A worker may finish a running call for 30 s after SIGTERM."""
MIN_FREE_GB = 0.2
"""Lower than a server's 5 GiB, so that a laptop with little space can show the service."""
POLL_S = 0.1


def free_ports(count: int) -> list[int]:
    """`count` different loopback ports that nothing listens on."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise StackError(f"fewer than {count} free loopback ports between {PORTS.start} and {PORTS.stop}")


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read, and that whoever waits for it finds whole."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    part.replace(path)


@contextmanager
def ends_on_signals() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP raise `KeyboardInterrupt` as SIGINT does, so that everything is stopped in order.

    SIGINT is set too: a shell that starts a program in the background makes it ignore that one.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class FolderInUseError(StackError):
    """Another stack runs in the folder."""


class Stack:
    """Workers and an edge in `folder`, which gets their logs, private configurations and pictures.

    A context manager: leaving it stops everything that runs and removes configurations and pictures.
    """

    def __init__(self, folder: Path, *, workers: int, cooldown_seconds: float | None = None, tls: bool = False) -> None:
        """`tls`: HTTPS for clients, and mutual TLS between edge and workers, with certificates made for this start."""
        self.folder = folder.resolve()
        self.certs = self.folder / "certs" if tls else None
        self._lock: IO[bytes] | None = None
        self.token = secrets.token_urlsafe(24)
        self.admin_token = secrets.token_urlsafe(24)
        edge_port, *worker_ports = free_ports(1 + workers)
        self.edge = self._child("edge", "hairmesh-edge", edge_port)
        self.workers = [
            self._child(f"worker{number}", "hairmesh-worker", port) for number, port in enumerate(worker_ports, start=1)
        ]
        self.url = f"{'https' if tls else 'http'}://{self.edge.address}"
        self.request_log = self.folder / "request_log.jsonl"
        self._pictures = self.folder / "pictures"
        self._configs: dict[Path, dict[str, Any]] = {
            self.edge.config_path: self._edge_config(cooldown_seconds),
            **{worker.config_path: self._worker_config(worker) for worker in self.workers},
        }

    def start(self) -> None:
        """Start every process; `wait_online` says when they answer.

        Raises `StackError` without the models and for a folder that cannot be written, `FolderInUseError` for one that
        another stack uses.
        """
        self._claim_folder()
        try:
            models.locate(models.default_cache_dir())
        except ModelError as error:
            raise StackError(str(error)) from error
        for child in self._children:
            child.log_path.unlink(missing_ok=True)
        self.request_log.unlink(missing_ok=True)
        if self.certs:
            write_dev(self.certs, force=True)
        for path, config in self._configs.items():
            write_private(path, json.dumps(config, indent=2) + "\n")
        for child in self._children:
            child.start()

    @property
    def has_folder(self) -> bool:
        """Whether the folder is this stack's: from `start` on, until it is stopped."""
        return self._lock is not None

    @property
    def authority(self) -> Path | None:
        """Whose certificates clients are to trust, PEM; None without TLS."""
        return self.certs and self.certs / AUTHORITY

    def wait_online(self, client: Client, count: int, timeout_s: float = START_TIMEOUT_S) -> float:
        """Wait until `/monitor` counts exactly `count` workers online; returns the seconds it took."""

        def counted() -> bool:
            try:
                return client.monitor()[1].get("workers_healthy") == count
            except httpx.TransportError:  # the edge's port opens after its first round of probes
                return False

        return self.wait_until(counted, f"/monitor counts {count} workers online", timeout_s)

    def wait_until(self, condition: Callable[[], bool], what: str, timeout_s: float) -> float:
        """Poll `condition`; returns the seconds it took. Raises `StackError` when time is up or a process has ended."""
        begun_s = time.monotonic()
        while not condition():
            for child in self._children:
                child.check_running()
            if time.monotonic() - begun_s > timeout_s:
                complaints = filter(None, (child.last_complaint() for child in self._children))
                raise StackError("\n".join([f"waited {timeout_s:.0f} s in vain until {what}", *complaints]))
            time.sleep(POLL_S)
        return time.monotonic() - begun_s

    def requests(self) -> list[dict[str, Any]]:
        """What the edge has noted about each request so far."""
        return [json.loads(line) for line in self.request_log.read_text().splitlines()]

    def stop(self) -> list[str]:
        """Stop what runs, the edge first, remove the private files; returns what went wrong."""
        if self._lock is None:  # never started, so nothing in the folder is ours
            return []
        until_s = time.monotonic() + STOP_TIMEOUT_S
        self.edge.ask_to_stop()
        complaints = [self.edge.wait_stopped(until_s)]
        for worker in self.workers:
            worker.ask_to_stop()
        complaints += [worker.wait_stopped(until_s) for worker in self.workers]
        for path in self._configs:
            path.unlink(missing_ok=True)
        for folder in filter(None, (self._pictures, self.certs)):
            shutil.rmtree(folder, ignore_errors=True)
        self._lock.close()
        self._lock = None
        return [complaint for complaint in complaints if complaint]

    def __enter__(self) -> Self:
        """This stack; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything."""
        self.stop()

    def _claim_folder(self) -> None:
        """Make the folder, and have it alone: two stacks in one would overwrite each other's configurations."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / ".lock").open("wb")
        except OSError as error:
            raise StackError(f"cannot write in {self.folder} ({error.strerror}): name another by --out") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise FolderInUseError(
                f"another demo or service runs in {self.folder}: stop it, or name another --out"
            ) from error
        self._lock = lock

    def _edge_config(self, cooldown_seconds: float | None) -> dict[str, Any]:
        tls = {
            "tls": self._pair("edge"),
            "worker_tls": {"ca": str(self.authority), **self._pair("client")},
        }
        return {
            **(tls if self.certs else {}),
            "listen": self.edge.address,
            "public_base_url": self.url,
            "workers": [worker.address for worker in self.workers],
            "shared_password": self.token,
            "admin_tokens": [self.admin_token],
            "health_check": {} if cooldown_seconds is None else {"cooldown_seconds": cooldown_seconds},
            "static": {"dir": str(self._pictures)},
            "request_log": {"path": str(self.request_log)},
        }

    def _pair(self, role: str) -> dict[str, str]:
        return {"cert": f"{self.certs}/{role}.pem", "key": f"{self.certs}/{role}.key"}

    def _worker_config(self, worker: Child) -> dict[str, Any]:
        return {
            **({"tls": {**self._pair("worker"), "client_ca": str(self.authority)}} if self.certs else {}),
            "listen": worker.address,
            "accept_passwords": [self.token],
            "health": {
                "min_free_gb": MIN_FREE_GB,
                "resume_free_gb": MIN_FREE_GB,
                "disk_paths": [str(self.folder)],
            },
            "drain_delay_seconds": 0,  # the edge stops first: nobody is left to be told
        }

    @property
    def _children(self) -> list[Child]:
        return [*self.workers, self.edge]

    def _child(self, name: str, program: str, port: int) -> Child:
        return Child(
            name=name,
            program=console_script(program),
            address=f"{LOOPBACK}:{port}",
            config_path=self.folder / f"{name}_config.local.json",
            log_path=self.folder / f"{name}.log",
        )
