"""Everything that can go wrong with a photo, by name.

The serving floors map these to status codes; nothing here knows of serving.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Reason(StrEnum):
    """Why a photo or a parameter is refused. Names are part of the public contract."""

    NO_FACE = "NO_FACE"
    IMAGE_TOO_SMALL = "IMAGE_TOO_SMALL"
    IMAGE_TOO_MANY_PIXELS = "IMAGE_TOO_MANY_PIXELS"
    FACE_TOO_SMALL = "FACE_TOO_SMALL"
    FACE_CUT_OFF = "FACE_CUT_OFF"
    YAW = "YAW"
    PITCH = "PITCH"
    ROLL = "ROLL"
    UPSIDE_DOWN = "UPSIDE_DOWN"
    UNSUPPORTED_FORMAT = "UNSUPPORTED_FORMAT"
    DAMAGED_IMAGE = "DAMAGED_IMAGE"
    MULTIPLE_FACES = "MULTIPLE_FACES"
    HAIRLINE_HIDDEN = "HAIRLINE_HIDDEN"
    INVALID_PARAMETER = "INVALID_PARAMETER"
    REGION_SELF_CROSSING = "REGION_SELF_CROSSING"
    REGION_OUTSIDE_IMAGE = "REGION_OUTSIDE_IMAGE"
    REGION_EMPTY = "REGION_EMPTY"
    REGION_OFF_SCALP = "REGION_OFF_SCALP"
    REGION_TOO_LARGE = "REGION_TOO_LARGE"
    REGION_TOO_FINE = "REGION_TOO_FINE"
    MASK_SIZE_DIFFERS = "MASK_SIZE_DIFFERS"
    MASK_UNREADABLE = "MASK_UNREADABLE"


DetailValue = float | int | str


class VisionError(Exception):
    """Base of everything this floor raises on purpose."""


class PhotoError(VisionError):
    """The photo is at fault.

    A clear refusal. `details` holds the measured value and the limit it broke, never a piece of the input.
    """

    def __init__(self, reason: Reason, details: Mapping[str, DetailValue] | None = None) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.details: Mapping[str, DetailValue] = dict(details or {})


class CancelledCallError(VisionError):
    """The caller gave the call up; raised inside a stage by `Progress`."""


class ModelError(VisionError):
    """A model file is missing, wrong or answers wrongly. The message names the file and what to do."""
