"""Which edge is asked, with which key and which trust."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from hairmesh.analyze.options import KEY_VARIABLE, Options, UsageError
from hairmesh.client import AsyncClient
from hairmesh.loopback import is_loopback

SERVE = Path("out/serve.json")
"""Where `hairmesh serve` says how to reach it."""


@dataclass(frozen=True, slots=True)
class Contact:
    """One edge."""

    url: str
    api_key: str | None = field(repr=False)
    authority: Path | None

    def client(self, timeout_s: float, wait_s: float) -> AsyncClient:
        """A client of this edge. `wait_s`: how long it waits for an edge that cannot be reached.

        Raises `ValueError` for an address or a key that cannot be used, `OSError` for such a file of authorities.
        """
        return AsyncClient(
            self.url, timeout_s=timeout_s, api_key=self.api_key, authority=self.authority, unreachable_s=wait_s
        )


def find_edge(options: Options) -> Contact:
    """The edge, by the options, the environment, and the running `hairmesh serve`.

    Raises `UsageError`, and what `Contact.client` raises. Photos are sent over a network in plain text only where
    `--insecure` allows it.
    """
    local = _local_service()
    url = options.url or local.get("url")
    if url is None:
        raise UsageError(f"which edge? give its --url, or start `hairmesh serve` ({SERVE} is not there)")
    trusted = local.get("authority") if url == local.get("url") else None
    contact = Contact(url, _api_key(options), options.ca or (Path(trusted) if trusted else None))
    address = contact.client(options.patience_s, options.wait_s).url
    if address.scheme == "http" and not is_loopback(address.host) and not options.insecure:
        raise UsageError("photos would go over the network in plain text: use https://, or allow it with --insecure")
    return contact


def _local_service() -> dict[str, str]:
    """What `hairmesh serve` has written about itself; empty where it does not run here."""
    try:
        said = json.loads(SERVE.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    if not isinstance(said, dict):  # not ours
        return {}
    return {name: str(said[name]) for name in ("url", "authority") if name in said}


def _api_key(options: Options) -> str | None:
    if options.api_key_file is None:
        return os.environ.get(KEY_VARIABLE) or None
    key = options.api_key_file.read_text().strip()
    if not key or not (key.isascii() and key.isprintable()):
        raise UsageError(f"{options.api_key_file}: holds no API key: that is one line of printable ASCII")
    return key
