"""The one event loop of this process whose channels there are: grpc.aio shares one poller among all of them."""

from __future__ import annotations

import asyncio
from typing import ClassVar
from weakref import ref


class OtherLoopError(RuntimeError):
    """Channels were touched from another event loop than the one they live on, or before they live on any."""


class Home:
    """Where one driver lives; all drivers of a process live on the same loop, one after another or together."""

    _of_process: ClassVar[ref[asyncio.AbstractEventLoop] | None] = None

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def settle(self) -> None:
        """Live on the running loop; raises `OtherLoopError` while the channels of another one are in use."""
        loop = asyncio.get_running_loop()
        settled = None if Home._of_process is None else Home._of_process()
        if settled is not None and settled is not loop and settled.is_running():
            raise OtherLoopError("another event loop of this process has channels to workers: use one loop for all")
        Home._of_process = ref(loop)
        self._loop = loop

    def check(self) -> None:
        """Raise `OtherLoopError` unless the running loop is this home."""
        if asyncio.get_running_loop() is not self._loop:
            raise OtherLoopError(
                "not started yet" if self._loop is None else "this driver belongs to another event loop"
            )
