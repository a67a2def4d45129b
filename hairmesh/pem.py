"""Certificates and keys from PEM files, read once and judged by what was read: gRPC says nothing of what is wrong."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


REPLACE_BEFORE = timedelta(days=14)


class PemError(Exception):
    """A file cannot be used. The message names it and says why, without a piece of it."""


def key_and_certificate(key: Path, certificate: Path) -> tuple[bytes, bytes]:
    """Private key and certificate chain, which belong to each other; raises `PemError`."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  (20 MB, for nobody without TLS)

    content, chain = _read(key), _read(certificate)
    try:
        private = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError):  # the latter: it has a passphrase
        raise PemError(f"{key} holds no private key, PEM without a passphrase") from None
    if private.public_key() != _certificates(chain, certificate)[0].public_key():
        raise PemError(f"{certificate} and {key} are no certificate and its private key")
    return content, chain


def authority(path: Path) -> bytes:
    """Certificates of an authority; raises `PemError`."""
    content = _read(path)
    _certificates(content, path)
    return content


@dataclass(frozen=True, slots=True)
class Validity:
    """From when to when a chain of certificates is valid, UTC."""

    begins_at: datetime
    expires_at: datetime

    @property
    def replace_by(self) -> datetime:
        """By when it should have been replaced: two weeks before its end, or a quarter of a shorter life."""
        return self.expires_at - min(REPLACE_BEFORE, (self.expires_at - self.begins_at) / 4)


def validity(chain: bytes) -> Validity:
    """Of all the certificates in PEM that was read here; raises `PemError` for any other."""
    several = _certificates(chain, Path("chain"))
    return Validity(
        max(each.not_valid_before_utc for each in several), min(each.not_valid_after_utc for each in several)
    )


def loose_permissions(path: Path) -> str:
    """The mode of a file with secrets, such as `0644`, when others may use it or its group may write it; else empty.

    A group that may read is a usual way to hand the file to a service.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:  # that it cannot be read is told by whoever reads it
        return ""
    return f"{mode:04o}" if mode & (stat.S_IWGRP | stat.S_IRWXO) else ""


def _certificates(content: bytes, path: Path) -> list[Certificate]:
    from cryptography import x509  # noqa: PLC0415

    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise PemError(f"{path} holds no certificate, PEM") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PemError(f"{path}: {error.strerror}") from None
