"""Callers with the password who take nothing: what they leave lying keeps nobody out for good."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

import pytest
from google.protobuf.message import Message
from grpc import aio
from hair.analysis.v1 import common_pb2, growth_pb2
from structlog.testing import capture_logs

from hairmesh.wire import ANALYZE_SERVICE, TOKEN_KEY
from tests.worker import raw_http2
from tests.worker.fakes import BIG_ANSWER, OK, FakePipeline
from tests.worker.harness import PASSWORD, QUICK, request, running
from worker.connections import shut


class Deaf(NamedTuple):
    """A call of a caller that answers pings, set no deadline and reads nothing."""

    method: str
    message: Message
    outcome: str
    unread: range

    async def until_cut(self, address: str) -> None:
        """Raises `IncompleteReadError` when the worker shuts the connection."""
        headers = {TOKEN_KEY: PASSWORD.encode()}
        await raw_http2.call(address, f"/{ANALYZE_SERVICE}/{self.method}", headers, self.message.SerializeToString())


PHOTO = common_pb2.Image(data=BIG_ANSWER)
ANSWER = Deaf("Measure", request(BIG_ANSWER), "ok", range(5_000_000, 6_000_000))
STREAM = Deaf("GrowStyles", growth_pb2.GrowStylesRequest(photo=PHOTO), "cancelled", range(5_000_000, 50_000_000))


@pytest.mark.parametrize("deaf", [ANSWER, STREAM], ids=["one answer", "a stream"])
async def test_who_takes_nothing_is_disconnected_and_the_next_is_answered(pipeline: FakePipeline, deaf: Deaf) -> None:
    thresholds = replace(QUICK, most_unread_bytes=deaf.unread.start, unread_s=0.5)
    with capture_logs() as lines:
        async with running(pipeline.load, thresholds=thresholds) as (_worker, client):
            with pytest.raises(asyncio.IncompleteReadError):
                await deaf.until_cut(client.target)
            while True:  # the test's own timeout ends it
                try:
                    await client.measure(OK)
                    break
                except aio.AioRpcError:
                    continue
    told = next(line for line in lines if line["event"] == "answer_not_read")
    assert told["unread_bytes"] in deaf.unread
    assert told["peer"] == "127.0.0.1"
    ended = next(line for line in lines if line["event"] == "call" and line["method"] == deaf.method)
    assert ended["outcome"] == deaf.outcome
    assert [line for line in lines if line["event"] == "handler_raised"] == []


@pytest.mark.parametrize(
    ("listens", "calls", "kind"),
    [("127.0.0.1", "127.0.0.1", "ipv4"), ("::", "127.0.0.1", "ipv4"), ("::1", "::1", "ipv6")],
)
def test_one_connection_is_shut_and_no_other(listens: str, calls: str, kind: str) -> None:
    """Behind a port for both kinds of addresses, gRPC names a caller by its IPv4 address."""
    if listens != "127.0.0.1" and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    family = socket.AF_INET6 if ":" in listens else socket.AF_INET
    with ExitStack() as opened:
        door = opened.enter_context(socket.create_server((listens, 0), family=family, dualstack_ipv6=listens == "::"))
        callers = [opened.enter_context(socket.create_connection((calls, door.getsockname()[1]))) for _ in range(2)]
        served = [opened.enter_context(door.accept()[0]) for _ in callers]
        host, port, *_ = callers[0].getsockname()
        name = f"{kind}:{f'%5B{host}%5D' if kind == 'ipv6' else host}:{port}"
        assert shut(name)
        assert callers[0].recv(1) == b""
        served[1].sendall(b"x")
        assert callers[1].recv(1) == b"x"
        callers[0].close()
        served[0].close()
        assert not shut(name)


@pytest.mark.parametrize("name", ["unix:", "unix:/run/worker.sock", ""])
def test_a_peer_without_a_port_has_no_connection_to_shut(name: str) -> None:
    assert not shut(name)
