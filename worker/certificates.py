"""The certificate of the worker's port: one that was replaced on disk is shown from the next handshake on.

The files are read in a thread of their own, which may hang with the file system. gRPC asks for news at each handshake.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import grpc
import structlog

from hairmesh import pem
from hairmesh.renewal import Look, Notice, Renewal, digest
from worker.settings import NotUsableError, TlsSettings

log = structlog.stdlib.get_logger("worker.certificates")


class PortCertificate:
    """Certificate and key, and whose certificates clients must have. Raises `NotUsableError`."""

    def __init__(
        self, cert: Path, key: Path, client_ca: Path | None, *, poll_s: float, clock: Callable[[], float]
    ) -> None:
        self._cert, self._key, self._client_ca = cert, key, client_ca
        self._paths = tuple(path for path in (cert, key, client_ca) if path)
        self._poll_s = poll_s
        self._clock = clock
        self._renewal = Renewal(digest(self._paths))
        try:
            self._first, self.validity = self._read()
        except pem.PemError as error:
            raise NotUsableError(f"tls: {error}") from None
        self._news: deque[grpc.ServerCertificateConfiguration] = deque(maxlen=1)
        self._notice = Notice()
        self._stop = threading.Event()

    @classmethod
    def of(
        cls, tls: TlsSettings, *, poll_s: float, clock: Callable[[], float] = time.monotonic
    ) -> PortCertificate | None:
        """None without TLS."""
        if tls.cert is None or tls.key is None:
            return None
        return cls(tls.cert, tls.key, tls.client_ca, poll_s=poll_s, clock=clock)

    def credentials(self) -> grpc.ServerCredentials:
        """To listen with, for as long as the worker runs."""
        return grpc.dynamic_ssl_server_credentials(
            self._first,
            self._tell,  # type: ignore[arg-type]  # None, "as before", is missing from the stubs
            require_client_authentication=self._client_ca is not None,
        )

    def start(self) -> None:
        """Begin to watch."""
        self._warn_of_permissions()
        threading.Thread(target=self._run, name="certificates", daemon=True).start()

    def stop(self) -> None:
        """Watch no more; does not wait."""
        self._stop.set()

    def look(self) -> None:
        """Take over what was replaced, once it can be used; warn of what expires."""
        now = digest(self._paths)
        what = self._renewal.look(now, self._clock())
        if what is not Look.LEAVE:
            self._take_over(now, what)
        if self._notice.is_due(self.validity, datetime.now(UTC)):
            expired = self.validity.expires_at <= datetime.now(UTC)
            say = log.error if expired else log.warning
            say("certificate_expires", file=str(self._cert), expires_at=self.validity.expires_at.isoformat())

    def _take_over(self, now: bytes, what: Look) -> None:
        try:
            fresh, validity = self._read()
            if validity.expires_at <= datetime.now(UTC):
                raise pem.PemError(f"{self._cert} has expired: {validity.expires_at.isoformat()}")  # noqa: TRY301
        except pem.PemError as error:
            if what is Look.JUDGE:
                self._renewal.judge(now)
                log.error("certificate_refused", problem=str(error))  # noqa: TRY400  (no fault of ours)
        else:
            if digest(self._paths) != now:
                return  # replaced while it was read: the next look takes over what is there then, and tells of it
            self._renewal.judge(now)
            self._news.append(fresh)
            self.validity = validity
            log.info("certificate_renewed", expires_at=validity.expires_at.isoformat())
            self._warn_of_permissions()

    def _warn_of_permissions(self) -> None:
        if mode := pem.loose_permissions(self._key):
            log.warning("key_open_to_others", file=str(self._key), mode=mode)

    def _read(self) -> tuple[grpc.ServerCertificateConfiguration, pem.Validity]:
        """Raises `pem.PemError`."""
        pair = pem.key_and_certificate(self._key, self._cert)
        authority = pem.authority(self._client_ca) if self._client_ca else None
        return grpc.ssl_server_certificate_configuration([pair], authority), pem.validity(pair[1])

    def _tell(self) -> grpc.ServerCertificateConfiguration | None:
        """What gRPC is to show from now on; None: what it has shown so far. Called from its threads."""
        try:
            return self._news.popleft()
        except IndexError:
            return None

    def _run(self) -> None:
        while not self._stop.wait(self._poll_s):
            try:
                self.look()
            except Exception:  # a fault of ours does not end the watching
                log.exception("certificate_look_failed")
