"""The whole configuration file, and what its keys may not be together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import SecretStr, model_validator

from edge.pool.config import DispatchConfig, HealthCheckConfig, PoolConfig, PoolConfigError
from edge.settings.access import Console, Docs, PublicKey, RateLimit, Tls
from edge.settings.local import Features, LocalVision
from edge.settings.observed import Metrics, RequestLogFile, Tracing
from edge.settings.pictures import Limits, Static
from edge.settings.values import Address, AdminToken, BaseUrl, Network, Password, Section, as_section
from edge.upstream.channel import ChannelSecurity, ChannelSecurityError, is_loopback

for _plain in (HealthCheckConfig, DispatchConfig, ChannelSecurity):
    as_section(_plain)


class Settings(Section):
    """The whole file. Relative paths start at the working directory."""

    listen: Address = "127.0.0.1:8080"
    """`host:port` at which clients come in."""
    tls: Tls = Tls()
    public_base_url: BaseUrl | None = None
    """What picture URLs begin with; null: `listen` itself, on loopback only."""
    workers: tuple[str, ...]
    """`host:port` of every worker, or `dns:///name:port` for all that a name leads to."""
    primary_workers: tuple[str, ...] = ()
    """Those of `workers` that are asked first; empty: all."""
    shared_password: Password
    """Between edge and workers, and for the alert drill."""
    admin_tokens: tuple[AdminToken, ...] = ()
    """Whoever sends one of them may read `/admin/`; empty: nobody."""
    api_keys: tuple[PublicKey, ...] = ()
    """Where there are any, every call under `/api/v1/` needs one; empty: none does."""
    rate_limit: RateLimit = RateLimit()
    trusted_proxies: tuple[Network, ...] = ()
    """Networks of the proxies in front, whose `X-Forwarded-For` is believed; empty: nobody's."""
    worker_tls: ChannelSecurity = ChannelSecurity()
    health_check: HealthCheckConfig = HealthCheckConfig()
    dispatch: DispatchConfig = DispatchConfig()
    limits: Limits = Limits()
    static: Static = Static()
    features: Features = Features()
    local_vision: LocalVision = LocalVision()
    docs: Docs = Docs()
    console: Console = Console()
    request_log: RequestLogFile = RequestLogFile()
    metrics: Metrics = Metrics()
    tracing: Tracing = Tracing()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least that is logged."""

    @property
    def host(self) -> str:
        """Where it listens, without the port."""
        return urlsplit(f"//{self.listen}").hostname or ""

    @property
    def port(self) -> int:
        """Port it listens on."""
        return urlsplit(f"//{self.listen}").port or 0

    @property
    def picture_base_url(self) -> str:
        """What picture URLs begin with, without a slash at the end."""
        return self.public_base_url or f"{'https' if self.tls.cert else 'http'}://{self.listen}"

    def pool(self) -> PoolConfig:
        """What the pool is told."""
        return PoolConfig(
            workers=self.workers,
            primary_workers=self.primary_workers,
            health=self.health_check,
            dispatch=self.dispatch,
        )

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        if complaints := list(self._contradictions()):
            raise ValueError("\n".join(complaints))
        return self

    def _secrets(self) -> Iterator[SecretStr]:
        yield self.shared_password
        yield from self.admin_tokens

    def _contradictions(self) -> Iterator[str]:
        """What is wrong between the keys, each of which is good by itself."""
        if self.shared_password in self.admin_tokens:
            yield "admin_tokens: must differ from shared_password, which every worker knows"
        for field in ("name", "sha256"):
            if len({getattr(key, field) for key in self.api_keys}) < len(self.api_keys):
                yield f"api_keys: two of them have the same {field}"
        others = {hashlib.sha256(each.get_secret_value().encode()).hexdigest() for each in self._secrets()}
        if any(key.sha256 in others for key in self.api_keys):
            yield "api_keys: must differ from shared_password and from admin_tokens"
        try:
            for target in self.pool().workers:
                self.worker_tls.check_target(target)
        except (PoolConfigError, ChannelSecurityError) as error:
            yield str(error)
        off_loopback = not is_loopback(self.listen)
        if off_loopback and self.public_base_url is None:
            yield "public_base_url: must be given where listen is not on loopback"
        if off_loopback and self.tls.cert is None and not self.tls.insecure:
            yield (
                "listen: plain HTTP off loopback: give tls.cert and tls.key, or allow it in words with"
                ' "tls": {"insecure": true}'
            )
        public = urlsplit(self.public_base_url or "")
        if public.scheme == "http" and not is_loopback(f"{public.hostname}:80") and not self.tls.insecure:
            yield (
                "public_base_url: pictures of patients over plain HTTP: use https, or allow it in words with"
                ' "tls": {"insecure": true}'
            )
