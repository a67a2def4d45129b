"""What the names among the workers (`dns:///name:port`) stand for: looked up now and then, remembered in between.

A name that has no answer, or an empty one, keeps what it stood for. A resolver that hangs delays nothing and nobody: at
most one look-up of a name is on its way, and whoever waits for it waits for a limited time.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from edge.pool.config import NAME_PREFIX, PoolConfig, Target
from edge.threads import Threads
from edge.upstream.channel import ChannelSecurity, ChannelSecurityError, host_of

log = structlog.get_logger()

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
"""From host and port to IP addresses; raises `OSError` when there is no answer."""


async def system_lookup(host: str, port: int) -> Sequence[str]:
    """By the system's own resolver, in a thread of its own: one that hangs keeps nothing else from being done or ended.

    A worker with addresses of both families would count as two: IPv4 where there is any.
    """
    thread = Threads(1, "resolver")
    try:
        ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await thread.run(ask, timeout_s=None)
    finally:
        thread.close()
    by_family = {
        family: [str(address[0]) for each, *_, address in found if each == family]
        for family in (socket.AF_INET, socket.AF_INET6)
    }
    return by_family[socket.AF_INET] or by_family[socket.AF_INET6]


@dataclass(frozen=True, slots=True)
class Resolving:
    """How names are resolved."""

    every_s: float = 30.0
    """Between two look-ups of every name, in s."""
    unknown_every_s: float = 2.0
    """The same while a name stands for nothing at all, in s."""
    timeout_s: float = 3.0
    """How long anybody waits for the look-ups, in s; an answer that comes later is taken all the same."""
    lookup: Lookup = system_lookup


class Resolver:
    """Remembers the last good answer of every name; `changed` is called when one is another than before."""

    def __init__(self, resolving: Resolving, changed: Callable[[], None]) -> None:
        self._resolving = resolving
        self._changed = changed
        self._known: dict[str, tuple[str, ...]] = {}
        """Addresses (`host:port`) by name."""
        self._running: dict[str, asyncio.Task[None]] = {}
        self._said: set[str] = set()
        """What the log was told and has not become better since."""
        self._closed = False

    def targets(self, config: PoolConfig, security: ChannelSecurity) -> tuple[Target, ...]:
        """Every endpoint that there shall be, in the order of the configuration, each address once.

        One that several of them lead to is primary if any of these is, wherever it stands. Addresses that `security`
        does not allow are left out, and named in the log.
        """
        found: dict[str, Target] = {}
        for worker in config.workers:
            named = worker.startswith(NAME_PREFIX)
            for address in self._known.get(worker, ()) if named else (worker,):
                target = Target(address, primary=config.is_primary(worker), name=worker if named else "")
                known = found.get(address)
                is_news = known is None or (target.primary and not known.primary)
                if is_news and (not named or self._is_allowed(target, security)):
                    found[address] = target
        return tuple(found.values())

    async def look_up(self, workers: Iterable[str]) -> None:
        """Ask for every name among `workers`; returns with the answers, or when the time for it is over.

        Once closed, nothing is asked.
        """
        if self._closed:
            return
        names = [worker for worker in workers if worker.startswith(NAME_PREFIX)]
        for name in names:
            if name not in self._running:
                self._running[name] = asyncio.get_running_loop().create_task(self._ask(name))
        if pending := [self._running[name] for name in names]:
            _, late = await asyncio.wait(pending, timeout=self._resolving.timeout_s)
            for name in (name for name in names if self._running.get(name) in late):
                self._say(name, "no answer in time")

    async def keep_looking(self, workers: Callable[[], Iterable[str]]) -> None:
        """Look up what `workers` says now, again and again, for ever."""
        while True:
            unknown = any(worker.startswith(NAME_PREFIX) and worker not in self._known for worker in workers())
            await asyncio.sleep(self._resolving.unknown_every_s if unknown else self._resolving.every_s)
            await self.look_up(workers())

    async def close(self) -> None:
        """Ask no more, and wait for no answer any more."""
        self._closed = True
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _ask(self, name: str) -> None:
        host, port = host_of(name), int(name.rpartition(":")[2])
        try:
            found = await self._resolving.lookup(host, port)
        except (OSError, UnicodeError) as error:  # the second one: a name that no record can have
            self._say(name, str(error))
        else:
            self._learn(name, [f"[{each}]:{port}" if ":" in each else f"{each}:{port}" for each in found])
        finally:
            del self._running[name]

    def _learn(self, name: str, addresses: Iterable[str]) -> None:
        now = tuple(sorted(set(addresses)))
        if not now:
            self._say(name, "an empty answer")
            return
        self._said.discard(name)
        if now != self._known.get(name):
            log.info("name_resolved", name=name, addresses=now, before=self._known.get(name, ()))
            self._known[name] = now
            self._changed()

    def _say(self, name: str, problem: str) -> None:
        """Name what is wrong, once, until it is right again."""
        if name not in self._said:
            self._said.add(name)
            log.warning("name_not_resolved", name=name, problem=problem, kept=self._known.get(name, ()))

    def _is_allowed(self, target: Target, security: ChannelSecurity) -> bool:
        try:
            security.check_target(target.address)
        except ChannelSecurityError as error:
            if target.address not in self._said:
                self._said.add(target.address)
                log.warning("address_refused", name=target.name, address=target.address, problem=str(error))
            return False
        return True
