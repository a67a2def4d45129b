"""Examples for the documentation: a real answer, and details as refusals have them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

import orjson

from edge.calls import DetailValue
from edge.photo import MIN_SIDE_PX
from edge.upload import BODY_MIN_BYTES_PER_S
from edge.words import GROWN_REASONS, STYLES

REQUEST_ID = "3f8a1c0e9b7d4e5fa6b2c1d0e9f8a7b6"

BLANK_PHOTO = (
    "iVBORw0KGgoAAAANSUhEUgAAAMgAAADIAQAAAACFI5MzAAAAJ0lEQVR42u3JoQEAAAwCIP9/WvPCPoBK+okxxhhjjDHGGGOMMcYcA4uOdZZzS32e"
    "AAAAAElFTkSuQmCC"
)
"""A white PNG of the smallest size that is taken, in base64: for requests that people try out."""

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
    "BAD_BASE64": {"field": "image_base64", "problem": "blanks inside"},
    "BODY_TOO_LARGE": {"size_bytes": 3_145_728, "max_bytes": 2_097_152},
    "DEADLINE": {"timeout_ms": 300, "needed_ms": 412},
    "INVALID_PARAMETER": {"field": "pupillary_distance_mm", "min": 40},
    "REGION_SELF_CROSSING": {"field": "region"},
    "REGION_OUTSIDE_IMAGE": {"field": "region"},
    "REGION_EMPTY": {"field": "region"},
    "REGION_OFF_SCALP": {"field": "region", "area_px2": 10_000, "on_scalp_px2": 0, "min_px2": 2_000},
    "REGION_TOO_LARGE": {"field": "region"},
    "REGION_TOO_FINE": {"field": "mask", "border_px": 812_400, "max_px": 163_840},
    "MASK_SIZE_DIFFERS": {"field": "mask", "width": 640, "height": 480, "photo_width": 2048, "photo_height": 2048},
    "MASK_UNREADABLE": {"field": "mask", "format": "GIF", "supported": "BMP, HEIF, JPEG, PNG, TIFF, WEBP"},
    "MISSING_PARAMETER": {"field": "image", "in_json": "image_base64"},
    "BAD_JSON": {"problem": "unexpected end of data", "line": 1, "column": 18},
    "BAD_MULTIPART": {"missing": "closing boundary"},
    "BODY_INCOMPLETE": {"received_bytes": 65_536, "waited_s": 24.0, "min_bytes_per_s": BODY_MIN_BYTES_PER_S},
    "HEAD_TOO_LARGE": {"max_bytes": 32_768, "max_headers": 100},
    "HEAD_LATE": {"timeout_s": 15.0},
}
"""By reason; the others have none."""


_PROOF = {
    "hair_share": 0.9412,
    "edge_distance_mm": 0.84,
    "delta_e": 3.1,
    "orientation_distance": 0.18,
    "gradient_distance": 0.09,
    "outside_changed_pixels": 0,
}


def measure_answer() -> dict[str, Any]:
    """The envelope of a good measure call, of a made-up person; 78 of the 81 points of the hairline are left out."""
    return _example("measure")


def hairlines_answer() -> dict[str, Any]:
    """One design for the same person; most points of its curve are left out."""
    return _enveloped({"hairline_images": [_example("design")], **_of_measuring("photo", "face", "hairline", "scale")})


def masks_answer() -> dict[str, Any]:
    """One mask of the same person."""
    mask = {"part": "forehead", "image_url": _url("5"), "area_px2": 281340.0, "area_mm2": 8553.9}
    mask["area_interval_mm2"] = {"low": 7386.5, "high": 9721.3}
    return _enveloped({"masks": [mask], **_of_measuring("photo", "face", "scale")})


def styles_answer() -> dict[str, Any]:
    """Two styles on the same person, one of them without a grown picture."""
    design = _example("design")
    del design["image_url"]
    results = [
        {**_named("round"), **_pictures("image", "1", "2"), "design": design, "proof": _PROOF},
        {**_named("m"), **_pictures("image", "3", None), "design": design | _named("m"), "proof": None},
    ]
    return _enveloped({"results": results, **_grown()})


def grow_answer() -> dict[str, Any]:
    """A region grown on the same person."""
    area = {"area_px2": 60512.0, "area_cm2": 18.4}
    return _enveloped(
        {**_pictures("marked_image", "1", "2"), **area, "proof": _PROOF | {"edge_distance_mm": None}, **_grown()}
    )


def streamed_answer() -> str:
    """A slow call as it comes over the line; of its envelope only the beginning."""
    return (
        'event: queued\ndata: {"position":1,"attempt":1}\n\n'
        ":\n\n"
        'event: progress\ndata: {"stage":"growing","step":2,"total":9,"attempt":1,'
        '"results_done":1,"results_total":4}\n\n'
        'event: result\ndata: {"code":0,"message":"ok","request_id":"' + REQUEST_ID + '","data":{…}}\n\n'
    )


def _named(style: str) -> dict[str, Any]:
    return {"style": style, "style_text": STYLES[style].zh}


def _pictures(drawn: str, digit: str, grown_digit: str | None) -> dict[str, Any]:
    """A picture of what is to be grown, and one of how it has grown, or why there is none."""
    reason = "NOTHING_TO_GROW" if grown_digit is None else None
    return {
        f"{drawn}_url": _url(digit),
        "grown_image_url": _url(grown_digit) if grown_digit else None,
        "grown_reason": reason,
        "grown_message": GROWN_REASONS[reason].zh if reason else None,
    }


def _grown() -> dict[str, Any]:
    return {**_of_measuring("photo", "face"), "seed": 1_734_829_604, "backend": "local"}


def _of_measuring(*names: str) -> dict[str, Any]:
    """These parts of the measured person's answer, and that there is nothing to warn of."""
    data = measure_answer()["data"]
    return {"warnings": [], **{name: data[name] for name in names}}


def _enveloped(data: dict[str, Any]) -> dict[str, Any]:
    return {"code": 0, "message": "ok", "request_id": REQUEST_ID, "data": data}


def _url(digit: str) -> str:
    return f"https://face.example/static/annotations/{digit * 32}.png"


def _example(name: str) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(resources.files("edge").joinpath(f"examples/{name}.json").read_bytes())
    return content
