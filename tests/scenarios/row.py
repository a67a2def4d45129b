"""One row of the tables of scenarios and reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario or report."""

    key: str
    """Its number, or its id among the reports."""
    what: str
    """What happens."""
    answer: str
    """What the system does about it."""
    tests: tuple[str, ...] = ()
    """Node ids, without parameters, of tests that fail when it does not."""
