"""Whose pictures this edge has removed by request: a call that was running then may still bring more of them.

What marks of them a store has lies where it can be slow. This is in memory, for a picture that would be served from
there before the store's mark has been looked at. No I/O, no clock; times are of one that is never set.
"""

from __future__ import annotations

from edge.images.retention import HELPER_AGE_S
from edge.images.store import is_removed


class Removals:
    """By tag, each kept for as long as the store keeps its mark."""

    def __init__(self) -> None:
        self._removed_s: dict[str, float] = {}
        """The oldest first."""

    def note(self, tag: str, now_s: float) -> None:
        """The pictures of this tag have been removed."""
        self._removed_s.pop(tag, None)
        self._removed_s[tag] = now_s
        while now_s - self._removed_s[oldest := next(iter(self._removed_s))] > HELPER_AGE_S:
            del self._removed_s[oldest]

    def concern(self, tag: str, began_s: float) -> bool:
        """Whether pictures of a request that began then are not wanted any more."""
        removed_s = self._removed_s.get(tag)
        return removed_s is not None and is_removed(removed_s, began_s, clocks_s=0.0)
