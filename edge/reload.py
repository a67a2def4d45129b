"""The configuration in force, and how a changed file takes its place while the edge runs.

The file is read twice a second and judged by its content: written in place, renamed over, or behind a symbolic link
that moved, on any file system. A good content is in force at once. Half of a file is never good, so what is not
acceptable gets some time to become whole before it is called wrong, once; until it is good nothing changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import structlog

from edge.pool.config import PoolConfig, PoolConfigError
from edge.settings import ConfigError, Settings, parse, read
from edge.threads import Threads
from edge.upstream.channel import ChannelSecurity, ChannelSecurityError
from hairmesh.pem import loose_permissions

POLL_S = 0.5
"""Between two looks at the file. One costs about 0.1 ms, most of it in a thread."""
ANSWER_S = 2.0
"""A file that takes longer to read is not acceptable meanwhile; it is waited for all the same."""
HANG_S = 3600.0
"""A reading that takes so long is given up, for another one."""
SETTLE_S = 2.0
"""How long an unacceptable content must have stayed the same before it is called wrong: somebody may be writing."""
HASH_DIGITS = 8
"""Of the SHA-256 in hexadecimal: enough to compare with `sha256sum`, too few to find a password by."""

TAKES_EFFECT: Mapping[str, Literal["live", "restart"]] = {
    "listen": "restart",
    "tls": "restart",
    "public_base_url": "restart",
    "workers": "live",
    "primary_workers": "live",
    "shared_password": "live",
    "admin_tokens": "live",
    "api_keys": "live",
    "rate_limit": "live",
    "trusted_proxies": "live",
    "worker_tls": "live",
    "health_check": "live",
    "dispatch": "live",
    "limits": "live",
    "static": "restart",
    "features": "live",
    "local_vision": "restart",
    "docs": "restart",
    "console": "live",
    "request_log": "restart",
    "metrics": "restart",
    "tracing": "restart",
    "log_level": "restart",
}
"""Every key of the file: whether a change is in force at once, or waits for the next start."""

Reconfigure = Callable[[PoolConfig, str, ChannelSecurity], Awaitable[None]]
"""Takes workers, password and their TLS over; raises before it changes anything."""


class AlsoLook(Protocol):
    """Looks at what the configuration names, after the file itself; who `asked` hears the verdict at once."""

    def __call__(self, *, asked: bool) -> Awaitable[None]:
        """Look once."""


Looking = Callable[[], AbstractContextManager[None]]
"""Around a look that somebody asked for."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file and what it held when the edge started."""

    path: Path
    content: bytes = field(repr=False)

    @classmethod
    def of(cls, path: Path) -> ConfigFile:
        """Read it; raises `ConfigError`."""
        return cls(path, read(path))


@dataclass(slots=True)
class InForce:
    """The configuration by which the edge works now. Handlers read it anew for every request."""

    settings: Settings
    content_hash: str = ""
    """First digits of the file's SHA-256; empty where the settings came from no file."""
    version: int = 1
    """Counts what was in force since the start."""
    applied_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    awaiting_restart: tuple[str, ...] = ()
    """Keys whose values in the file are not in force."""
    problems: tuple[str, ...] = ()
    """Why the file, as it is now, is not in force; empty when it is."""


def merge(running: Settings, wanted: Settings) -> tuple[Settings, tuple[str, ...]]:
    """What can be in force without a restart, and the keys whose wanted values cannot."""
    waiting = tuple(
        key for key, effect in TAKES_EFFECT.items() if effect == "restart" and _differs(running, wanted, key)
    )
    return wanted.model_copy(update={key: getattr(running, key) for key in waiting}), waiting


def content_hash(content: bytes) -> str:
    """What tells two contents of a file apart."""
    return hashlib.sha256(content).hexdigest()[:HASH_DIGITS]


class Reloader:
    """Keeps `in_force` equal to the file, and has somebody look at the files that it names (`also`)."""

    def __init__(
        self,
        file: ConfigFile,
        in_force: InForce,
        reconfigure: Reconfigure,
        also: AlsoLook | None = None,
        looking: Looking = nullcontext,
    ) -> None:
        self._path = file.path
        self._looking = looking
        self._also = also
        self._in_force = in_force
        self._reconfigure = reconfigure
        self._judged: bytes | None = file.content
        """The content that was taken over, or called wrong, last; None: one that could not be read."""
        self._doubted: tuple[bytes | None, float] | None = None
        """A content that is not acceptable, and since when it has been the same."""
        self._asked = asyncio.Event()
        self._thread = Threads(1, "configuration")
        self._reading: asyncio.Task[bytes] | None = None

    async def run(self) -> None:
        """Watch the file, and SIGHUP, until cancelled: nothing that the file is or does ends it."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._asked.set)
        try:
            await self._warn_of_permissions()
            while True:
                asked = await self._pause()
                with self._looking() if asked else nullcontext():
                    await self._look_around(asked=asked)
        finally:
            loop.remove_signal_handler(signal.SIGHUP)
            if self._reading is not None:
                self._reading.cancel()
            self._thread.close()

    async def _look_around(self, *, asked: bool) -> None:
        try:
            await self._look(asked=asked)
            if self._also is not None:
                await self._also(asked=asked)
        except Exception:  # a fault of ours
            log.exception("configuration_look_failed", file=str(self._path))

    async def _pause(self) -> bool:
        """Wait until the next look is due; whether somebody asked for it."""
        try:
            async with asyncio.timeout(POLL_S):
                await self._asked.wait()
        except TimeoutError:
            return False
        self._asked.clear()
        return True

    async def _look(self, *, asked: bool) -> None:
        """Read the file and judge it, unless it is as it was. Whoever asked hears the verdict at once.

        What is not acceptable is judged twice: when it is seen first, and when it has stayed the same long enough.
        """
        content, problem = await self._read()
        if content == self._judged and not asked:
            self._doubted = None
            return
        now_s = time.monotonic()
        if self._doubted is None or self._doubted[0] != content:
            self._doubted, final = (content, now_s), asked
        elif asked or now_s - self._doubted[1] >= SETTLE_S:
            final = True
        else:
            return
        problems = (problem,) if content is None else await self._take_over(content)
        if problems and not final:
            return
        self._judged, self._doubted = content, None
        if problems:
            self._in_force.problems = problems
            log.error(
                "configuration_refused",
                file=str(self._path),
                problems=problems,
                version_in_force=self._in_force.version,
            )

    async def _read(self) -> tuple[bytes | None, str]:
        """The file's content, or None and why there is none. A reading that hangs goes on: no second one joins it."""
        if self._reading is None:
            work = partial(read, self._path)
            self._reading = asyncio.create_task(self._thread.run(work, timeout_s=HANG_S), name="configuration")
        done, _ = await asyncio.wait({self._reading}, timeout=ANSWER_S)
        if not done:
            return None, f"not read within {ANSWER_S:.0f} s: its file system does not answer"
        reading, self._reading = self._reading, None
        try:
            return reading.result(), ""
        except ConfigError as error:
            return None, str(error)
        except Exception as error:  # noqa: BLE001  (told like any other, once)
            return None, f"cannot be read: {type(error).__name__}"

    async def _take_over(self, content: bytes) -> tuple[str, ...]:
        """Put `content` in force as far as that goes without a restart; what is wrong with it, and then nothing was."""
        running = self._in_force.settings
        try:
            wanted = await self._thread.run(partial(parse, content), timeout_s=HANG_S)
            settings, waiting = merge(running, wanted)
            await self._reconfigure(settings.pool(), settings.shared_password.get_secret_value(), settings.worker_tls)
        except (ConfigError, PoolConfigError, ChannelSecurityError) as error:
            return tuple(str(error).splitlines())
        except Exception:  # a fault of ours ends neither the edge nor its watching
            log.exception("configuration_failed_inside")
            return ("could not be taken over: the log says where",)
        now = self._in_force
        now.settings, now.awaiting_restart, now.problems = settings, waiting, ()
        now.version, now.content_hash, now.applied_at = now.version + 1, content_hash(content), datetime.now(UTC)
        log.info(
            "configuration_applied",
            version=now.version,
            content_hash=now.content_hash,
            changed=[key for key in TAKES_EFFECT if _differs(running, settings, key)],
        )
        if waiting:
            log.warning("configuration_waits_for_restart", keys=list(waiting))
        await self._warn_of_permissions()
        return ()

    async def _warn_of_permissions(self) -> None:
        with suppress(TimeoutError):  # a file that hangs is told of by whoever reads it
            if mode := await self._thread.run(partial(loose_permissions, self._path), timeout_s=ANSWER_S):
                log.warning("configuration_open_to_others", file=str(self._path), mode=mode)


def _differs(first: Settings, second: Settings, key: str) -> bool:
    return bool(getattr(first, key) != getattr(second, key))
