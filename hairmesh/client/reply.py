"""How the answer of one try is read, piece by piece. No I/O."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from hairmesh.client.envelope import EVENT_STREAM, Envelope, Events, Progress, Queued, told
from hairmesh.client.errors import TransportError, refusal
from hairmesh.client.options import OnProgress
from hairmesh.client.transport import envelope_of


class Reply:
    """The answer of one try: an envelope, or a stream of events that ends with one."""

    def __init__(
        self, response: httpx.Response, check_time: Callable[[], None], on_progress: OnProgress | None
    ) -> None:
        self._status = response.status_code
        self._retry_after = response.headers.get("retry-after")
        self._where = f"{response.request.method} {response.request.url.path}"
        self._events = Events() if response.headers.get("content-type", "").startswith(EVENT_STREAM) else None
        self._content = bytearray()
        self._result: Envelope | None = None
        self._check_time = check_time
        self._on_progress = on_progress

    def feed(self, chunk: bytes) -> None:
        """Take a piece of the body. Raises `NotAnEnvelopeError`, `TooLateError`, and what `on_progress` raises."""
        self._check_time()
        if self._events is None:
            self._content += chunk
            return
        for name, data in self._events.feed(chunk):
            match told(name, data, self._status, self._where):
                case Envelope() as result:
                    self._result = result
                case Queued() | Progress() as news if self._on_progress:
                    self._on_progress(news)

    def envelope(self) -> Envelope:
        """The good envelope, after the last piece.

        Raises `RefusedError` of some kind, `NotAnEnvelopeError`, and `TransportError` of some kind for a stream without
        a result and for a proxy's own page.
        """
        if self._events is None:
            result = envelope_of(bytes(self._content), self._status, self._retry_after, self._where)
        elif self._result is None:
            raise TransportError("the stream ended before its result")
        else:
            result = self._result
        if not result.ok:
            raise refusal(result)
        return result
