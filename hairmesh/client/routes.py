"""The calls of the contract by their routes, and how long each may take."""

from __future__ import annotations

MEASURE_ROUTE = "/api/v1/face/measure"
STYLES_ROUTE = "/api/v1/hair/styles"
GROW_ROUTE = "/api/v1/hair/grow"
FEATURES_ROUTE = "/api/v1/face/features"
HAIRLINES_ROUTE = "/api/v1/hair/hairlines"
MASKS_ROUTE = "/api/v1/face/masks"
SPECIAL_POINTS_ROUTE = "/api/v1/face/special-points"
REMOVE_PICTURES_ROUTE = "/api/v1/requests/{request_id}/pictures"

SLOW_ROUTES = frozenset({STYLES_ROUTE, GROW_ROUTE})
TIMEOUT_S, SLOW_TIMEOUT_S = 150.0, 420.0
"""How long the edge may take for a fast and for a slow call: with default settings enough for the queue and two
attempts."""
MAX_TIMEOUT_S = 3600.0
"""The edge refuses a longer time."""


def timeout_of(route: str) -> float:
    """How long a call may take where nobody says, in s."""
    return SLOW_TIMEOUT_S if route in SLOW_ROUTES else TIMEOUT_S


def check_timeout(timeout_s: float) -> float:
    """`timeout_s` as it is; raises `ValueError` where the edge would refuse it."""
    if not 0.001 <= timeout_s <= MAX_TIMEOUT_S:
        raise ValueError(f"timeout_s must be from 0.001 to {MAX_TIMEOUT_S:.0f}")
    return timeout_s
