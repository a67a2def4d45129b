"""Every rule can fail: a pool that lacks the behaviour is caught, and by the rule that is there for it."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.sim.mutations import MUTATIONS, Mutation
from tests.sim.play import play
from tests.sim.rules import INVARIANTS
from tests.sim.schedule import generate

SEEDS = 60


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.takes_out)
def test_a_pool_without_it_is_caught(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.apply(monkeypatch)
    tripped: Counter[str] = Counter()
    for seed in range(SEEDS):
        failure = play(generate(seed, kinds=mutation.kinds)).failure
        if failure is not None:
            tripped[failure.invariant] += 1
            if failure.invariant in mutation.trips:
                return
    pytest.fail(f"{SEEDS} schedules without it: {dict(tripped)}")


def test_every_rule_has_a_pool_that_breaks_it() -> None:
    """But for the order of simultaneous events: see `tests/sim/test_order.py`."""
    assert set().union(*(mutation.trips for mutation in MUTATIONS)) >= set(INVARIANTS) - {"confluence"}
