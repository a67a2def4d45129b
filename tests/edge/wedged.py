"""A real edge whose probes never end once a file `wedge` lies beside its configuration: `python -m tests.edge.wedged`.

It notices after half a second instead of ten.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import edge.announcements
import edge.notify
from edge.__main__ import main
from edge.pool.events import ProbeResult
from edge.upstream import probe
from edge.upstream.channel import Link
from edge.upstream.passwords import Key

WEDGE = Path(sys.argv[sys.argv.index("--config") + 1]).with_name("wedge")

check = probe.check


async def stuck(link: Callable[[], Link], key: Key, timeout_s: float) -> tuple[ProbeResult, str]:
    """The real one, until it is wedged."""
    if WEDGE.exists():
        await asyncio.Event().wait()
    return await check(link, key, timeout_s)


edge.announcements.PROBES_LATE_MAX_S = 0.5
edge.notify.BEAT_S = 0.05
probe.check = stuck
main()
