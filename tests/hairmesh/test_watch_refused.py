"""What a server to which no connection comes about is taken for: refused is a proof, all else is none."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from typing_extensions import override

from hairmesh.watch import target
from worker.health.watchdog.looks import Answer


@pytest.fixture
def refusing() -> Iterator[int]:
    """A port on which nobody listens, and nobody else will."""
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        yield port


class Lame(socket.socket):
    """What is asked of IPv6 fails as the test says, on whatever machine; the rest goes on."""

    fails: ClassVar[Mapping[str, int]] = {}

    def __init__(self, family: int = -1, kind: int = -1, *rest: Any) -> None:
        self.is_lame = family == socket.AF_INET6
        self._do("create")
        super().__init__(socket.AF_INET, kind, *rest)

    def _do(self, what: str) -> None:
        if self.is_lame and what in self.fails:
            raise OSError(self.fails[what], os.strerror(self.fails[what]))

    @override
    def bind(self, address: Any) -> None:
        self._do("bind")
        super().bind(("127.0.0.1", 0))

    @override
    def connect(self, address: Any) -> None:
        self._do("connect")
        super().connect(("127.0.0.1", address[1]))


V6, V4 = socket.AF_INET6, socket.AF_INET


@pytest.mark.parametrize(
    ("fails", "families", "answer"),
    [
        ({}, [V4], Answer.REFUSED),
        ({}, [V6, V4], Answer.REFUSED),
        ({"create": errno.EAFNOSUPPORT}, [V6, V4], Answer.REFUSED),
        ({"create": errno.EAFNOSUPPORT}, [V6], Answer.UNREACHABLE),
        ({"bind": errno.EADDRNOTAVAIL, "connect": errno.EADDRNOTAVAIL}, [V6, V4], Answer.REFUSED),
        ({"bind": errno.EADDRNOTAVAIL, "connect": errno.EADDRNOTAVAIL}, [V6], Answer.UNREACHABLE),
        # No port left, no route, no descriptor: a server may listen there.
        ({"connect": errno.EADDRNOTAVAIL}, [V6, V4], Answer.UNREACHABLE),
        ({"connect": errno.ENETUNREACH}, [V4, V6], Answer.UNREACHABLE),
        ({"create": errno.EMFILE}, [V6, V4], Answer.UNREACHABLE),
        ({"connect": errno.ETIMEDOUT}, [V4, V6], Answer.SLOW),
    ],
)
async def test_refused_is_who_refuses_at_every_address_that_this_machine_can_have(
    fails: Mapping[str, int],
    families: Sequence[socket.AddressFamily],
    answer: Answer,
    refusing: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses = {V6: ("::1", refusing, 0, 0), V4: ("127.0.0.1", refusing)}
    found = [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", addresses[family]) for family in families]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(Lame, "fails", fails)
    monkeypatch.setattr(socket, "socket", Lame)
    assert (await target.failed_to_connect("both.example", refusing, 0.0)).answer is answer


async def test_a_name_that_is_never_resolved_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(target, "LOOK_TIMEOUT_S", 0.05)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", never)
    assert (await target.failed_to_connect("both.example", 1, 0.0)).answer is Answer.SLOW
