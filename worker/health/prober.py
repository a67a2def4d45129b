"""Asks the servers a worker relies on, each in a thread of its own that may hang without hanging anything else.

Always over a new connection: a kept one outlives a listener that takes nobody any more. One time limit covers a whole
probe, however many addresses the name has and however slowly the answer comes: results are never further apart than
`worker.health.deps` waits for one.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from types import MappingProxyType
from typing import Any

import anyio
import httpx
import structlog
from typing_extensions import override

from hairmesh.trust import authorities
from worker.health.checks import CheckResult
from worker.health.deps import DependencyCheck, DependencyKind, ProbeResult
from worker.health.disk import errno_name
from worker.settings import DependencySettings
from worker.thresholds import Thresholds

_MOST_BYTES = 1 << 20

log = structlog.stdlib.get_logger("worker.health")


class _BadAnswerError(Exception):
    """It answered, but not as such a server does; the message is the short word for it."""


class _OwnLoop(asyncio.SelectorEventLoop):
    """One thread's own. A loop, since only there one limit covers all of a probe.

    It resolves names in this thread, which may hang: for those of a loop's own pool the interpreter waits at its end.
    """

    @override
    async def getaddrinfo(self, host: Any, port: Any, **kinds: Any) -> Any:
        return socket.getaddrinfo(host, port, **kinds)


class DependencyProber:
    """One daemon thread that probes one server again and again."""

    def __init__(
        self, dependency: DependencySettings, *, period_s: float, thresholds: Thresholds, clock: Callable[[], float]
    ) -> None:
        self._dependency = dependency
        self._period_s = period_s
        self._thresholds = thresholds
        self._clock = clock
        self._stop = threading.Event()
        self._results: deque[ProbeResult] = deque()
        self._thread = threading.Thread(target=self._repeat, name=f"dep-{dependency.name}", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more. Does not wait: a thread that hangs in name resolution may take long."""
        self._stop.set()

    def take(self) -> Sequence[ProbeResult]:
        """What came of the probes since the last time, the oldest first."""
        taken = []
        with suppress(IndexError):
            while True:
                taken.append(self._results.popleft())
        return taken

    def _repeat(self) -> None:
        before_was_bad = False
        with asyncio.Runner(loop_factory=_OwnLoop) as runner:
            while True:
                result = self._probe(runner)
                self._results.append(result)
                bad = bool(result.problem)
                retry_s = min(self._thresholds.dep_retry_s, self._period_s)
                if self._stop.wait(retry_s if bad or before_was_bad else self._period_s):
                    return
                before_was_bad = bad

    def _probe(self, runner: asyncio.Runner) -> ProbeResult:
        began = time.monotonic()
        problem, timed_out = "", False
        try:
            runner.run(self._ask())
        except TimeoutError:
            problem, timed_out = "no_answer_in_time", True
        except _BadAnswerError as error:
            problem = str(error)
        except (OSError, httpx.HTTPError) as error:
            problem = _name_of(error)
        except Exception as error:  # a probe that is broken itself must not pass for a good one, nor end the thread
            log.exception("probe_raised", dependency=self._dependency.name)
            problem = f"probe_raised_{type(error).__name__}"
        return ProbeResult(self._clock(), (time.monotonic() - began) * 1000.0, problem, timed_out)

    async def _ask(self) -> None:
        async with asyncio.timeout(self._thresholds.dep_timeout_s):
            await ASK[self._dependency.kind](self._dependency.target)


class Dependencies:
    """All of them: their probers and their states. Everything but the probers' threads belongs to the event loop."""

    def __init__(
        self,
        dependencies: Sequence[DependencySettings],
        *,
        checked: bool,
        interval_s: float,
        thresholds: Thresholds,
        clock: Callable[[], float],
    ) -> None:
        self._checks = [
            DependencyCheck(
                dependency.name,
                required=dependency.required,
                checked=checked,
                interval_s=interval_s,
                started_s=clock(),
                thresholds=thresholds,
            )
            for dependency in dependencies
        ]
        self._probers = [
            DependencyProber(dependency, period_s=interval_s, thresholds=thresholds, clock=clock)
            for dependency in dependencies
            if checked
        ]

    def start(self) -> None:
        """Begin to probe."""
        for prober in self._probers:
            prober.start()

    def stop(self) -> None:
        """Probe no more; does not wait."""
        for prober in self._probers:
            prober.stop()

    def update(self, now_s: float) -> None:
        """Weigh what came in; called every beat."""
        for check, prober in zip(self._checks, self._probers, strict=False):  # no probers where nothing is checked
            for result in prober.take():
                check.observe(result)
            check.update(now_s)

    def results(self) -> tuple[CheckResult, ...]:
        """`dep/<name>` of each, in the configuration's order."""
        return tuple(check.result() for check in self._checks)


async def _ask_tcp(target: str) -> None:
    host, _colon, port = target.rpartition(":")
    async with await anyio.connect_tcp(host.strip("[]"), int(port)):
        pass


async def _ask_http(target: str) -> None:
    status, _body = await _get(target, "", most_bytes=0)
    if status >= 500:
        raise _BadAnswerError(f"http_{status}")


async def _ask_comfyui(target: str) -> None:
    # Its queue holds whole workflows and may be long: the beginning shows that it is JSON.
    status, body = await _get(target, "/queue", most_bytes=1)
    _want_ok(status)
    if not body.startswith(b"{"):
        raise _BadAnswerError("not_comfyui")


async def _ask_vllm(target: str) -> None:
    status, body = await _get(target, "/v1/models", most_bytes=_MOST_BYTES)
    _want_ok(status)
    try:
        answer = json.loads(body)
    except ValueError:
        raise _BadAnswerError("not_json") from None
    models = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(models, list) or not models:
        raise _BadAnswerError("no_model_listed")


ASK: Mapping[DependencyKind, Callable[[str], Awaitable[None]]] = MappingProxyType(
    {
        DependencyKind.TCP: _ask_tcp,
        DependencyKind.HTTP: _ask_http,
        DependencyKind.COMFYUI: _ask_comfyui,
        DependencyKind.VLLM: _ask_vllm,
    }
)
"""How each kind is asked: target in, an exception when it cannot be relied on."""


async def _get(target: str, path: str, *, most_bytes: int) -> tuple[int, bytes]:
    """Status and the beginning of the body: at least `most_bytes` of it where there are so many."""
    base = target.rstrip("/") if "://" in target else f"http://{target}"
    body = b""
    async with (
        httpx.AsyncClient(trust_env=False, timeout=None, verify=_tls()) as client,  # noqa: S113  (`_ask` limits the whole)
        client.stream("GET", base + path) as response,
    ):
        if most_bytes:
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) >= most_bytes:
                    break
    return response.status_code, body


@cache
def _tls() -> ssl.SSLContext:
    """Reading the authorities takes longer than a probe."""
    return authorities()


def _want_ok(status: int) -> None:
    if status != httpx.codes.OK:
        raise _BadAnswerError(f"http_{status}")


def _name_of(error: BaseException) -> str:
    """The name of the operating system's error at the bottom of it, or else the kind of error.

    Of several addresses, each with its own, the first one's.
    """
    name = type(error).__name__
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLError):
            return type(seen).__name__  # its number is none of the operating system's
        if isinstance(seen, OSError):
            name = errno_name(seen)
        seen = seen.exceptions[0] if isinstance(seen, BaseExceptionGroup) else seen.__cause__ or seen.__context__
    return name
