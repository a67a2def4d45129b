"""Probes of dependencies on real sockets."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from hairmesh import certs
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


@contextmanager
def black_holes(*addresses: str) -> Iterator[int]:
    """A port at which none of `addresses` ever takes a connection, nor refuses one, and which 127.0.0.1 has free."""
    with ExitStack() as held:
        port = held.enter_context(closing(socket.create_server((addresses[0], 0), backlog=0))).getsockname()[1]
        for address in addresses[1:]:
            held.enter_context(closing(socket.create_server((address, port), backlog=0)))
        for address in addresses:
            held.enter_context(closing(socket.create_connection((address, port))))  # the only place in its queue
        yield port


def resolves_to(*addresses: str) -> Callable[..., list[Any]]:
    """A resolver that gives every name these."""

    def found(_host: object, port: int, *_: object, **__: object) -> list[Any]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [(*kind, (address, port)) for address in addresses]

    return found


@contextmanager
def handled_by(handler: type[socketserver.BaseRequestHandler]) -> Iterator[str]:
    """The address of a server whose every connection is `handler`'s."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            serving.join()


HOLES = tuple(f"127.0.0.{number}" for number in range(2, 42))


@pytest.mark.parametrize("kind", list(DependencyKind))
def test_a_probe_is_good_though_most_addresses_of_the_name_are_black_holes(
    kind: DependencyKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after another, each with its own time, would take longer than all the time that there is."""
    web = Web(VLLM)
    with black_holes(*HOLES[:3]) as port:
        web.port = port
        monkeypatch.setattr(socket, "getaddrinfo", resolves_to(*HOLES[:3], "127.0.0.1"))
        with listening(web), probed(kind, f"name.example:{port}") as until:
            result = until(lambda result: "answer_ms" in result.evidence)
    assert result.state is CheckState.PASSING
    assert result.evidence["answer_ms"] < QUICK.dep_timeout_s * 1000.0


@pytest.mark.parametrize("kind", list(DependencyKind))
def test_a_probe_has_one_time_limit_however_many_addresses_the_name_has(
    kind: DependencyKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_s = Thresholds(dep_timeout_s=1.0)
    with black_holes(*HOLES) as port:
        monkeypatch.setattr(socket, "getaddrinfo", resolves_to(*HOLES))
        with probed(kind, f"name.example:{port}", interval_s=SELDOM_S, thresholds=one_s) as until:
            result = until(lambda result: "answer_ms" in result.evidence)
    assert result.evidence["answer_ms"] < len(HOLES) * one_s.dep_timeout_s * 1000.0 / 2


def test_a_head_that_never_ends_is_no_answer_in_time() -> None:
    """Byte after byte, each well within the limit."""
    gone = threading.Event()

    class Trickles(socketserver.BaseRequestHandler):
        @override
        def handle(self) -> None:
            self.request.sendall(b"HTTP/1.1 200 OK\r\n")
            with suppress(ConnectionError):
                while not gone.wait(0.01):
                    self.request.sendall(b"x: y\r\n")

    with handled_by(Trickles) as address:
        with probed("comfyui", address, interval_s=SELDOM_S, thresholds=BRIEF) as until:
            assert until(decided).reason == "no_answer_in_time"
        gone.set()


def test_of_several_addresses_that_refuse_the_reason_is_the_first_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolves_to("127.0.0.1", "127.0.0.2"))
    for kind in DependencyKind:
        with probed(kind, f"name.example:{free_port()}") as until:
            assert until(decided).reason == "ECONNREFUSED"


def test_a_certificate_of_nobody_we_know_is_named(tmp_path: Path) -> None:
    certs.write_dev(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "edge.pem", tmp_path / "edge.key")

    class ShakesHands(socketserver.BaseRequestHandler):
        @override
        def handle(self) -> None:
            with suppress(OSError), context.wrap_socket(self.request, server_side=True) as encrypted:
                encrypted.recv(1)

    with handled_by(ShakesHands) as address, probed("http", f"https://{address}") as until:
        assert until(decided).reason == "SSLCertVerificationError"


def test_a_name_that_resolves_to_nothing_is_a_problem_not_an_end() -> None:
    with probed("http", "nowhere.invalid:80") as until:
        assert until(decided).state is CheckState.FAILING


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    web = Web()
    with listening(web), probed("http", web.target) as until:
        assert until(decided).state is CheckState.PASSING
