"""The bench of simulated requests says what was counted, and that nothing was broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_small_run_ends_with_its_figures() -> None:
    command = [sys.executable, "bench/simulate.py", "--requests", "500", "--processes", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["violations"] == 0
    assert figures["requests"] >= 500
    assert figures["schedules"] >= 2
    assert set(figures) >= {"faults", "seconds", "requests_per_s"}
