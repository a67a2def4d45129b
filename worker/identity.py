"""Which process this is."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Identity:
    """A new one for every process."""

    boot_id: str = field(default_factory=lambda: secrets.token_hex(8))
    start_time_s: float = field(default_factory=time.time)
    """Seconds since the epoch."""
