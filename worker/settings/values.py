"""Kinds of values in a worker's configuration, each with what it may be, and what every section is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from hairmesh.wire import password_problem

TARGET = re.compile(
    r"(?P<scheme>https?://)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:(?P<port>\d{1,5}))?(?P<path>/[\w./-]*)?"
)
"""Of a server: `host:port`, or a URL without user name and query."""
_LISTEN = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):(?P<port>\d{1,5})")


def _for_metadata(password: SecretStr) -> SecretStr:
    if problem := password_problem(password.get_secret_value()):
        raise ValueError(problem)
    return password


def _expanded(path: Path) -> Path:
    return path.expanduser()


def _checked_url(url: str) -> str:
    match = TARGET.fullmatch(url)
    if not match or not match["scheme"] or int(match["port"] or 1) not in range(1, 65536):
        raise ValueError("is http://host:port or https://host:port, without user name and query")
    return url.rstrip("/")


def _checked_address(listen: str) -> str:
    match = _LISTEN.fullmatch(listen)
    if not match or int(match["port"]) > 65535:
        raise ValueError("listen is host:port, such as 127.0.0.1:28187 or [::1]:28187")
    return listen


def _at_least_one(passwords: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    if not passwords:
        raise ValueError("at least one is needed")
    return passwords


Password = Annotated[SecretStr, AfterValidator(_for_metadata)]
Passwords = Annotated[
    tuple[Password, ...], AfterValidator(_at_least_one), Field(json_schema_extra={"minItems": 1})
]  # a minimal length would count the good ones alone, and complain beside each bad one
Address = Annotated[str, AfterValidator(_checked_address)]
LONGEST_S = 3600.0
"""Whoever asks for more means milliseconds."""
Seconds = Annotated[float, Field(gt=0, le=LONGEST_S)]
Url = Annotated[str, AfterValidator(_checked_url)]
FilePath = Annotated[Path, AfterValidator(_expanded)]


class Section(BaseModel):
    """What stands below a key says what it means (`hairmesh config explain`)."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )
