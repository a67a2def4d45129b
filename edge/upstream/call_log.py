"""The pool's log lines, joined with the requests they are about.

The pool knows calls by their ids alone. A line that names a call of this edge gets the id of its request, as it stands
in the request log and in the client's hands, and that of its trace; one that names another edge's call is left as it
is.
"""

from __future__ import annotations

import structlog

from edge.pool import events as ev

log = structlog.get_logger()

UNSETTLED_MAX = 4096
"""Calls that are remembered after their end: a slot that one left behind is spoken of a minute later, and when it
comes back; beyond that the oldest is forgotten."""


class CallLog:
    """Knows the requests of the calls that run, and of those that may have left a slot behind."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[str, str]] = {}
        """Request and trace by call."""
        self._unsettled: dict[str, tuple[str, str]] = {}
        """The oldest first."""

    def begins(self, call_id: str, request_id: str, trace_id: str) -> None:
        """A call of ours."""
        self._running[call_id] = request_id, trace_id

    def ends(self, call_id: str, *, settled: bool) -> None:
        """It is over. `settled`: it has left no slot behind, so that nothing more will be said of it."""
        ids = self._running.pop(call_id)
        if not settled:
            self._unsettled[call_id] = ids
            if len(self._unsettled) > UNSETTLED_MAX:
                del self._unsettled[next(iter(self._unsettled))]

    def write(self, line: ev.Log) -> None:
        """One line of the pool's."""
        fields, call_id = dict(line.fields), line.fields.get("call_id")
        if isinstance(call_id, str):
            ids = self._running.get(call_id) or self._unsettled.get(call_id)
            if ids is not None:
                fields["request_id"], fields["trace_id"] = ids
        (log.info if line.level == "info" else log.warning)(line.event, **fields)
