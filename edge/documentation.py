"""`/openapi.json` and `/docs`: made once, by whoever asks first, and the same bytes for all after that.

Made anew for each request, which anybody may send, the document alone would keep the event loop busy for 7 ms. The
first time it takes a hundred, in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html, get_swagger_ui_oauth2_redirect_html
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import override

from edge import openapi

DOCUMENT, PAGE, REDIRECT = "/openapi.json", "/docs", "/docs/oauth2-redirect"
ASSETS = "/static-offline-docs"
"""Scripts and styles of the page: from here, not from a CDN. From memory: a file that is sent from the disk is open for
as long as its client likes to read."""
SCRIPT, STYLE, ICON = "swagger-ui-bundle.js", "swagger-ui.css", "favicon.png"
_OF_THE_PAGE = {SCRIPT: "text/javascript", STYLE: "text/css", ICON: "image/png"}


class DocumentedApp(FastAPI):
    """FastAPI whose document has our components."""

    @override
    def openapi(self) -> dict[str, Any]:
        """The whole document; made once."""
        if self.openapi_schema is None:
            super().openapi()["components"] = openapi.components()
        return super().openapi()


class _Fixed:
    """An answer that never changes."""

    def __init__(self, media_type: str, make: Callable[[], bytes]) -> None:
        self._media_type = media_type
        self._make = make
        self._body: bytes | None = None
        self._tag = ""

    async def respond(self, request: Request) -> Response:
        """All of it, or 304 for whoever has it."""
        if self._body is None:
            self._body = await asyncio.to_thread(self._make)
            self._tag = f'"{hashlib.sha256(self._body).hexdigest()[:32]}"'
        headers = {"ETag": self._tag, "Cache-Control": "no-cache"}  # to be kept, and asked for
        if self._tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self._body, headers=headers, media_type=self._media_type)


def add_pages(app: DocumentedApp) -> None:
    """The document, and a page for people that shows it."""

    def page() -> bytes:
        return bytes(
            get_swagger_ui_html(
                openapi_url=DOCUMENT,
                title=f"{app.title} - Swagger UI",
                oauth2_redirect_url=REDIRECT,
                swagger_js_url=f"{ASSETS}/{SCRIPT}",
                swagger_css_url=f"{ASSETS}/{STYLE}",
                swagger_favicon_url=f"{ASSETS}/{ICON}",
            ).body
        )

    for path, answer in (
        (DOCUMENT, _Fixed("application/json", lambda: orjson.dumps(app.openapi()))),
        (PAGE, _Fixed("text/html", page)),
        (REDIRECT, _Fixed("text/html", lambda: bytes(get_swagger_ui_oauth2_redirect_html().body))),
    ):
        app.add_route(path, answer.respond, methods=["GET"], include_in_schema=False)
    static = files("fastapi_offline").joinpath("static")
    for name, media_type in _OF_THE_PAGE.items():
        asset = _Fixed(media_type, static.joinpath(name).read_bytes)
        app.add_route(f"{ASSETS}/{name}", asset.respond, methods=["GET"], include_in_schema=False)
