"""What a header can carry, and what `Retry-After` says. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def key_header(api_key: str | None) -> Mapping[str, str]:
    """The header of an API key; none without a key. Raises `ValueError`."""
    return {} if api_key is None else {"x-api-key": carried("api_key", api_key)}


def bearer(admin_token: str) -> Mapping[str, str]:
    """The header of an operator's token. Raises `ValueError`."""
    return {"authorization": f"Bearer {carried('admin_token', admin_token)}"}


def request_id_header(request_id: str | None) -> Mapping[str, str]:
    """The header of a request id; none where the service is to make one. Raises `ValueError` for an id that the service
    would replace by one of its own.
    """
    if request_id is None:
        return {}
    if not _REQUEST_ID.fullmatch(request_id):
        raise ValueError("request_id must be 1 to 64 characters of A-Z, a-z, 0-9, '.', '_', '-'")
    return {"x-request-id": request_id}


def carried(name: str, secret: str) -> str:
    """The secret, where a header can carry it as it is. Raises `ValueError`, without any of it."""
    if not secret or not secret.isascii() or not secret.isprintable() or secret != secret.strip():
        raise ValueError(f"{name} must be printable ASCII, without a line end or spaces around it (read from a file?)")
    return secret


def seconds(retry_after: object) -> float | None:
    """How long to wait, from the header `Retry-After` or from `retry_after_s` in an envelope.

    None where that is no number of seconds, such as a date: the service's clock and ours may differ by more than that.
    """
    if not isinstance(retry_after, str | int | float):
        return None
    try:
        wait_s = float(retry_after)
    except (ValueError, OverflowError):
        return None
    return wait_s if math.isfinite(wait_s) and wait_s >= 0 else None
