"""The handlers of `/console`: the page and its files, entering and leaving, what the page shows, the drill's switch.

The page knows no password and no admin token once it has been entered: its session is a cookie that scripts cannot
read. Everything here is answered from memory.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from importlib import resources
from typing import Any

import orjson
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from edge import outside
from edge.console.calls import described_calls
from edge.console.figures import SINCE_START, figures
from edge.console.protection import ASKS, COMMON_HEADERS, COOKIE, comes_from_the_page, page_headers, session_of
from edge.console.sessions import ABSOLUTE_S, Sessions
from edge.monitor import Monitor, answer, refusal, small_body, turned_away
from edge.outside import said
from edge.recent_errors import RecentErrors
from edge.reload import InForce
from edge.secrets import Door, Finding, Gate
from edge.stats import WINDOWS_S, Stats

PATH = "/console"
MEDIA_TYPES: Mapping[str, str] = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}
"""Of the page's files, by the end of their name."""
PAGE = "index.html"

log = structlog.get_logger()

WINDOWS = (*WINDOWS_S, SINCE_START)

Handler = Callable[[Request], Awaitable[Response]]
Describe = Callable[[], Mapping[str, Any]]


class Console:
    """Handlers for people with a browser and an admin token."""

    def __init__(
        self, in_force: InForce, monitor: Monitor, *, pool: Describe, recent: RecentErrors, stats: Stats, gate: Gate
    ) -> None:
        self._in_force = in_force
        self._monitor = monitor
        self._pool = pool
        self._recent = recent
        self._stats = stats
        self._gate = gate
        self._sessions = Sessions()
        self._files = {
            file.name: file.read_bytes() for file in resources.files("edge.console").joinpath("web").iterdir()
        }
        self._calls = described_calls()
        self._hinted = False

    def routes(self) -> Iterator[tuple[str, str, Handler]]:
        """Method, path and handler of each."""
        yield "GET", PATH, self.page
        yield "GET", f"{PATH}/", self.without_slash
        yield "GET", f"{PATH}/session", self.session
        yield "POST", f"{PATH}/session", self.enter
        yield "DELETE", f"{PATH}/session", self.leave
        yield "GET", f"{PATH}/state", self.state
        yield "GET", f"{PATH}/stats", self.stats
        yield "GET", f"{PATH}/calls", self.calls
        yield "POST", f"{PATH}/drill", self.drill
        yield "GET", f"{PATH}/{{name}}", self.file

    async def page(self, _request: Request) -> Response:
        """The page; it shows nothing to whoever has not entered."""
        self._refuse_when_closed()
        settings = self._in_force.settings
        return Response(self._files[PAGE], 200, page_headers(settings.picture_base_url), media_type=MEDIA_TYPES["html"])

    async def without_slash(self, _request: Request) -> Response:
        """Where the page is. Relative, as whatever a proxy puts before the path is not known here."""
        self._refuse_when_closed()
        return Response(status_code=308, headers={**COMMON_HEADERS, "Location": f"..{PATH}"})

    async def file(self, request: Request) -> Response:
        """Scripts, style and words of the page. They hold no secret."""
        self._refuse_when_closed()
        name = request.path_params["name"]
        content = None if name == PAGE else self._files.get(name)
        if content is None:
            raise HTTPException(404)
        return Response(content, 200, COMMON_HEADERS, MEDIA_TYPES[name.rpartition(".")[2]])

    async def session(self, request: Request) -> Response:
        """Whether the browser has one that is open."""
        self._refuse_when_closed()
        return answer({"open": self._is_open(request)})

    async def enter(self, request: Request) -> Response:
        """Open a session by an admin token."""
        self._refuse_when_closed()
        if not self._is_from_the_page(request):
            return refusal(403, said(outside.CONSOLE_NOT_THE_PAGE, request).format(asks=ASKS))
        token = _token(await small_body(request))
        if token is None:
            return refusal(400, said(outside.CONSOLE_NO_TOKEN, request))
        tokens = self._in_force.settings.admin_tokens
        verdict = self._gate.judge(Door.ADMIN, request, token.encode("utf-8", "surrogatepass"), tokens)
        session_id = self._sessions.enter(token, tokens, time.monotonic()) if verdict.finding is Finding.GOOD else None
        if session_id is None:
            return turned_away(request, verdict, outside.ADMIN_TOKEN_WRONG, outside.ADMIN_TOKENS_TOO_MANY)
        log.info("console_entered")
        return self._with_cookie(answer({"open": True}), session_id, int(ABSOLUTE_S))

    async def leave(self, request: Request) -> Response:
        """Close the session, if there is one."""
        self._refuse_when_closed()
        if not self._is_from_the_page(request):
            return refusal(403, said(outside.CONSOLE_NOT_THE_PAGE, request).format(asks=ASKS))
        self._sessions.leave(session_of(request.headers))
        return self._with_cookie(answer({"open": False}), "", 0)

    async def state(self, request: Request) -> Response:
        """Everything that the page shows of the edge and its workers, at one moment."""
        self._refuse_when_closed()
        if not self._is_open(request):
            return refusal(401, said(outside.CONSOLE_SESSION_OVER, request))
        status, body = self._monitor.verdict()
        return answer(
            {
                "monitor": {"http_status": status, "body": body},
                "pool": self._pool(),
                "recent_errors": self._recent.newest_first(time.monotonic()),
            }
        )

    async def stats(self, request: Request) -> Response:
        """How the requests went over the `window` that the page shows."""
        self._refuse_when_closed()
        if not self._is_open(request):
            return refusal(401, said(outside.CONSOLE_SESSION_OVER, request))
        window = request.query_params.get("window", "")
        if window not in WINDOWS:
            return refusal(400, said(outside.CONSOLE_WINDOW, request).format(windows=", ".join(WINDOWS)))
        return answer(figures(self._stats, window, time.monotonic()))

    async def calls(self, request: Request) -> Response:
        """The calls to try, and what limits their photo."""
        self._refuse_when_closed()
        if not self._is_open(request):
            return refusal(401, said(outside.CONSOLE_SESSION_OVER, request))
        settings = self._in_force.settings
        return answer(
            {
                "calls": self._calls,
                "max_body_bytes": settings.limits.max_body_bytes,
                "base_url": settings.picture_base_url,
            }
        )

    async def drill(self, request: Request) -> Response:
        """Switch the alert drill, as `POST /monitor/fault` does: the shared password never reaches a browser."""
        self._refuse_when_closed()
        if not self._is_from_the_page(request):
            return refusal(403, said(outside.CONSOLE_NOT_THE_PAGE, request).format(asks=ASKS))
        if not self._is_open(request):
            return refusal(401, said(outside.CONSOLE_SESSION_OVER, request))
        return await self._monitor.switch_drill(request)

    def _refuse_when_closed(self) -> None:
        """Raise the framework's 404 where nobody could enter; the log says once what to do."""
        settings = self._in_force.settings
        if settings.console.enabled and settings.admin_tokens:
            return
        if settings.console.enabled and not self._hinted:
            self._hinted = True
            log.info("console_closed", hint="admin_tokens is empty: name a token there to enter the console")
        raise HTTPException(404)

    def _is_open(self, request: Request) -> bool:
        tokens = self._in_force.settings.admin_tokens
        return self._sessions.is_open(session_of(request.headers), tokens, time.monotonic())

    def _with_cookie(self, response: Response, session_id: str, max_age_s: int) -> Response:
        secure = self._in_force.settings.picture_base_url.startswith("https:")
        response.set_cookie(COOKIE, session_id, max_age_s, path=None, secure=secure, httponly=True, samesite="strict")
        return response

    def _is_from_the_page(self, request: Request) -> bool:
        return comes_from_the_page(request.headers, self._in_force.settings.picture_base_url)


def _token(body: bytes | None) -> str | None:
    """The token in a body of JSON; None where there is none."""
    try:
        given = orjson.loads(body or b"")
    except orjson.JSONDecodeError:
        return None
    token = given.get("token") if isinstance(given, dict) else None
    return token if isinstance(token, str) else None
