"""The certificates on the edge's disk: those that were replaced are taken over, those that expire are warned of.

`look` is called by whoever watches the configuration (`edge.reload`), between its own looks: nothing else changes what
is in force meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from edge.reload import InForce, Reconfigure
from edge.settings import Settings
from edge.threads import Threads
from edge.tls import HttpsCertificate
from edge.upstream.channel import ChannelSecurityError
from hairmesh import pem
from hairmesh.renewal import Look, Notice, Renewal, digest

T = TypeVar("T")

ANSWER_S = 2.0
"""Files that take longer to read are looked at another time."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Files:
    """The files that one key of the configuration names."""

    cert: Path | None
    """Our own certificate chain."""
    key: Path | None
    ca: Path | None = None

    @property
    def named(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.cert, self.key, self.ca) if path)


@dataclass(slots=True)
class _Watched:
    files: _Files
    renewal: Renewal
    validity: pem.Validity | None = None
    notice: Notice = field(default_factory=Notice)


class Certificates:
    """Those of `tls` (what clients see) and of `worker_tls` (what workers see, and whom we trust there)."""

    def __init__(self, in_force: InForce, https: HttpsCertificate | None, reconfigure: Reconfigure) -> None:
        self._in_force = in_force
        self._https = https
        self._reconfigure = reconfigure
        self._threads = Threads(1, "certificates")
        self._hanging: asyncio.Task[object] | None = None
        self._watched = {
            key: _Watched(files, Renewal(digest(files.named))) for key, files in _files(in_force.settings).items()
        }

    @property
    def expires_at(self) -> Mapping[str, datetime]:
        """By key of the configuration: when our own certificate in force stops to be valid, UTC."""
        return {key: each.validity.expires_at for key, each in self._watched.items() if each.validity}

    def close(self) -> None:
        """Look no more."""
        self._threads.close()

    async def look(self, *, asked: bool = False) -> None:
        """Take over what was replaced, warn of what expires; who asks hears at once of what is wrong."""
        if self._hanging is not None:
            if not self._hanging.done():
                return
            self._hanging.exception()  # whatever came of it, it is asked again
            self._hanging = None
        with suppress(TimeoutError):
            for key, files in _files(self._in_force.settings).items():
                if files.named:
                    await self._look_at(key, files, asked=asked)

    async def _look_at(self, key: str, files: _Files, *, asked: bool) -> None:
        now = await self._read(partial(digest, files.named))
        watched = self._watched[key]
        if files != watched.files:  # others were configured, and have just been read
            watched = self._watched[key] = _Watched(files, Renewal(now))
        what = watched.renewal.look(now, time.monotonic(), asked=asked)
        try:
            if what is not Look.LEAVE:
                await self._take_over(key, watched)
                # Replaced while it was read: the next look takes the rest over, and tells of it.
                if await self._read(partial(digest, files.named)) == now:
                    if watched.renewal.judge(now):
                        log.info("certificate_renewed", key=key, expires_at=_told(watched.validity))
                    await self._warn_of_permissions(files)
            elif watched.validity is None and files.cert:
                watched.validity = await self._read(partial(_validity, files.cert))  # it is in force already
                await self._warn_of_permissions(files)
        except (pem.PemError, ChannelSecurityError) as error:
            if what is Look.JUDGE:
                watched.renewal.judge(now)
                log.error("certificate_refused", key=key, problem=str(error))  # noqa: TRY400  (no fault of ours)
        if watched.validity and watched.notice.is_due(watched.validity, datetime.now(UTC)):
            self._warn(key, files, watched.validity)

    async def _take_over(self, key: str, watched: _Watched) -> None:
        """Raises `pem.PemError` or `ChannelSecurityError`, and then nothing has changed."""
        cert, settings = watched.files.cert, self._in_force.settings
        validity = await self._read(partial(_validity, cert)) if cert else None
        if validity and validity.expires_at <= datetime.now(UTC):
            raise pem.PemError(f"{cert} has expired: {_told(validity)}")
        if key == "tls" and self._https:
            await self._read(self._https.renew)
        elif key == "worker_tls":
            await self._reconfigure(settings.pool(), settings.shared_password.get_secret_value(), settings.worker_tls)
        watched.validity = validity

    async def _warn_of_permissions(self, files: _Files) -> None:
        if files.key and (mode := await self._read(partial(pem.loose_permissions, files.key))):
            log.warning("key_open_to_others", file=str(files.key), mode=mode)

    def _warn(self, key: str, files: _Files, validity: pem.Validity) -> None:
        say = log.warning if validity.expires_at > datetime.now(UTC) else log.error
        say("certificate_expires", key=key, file=str(files.cert), expires_at=_told(validity))

    async def _read(self, work: Callable[[], T]) -> T:
        """What `work` finds on the disk. Raises `TimeoutError` where that does not answer; then it is waited for."""
        reading = asyncio.create_task(self._threads.run(work, timeout_s=None))
        done, _ = await asyncio.wait({reading}, timeout=ANSWER_S)
        if not done:
            self._hanging = reading
            raise TimeoutError
        return reading.result()


def _told(validity: pem.Validity | None) -> str | None:
    return validity.expires_at.isoformat() if validity else None


def _validity(cert: Path) -> pem.Validity:
    return pem.validity(pem.authority(cert))


def _files(settings: Settings) -> dict[str, _Files]:
    https, upstream = settings.tls, settings.worker_tls
    return {"tls": _Files(https.cert, https.key), "worker_tls": _Files(upstream.cert, upstream.key, upstream.ca)}
