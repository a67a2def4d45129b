"""The edge's configuration file: every name, default and unit, checked before anything starts.

A file that is wrong anywhere is refused whole, with the key's name and the reason; what a key that holds a secret says
is never repeated, so that a password stays out of logs. What concerns the pool and its channels is defined and checked
there: `edge.pool.config`, `edge.upstream.channel`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    ValidationError,
    model_validator,
)

from edge.pool.config import DispatchConfig, HealthCheckConfig, PoolConfig, PoolConfigError
from edge.upstream.channel import ChannelSecurity, ChannelSecurityError, check_password, is_loopback
from hairmesh import config_file, pem, wire

ADMIN_TOKEN_MIN_CHARACTERS = 16
"""Shorter ones can be guessed by trying: nothing counts the tries."""


class ConfigError(Exception):
    """The configuration cannot be used. The message names file, key and reason."""


def _check_password(password: SecretStr) -> SecretStr:
    try:
        check_password(password.get_secret_value())
    except ChannelSecurityError as error:
        raise ValueError(str(error).partition(": ")[2]) from None
    return password


def _check_admin_token(token: SecretStr) -> SecretStr:
    text = token.get_secret_value()
    if not (text.isascii() and text.isprintable()) or text != text.strip():
        raise ValueError("only printable ASCII without a space at either end: HTTP headers carry nothing else")
    if len(text) < ADMIN_TOKEN_MIN_CHARACTERS:
        raise ValueError(f"must have at least {ADMIN_TOKEN_MIN_CHARACTERS} characters")
    if problem := wire.placeholder_problem(text):
        raise ValueError(problem)
    return token


def _check_address(address: str) -> str:
    try:
        parts = urlsplit(f"//{address}")
        valid = bool(parts.hostname and parts.port) and parts.netloc == address and "@" not in address
    except ValueError:  # a port beyond 65535, a broken IPv6 address
        valid = False
    if not valid:
        raise ValueError("must be host:port, IPv6 as [::1]:port, without a scheme")
    return address


def _network(text: object) -> IPv4Network | IPv6Network:
    try:
        return ip_network(str(text))
    except ValueError:
        raise ValueError("must be a network such as 10.0.0.0/8, or one address") from None


def _check_base_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        bare = not parts.query and not parts.fragment and "@" not in parts.netloc  # whoever it is may be a secret
        clean = url.isprintable() and " " not in url
        host = (parts.hostname or "").encode("idna").decode("idna")  # what a connection could be made to
        valid = parts.scheme in {"http", "https"} and bare and clean and bool(host) and parts.port != 0
    except ValueError:  # a port beyond 65535, a broken IPv6 address, a name that no name server takes
        valid = False
    if not valid:
        raise ValueError("must be http(s)://host[:port][/prefix] and nothing else")
    return url.rstrip("/")


def _check_llm_url(url: str) -> str:
    base = _check_base_url(url)
    parts = urlsplit(base)
    if parts.scheme != "https" and not is_loopback(f"{parts.hostname}:{parts.port or 80}"):
        raise ValueError("must be https, as patients' photos go there; http only on loopback")
    return base


_STORE_PREFIX = re.compile(r"(?:/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*/?")
"""Plain segments, none of which is `..`."""


def _check_store_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        bare = not parts.query and not parts.fragment
        place = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}", parts.netloc)  # no user, no password, no port
        valid = parts.scheme in {"s3", "gs", "az"} and bare and place and _STORE_PREFIX.fullmatch(parts.path)
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(
            "must be s3://bucket[/prefix], gs://bucket[/prefix] or az://container[/prefix] and nothing else:"
            " credentials and endpoint come from the environment"
        )
    return url.rstrip("/")


def _check_api_key(key: SecretStr) -> SecretStr:
    text = key.get_secret_value()
    if not (text and text.isascii() and text.isprintable()) or " " in text:
        raise ValueError("only printable ASCII without blanks: HTTP headers carry nothing else")
    return key


def _check_llm_request(request: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    if ours := sorted(request.keys() & {"model", "messages", "response_format", "stream"}):
        raise ValueError(f"{', '.join(ours)}: what the edge itself says cannot be said here")
    return request


KeyName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Password = Annotated[SecretStr, AfterValidator(_check_password)]
AdminToken = Annotated[SecretStr, AfterValidator(_check_admin_token)]
Network = Annotated[IPv4Network | IPv6Network, PlainValidator(_network)]
Address = Annotated[str, AfterValidator(_check_address)]
BaseUrl = Annotated[str, AfterValidator(_check_base_url)]
LlmUrl = Annotated[str, AfterValidator(_check_llm_url)]
ApiKey = Annotated[SecretStr, AfterValidator(_check_api_key)]
StoreUrl = Annotated[str, AfterValidator(_check_store_url)]
RareFormat = Literal["BMP", "TIFF", "HEIF"]


class _Section(BaseModel):
    """Unknown keys are refused, here and in the plain dataclasses used as sections."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)


class Tls(_Section):
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


class RateLimit(_Section):
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


class Limits(_Section):
    """What is taken in and given out."""

    max_body_bytes: Annotated[int, Field(gt=0, le=wire.MAX_MESSAGE_BYTES // 2)] = 2_097_152
    """Whole request body, as sent. Its photo travels in one gRPC message."""
    max_pixels: PositiveInt = 40_000_000
    """Width times height of a photo."""
    max_output_side: Annotated[int, Field(ge=256, le=wire.MAX_OUTPUT_SIDE_PX)] = 2048
    """Long side of pictures in answers, in pixels."""
    rare_formats: frozenset[RareFormat] = frozenset[RareFormat]({"BMP", "TIFF", "HEIF"})
    """Formats that are read beside JPEG, PNG and WebP."""


class Static(_Section):
    """Pictures of answers: patients' faces, kept for a while."""

    dir: Path = Path("static/annotations")
    shared: bool = False
    """Whether other edges serve from `dir` too: an answer then waits until its pictures lie there."""
    store_url: StoreUrl | None = None
    """Object storage instead of `dir`: `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`.
    Credentials come from the environment (see docs/operations.md). Takes the extra `edge-objects`."""
    max_age_hours: PositiveFloat = 72.0
    """Older pictures are removed."""
    max_bytes: PositiveInt = 10_737_418_240
    """All pictures together. Where there is no room the oldest are removed."""
    min_age_minutes: Annotated[float, Field(ge=0)] = 10.0
    """Younger ones are not: where only such are left, a full store answers 1007 STORE_FULL."""

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        if self.shared and self.store_url is not None:
            raise ValueError("shared is said of dir, and store_url is given instead of it")
        return self


class Features(_Section):
    """A vision LLM for the call that describes a face. Off by default: with it every photo of that call leaves the
    house for `base_url` (see docs/privacy.md).
    """

    base_url: LlmUrl | None = None
    """OpenAI-compatible, without `/chat/completions`: https, or http on loopback. Null: geometry alone."""
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    api_key: ApiKey | None = None
    """Sent to `base_url` in the Authorization header; null: none is sent."""
    timeout_seconds: Annotated[float, Field(gt=0, le=120)] = 20.0
    """For its answer, a second try included; then geometry answers alone."""
    request: Annotated[Mapping[str, JsonValue], AfterValidator(_check_llm_request)] = {
        "temperature": 0,
        "max_tokens": 1500,
    }
    """More of the question's body, as that API takes it: some refuse `max_tokens`, or know a switch for thinking."""

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        if (self.base_url is None) != (self.model is None):
            raise ValueError("base_url and model belong together")
        if self.api_key is not None and self.base_url is None:
            raise ValueError("api_key means nothing without base_url")
        return self


class LocalVision(_Section):
    """What the edge computes itself: features and special points. Takes the extra `edge-vision`."""

    enabled: bool = True
    """Off, or without that extra, these two calls answer 1007 LOCAL_VISION_MISSING."""
    models_dir: Path | None = None
    """Folder with `face_landmarker.task` and, for what concerns hair, the parser's `.onnx`; null: where
    `hairmesh models fetch` puts them."""
    max_waiting: Annotated[int, Field(ge=0, le=1000)] = 8
    """Calls in line behind the one that runs; the next gets BUSY."""
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = 30.0
    """For the line and the computing of one call; the first one also loads the models."""


class Docs(_Section):
    """`/docs` and `/openapi.json`."""

    enabled: bool = True


class Console(_Section):
    """The page for people at `/console`."""

    enabled: bool = True
    """Off, or while `admin_tokens` is empty, it answers 404."""


class Metrics(_Section):
    """A port of its own for Prometheus, beside `GET /metrics` with an admin token."""

    listen: Address | None = None
    """Plain HTTP for whoever reaches it: loopback, or a network of your own. Null: no such port."""


class Tracing(_Section):
    """Spans of requests, calls and their stages, for an OpenTelemetry collector. Takes the extra `tracing`."""

    otlp_endpoint: BaseUrl | None = None
    """Where it takes OTLP over HTTP, without `/v1/traces`, such as `http://127.0.0.1:4318`. Null: no traces."""


class RequestLogFile(_Section):
    """`request_log.jsonl`: one line per request under `/api/`."""

    path: Path = Path("request_log.jsonl")
    max_bytes: PositiveInt = 67_108_864
    """Size at which it is renamed to `path.1`, that to `path.2` and so on."""
    keep: Annotated[int, Field(ge=1, le=1000)] = 5
    """How many older files stay."""


class Settings(_Section):
    """The whole file. Relative paths start at the working directory."""

    listen: Address = "127.0.0.1:8080"
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


_UNOBJECTIONABLE: Mapping[str, object] = {
    "tls": {"insecure": True},
    "public_base_url": "https://host.invalid",
    "workers": ["127.0.0.1:1"],
    "primary_workers": [],
    "shared_password": "-",
    "worker_tls": {"insecure": True},
}
"""Put in the place of what is wrong by itself, so that contradictions between all the other keys are found too. The
defaults do for keys that are not here."""
_GO_TOGETHER = {"workers": "primary_workers"}
"""The second means nothing without the first."""


def parse(text: bytes) -> Settings:
    """Settings from the text of a configuration file; raises `ConfigError`, one line for each and every complaint."""
    try:
        content = config_file.decode(text)
    except config_file.ConfigFileError as error:
        raise ConfigError(str(error)) from None
    if not isinstance(content, dict):
        raise ConfigError("must be a JSON object")
    try:
        return Settings.model_validate_json(text, strict=True)
    except ValidationError as error:
        complaints, wrong = _complaints(error)
    if wrong:
        wrong |= {_GO_TOGETHER[key] for key in wrong & _GO_TOGETHER.keys()}
        others = {key: value for key, value in content.items() if key not in wrong}
        stand_ins = {key: value for key, value in _UNOBJECTIONABLE.items() if key in wrong}
        try:
            Settings.model_validate_json(json.dumps(others | stand_ins), strict=True)
        except ValidationError as error:
            complaints += _complaints(error)[0]
    raise ConfigError("\n".join(config_file.complaints(line for told in complaints for line in told.split("\n"))))


_WORDS = {
    "extra_forbidden": "there is no such key",
    "unexpected_keyword_argument": "there is no such key",
    "missing": "must be given",
}


def _complaints(error: ValidationError) -> tuple[list[str], set[str]]:
    """What is wrong, and the keys of the file that are so by themselves."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [_complaint(**item) for item in found], {str(item["loc"][0]) for item in found if item["loc"]}


def _complaint(*, type: str, loc: tuple[int | str, ...], msg: str, **_: object) -> str:  # noqa: A002  (pydantic's name)
    message = _WORDS.get(type, msg.removeprefix("Value error, "))
    place = ".".join(map(str, loc))
    # The pool and channel sections name their setting themselves.
    return message if not place or message.startswith(f"{place.partition('.')[0]}") else f"{place}: {message}"


def read(path: Path) -> bytes:
    """What the file holds; raises `ConfigError`."""
    try:
        return config_file.read(path)
    except config_file.ConfigFileError as error:
        raise ConfigError(str(error)) from None


def check_tls_files(tls: Tls) -> None:
    """Raise `ConfigError` unless the certificate and the key that are named are there and belong together."""
    if tls.key is None or tls.cert is None:
        return
    try:
        pem.key_and_certificate(tls.key, tls.cert)
    except pem.PemError as error:
        raise ConfigError(f"tls: {error}") from None
