"""What httpx says, in our words: its failures, a proxy's pages, and the headers that count; and what it may not log."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import httpx

from hairmesh.client.envelope import Envelope, NotAnEnvelopeError, envelope
from hairmesh.client.errors import OF_A_PROXY, TooLateError, TransportError, UnreachableError, UntrustedError

_unlogged = ContextVar("_unlogged", default=False)
"""Whether what is fetched now has an address that stands in no log."""
logging.getLogger("httpx").addFilter(lambda _record: not _unlogged.get())


@contextmanager
def unlogged() -> Iterator[None]:
    """For pictures: httpx logs each address at INFO, and whoever knows a picture's may see it."""
    token = _unlogged.set(True)
    try:
        yield
    finally:
        _unlogged.reset(token)


def envelope_of(content: bytes, http_status: int, retry_after: str | None, where: str) -> Envelope:
    """The envelope; raises `TransportError` of some kind where a proxy speaks for an edge, `NotAnEnvelopeError`."""
    try:
        return envelope(content, http_status, retry_after, where)
    except NotAnEnvelopeError as error:
        if (kind := OF_A_PROXY.get(http_status)) is None:
            raise
        raise kind(f"{error}: a proxy in front has no answer of an edge", seconds(retry_after)) from error


def seconds(retry_after: str | None) -> float | None:
    """None for a date, too: how late it is there, nobody here knows."""
    try:
        return None if retry_after is None else float(retry_after)
    except ValueError:
        return None


@contextmanager
def translated() -> Iterator[None]:
    """httpx's failures as ours: without URLs, which may be a picture's."""
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


def _is_about_trust(error: BaseException) -> bool:
    """Whether TLS is what failed; httpx keeps it as a cause."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
