"""A real worker as other teams meet it: a process of its own with the real models, TLS and a password."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub
from PIL import Image

from hairmesh import certs
from hairmesh.child import console_script
from hairmesh.stack import free_ports, write_private
from hairmesh.wire import ANALYZE_SERVICE, CLIENT_OPTIONS, TOKEN_KEY
from tests.conftest import studio_portrait

HOSTS = ("localhost", "127.0.0.9")
"""What its certificate is good for: not for the plain address that it has."""
DEPENDENCY = "comfyui"
START_S = 150
"""Takes five; a machine that does something else beside it takes longer."""
PORTRAIT_SIDE_PX = 640


@dataclass(frozen=True, slots=True)
class TlsWorker:
    """Where it is, and what its callers have."""

    port: int
    ca: Path
    password_file: Path
    photo: Path

    @property
    def address(self) -> str:
        """As its certificate names it."""
        return f"localhost:{self.port}"


@contextmanager
def tls_worker(folder: Path, *, mutual: bool = False, **settings: object) -> Iterator[TlsWorker]:
    """One that serves, with these settings; `folder` gets its files, and those of its callers.

    `mutual`: it wants a certificate too; callers have theirs as client.pem and client.key.
    """
    authority = certs.Authority(HOSTS)
    pair, client = authority.sign("worker"), authority.sign("client")
    password = secrets.token_urlsafe(24)
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as dependency:
        config = {
            "listen": f"127.0.0.1:{port}",
            "accept_passwords": [password],
            "tls": {
                "cert": str(folder / "worker.pem"),
                "key": str(folder / "worker.key"),
                **({"client_ca": str(folder / "ca.pem")} if mutual else {}),
            },
            "device": "cpu",
            "health": {
                "min_free_gb": 0.001,
                "resume_free_gb": 0.001,
                "disk_paths": [str(folder)],
                "deps": [
                    {"name": DEPENDENCY, "kind": "tcp", "target": f"127.0.0.1:{dependency.getsockname()[1]}"},
                ],
            },
            "drain_delay_seconds": 0,
            **settings,
        }
        write_private(folder / "worker.json", json.dumps(config))
        write_private(folder / "worker.key", pair.key.decode())
        (folder / "worker.pem").write_bytes(pair.certificate)
        (folder / "ca.pem").write_bytes(authority.certificate)
        write_private(folder / "client.key", client.key.decode())
        (folder / "client.pem").write_bytes(client.certificate)
        write_private(folder / "password", password + "\n")
        portrait = Image.open(studio_portrait(5)).resize((PORTRAIT_SIDE_PX, PORTRAIT_SIDE_PX), Image.Resampling.BOX)
        portrait.save(folder / "photo.jpg", quality=95)
        worker = TlsWorker(port, folder / "ca.pem", folder / "password", folder / "photo.jpg")
        tether = [sys.executable, "-m", "hairmesh.tether", str(os.getpid())]
        with (folder / "worker.log").open("wb") as log:
            command = [*tether, str(console_script("hairmesh-worker")), "--config", str(folder / "worker.json")]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _wait_until_serving(worker, password)
            yield worker
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def _wait_until_serving(worker: TlsWorker, password: str) -> None:
    credentials = grpc.ssl_channel_credentials(
        *(worker.ca.with_name(name).read_bytes() for name in ("ca.pem", "client.key", "client.pem"))
    )
    with grpc.secure_channel(worker.address, credentials, CLIENT_OPTIONS) as channel:
        stub: Any = HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service=ANALYZE_SERVICE)
        metadata = ((TOKEN_KEY, password),)
        for told in stub.Watch(request, metadata=metadata, timeout=START_S, wait_for_ready=True):
            if told.status == health_pb2.HealthCheckResponse.SERVING:
                return
    raise AssertionError("the worker ended its stream before it served")
