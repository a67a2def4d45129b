"""One run of the watch loop in this process, quick."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from typing_extensions import override

from hairmesh.watch import build
from hairmesh.watch.loop import Clock, Exit, Loop, Orders
from hairmesh.watch.options import Kind, Options

INTERVAL_S = 0.4


class Even(Clock):
    """One that stands still while the machine is too busy to wake us: no look is ever late."""

    def __init__(self) -> None:
        self._lost_s = 0.0

    @override
    def now_s(self) -> float:
        return super().now_s() - self._lost_s

    @override
    async def sleep_until(self, moment_s: float) -> None:
        await super().sleep_until(moment_s)
        self._lost_s += max(0.0, self.now_s() - moment_s)


def options(url: str, kind: Kind = Kind.VLLM, **changes: Any) -> Options:
    quick: dict[str, Any] = {"once": True, "interval_s": INTERVAL_S, "grace_s": 0.9, "start_grace_s": 0.0}
    return Options(kind, url, **{**quick, **changes})


async def watch(asked: Options, command: Sequence[str] | None = None, *, as_json: bool = True) -> Exit:
    orders = Orders(once=asked.once, as_json=as_json, command=command, timeout_s=20.0, hidden=frozenset())
    limits = build.limits(asked)
    target = build.target(asked)
    try:
        return await Loop(target, limits, orders, Even()).run()
    finally:
        await target.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110  (a file, or a fake's list: nothing tells when it changes)
            await asyncio.sleep(0.01)


def last_line(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return said
