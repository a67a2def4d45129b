"""Probes of dependencies on real sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.worker.web import COMFYUI, HTML, VLLM, Web, listening
from worker.health.checks import CheckResult, CheckState
from worker.health.deps import DependencyKind
from worker.health.prober import Dependencies
from worker.settings import DependencySettings
from worker.thresholds import Thresholds

QUICK = Thresholds(dep_timeout_s=20.0, dep_retry_s=0.01)
"""Where every server answers: only how long a machine may be still before that counts as no answer."""
BRIEF = Thresholds(dep_timeout_s=0.1, dep_retry_s=0.01)
SELDOM_S = 30.0
"""Between two good probes."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def probed(
    kind: str, target: str, *, interval_s: float = 0.01, thresholds: Thresholds = QUICK
) -> Iterator[Callable[[Callable[[CheckResult], bool]], CheckResult]]:
    """A function that beats until the check of `target` is as wanted."""
    dependency = DependencySettings(name="x", kind=DependencyKind(kind), target=target)
    all_of_them = Dependencies(
        [dependency], checked=True, interval_s=interval_s, thresholds=thresholds, clock=time.monotonic
    )

    def until(wanted: Callable[[CheckResult], bool]) -> CheckResult:
        while True:  # the test's own timeout ends it
            all_of_them.update(time.monotonic())
            (result,) = all_of_them.results()
            if wanted(result):
                return result
            time.sleep(0.005)

    all_of_them.start()
    try:
        yield until
    finally:
        all_of_them.stop()


def decided(result: CheckResult) -> bool:
    return result.state is not CheckState.UNKNOWN


@pytest.mark.parametrize(
    ("kind", "status", "body", "reason"),
    [
        ("tcp", 500, HTML, ""),
        ("http", 200, HTML, ""),
        ("http", 404, HTML, ""),
        ("http", 499, HTML, ""),
        ("http", 500, HTML, "http_500"),
        ("http", 503, HTML, "http_503"),
        ("comfyui", 200, COMFYUI, ""),
        ("comfyui", 200, HTML, "not_comfyui"),
        ("comfyui", 200, "", "not_comfyui"),
        ("comfyui", 404, COMFYUI, "http_404"),
        ("comfyui", 502, COMFYUI, "http_502"),
        ("vllm", 200, VLLM, ""),
        ("vllm", 200, HTML, "not_json"),
        ("vllm", 200, '{"data": []}', "no_model_listed"),
        ("vllm", 200, '{"data": {}}', "no_model_listed"),
        ("vllm", 200, "[]", "no_model_listed"),
        ("vllm", 401, VLLM, "http_401"),
    ],
)
def test_what_each_kind_takes_for_good(kind: str, status: int, body: str, reason: str) -> None:
    web = Web(body, status=status)
    with listening(web), probed(kind, web.target) as until:
        result = until(decided)
        assert (result.state, result.reason) == (CheckState.FAILING if reason else CheckState.PASSING, reason)
        assert result.evidence["answer_ms"] > 0


@pytest.mark.parametrize(
    ("kind", "path"), [("http", ""), ("http", "/health"), ("comfyui", "/queue"), ("vllm", "/v1/models")]
)
def test_targets_are_addresses_or_urls(kind: str, path: str) -> None:
    web = Web(VLLM)
    with listening(web):
        url = f"http://{web.target}{path if kind == 'http' else ''}"
        for name in (url, web.target):
            with probed(kind, name) as until:
                until(decided)
        assert web.asked[0] == (path or "/")
        assert set(web.asked) <= {path or "/", "/"}


@pytest.mark.parametrize("kind", list(DependencyKind))
def test_refused_is_down_and_it_is_back_when_it_listens_again(kind: DependencyKind) -> None:
    web = Web(VLLM)
    with listening(web), probed(kind, web.target) as until:
        for _time in range(2):
            until(lambda result: result.state is CheckState.PASSING)
            web.go()
            assert until(lambda result: result.state is CheckState.FAILING).reason == "ECONNREFUSED"
            web.come()


def test_slow_to_answer_is_not_down_and_never_answering_is() -> None:
    """B71, B85."""
    web = Web(wait_s=0.2)
    with listening(web), probed("comfyui", web.target) as until:
        slow = until(decided)
        assert (slow.state, slow.evidence["answer_ms"] >= 200) == (CheckState.PASSING, True)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        # At so long an interval no evidence grows old, however late the third probe is.
        with probed("comfyui", address, interval_s=SELDOM_S, thresholds=BRIEF) as until:
            silence = until(decided)
        assert (silence.state, silence.reason) == (CheckState.FAILING, "no_answer_in_time")
        assert silence.evidence["bad_in_a_row"] >= BRIEF.dep_timeouts_to_leave


def test_a_name_that_resolves_to_nothing_is_a_problem_not_an_end() -> None:
    with probed("http", "nowhere.invalid:80") as until:
        assert until(decided).state is CheckState.FAILING


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    web = Web()
    with listening(web), probed("http", web.target) as until:
        assert until(decided).state is CheckState.PASSING
