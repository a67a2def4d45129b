"""Examples for the documentation: a real answer, and details as refusals have them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

import orjson

from edge.calls import DetailValue
from edge.photo import MIN_SIDE_PX

REQUEST_ID = "3f8a1c0e9b7d4e5fa6b2c1d0e9f8a7b6"

DETAILS: Mapping[str, Mapping[str, DetailValue]] = {
    "IMAGE_TOO_SMALL": {"width": 180, "height": 240, "min": MIN_SIDE_PX},
    "IMAGE_TOO_MANY_PIXELS": {"width": 8000, "height": 6000, "pixels": 48_000_000, "max": 40_000_000},
    "FACE_TOO_SMALL": {"face_height_px": 74, "min": 120},
    "FACE_CUT_OFF": {"outside_pct": 12.4, "max": 2},
    "YAW": {"yaw_deg": 31.5, "max": 20},
    "PITCH": {"pitch_deg": -27.3, "min": -18, "max": 30},
    "ROLL": {"roll_deg": 88.4, "max": 30},
    "MULTIPLE_FACES": {"faces": 2, "max": 1},
    "UNSUPPORTED_FORMAT": {"format": "GIF", "supported": "BMP, HEIF, JPEG, PNG, TIFF, WEBP"},
    "DAMAGED_IMAGE": {"format": "JPEG"},
    "BAD_BASE64": {"problem": "blanks inside"},
    "BODY_TOO_LARGE": {"size_bytes": 3_145_728, "max_bytes": 2_097_152},
    "DEADLINE": {"timeout_ms": 300, "needed_ms": 412},
    "INVALID_PARAMETER": {"field": "pupillary_distance_mm", "min": 40},
    "MISSING_PARAMETER": {"field": "image", "in_json": "image_base64"},
    "BAD_JSON": {"problem": "unexpected end of data", "line": 1, "column": 18},
    "BAD_MULTIPART": {"missing": "closing boundary"},
    "BODY_INCOMPLETE": {"received_bytes": 65_536, "timeout_s": 60.0},
}
"""By reason; the others have none."""


def measure_answer() -> dict[str, Any]:
    """The envelope of a good measure call, of a made-up person; 78 of the 81 points of the hairline are left out."""
    answer: dict[str, Any] = orjson.loads(resources.files("edge").joinpath("examples/measure.json").read_bytes())
    return answer
