"""What a process keeps of the memory that a large photo took."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from pathlib import Path
from hairmesh.memory import keep_small_return_large

def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

{first}
before = resident_mb()
large = bytearray(31_000_000)
del large  # glibc's sign that such blocks are common
large = [bytearray(24_000_000) for _ in range(8)]
small = bytearray(70_000)  # behind them
large.clear()
print(round(resident_mb() - before))
"""


def grown_mb(first: str) -> int:
    """How much larger a process is after large blocks have come and gone."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(first=first)], capture_output=True, check=True, text=True
    )
    return int(done.stdout)


def test_large_blocks_go_back_to_the_system_at_once() -> None:
    """And they would not, were nothing said: else this shows nothing."""
    assert grown_mb("keep_small_return_large()") < 20
    assert grown_mb("pass") > 100
