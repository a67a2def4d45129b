"""Every mutation of the table is killed: the tests named there fail when the behaviour they stand for is gone."""

from __future__ import annotations

import pytest

from tests.scenarios.mutation_table import MUTATIONS, Mutation
from tests.scenarios.mutations import demonstrate, misfit


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_still_fits_the_code(mutation: Mutation) -> None:
    assert misfit(mutation) == ""


@pytest.mark.long
def test_each_is_killed(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():  # takes minutes: one line for each as it comes
        print()
        assert demonstrate(MUTATIONS)
