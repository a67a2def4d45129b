"""W3C Trace Context: how a request is named across processes. Pure but for the chance that ids are made of."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

_HEADER = re.compile(r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})")
_SAMPLED = 0x01
_NO_VERSION = "ff"


@dataclass(frozen=True, slots=True)
class TraceContext:
    """One span of one trace. Ids are lower-case hexadecimal and never all zeros."""

    trace_id: str
    """32 digits; of the whole request, wherever it goes."""
    span_id: str
    """16 digits."""
    sampled: bool
    """Whether spans of this trace are to be recorded."""

    @classmethod
    def new(cls, *, sampled: bool) -> TraceContext:
        """The first span of a new trace."""
        digits = _digits(192, 48)
        return cls(digits[:32], digits[32:], sampled)

    @classmethod
    def read(cls, headers: Sequence[str]) -> TraceContext | None:
        """What `traceparent` says; None unless there is exactly one that is valid.

        One of a later version than 00 may go on behind the four parts that every version has.
        """
        if len(headers) != 1 or (match := _HEADER.match(headers[0])) is None:
            return None
        version, trace_id, span_id, flags = match.groups()
        rest = headers[0][match.end() :]
        if version == _NO_VERSION or (rest and (version == "00" or not rest.startswith("-"))):
            return None
        if not trace_id.strip("0") or not span_id.strip("0"):
            return None
        return cls(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))

    def child(self) -> TraceContext:
        """Another span of the same trace."""
        return TraceContext(self.trace_id, _digits(64, 16), self.sampled)

    @property
    def header(self) -> str:
        """As `traceparent` carries it."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


def _digits(bits: int, width: int) -> str:
    """Names, no secrets: the system's own randomness would cost a fast call more. Zeros alone do not come up."""
    return f"{random.getrandbits(bits):0{width}x}"
