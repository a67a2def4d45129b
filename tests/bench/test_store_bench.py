"""What the bench of the store promises: a real edge, a real sweep, and a difference that is one of two groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import store
from bench.harness import BenchError
from bench.store import PICTURES, Request, Round, Sweep, at, figures

SWEEP = Sweep(began_s=100.0, ended_s=110.0, removed=5)


def taking(began_s: float, took_ms: float, kind: str = "call") -> Request:
    return Request(kind, began_s, began_s + took_ms / 1000)


def test_the_promised_number_is_swept() -> None:
    assert PICTURES == 100_000


def test_a_request_belongs_to_the_sweep_when_any_of_it_does() -> None:
    requests = [taking(99.9, 50), taking(99.99, 20), taking(105, 7), taking(109.999, 8), taking(110.001, 9)]
    done = Round(SWEEP, requests)
    assert done.times_ms("call", sweeping=True) == pytest.approx([20, 7, 8], abs=1e-3)
    assert done.times_ms("call", sweeping=False) == pytest.approx([50, 9], abs=1e-3)


def test_the_worst_case_counts() -> None:
    quiet = [taking(second, 10, kind) for second in range(50, 70) for kind in ("call", "picture")]
    beside = [taking(100 + number / 4, 12, "call") for number in range(20)]
    slow = [taking(100 + number / 4, 17, "picture") for number in range(20)]
    short = Round(Sweep(100.0, 103.0, 5), [*quiet, *beside, *slow])
    found = figures([[Round(SWEEP, [*quiet, *beside, *slow])], [short]])
    assert found == pytest.approx({"sweep_s": 10.0, "request_slowdown_ms": 7.0}, abs=1e-3)


def test_a_sweep_that_nobody_met_is_no_proof() -> None:
    with pytest.raises(BenchError, match="hardly a request"):
        at([5.0], 0.99)


def test_a_small_one_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "BEFORE", 60)
    monkeypatch.setattr(store, "AFTER_S", 0.2)
    with store.worker(tmp_path, "a-token-of-the-bench") as port:
        done = store.measure(tmp_path, port, "a-token-of-the-bench", "room", 2000, shared=True)
    assert done.sweep.removed >= 1600, "those that the edge had not known"
    assert 0 < done.sweep.ended_s - done.sweep.began_s < done.requests[-1].ended_s - done.requests[0].began_s
    assert done.times_ms("call", sweeping=False)
