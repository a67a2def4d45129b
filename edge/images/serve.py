"""Pictures over HTTP. They are patients' faces: nothing on the way may keep, index or reinterpret them."""

from __future__ import annotations

import re

import structlog
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


async def serve(store: ImageStore, request: Request) -> Response:
    """The picture named in the path; 404 for every name that is not one of ours, without looking at the disk."""
    name = _NAME.fullmatch(request.path_params["name"])
    try:
        picture = await store.get(name[1]) if name else None
    except StoreError as error:
        log.warning("picture_not_read", problem=str(error))
        return Response(status_code=503, headers={**HEADERS, "Retry-After": "10"})
    if picture is None:
        return Response(status_code=404, headers=HEADERS)
    return Response(picture, headers=HEADERS, media_type="image/png")
