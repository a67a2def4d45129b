"""Sections about who is reached over the network: TLS of the port, metrics, traces."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from worker.settings.values import Address, FilePath, Section, Url


class TlsSettings(Section):
    """TLS of the gRPC port; plain text without `cert`."""

    cert: FilePath | None = None
    """Certificate chain, PEM."""
    key: FilePath | None = None
    """Its private key, PEM."""
    client_ca: FilePath | None = None
    """Mutual TLS: only clients with a certificate of this authority, PEM."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key belong together")
        if self.client_ca and not self.cert:
            raise ValueError("client_ca needs cert and key")
        return self


class MetricsSettings(Section):
    """A port of its own for Prometheus."""

    listen: Address | None = None
    """Host and port, plain HTTP for whoever reaches it: loopback, or a network of your own. null: no such port."""


class TracingSettings(Section):
    """Spans of calls and their stages, for an OpenTelemetry collector. Takes the extra `tracing`."""

    otlp_endpoint: Url | None = None
    """Where it takes OTLP over HTTP, without `/v1/traces`, such as `http://127.0.0.1:4318`. null: no traces."""
