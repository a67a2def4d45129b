"""What browsers are told, so that the console runs its own files alone, and no other page acts in its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers

COOKIE = "hairmesh_console"
"""Holds the session's id. Set without a path: a browser then sends it back to `/console` alone, whatever prefix a
proxy puts before that."""
ASKS = "x-hairmesh-console"
"""A header that only scripts of the same origin can send without asking first: it has to be there where something is
changed."""

COMMON_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of everything below `/console`."""


_SESSION = re.compile(rf"(?:^|; ?){COOKIE}=([A-Za-z0-9_-]{{1,100}})(?:;|$)")


def session_of(headers: Headers) -> str:
    """The id of the browser's session; empty where it sends none.

    Read here, since Python's reader of cookies takes a second for 31 KB of quotes, which anybody may send.
    """
    found = _SESSION.search(headers.get("cookie", ""))
    return found[1] if found else ""


def page_headers(picture_base_url: str) -> dict[str, str]:
    """Those of the page itself. Pictures of answers come from the public address, which may be another than its own."""
    parts = urlsplit(picture_base_url)
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": f"'self' blob: data: {parts.scheme}://{parts.netloc}",
        "connect-src": "'self'",
        "form-action": "'none'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return {
        **COMMON_HEADERS,
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    }


def comes_from_the_page(headers: Headers, public_base_url: str) -> bool:
    """Whether the page itself asks, by what a browser says of who asks. A program that is no browser says nothing.

    The scheme is not compared: a proxy in front may end TLS.
    """
    if headers.getlist(ASKS) != ["1"]:
        return False
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    origins = headers.getlist("origin")
    hosts = {headers.get("host", ""), urlsplit(public_base_url).netloc} - {""}
    try:
        return all(urlsplit(origin).netloc in hosts for origin in origins)
    except ValueError:  # no address, such as `http://[`
        return False
