"""Kinds of values in the configuration file, each with what it may be, and what every section is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, PlainValidator, SecretStr, with_config

from edge.upstream.channel import ChannelSecurityError, check_password, is_loopback
from hairmesh import wire

ADMIN_TOKEN_MIN_CHARACTERS = 16
"""Shorter ones can be guessed in time, although wrong ones are counted and slowed down (`edge/secrets.py`)."""


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


def check_llm_request(request: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Raise `ValueError` for what the edge itself says to a language model."""
    if ours := sorted(request.keys() & {"model", "messages", "response_format", "stream"}):
        raise ValueError(f"{', '.join(ours)}: what the edge itself says cannot be said here")
    return request


KeyName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Password = Annotated[SecretStr, AfterValidator(_check_password)]
AdminToken = Annotated[SecretStr, AfterValidator(_check_admin_token)]
Network = Annotated[IPv4Network | IPv6Network, PlainValidator(_network, json_schema_input_type=str)]
Address = Annotated[str, AfterValidator(_check_address)]
BaseUrl = Annotated[str, AfterValidator(_check_base_url)]
LlmUrl = Annotated[str, AfterValidator(_check_llm_url)]
ApiKey = Annotated[SecretStr, AfterValidator(_check_api_key)]
StoreUrl = Annotated[str, AfterValidator(_check_store_url)]


class Section(BaseModel):
    """Unknown keys are refused, and what stands below a key says what it means (`hairmesh config explain`)."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


def as_section(plain: type) -> None:
    """Have a plain dataclass read as a section is: pool and channels know nothing of pydantic."""
    with_config(Section.model_config)(plain)
