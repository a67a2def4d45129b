"""Certificates and keys from PEM files, read for gRPC, which itself says nothing of what is wrong with one."""

from __future__ import annotations

import ssl
from pathlib import Path


class PemError(Exception):
    """A file cannot be used. The message names it and says why, without a piece of it."""


def key_and_certificate(key: Path, certificate: Path) -> tuple[bytes, bytes]:
    """Private key and certificate chain, which belong to each other; raises `PemError`."""
    content = _read(key), _read(certificate)
    try:
        # A key behind a passphrase would be asked for on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError):
        raise PemError(
            f"{certificate} and {key} are no certificate and its private key, PEM without a passphrase"
        ) from None
    return content


def authority(path: Path) -> bytes:
    """Certificates of an authority; raises `PemError`."""
    content = _read(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        raise PemError(f"{path} holds no certificate, PEM") from None
    return content


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PemError(f"{path}: {error.strerror}") from None
