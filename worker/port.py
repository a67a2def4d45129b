"""The one port of a worker: plain text or TLS, and never shared with another process."""

from __future__ import annotations

import structlog
from grpc import aio

from hairmesh.loopback import is_loopback
from worker.certificates import PortCertificate
from worker.settings import Settings

log = structlog.stdlib.get_logger("worker.port")


class CannotListenError(Exception):
    """The port is taken, or the address is not of this machine. The message says which."""


def listen_on(server: aio.Server, settings: Settings, certificate: PortCertificate | None) -> int:
    """Give `server` its port, by the number it really has; plain text without a certificate.

    Raises `CannotListenError`.
    """
    if certificate is None and not is_loopback(settings.host.strip("[]")):
        log.warning(
            "plaintext_port",
            listen=settings.listen,
            advice="pictures of faces and the password cross the network readable; set tls.cert and tls.key",
        )
    try:
        if certificate is not None:
            return server.add_secure_port(settings.listen, certificate.credentials())
        return server.add_insecure_port(settings.listen)
    except RuntimeError as error:
        raise CannotListenError(
            f"cannot listen on {settings.listen}: another process has that port, or the address is not of this machine"
        ) from error
