"""Parameters that calls have in common, checked. Each check raises `Refusal` naming the field at fault."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from hair.analysis.v1 import common_pb2

from hairmesh.wire import MAX_OUTPUT_SIDE_PX
from vision.calls import Sex, Style
from vision.errors import DetailValue, Reason
from vision.types import Lang
from worker.refusals import Refusal

OUTPUT_SIDE_PX = (200, MAX_OUTPUT_SIDE_PX)
DEFAULT_OUTPUT_SIDE_PX = 2048
MAX_SEED = 2**63 - 1

_LANGS: Mapping[int, Lang] = MappingProxyType(
    {
        common_pb2.LANGUAGE_UNSPECIFIED: Lang.ZH,
        common_pb2.LANGUAGE_ZH: Lang.ZH,
        common_pb2.LANGUAGE_EN: Lang.EN,
    }
)
_SEXES: Mapping[int, Sex] = MappingProxyType(
    {common_pb2.Sex.Value(f"SEX_{member.name}"): member for member in Sex},
)


def invalid(field: str, details: Mapping[str, DetailValue] | None = None) -> Refusal:
    """The parameter at proto path `field` is missing or outside what `details` allow."""
    return Refusal(Reason.INVALID_PARAMETER, field=field, details={"field": field, **(details or {})})


def one_of(field: str, allowed: Iterable[str]) -> Refusal:
    """The parameter at `field` is none of the names that are `allowed`."""
    return invalid(field, {"allowed": ", ".join(allowed)})


def photo(image: common_pb2.Image) -> bytes:
    """The file of the photo, not yet decoded."""
    if not image.data:
        raise invalid("photo")
    return image.data


def lang(options: common_pb2.CallOptions) -> Lang:
    """Language of labels; Chinese where none is said."""
    if options.lang not in _LANGS:
        raise invalid("options.lang")
    return _LANGS[options.lang]


def max_output_side_px(options: common_pb2.CallOptions) -> int:
    """Longest side of pictures in the answer, in pixels."""
    side_px = options.max_output_side_px or DEFAULT_OUTPUT_SIDE_PX
    return int(within("options.max_output_side_px", side_px, OUTPUT_SIDE_PX, "px"))


def within(field: str, value: float, limits: tuple[float, float], unit: str = "") -> float:
    """`value`, which must be a number from the one limit to the other."""
    low, high = limits
    if not (math.isfinite(value) and low <= value <= high):
        raise invalid(field, {"min": low, "max": high, **({"unit": unit} if unit else {})})
    return value


def sex(value: int) -> Sex:
    """Whose rules apply."""
    if value not in _SEXES:
        raise one_of("sex", Sex)
    return _SEXES[value]


def styles(names: Sequence[str]) -> tuple[Style, ...]:
    """Styles of the catalogue, each at most once, in the order asked for."""
    if not set(names) <= set(Style):
        raise one_of("styles", Style)
    if len(set(names)) < len(names):
        raise invalid("styles", {"problem": "named twice"})
    return tuple(Style(name) for name in names)


def seed(value: int) -> int:
    """Seed of the random generator."""
    if value < 0:
        raise invalid("seed", {"min": 0, "max": MAX_SEED})
    return value
