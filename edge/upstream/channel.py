"""One gRPC channel per endpoint, and what may be called over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from hair.analysis.v1 import analyze_service_pb2, analyze_service_pb2_grpc
from hair.worker.v1.worker_service_pb2 import WatchStatusRequest, WatchStatusResponse

from edge.pool.config import NAME_PREFIX
from edge.upstream.attempt import Attempt, ask, follow
from hairmesh import loopback, pem, wire

OPTIONS: tuple[tuple[str, int], ...] = (
    *wire.CLIENT_OPTIONS,
    ("grpc.enable_http_proxy", 0),  # workers are inside: http_proxy in the environment is not meant for them
    ("grpc.use_local_subchannel_pool", 1),  # two edges in one process share no connection, so neither shares its loss
    ("grpc.enable_retries", 0),  # the pool alone retries, and knows where
)
"""Of every channel to a worker."""

_ANALYZE = analyze_service_pb2.DESCRIPTOR.services_by_name["AnalyzeService"]


class ChannelSecurityError(ValueError):
    """The settings for TLS or the password cannot work. The message names the setting, never a secret."""


@dataclass(frozen=True, slots=True)
class ChannelSecurity:
    """How channels to workers are secured: `worker_tls` of the configuration.

    TLS is on when `ca` is given, mutual TLS when `cert` and `key` are too. Plaintext goes to loopback only, unless
    `insecure` says otherwise.
    """

    ca: Path | None = None
    """PEM file of the authority that signed the workers' certificates."""
    cert: Path | None = None
    """PEM file of the edge's own certificate chain."""
    key: Path | None = None
    """PEM file of its private key."""
    insecure: bool = False
    """Whether plaintext to other machines is allowed."""

    def __post_init__(self) -> None:
        """Raise `ChannelSecurityError` for halves of pairs and for contradictions."""
        if (self.cert is None) != (self.key is None):
            raise ChannelSecurityError("worker_tls: cert and key belong together")
        if self.cert is not None and self.ca is None:
            raise ChannelSecurityError("worker_tls: cert and key need ca, the authority of the workers' certificates")
        if self.ca is not None and self.insecure:
            raise ChannelSecurityError("worker_tls: ca turns TLS on, insecure allows plaintext: keep one of them")

    def read(self) -> Certificates | None:
        """What the files hold now; None: plaintext. Raises `ChannelSecurityError`."""
        if self.ca is None:
            return None
        try:
            key, chain = (None, None)
            if self.key is not None and self.cert is not None:
                key, chain = pem.key_and_certificate(self.key, self.cert)
            return Certificates(pem.authority(self.ca), key, chain)
        except pem.PemError as error:
            raise ChannelSecurityError(f"worker_tls: {error}") from None

    def check_target(self, target: str) -> None:
        """Raise `ChannelSecurityError` when `target` would get plaintext over a network and nobody allowed it."""
        if self.ca is None and not self.insecure and not is_loopback(target):
            raise ChannelSecurityError(
                f"workers: {target} is not on this machine: give worker_tls.ca, or allow plaintext in words with"
                ' "worker_tls": {"insecure": true}'
            )


@dataclass(frozen=True, slots=True)
class Certificates:
    """What `ChannelSecurity` named, as it was read: equal as long as channels need not be made anew."""

    authority: bytes = field(repr=False)
    key: bytes | None = field(repr=False)
    chain: bytes | None = field(repr=False)

    def credentials(self) -> grpc.ChannelCredentials:
        """For one channel or many."""
        return grpc.ssl_channel_credentials(self.authority, self.key, self.chain)


def is_loopback(target: str) -> bool:
    """Whether `host:port` never leaves this machine, by what is written; names other than localhost may move."""
    return loopback.is_loopback(host_of(target))


def host_of(target: str) -> str:
    """The host in `host:port` or `dns:///host:port`, IPv6 without brackets."""
    return target.removeprefix(NAME_PREFIX).rpartition(":")[0].strip("[]")


def check_password(password: str) -> None:
    """Raise `ChannelSecurityError` for a password that gRPC metadata cannot carry."""
    if problem := wire.password_problem(password):
        raise ChannelSecurityError(f"shared_password: {problem}")


@dataclass(frozen=True, slots=True)
class Link:
    """The channel to one endpoint, with everything called over it made once.

    An answer is None when its bytes are no such message: grpc logs what they cannot be decoded for, and raises nothing.
    """

    target: str
    closed_hint: str
    """What it may mean when the worker closes a connection of this kind before a word was said."""
    channel: grpc.aio.Channel
    calls: Mapping[str, Attempt] = field(repr=False)
    """The RPCs of `AnalyzeService` by name, those that answer once and those that stream."""
    check: grpc.aio.UnaryUnaryMultiCallable[HealthCheckRequest, HealthCheckResponse | None] = field(repr=False)
    """One health check."""
    watch: grpc.aio.UnaryStreamMultiCallable[HealthCheckRequest, HealthCheckResponse | None] = field(repr=False)
    """The health stream."""
    watch_status: grpc.aio.UnaryStreamMultiCallable[WatchStatusRequest, WatchStatusResponse | None] = field(repr=False)
    """The worker's account of itself as a stream."""

    @classmethod
    def open(cls, target: str, certificates: Certificates | None, server_name: str = "") -> Link:
        """A channel that connects with its first call.

        `server_name`: whom the certificate must be for; empty: the host in `target`.
        """
        if certificates is None:
            channel = grpc.aio.insecure_channel(target, options=OPTIONS)
        else:
            override = (("grpc.ssl_target_name_override", server_name),) if server_name else ()
            channel = grpc.aio.secure_channel(target, certificates.credentials(), options=(*OPTIONS, *override))
        analyze = analyze_service_pb2_grpc.AnalyzeServiceStub(channel)
        return cls(
            target=target,
            closed_hint=_closed_hint(certificates),
            channel=channel,
            calls={
                method.name: partial(follow if method.server_streaming else ask, getattr(analyze, method.name))
                for method in _ANALYZE.methods
            },
            check=channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=HealthCheckRequest.SerializeToString,
                response_deserializer=HealthCheckResponse.FromString,
            ),
            watch=channel.unary_stream(
                "/grpc.health.v1.Health/Watch",
                request_serializer=HealthCheckRequest.SerializeToString,
                response_deserializer=HealthCheckResponse.FromString,
            ),
            watch_status=channel.unary_stream(
                f"/{wire.WORKER_SERVICE}/WatchStatus",
                request_serializer=WatchStatusRequest.SerializeToString,
                response_deserializer=WatchStatusResponse.FromString,
            ),
        )


def _closed_hint(certificates: Certificates | None) -> str:
    """TLS 1.3 has no word for a refused certificate before the first answer is due, and plaintext none for TLS."""
    if certificates is None:
        return "it may want TLS: worker_tls.ca"
    if certificates.chain is None:
        return "it may want a certificate: worker_tls.cert"
    return "it may not take our certificate: worker_tls.cert"
