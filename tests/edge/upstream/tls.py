"""Certificates made for a test."""

from __future__ import annotations

from pathlib import Path

import grpc

from edge.upstream.channel import ChannelSecurity
from hairmesh import certs

WORKERS = {"worker": "127.0.0.1", "named": "workers.test"}
"""Who gets a server's certificate, and for which host."""
EDGES = ("edge", "successor")
"""Who gets a client's."""


class Authority:
    """A folder with `ca.pem`, and a certificate and a key signed by it for each of `WORKERS` and `EDGES`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        authority = certs.Authority(certs.LOCAL_HOSTS)
        (folder / "ca.pem").write_bytes(authority.certificate)
        signed = {name: authority.sign("worker", hosts=[host]) for name, host in WORKERS.items()}
        signed |= {name: authority.sign("client") for name in EDGES}
        for name, pair in signed.items():
            (folder / f"{name}.pem").write_bytes(pair.certificate)
            (folder / f"{name}.key").write_bytes(pair.key)

    def worker_credentials(self, name: str = "worker") -> grpc.ServerCredentials:
        """Mutual TLS: the worker wants a certificate of its own authority."""
        pair = ((self.folder / f"{name}.key").read_bytes(), (self.folder / f"{name}.pem").read_bytes())
        return grpc.ssl_server_credentials([pair], (self.folder / "ca.pem").read_bytes(), require_client_auth=True)

    def security(self, name: str) -> ChannelSecurity:
        """What an edge with the certificate of `name` is configured with."""
        return ChannelSecurity(
            ca=self.folder / "ca.pem", cert=self.folder / f"{name}.pem", key=self.folder / f"{name}.key"
        )
