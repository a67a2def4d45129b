"""Whom to trust for a server's certificate."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import httpx


def authorities(only: str | Path | None = None) -> ssl.SSLContext:
    """A client's context that trusts those in the PEM file `only`, without it those that the system knows.

    The system's are those of Python's OpenSSL, such as /etc/ssl/certs, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name
    instead; on Windows those of its store too. Where there are none, as with some Pythons on macOS and in bare
    containers, they are Mozilla's, which come with httpx.

    Raises `OSError` or `ssl.SSLError` for the file.
    """
    context = ssl.create_default_context(cafile=only)
    if only or context.cert_store_stats()["x509_ca"] or _named_or_in_a_folder():
        return context
    return httpx.create_ssl_context(trust_env=False)


def _named_or_in_a_folder() -> bool:
    """Whether there are authorities that OpenSSL does not count: those in a folder it reads as it needs them."""
    system = ssl.get_default_verify_paths()
    if any(name in os.environ for name in (system.openssl_cafile_env, system.openssl_capath_env)):
        return True  # somebody has said whom to trust: nobody else
    return any(Path(system.openssl_capath).glob("*.[0-9]"))
