"""What goes through httpx: its failures and a proxy's pages as our exceptions; no picture's address in its log."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import httpx

from hairmesh.client.decode import UnexpectedAnswerError
from hairmesh.client.envelope import Envelope, NotAnEnvelopeError, envelope
from hairmesh.client.errors import OF_A_PROXY, TooLateError, TransportError, UnreachableError, UntrustedError
from hairmesh.client.headers import seconds
from hairmesh.trust import authorities

CONNECT_TIMEOUT_S = 10.0
_STEPS = ("pool", "connect", "write", "read")
_LEAST_S = 0.001
"""0 would mean to a socket that it never waits."""
_unlogged = ContextVar("_unlogged", default=False)
"""Whether the request that is sent now is for a picture, whose address must not be logged."""
logging.getLogger("httpx").addFilter(lambda _record: not _unlogged.get())


def transport(url: httpx.URL | str, authority: str | Path | None) -> dict[str, Any]:
    """How httpx reaches an edge, as arguments of its clients. Raises `OSError` or `ssl.SSLError` for the file of
    authorities.

    No proxies from the environment: photos go to the address given and nowhere else. As many connections as there are
    calls: how many are made at once is for the caller to say, and a call that waits here cannot tell the edge so.
    """
    unlimited = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    return {"base_url": url, "trust_env": False, "verify": authorities(authority), "limits": unlimited}


class StepTimeouts(Mapping[str, float]):
    """How long each step of a request may take, as httpx's extension `timeout`. httpcore asks when a step begins, so
    the steps have what is left, and not each of them the whole.
    """

    def __init__(self, rest_s: Callable[[], float]) -> None:
        self._rest_s = rest_s

    def __getitem__(self, step: str) -> float:
        """In s."""
        if step not in _STEPS:
            raise KeyError(step)
        rest_s = max(_LEAST_S, self._rest_s())
        # The time to connect holds twice: for the connection, and for the handshake of TLS.
        return min(CONNECT_TIMEOUT_S, rest_s / 2) if step == "connect" else rest_s

    def __iter__(self) -> Iterator[str]:
        """The steps."""
        return iter(_STEPS)

    def __len__(self) -> int:
        """How many there are."""
        return len(_STEPS)


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep the addresses of pictures out of the log: httpx logs each at INFO, and whoever has one sees the picture."""
    token = _unlogged.set(True)
    try:
        yield
    finally:
        _unlogged.reset(token)


def envelope_of(content: bytes, http_status: int, retry_after: str | None, where: str) -> Envelope:
    """The envelope in an answer's body.

    Raises `GatewayError` or `TooLateError` for a proxy's own 502, 503, 504, else `NotAnEnvelopeError`.
    """
    try:
        return envelope(content, http_status, retry_after, where)
    except NotAnEnvelopeError as error:
        if (kind := OF_A_PROXY.get(http_status)) is None:
            raise
        raise kind(f"{error}: a proxy in front has no answer of an edge", seconds(retry_after)) from error


@contextmanager
def translated() -> Iterator[None]:
    """Raise httpx's failures as ours, all of them, without URLs, which may be a picture's.

    Only around httpx: what a caller's own function raises is the caller's, an error of httpx too.
    """
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        if _is_about_trust(error):
            raise UntrustedError(str(error)) from error
        raise UnreachableError(f"not reachable: {error or type(error).__name__}") from error
    except httpx.TimeoutException as error:
        raise TooLateError("no answer in the time given") from error
    except httpx.DecodingError as error:
        raise UnexpectedAnswerError("an answer is not compressed as it says") from error
    except httpx.RequestError as error:
        raise TransportError(f"the connection broke: {type(error).__name__}") from error


def chunks(response: httpx.Response) -> Generator[bytes]:
    """The body as it comes. Raises `TransportError` of some kind for what httpx raises; whatever is raised by the loop
    that takes the pieces does not pass through here.
    """
    with translated():
        yield from response.iter_bytes()


async def async_chunks(response: httpx.Response) -> AsyncGenerator[bytes]:
    """The same, with `await`."""
    with translated():
        async for chunk in response.aiter_bytes():
            yield chunk


def _is_about_trust(error: BaseException) -> bool:
    """Whether TLS is what failed; httpx keeps it as a cause."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
