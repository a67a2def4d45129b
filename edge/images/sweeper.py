"""Looks after the picture store in the background: whether it can be written, what is too old, how much there is."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from edge.images.store import ImageStore

PROBE_EVERY_S = 10.0
"""How soon `/readyz` notices that pictures cannot be stored, or can be again."""
SWEEP_EVERY_S = 600.0
"""A sweep looks at every picture: every ten minutes is enough for an age counted in hours. When the store gets full it
comes sooner."""


async def look_after(store: ImageStore) -> None:
    """Probe and sweep until cancelled; the first sweep comes at once."""
    async with asyncio.TaskGroup() as both:
        both.create_task(_probe(store))
        both.create_task(_sweep(store))


async def _probe(store: ImageStore) -> None:
    while True:
        await asyncio.sleep(PROBE_EVERY_S)
        await store.probe()


async def _sweep(store: ImageStore) -> None:
    while True:
        await store.sweep()
        with suppress(TimeoutError):
            async with asyncio.timeout(SWEEP_EVERY_S):
                await store.nearly_full()
