"""What the burst bench compares, and the peer it compares with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.dispatch import BURSTS, OURS, Burst, figures
from bench.peers.envoy_one_call import POLICIES, one_call_config


@pytest.mark.parametrize(
    ("burst", "bound_s"),
    [
        (Burst("", "", (0.5,) * 6), 1.0),
        (Burst("", "", (0.5, 2.0)), 2.0),
        (Burst("", "", (0.5,) * 6, taken_s=3.0), 1.5),
    ],
)
def test_what_no_dispatch_can_beat(burst: Burst, bound_s: float) -> None:
    assert burst.bound_s() == pytest.approx(bound_s)


def test_envoy_is_taken_with_the_policy_that_did_best_at_each_burst() -> None:
    times = {
        "burst": {OURS: [1.0, 1.2, 1.1], "Envoy, a": [2.0, 2.0, 0.9], "Envoy, b": [1.5, 1.6, 1.7]},
        "mixed": {OURS: [2.0], "Envoy, a": [2.2], "Envoy, b": [3.0]},
    }
    assert figures(times) == {"burst_s": 1.1, "burst_envoy_s": 1.6, "mixed_s": 2.0, "mixed_envoy_s": 2.2}


def test_the_promised_bursts_are_measured() -> None:
    assert {(len(burst.calls_s), burst.calls_s[0]) for burst in BURSTS} >= {(6, 0.5), (12, 0.5)}


@pytest.mark.parametrize("policy", POLICIES)
def test_envoy_takes_its_configuration(tmp_path: Path, policy: str) -> None:
    config = one_call_config(tmp_path, 28_080, [28_187, 28_188], policy)
    envoy = Path(sys.executable).with_name("envoy")
    checked = subprocess.run(
        [envoy, "--mode", "validate", "-c", config, "-l", "error"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
