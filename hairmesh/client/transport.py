"""What goes through httpx: its failures and a proxy's pages as our exceptions; no picture's address in its log."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import httpx

from hairmesh.client.envelope import Envelope, NotAnEnvelopeError, envelope
from hairmesh.client.errors import OF_A_PROXY, TooLateError, TransportError, UnreachableError, UntrustedError
from hairmesh.client.headers import seconds
from hairmesh.trust import authorities

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
    """Raise httpx's failures as ours, without URLs, which may be a picture's.

    Only around httpx: what a caller's own function raises is the caller's, an error of httpx too.
    """
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        if _is_about_trust(error):
            raise UntrustedError(str(error)) from error
        raise UnreachableError(f"not reachable: {error or type(error).__name__}") from error
    except httpx.TimeoutException as error:
        raise TooLateError("no answer in the time given") from error
    except httpx.TransportError as error:
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
