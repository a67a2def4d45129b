"""A small REST client: sends photos, hands back envelopes.

    with Client("http://127.0.0.1:8080") as client:
        answer = client.measure(Path("portrait.jpg").read_bytes(), lang="en")
        if answer.ok:
            picture = client.picture(answer.data["annotated_image_url"])
        else:
            print(answer.reason, answer.message)

A refusal is an answer, not an exception. Transport failures raise `httpx.HTTPError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx

MEASURE_ROUTE = "/api/v1/face/measure"
DEFAULT_TIMEOUT_S = 150.0
"""How long the edge may take; with default settings enough for the queue and two attempts of a fast call."""
ON_THE_WAY_S = 10.0
"""More than that we wait: the edge is told its time, so that its own 1007 arrives and not a broken connection."""


class NotAnEnvelopeError(Exception):
    """What came back under `/api/` is not the contract's envelope: something else answers at this address."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One envelope with its HTTP status. `data` is the decoded JSON object, empty when there was none."""

    http_status: int
    code: int
    """0 is good; 1001 to 1008 as in the contract."""
    message: str
    request_id: str
    data: Mapping[str, Any]
    retry_after_s: float | None

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.code == 0

    @property
    def reason(self) -> str:
        """UPPER_SNAKE name of what went wrong, never translated; empty when nothing did."""
        return str(self.data.get("reason", ""))


class Client:
    """One edge, which may take `timeout_s` for an answer.

    May be shared by threads; close it, or use it as a context manager.
    """

    def __init__(self, url: str, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        # No proxies from the environment: the address given is the one that is asked.
        self._http = httpx.Client(
            base_url=url,
            timeout=timeout_s + ON_THE_WAY_S,
            trust_env=False,
            headers={"x-request-timeout-ms": str(round(timeout_s * 1000))},
        )

    def measure(
        self,
        photo: bytes,
        *,
        pupillary_distance_mm: float | None = None,
        annotate: bool = True,
        lang: str | None = None,
    ) -> Answer:
        """Measure the face in `photo` (the bytes of any format of the contract).

        `lang` (`zh` or `en`) is the language of messages and of labels in the picture; None: the service's choice.
        """
        fields = {"annotate": "true" if annotate else "false"}
        if pupillary_distance_mm is not None:
            fields["pupillary_distance_mm"] = str(pupillary_distance_mm)
        headers = {} if lang is None else {"accept-language": lang}
        return self.send("POST", MEASURE_ROUTE, files={"image": ("photo", photo)}, data=fields, headers=headers)

    def send(self, method: str, route: str, **request: Any) -> Answer:
        """Any request under `/api/`, with httpx's keyword arguments; raises `NotAnEnvelopeError`."""
        response = self._http.request(method, route, **request)
        try:
            body = response.json()
            retry_after = response.headers.get("retry-after")
            return Answer(
                http_status=response.status_code,
                code=int(body["code"]),
                message=str(body["message"]),
                request_id=str(body["request_id"]),
                data=body["data"] or {},
                retry_after_s=float(retry_after) if retry_after else None,
            )
        except (ValueError, KeyError, TypeError) as error:
            raise NotAnEnvelopeError(f"{method} {route}: HTTP {response.status_code} without an envelope") from error

    def picture(self, url: str) -> bytes:
        """The picture at one of an answer's URLs; raises `httpx.HTTPStatusError` when it is gone."""
        return self._http.get(url).raise_for_status().content

    def monitor(self) -> tuple[int, dict[str, Any]]:
        """`GET /monitor`: HTTP status and body."""
        response = self._http.get("/monitor")
        return response.status_code, dict(response.json())

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """This client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()
