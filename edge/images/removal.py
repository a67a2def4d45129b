"""`DELETE /api/v1/requests/{request_id}/pictures`: the pictures of a request go at once, whoever has their URLs.

With an admin token: request ids are chosen by clients, stand in logs, and may be the same for several requests, so that
knowing one proves nothing. Asking again is no error and says 0.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
from starlette.requests import Request
from starlette.responses import Response

from edge.errors import ApiError, invalid
from edge.exchange import REQUEST_ID, Exchange
from edge.images.store import ImageStore, StoreError
from edge.secrets import Finding, Verdict, refusal_of

PATH = "/api/v1/requests/{request_id}/pictures"

log = structlog.get_logger()


class Removal:
    """The handler. `judge` tells whether a request brings an admin token that is in force."""

    def __init__(self, store: ImageStore, judge: Callable[[Request], Verdict]) -> None:
        self._store = store
        self._judge = judge

    async def remove(self, request: Request) -> Response:
        """Remove all pictures of a request; how many there were."""
        verdict = self._judge(request)
        if verdict.finding is not Finding.GOOD:
            raise refusal_of(verdict)
        request_id: str = request.path_params["request_id"]
        if REQUEST_ID.fullmatch(request_id) is None:
            raise invalid("request_id", problem="must be 1 to 64 of A-Z a-z 0-9 . _ -, as X-Request-ID was")
        try:
            count = await self._store.remove_request(request_id)
        except StoreError as error:
            log.error("pictures_not_removed", problem=str(error))  # noqa: TRY400  (no trace: it is no fault of ours)
            raise ApiError("STORE_FAILED") from error
        log.info("pictures_removed", of_request=request_id, count=count)
        return Exchange.of(request).answer({"removed": count})
