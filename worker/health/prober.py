"""Asks the servers a worker relies on, each in a thread of its own that may hang without hanging anything else.

Always over a new connection: a kept one outlives a listener that takes nobody any more.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from types import MappingProxyType

import httpx
import structlog

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
        while True:
            result = self._probe()
            self._results.append(result)
            bad = bool(result.problem)
            retry_s = min(self._thresholds.dep_retry_s, self._period_s)
            if self._stop.wait(retry_s if bad or before_was_bad else self._period_s):
                return
            before_was_bad = bad

    def _probe(self) -> ProbeResult:
        began = time.monotonic()
        problem, timed_out = "", False
        try:
            ASK[self._dependency.kind](self._dependency.target, self._thresholds.dep_timeout_s)
        except (TimeoutError, httpx.TimeoutException):
            problem, timed_out = "no_answer_in_time", True
        except _BadAnswerError as error:
            problem = str(error)
        except (OSError, httpx.HTTPError) as error:
            problem = _name_of(error)
        except Exception as error:  # a probe that is broken itself must not pass for a good one, nor end the thread
            log.exception("probe_raised", dependency=self._dependency.name)
            problem = f"probe_raised_{type(error).__name__}"
        return ProbeResult(self._clock(), (time.monotonic() - began) * 1000.0, problem, timed_out)


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


def _ask_tcp(target: str, timeout_s: float) -> None:
    host, _colon, port = target.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()


def _ask_http(target: str, timeout_s: float) -> None:
    status, _body = _get(target, "", timeout_s, most_bytes=0)
    if status >= 500:
        raise _BadAnswerError(f"http_{status}")


def _ask_comfyui(target: str, timeout_s: float) -> None:
    # Its queue holds whole workflows and may be long: the beginning shows that it is JSON.
    status, body = _get(target, "/queue", timeout_s, most_bytes=1)
    _want_ok(status)
    if not body.startswith(b"{"):
        raise _BadAnswerError("not_comfyui")


def _ask_vllm(target: str, timeout_s: float) -> None:
    status, body = _get(target, "/v1/models", timeout_s, most_bytes=_MOST_BYTES)
    _want_ok(status)
    try:
        answer = json.loads(body)
    except ValueError:
        raise _BadAnswerError("not_json") from None
    models = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(models, list) or not models:
        raise _BadAnswerError("no_model_listed")


ASK: Mapping[DependencyKind, Callable[[str, float], None]] = MappingProxyType(
    {
        DependencyKind.TCP: _ask_tcp,
        DependencyKind.HTTP: _ask_http,
        DependencyKind.COMFYUI: _ask_comfyui,
        DependencyKind.VLLM: _ask_vllm,
    }
)
"""How each kind is asked: target and timeout in, an exception when it cannot be relied on."""


def _get(target: str, path: str, timeout_s: float, *, most_bytes: int) -> tuple[int, bytes]:
    """Status and the beginning of the body: at least `most_bytes` of it where there are so many.

    Raises `TimeoutError` for an answer that trickles, and what httpx raises.
    """
    base = target.rstrip("/") if "://" in target else f"http://{target}"
    ends = time.monotonic() + timeout_s
    body = b""
    with (
        httpx.Client(trust_env=False, timeout=timeout_s, verify=_tls()) as client,
        client.stream("GET", base + path) as response,
    ):
        if most_bytes:
            for piece in response.iter_bytes():
                body += piece
                if len(body) >= most_bytes:
                    break
                if time.monotonic() > ends:
                    raise TimeoutError
    return response.status_code, body


@cache
def _tls() -> ssl.SSLContext:
    """Reading the authorities takes longer than a probe."""
    return authorities()


def _want_ok(status: int) -> None:
    if status != httpx.codes.OK:
        raise _BadAnswerError(f"http_{status}")


def _name_of(error: BaseException) -> str:
    """The name of the operating system's error at the bottom of it, or else the kind of error."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError):
            return errno_name(seen)
        seen = seen.__cause__ or seen.__context__
    return type(error).__name__
