"""Sections about who gets in: TLS, rate limits and keys of public clients, the pages for people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from edge.settings.values import KeyName, Section


class Tls(Section):
    """TLS of the REST side. Without a certificate it speaks plain HTTP, which off loopback must be asked for."""

    cert: Path | None = None
    """PEM file of the certificate chain."""
    key: Path | None = None
    """PEM file of its private key."""
    insecure: bool = False
    """Whether plain HTTP is meant although `listen` or `public_base_url` is not on loopback."""

    @model_validator(mode="after")
    def _check_pair(self) -> Self:
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key belong together")
        return self


class RateLimit(Section):
    """How many requests under `/api/` one client address may make where there are no `api_keys`; off by default.

    Behind proxies that are not named in `trusted_proxies`, all clients are one address.
    """

    requests_per_minute: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    """Steadily; null: no limit."""
    burst: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """How many at once after a pause; null: as many as in a minute."""

    @model_validator(mode="after")
    def _check_burst(self) -> Self:
        if self.burst is not None and self.requests_per_minute is None:
            raise ValueError("burst means nothing without requests_per_minute")
        return self


class PublicKey(RateLimit):
    """An API key of one public client, by its hash, and how many requests it may make."""

    name: KeyName
    """Whose it is: for the request log and the metrics."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """SHA-256 of the key, hexadecimal. The key is random, of 128 bits or more, and stands nowhere here."""


class Docs(Section):
    """`/docs` and `/openapi.json`."""

    enabled: bool = True
    """Off, they answer 404."""


class Console(Section):
    """The page for people at `/console`."""

    enabled: bool = True
    """Off, or while `admin_tokens` is empty, it answers 404."""
