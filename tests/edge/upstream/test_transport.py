"""What gRPC says of a lost connection reaches log and evidence; what a worker wrote never does."""

from __future__ import annotations

import socket

import grpc
import pytest

from edge.upstream.transport import MAX_CHARS, said
from tests.edge.upstream.conftest import MakeDriver, until

REFUSED = (
    "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.11:1: Failed to connect to remote host: "
)


def error(text: str, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Stream removed (Socket closed)", "Socket closed"),
        ("Stream removed (ping timeout)", "ping timeout"),
        ("Stream removed (recvmsg:Connection reset by peer (104))", "Connection reset by peer"),
        ("recvmsg:Connection reset by peer", "Connection reset by peer"),
        (REFUSED + "Connection refused", "Failed to connect to remote host: Connection refused"),
        ("errors resolving w:1: [lookup failed: Domain name not found]", "[lookup failed: Domain name not found]"),
        ("Cancelling all calls", "Cancelling all calls"),
        ("Received RST_STREAM with error code 2", "Received RST_STREAM with error code 2"),
        ("CLIENT: Received message larger than max (5 vs. 4)", "Received message larger than max (5 vs. 4)"),
    ],
)
def test_the_transports_own_words_are_told(text: str, told: str) -> None:
    assert said(error(text)) == told


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the photo of Mr Wang cannot be read",
        "Unexpected <class 'KeyError'>: 'secret'",
        "secret Stream removed (Socket closed)",
        "Socket closed for secret",
    ],
)
def test_a_workers_text_is_not(text: str) -> None:
    assert said(error(text)) == ""


def test_that_time_ran_out_says_the_code_already() -> None:
    assert said(error("Stream removed (Deadline Exceeded)", grpc.StatusCode.DEADLINE_EXCEEDED)) == ""


def test_it_is_short_and_printable() -> None:
    told = said(error(f"Stream removed (\x1b[31mred\n{'x' * 200})"))
    assert told.startswith(r"\x1b[31mred\nx")
    assert told.isprintable()
    assert len(told) == MAX_CHARS


async def test_a_port_where_nobody_listens_is_told_from_a_worker_that_is_silent(driver: MakeDriver) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and never listens
        mesh = await driver(f"127.0.0.1:{nobody.getsockname()[1]}")
        await until(lambda: mesh.snapshot().endpoints[0].state == "NOT_SERVING")
    (endpoint,) = mesh.snapshot().endpoints
    assert endpoint.cause == "unreachable"
    assert endpoint.evidence.startswith("probe: UNAVAILABLE ")
    assert "Connection refused" in endpoint.evidence
