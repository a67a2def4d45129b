"""A real S3 server on loopback: SeaweedFS, with one user and one bucket that is made by the first write."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

START_S = 60.0
BUCKET = "pictures"
_GRPC = 10_000
"""Its gRPC ports are its HTTP ports and this."""


def _all_stopped(pid: int) -> bool:
    """Whether every thread of a process is."""
    stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return all(stat.rpartition(") ")[2].startswith("T") for stat in stats)


@dataclass(frozen=True, slots=True)
class S3Server:
    """One that runs."""

    process: subprocess.Popen[bytes]
    endpoint: str
    access_key: str
    secret_key: str

    @property
    def environment(self) -> dict[str, str]:
        """What an edge finds its credentials in."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }

    def keys(self, prefix: str) -> set[str]:
        """What is stored below a prefix, by its owner's own eyes."""
        return {each["path"] for chunk in obstore.list(self._bucket(), prefix=prefix) for each in chunk}

    def put(self, key: str, data: bytes) -> None:
        """Store an object beside whatever is tested."""
        obstore.put(self._bucket(), key, data)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Inside, it takes connections and never answers."""
        self.process.send_signal(signal.SIGSTOP)
        while not _all_stopped(self.process.pid):  # a thread that still runs would answer one more request
            time.sleep(0.001)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def _bucket(self) -> S3Store:
        return S3Store(
            BUCKET,
            endpoint=self.endpoint,
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            region="us-east-1",
            client_options={"allow_http": True, "timeout": timedelta(seconds=30)},
            retry_config={"max_retries": 0},
        )

    def wait(self) -> None:
        """Until it stores."""
        until_s = time.monotonic() + START_S
        while True:
            try:
                self.put("ready", b"")
            except BaseError as error:
                if time.monotonic() > until_s or self.process.poll() is not None:
                    raise RuntimeError(f"no S3 server after {START_S:.0f} s: {error}") from error
                time.sleep(0.05)
            else:
                return


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Run one that keeps everything in `folder`; killed at the end, as it takes half a minute to stop."""
    access_key, secret_key = "edge", secrets.token_hex(16)
    users = folder / "users.json"
    credentials = [{"accessKey": access_key, "secretKey": secret_key}]
    users.write_text(json.dumps({"identities": [{"name": "edge", "credentials": credentials, "actions": ["Admin"]}]}))
    master, volume, filer, s3 = (_free_port() for _ in range(4))
    data = folder / "data"
    data.mkdir()
    with (folder / "weed.log").open("wb") as said:
        process = subprocess.Popen(
            [
                *(Path(sys.executable).with_name("weed"), "server", f"-dir={data}", "-ip=127.0.0.1"),
                *("-ip.bind=127.0.0.1", f"-master.port={master}", f"-volume.port={volume}", "-volume.max=8"),
                *("-master.volumeSizeLimitMB=16", "-master.telemetry=false", "-filer", f"-filer.port={filer}"),
                *("-s3", f"-s3.port={s3}", f"-s3.config={users}", "-s3.iam=false"),
                *("-s3.port.iceberg=0", "-s3.port.lance=0"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={**os.environ, "GOMAXPROCS": "2"},
        )
    try:
        server = S3Server(process, f"http://127.0.0.1:{s3}", access_key, secret_key)
        server.wait()
        yield server
    finally:
        process.kill()
        process.wait()
        for port in (master, volume, filer, s3):
            for left in Path("/tmp").glob(f"seaweedfs-*-{port + _GRPC}.sock"):
                with suppress(FileNotFoundError):
                    left.unlink()


def _free_port() -> int:
    """One that is free, and so is the one for gRPC."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            with suppress(OSError, OverflowError):
                second.bind(("127.0.0.1", port + _GRPC))
                return port
