"""What nobody here reads of a request is taken out of it before the framework takes it apart.

FastAPI reads the cookies and the query of every documented route, whoever asks and whatever the route is: a cookie of
31 KB kept the event loop for a second (Python's own reader of quoted ones takes the square of their length), a query of
ten thousand names for 50 ms.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

READS_BOTH = "/console"
"""The console's handlers are not FastAPI's; they read their own cookie and their own query."""


class WithoutUnread:
    """ASGI middleware: no cookie and no query anywhere but below `/console`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the rest, in the same scope: others hold it."""
        if scope["type"] == "http" and not scope["path"].startswith(READS_BOTH):
            scope["headers"] = [header for header in scope["headers"] if header[0] != b"cookie"]
            scope["query_string"] = b""
        await self._app(scope, receive, send)
