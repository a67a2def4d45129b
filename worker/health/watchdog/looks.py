"""What a probe brings home from one look at a server, and from one canary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from worker.health.verdict import Reading


class Answer(StrEnum):
    """How the server answered. Only `READ` and `REFUSED`, again and again, can ever prove that it is stuck."""

    READ = "read"
    """With counters."""
    UNREADABLE = "unreadable"
    """With something else: an HTTP error, a page for people, names nobody knows."""
    LISTED = "listed"
    """A proxy gave its list of models, which is all that it is asked."""
    SLOW = "slow"
    """Not within the time limit."""
    REFUSED = "refused"
    """Nothing listens at this address."""
    UNREACHABLE = "unreachable"
    """No way to it: name, route, a connection that broke. Says nothing of the server."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a server."""

    at_s: float
    """Monotonic clock of the reader, when the look began."""
    answer: Answer
    engines: Mapping[str, Reading] = field(default_factory=dict)
    """A reading of each engine by name; a server with only one calls it by the empty string."""
    counts: bool = True
    """Whether the readings' counters are steps of the server; it may tell of its movement by signs alone."""
    weak: frozenset[str] = frozenset()
    """Engines whose counter may be still although they work: suspicion of these is UNKNOWN."""
    age_s: float | None = None
    """Age of the process; None where it does not say."""
    nobody: str = ""
    """Name of an engine that there cannot be. Empty unless there are several that may be asked by name."""
    took_s: float = 0.0
    """How long it took."""
    tokens: float | None = None
    """Tokens put out since the start; None where nobody counts them."""
    problem: str = ""
    """What is wrong or missing, in words for a log; never a piece of what was received."""
    serves: bool = True
    """Whether it takes work, in its own words."""
    condemned: str = ""
    """The server's own words when it says of itself that only a restart helps; empty else."""


class CanaryResult(StrEnum):
    """How a canary ended."""

    PASSED = "passed"
    TIMED_OUT = "timed_out"
    """A failure only if the counters stayed still meanwhile: else it waited its turn behind running work."""
    REFUSED = "refused"
    """By the server as a question that makes no sense. To be expected of one for an engine that there cannot be."""
    ERROR = "error"
    """Anything but an answer to the question: an HTTP error, a broken connection. Proves nothing."""
