"""The typed REST client for other programs."""

from hairmesh.client.envelope import NotAnEnvelopeError, Progress, Queued
from hairmesh.client.options import Sex
from hairmesh.client.routes import (
    FEATURES_ROUTE,
    GROW_ROUTE,
    HAIRLINES_ROUTE,
    MASKS_ROUTE,
    MEASURE_ROUTE,
    SLOW_ROUTES,
    SPECIAL_POINTS_ROUTE,
    STYLES_ROUTE,
)

__all__ = [
    "FEATURES_ROUTE",
    "GROW_ROUTE",
    "HAIRLINES_ROUTE",
    "MASKS_ROUTE",
    "MEASURE_ROUTE",
    "SLOW_ROUTES",
    "SPECIAL_POINTS_ROUTE",
    "STYLES_ROUTE",
    "NotAnEnvelopeError",
    "Progress",
    "Queued",
    "Sex",
]
