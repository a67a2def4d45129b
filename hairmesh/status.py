"""`hairmesh status`: the pool of a running edge in the terminal, live or once."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.live import Live

from hairmesh import pem
from hairmesh.loopback import is_loopback
from hairmesh.plain import printable
from hairmesh.status_view import View, exit_code
from hairmesh.trust import authorities
from hairmesh.usage import USAGE_STATUS

ROUTE = "/admin/pool"
TOKEN_VARIABLE = "HAIRMESH_ADMIN_TOKEN"  # noqa: S105  (a name)
TIMEOUT_S = 5.0
"""Of one look, from the first packet to the last."""
MAX_BODY_BYTES = 32 * 1024 * 1024
"""A thousand workers with their histories take a third of it."""
_ERRNO = re.compile(r"^\[Errno -?[0-9]+\] ")
_TLS = re.compile(r"^\[SSL(?:: (?P<name>\w+))?\] (?P<words>.*?)(?: \(_ssl\.c:\d+\))?$")
_NOT_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"}
"""What OpenSSL says of a peer that answers in plain text."""
UNLIMITED_COLUMNS = 1 << 16
"""For whoever is no terminal: nothing is cut, and a line is a line."""
NOT_SEEN = 3
"""Exit status when the edge is not reachable, or shows nothing."""


class StatusError(Exception):
    """There is nothing to show. The message says why, without the token."""


class UsageError(StatusError):
    """Nothing was asked, since it is not known whom or with which token."""


class RefusedError(StatusError):
    """The edge answers, and shows nothing: asking again does not help."""


@dataclass(frozen=True, slots=True)
class Contact:
    """Which edge, and the token to ask it with."""

    url: str
    token: str = field(repr=False)
    authority: str | None = None
    """PEM file of whom to trust instead of the system's authorities."""


def find(
    url: str | None, token_file: Path | None, out: Path, *, ca: Path | None = None, insecure: bool = False
) -> Contact:
    """Put together from what is given, the environment, and the running `hairmesh serve`; raises `UsageError`.

    The token of the local service goes to the local service alone, and none over a network in plain text unless
    `insecure`.
    """
    local = _local(out / "serve.json")
    url = (url or local.get("url", "")).rstrip("/")
    if not url:
        raise UsageError(f"which edge? give its URL, or start `hairmesh serve` ({out / 'serve.json'} is not there)")
    host = _checked(url)
    if token_file is not None:
        token, source = _read(token_file), str(token_file)
    elif token := os.environ.get(TOKEN_VARIABLE, "").strip():
        source = TOKEN_VARIABLE
    elif url == local.get("url"):
        token, source = local["admin_token"], str(out / "serve.json")
    else:
        raise UsageError(f"an admin token is needed: --token-file FILE, or {TOKEN_VARIABLE} in the environment")
    if not token:
        raise UsageError(f"{source}: holds no admin token: it is empty")
    if not (token.isascii() and token.isprintable()):
        raise UsageError(f"{source}: holds no admin token: that is one line of printable ASCII")
    if url.startswith("http://") and not is_loopback(host) and not insecure:
        raise UsageError("the token would go over the network in plain text: use https://, or allow it with --insecure")
    if ca is not None:
        try:
            pem.authority(ca)
        except pem.PemError as error:
            raise UsageError(str(error)) from None
        return Contact(url, token, str(ca))
    return Contact(url, token, local.get("authority") if url == local.get("url") else None)


def _checked(url: str) -> str:
    """The host of an URL that can be asked."""
    if "@" in url or "?" in url or "#" in url:  # said without it: there may be a secret in it
        raise UsageError("the URL: no user name, password, query or fragment, only http(s)://host[:port][/prefix]")
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{url}: write http:// or https:// in front")
    try:
        return httpx.URL(url).host
    except httpx.InvalidURL as error:
        raise UsageError(f"{url}: is no URL: {error}") from None


def _read(token_file: Path) -> str:
    try:
        return token_file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{token_file}: {getattr(error, 'strerror', None) or 'no text'}") from None


def _local(path: Path) -> dict[str, str]:
    try:
        content = json.loads(path.read_text())
        told = {"url": str(content["url"]), "admin_token": str(content["admin_token"])}
        return told | ({"authority": str(content["authority"])} if "authority" in content else {})
    except (OSError, ValueError, KeyError, TypeError):  # not running, or not ours
        return {}


class Asker:
    """Asks one edge again and again over one connection."""

    def __init__(self, contact: Contact) -> None:
        self.url = contact.url
        # A loop, since only there one limit covers all of an answer: a server may send byte after byte for ever.
        self._runner = asyncio.Runner()
        # Proxies of the environment are not asked.
        self._http = httpx.AsyncClient(
            base_url=contact.url,
            timeout=None,  # noqa: S113  (`_get` limits the whole)
            trust_env=False,
            verify=authorities(contact.authority),
            headers={
                "Authorization": f"Bearer {contact.token}",
                "Accept-Encoding": "identity",
                "Accept-Language": "en",
            },
        )

    def ask(self) -> dict[str, Any]:
        """What `/admin/pool` says now; raises `StatusError`."""
        try:
            status, body = self._runner.run(self._get())
        except TimeoutError:
            raise StatusError(f"no answer within {TIMEOUT_S:.0f} s") from None
        except httpx.HTTPError as error:
            raise StatusError(_in_words(error)) from None
        if status in {401, 403}:
            raise RefusedError(f"refused: {_message(body) or f'HTTP {status}'}")
        if status == 404:
            raise RefusedError(f"there is no {ROUTE} here: not an edge, or an older one")
        if status != 200:
            raise StatusError(f"HTTP {status}")
        try:
            pool = json.loads(body)
            exit_code(pool)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise RefusedError(f"what answers {ROUTE} here is no edge") from None
        return dict(pool)

    def close(self) -> None:
        """Close the connection."""
        self._runner.run(self._http.aclose())
        self._runner.close()

    async def _get(self) -> tuple[int, bytes]:
        """Status and body, whole within the time that one look may take."""
        async with asyncio.timeout(TIMEOUT_S), self._http.stream("GET", ROUTE) as response:
            body = bytearray()
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    raise RefusedError(f"what answers {ROUTE} here is no edge: more than {MAX_BODY_BYTES} bytes")
            return response.status_code, bytes(body)


def _in_words(error: httpx.HTTPError) -> str:
    """Why there was no answer, and what to do where that is known."""
    said = str(error)
    if isinstance(error, httpx.RemoteProtocolError):
        return "the connection was closed without an answer: write https:// in front if it speaks TLS"
    if (tls := _TLS.match(said)) is None:
        return _of_the_system(error) or _ERRNO.sub("", said) or type(error).__name__
    if tls["name"] in _NOT_TLS:
        return "what listens there speaks no TLS: write http:// in front"
    if tls["name"] == "CERTIFICATE_VERIFY_FAILED":
        reason = tls["words"].removeprefix("certificate verify failed: ")
        return f"its certificate is not trusted: {reason} (--ca FILE names another authority)"
    return f"TLS: {tls['words']}"


def _of_the_system(error: BaseException | None) -> str:
    """What lies below `error`, as the system calls it, of several addresses the first one's; empty when not known."""
    while error is not None:
        if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
            return os.strerror(error.errno)
        error = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__ or error.__context__
    return ""


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def run(
    url: str | None,
    token_file: Path | None,
    *,
    once: bool,
    as_json: bool,
    interval_s: float,
    out: Path,
    ca: Path | None = None,
    insecure: bool = False,
) -> int:
    """Show it; the exit status."""
    try:
        asker = Asker(find(url, token_file, out, ca=ca, insecure=insecure))
    except StatusError as error:
        return _complain(error)
    try:
        if once:
            pool = asker.ask()
            _show(View(asker.url, pool), as_json=as_json)
            return exit_code(pool)
        _follow(asker, interval_s, as_json=as_json)
    except StatusError as error:
        return _complain(error)
    except KeyboardInterrupt:
        return 0
    finally:
        asker.close()
    return 0


def _complain(error: StatusError) -> int:
    sys.stderr.write(f"status: {printable(str(error))}\n")
    return USAGE_STATUS if isinstance(error, UsageError) else NOT_SEEN


def _show(view: View, *, as_json: bool) -> None:
    if as_json:
        silence = {"problem": view.problem, "silent_s": round(view.silent_s, 1)}
        sys.stdout.write(json.dumps(silence if view.problem else view.pool) + "\n")
        sys.stdout.flush()
    else:
        _console().print(view)


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=UNLIMITED_COLUMNS)


def _follow(asker: Asker, interval_s: float, *, as_json: bool) -> None:
    """Ask for ever. Ends with `RefusedError` when the first answer is a refusal, and with `KeyboardInterrupt`."""
    console = _console()
    on_screen = console.is_terminal and not as_json
    views = _views(asker, fits=on_screen)
    view = next(views)
    if not on_screen:
        while True:
            _show(view, as_json=as_json)
            time.sleep(interval_s)
            view = next(views)
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                live.update(view, refresh=True)
                time.sleep(interval_s)
                view = next(views)
    finally:
        console.print(view)  # the other screen is gone, and with it what was last seen


def _views(asker: Asker, *, fits: bool) -> Iterator[View]:
    """What each question brings: an answer, or the last one with why and for how long there is none."""
    pool, answered_s = None, time.monotonic()
    while True:
        try:
            pool = asker.ask()
        except RefusedError as error:
            if pool is None:
                raise
            problem = str(error)
        except StatusError as error:
            problem = str(error)
        else:
            answered_s, problem = time.monotonic(), ""
        yield View(asker.url, pool, problem, time.monotonic() - answered_s, fits)
