"""The one port of a worker: plain text or TLS, and never shared with another process."""

from __future__ import annotations

from pathlib import Path

import grpc
import structlog
from grpc import aio

from hairmesh import pem
from hairmesh.loopback import is_loopback
from worker.settings import Settings, SettingsError

log = structlog.stdlib.get_logger("worker.port")


class CannotListenError(Exception):
    """The port is taken, or the address is not of this machine. The message says which."""


def listen_on(server: aio.Server, settings: Settings) -> int:
    """Give `server` its port, by the number it really has. Raises `CannotListenError`, `SettingsError`."""
    if not settings.tls.cert and not is_loopback(settings.host.strip("[]")):
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
