"""Threads for work that may hang: a disk, a network folder.

Thinner than an executor, since every call writes a picture, and with daemon threads: a disk that hangs must not keep
the process from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

import structlog

T = TypeVar("T")

log = structlog.get_logger()


class Threads:
    """A few threads that take work in order, for one event loop."""

    def __init__(self, count: int, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._count = count
        for number in range(count):
            threading.Thread(target=self._serve, name=f"{name}-{number}", daemon=True).start()

    async def run(self, work: Callable[[], T], *, timeout_s: float | None) -> T:
        """The result of `work`, or its exception; raises `TimeoutError`, after which it may still be running.

        `timeout_s` None: wait for as long as it takes.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def job() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001  (carried to the one who waits)
                tell = partial(_fail, future, error)
            else:
                tell = partial(_finish, future, result)
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(tell)

        self._jobs.put(job)
        async with asyncio.timeout(timeout_s):
            return await future

    def post(self, work: Callable[[], object]) -> None:
        """Have `work` done some time; nobody waits for it."""
        self._jobs.put(work)

    def close(self) -> None:
        """Let the threads end when their work is done; nobody waits for them."""
        for _ in range(self._count):
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:
                log.exception("unawaited_work_failed")


def _finish(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
