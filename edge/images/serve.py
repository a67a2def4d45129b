"""Pictures over HTTP. They are patients' faces: nothing on the way may keep, index or reinterpret them."""

from __future__ import annotations

import re

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from edge.images.store import ID, ImageStore, StoreError

PATH = "/static/annotations/"
HEADERS = {
    "Cache-Control": "private, no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
    "X-Content-Type-Options": "nosniff",
}
_NAME = re.compile(rf"({ID.pattern})\.png")

log = structlog.get_logger()


class PngResponse(Response):
    """A picture of an answer."""

    media_type = "image/png"


class Pictures:
    """The pictures of a store."""

    def __init__(self, store: ImageStore) -> None:
        self._store = store

    async def picture(self, request: Request) -> Response:
        """A picture of an answer, for as long as pictures are kept; 404 after that and for every other name."""
        name = _NAME.fullmatch(request.path_params["name"])  # other names never reach the disk
        try:
            picture = await self._store.get(name[1]) if name else None
        except StoreError as error:
            log.warning("picture_not_read", problem=str(error))
            raise HTTPException(503, headers={**HEADERS, "Retry-After": "10"}) from error
        if picture is None:
            raise HTTPException(404, headers=HEADERS)
        return PngResponse(picture, headers=HEADERS)
