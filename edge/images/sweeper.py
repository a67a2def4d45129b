"""Looks after the picture folder in the background: whether it can be written, what is too old, how much there is."""

from __future__ import annotations

import asyncio

from edge.images.local import LocalStore

PROBE_EVERY_S = 10.0
"""How soon `/readyz` notices that the folder cannot be written, or can be again."""
PROBES_PER_SWEEP = 60
"""A sweep looks at every file: every ten minutes is enough for an age counted in hours."""


async def look_after(store: LocalStore) -> None:
    """Probe and sweep until cancelled."""
    while True:
        for _ in range(PROBES_PER_SWEEP):
            await asyncio.sleep(PROBE_EVERY_S)
            await store.probe()
        await store.sweep()
