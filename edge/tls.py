"""The certificate that the edge shows to its clients: every handshake gets the newest, connections keep theirs."""

from __future__ import annotations

import ssl

from edge.settings import Tls
from hairmesh import pem


class HttpsCertificate:
    """A certificate and its key, from the files that the configuration names. Raises `pem.PemError`."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._newest, self.validity = self._read()
        self.context = self._newest
        """To listen with, for as long as the edge runs."""
        # A pair is never changed inside a context in use, which would be left with one half when the other is bad.
        self.context.sni_callback = self._choose  # called for clients that name no host, too

    def renew(self) -> None:
        """Show what the files hold now, from the next handshake on; raises `pem.PemError` and changes nothing."""
        self._newest, self.validity = self._read()

    def _read(self) -> tuple[ssl.SSLContext, pem.Validity]:
        cert, key = self._tls.cert, self._tls.key
        if cert is None or key is None:
            raise pem.PemError("no certificate is named")
        _key, chain = pem.key_and_certificate(key, cert)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)  # TLS 1.2 and 1.3
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(cert, key, password="")  # never asked for on a terminal
        except (ssl.SSLError, OSError, ValueError):  # replaced since they were read; or a key that TLS has no use for
            raise pem.PemError(f"{cert} and {key} cannot be used for TLS") from None
        return context, pem.validity(chain)

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._newest
