"""Whose doing a `CancelledError` is: grpc raises it too, in whoever awaits an RPC when its channel is closed."""

from __future__ import annotations

import asyncio


def task_is_cancelled() -> bool:
    """Whether the running task itself was told to end; it must do so. Else a channel was closed below it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
