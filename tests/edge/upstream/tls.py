"""Certificates made for a test."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import grpc
import pytest

from edge.upstream.channel import ChannelSecurity

SUBJECTS = {"worker": "IP:127.0.0.1", "named": "DNS:workers.test", "edge": "DNS:edge", "successor": "DNS:edge"}
"""Who gets a certificate, and for which name."""


class Authority:
    """A folder with `ca.pem`, and a certificate and a key signed by it for each of `SUBJECTS`."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("needs openssl to make certificates")
        self.folder = folder
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        self._openssl("req", "-x509", *new_key, "-subj", "/CN=test", "-keyout", "ca.key", "-out", "ca.pem")
        for name, alternative in SUBJECTS.items():
            (folder / "san.cnf").write_text(f"subjectAltName={alternative}")
            self._openssl("req", *new_key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
            signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "san.cnf", "-days", "1")
            self._openssl("x509", "-req", "-in", f"{name}.csr", *signing, "-out", f"{name}.pem")

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def worker_credentials(self, name: str = "worker") -> grpc.ServerCredentials:
        """Mutual TLS: the worker wants a certificate of its own authority."""
        pair = ((self.folder / f"{name}.key").read_bytes(), (self.folder / f"{name}.pem").read_bytes())
        return grpc.ssl_server_credentials([pair], (self.folder / "ca.pem").read_bytes(), require_client_auth=True)

    def security(self, name: str) -> ChannelSecurity:
        """What an edge with the certificate of `name` is configured with."""
        return ChannelSecurity(
            ca=self.folder / "ca.pem", cert=self.folder / f"{name}.pem", key=self.folder / f"{name}.key"
        )
