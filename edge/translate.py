"""From a worker's message to the JSON of an answer, by the message's descriptors alone.

Names stay those of the protos. Every `Image` becomes a URL under `<field>_url` (`<field>_urls` for repeated ones),
wherever it stands; enums become their short names in lower case; what is absent is null and never left out, an empty
text included: it says nothing. Names that `edge.words` knows are followed by their words. How each message type is
walked is worked out once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from hair.analysis.v1.common_pb2 import Image

from edge.messages import Lang
from edge.words import WORDS, Words

KeepPicture = Callable[[bytes], str]
"""Takes the bytes of one picture of an answer and returns its URL."""

Read = Callable[[Any, KeepPicture], Any]
"""Turns a field's value into what stands in the JSON."""

DECIMALS: Mapping[str, int] = {
    "mm_per_px": 6,
    "interval": 6,  # of `mm_per_px`; intervals of lengths are named `interval_mm`
    "px": 2,
    "mm": 2,
    "deg": 2,
    "pct": 2,
    "px2": 1,
    "mm2": 1,
    "cm2": 2,
    "s": 3,
}
"""Digits after the point by the unit at the end of a field's name; the longest name that fits counts."""
DEFAULT_DECIMALS = 4
"""Ratios, shares, confidences."""

_FLOATS = frozenset({FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT})


def is_image(field: FieldDescriptor) -> bool:
    """Whether a field holds a picture, or pictures."""
    return value_field(field).message_type is Image.DESCRIPTOR


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def value_field(field: FieldDescriptor) -> FieldDescriptor:
    """The field itself, or for a map the field of its values."""
    entry = field.message_type
    return entry.fields_by_name["value"] if entry is not None and is_map(field) else field


def is_nullable(field: FieldDescriptor) -> bool:
    """Whether a field that is not set is null: what has presence, and enums and texts, whose default says nothing.

    A number without presence is its default, 0, and lists and maps are empty.
    """
    says_nothing = field.enum_type is not None or field.type == FieldDescriptor.TYPE_STRING
    return not field.is_repeated and (field.has_presence or says_nothing)


def json_name(field: FieldDescriptor) -> str:
    """Key under which a field stands in the JSON."""
    if not is_image(field):
        return str(field.name)
    return f"{field.name}_urls" if field.is_repeated else f"{field.name}_url"


def enum_name(enum: EnumDescriptor, number: int) -> str | None:
    """Short lower-case name of an enum value; None for "not said" and for values newer than this edge."""
    value = enum.values_by_number.get(number)
    return None if value is None or number == 0 else short_name(enum, value.name)


def short_name(enum: EnumDescriptor, name: str) -> str:
    """`HAIRLINE_STATE_OBSERVED` of `HairlineState` is `observed`."""
    prefix = "".join(f"_{letter}" if letter.isupper() else letter for letter in enum.name).lstrip("_").upper()
    return name.removeprefix(f"{prefix}_").lower()


def decimals_of(field: FieldDescriptor, inherited: int | None) -> int | None:
    """Digits that a field's numbers keep; the names inside `interval_mm` carry no unit and inherit its."""
    units = (field.name.split("_", skipped)[-1] for skipped in range(field.name.count("_") + 1))
    return next((DECIMALS[unit] for unit in units if unit in DECIMALS), inherited)


def to_json(message: Message, keep: KeepPicture, lang: Lang = Lang.ZH) -> dict[str, Any]:
    """The JSON object for `message`, with words in `lang`; `keep` is called once for every picture in it."""
    read: Read = _message_reader(message.DESCRIPTOR, None, lang)
    result: dict[str, Any] = read(message, keep)
    return result


class _Step(NamedTuple):
    """What is done with one field that is set. Single numbers, of which answers have hundreds, need no function."""

    name: str
    scale: float
    """For a single float: 10 to the number of digits kept. Else 0."""
    read: Read | None
    """None where the value stands in the JSON as it is, or is a single float."""
    words: Words | None = None
    """Of a name that has any."""


@cache
def _message_reader(descriptor: Descriptor, decimals: int | None, lang: Lang) -> Read:
    """How messages of one type are read. Only fields that are set cost anything: the rest comes from a template."""
    absent: dict[str, Any] = {}
    for field in descriptor.fields:
        absent[json_name(field)] = _absent(field)
        if field in WORDS:
            absent[WORDS[field].key] = None
    # Filled at first use, not here: message types may contain themselves.
    steps: dict[FieldDescriptor, _Step] = {}

    def read(message: Message, keep: KeepPicture) -> dict[str, Any]:
        result = absent.copy()
        for field, value in message.ListFields():
            step = steps.get(field)
            if step is None:
                step = steps[field] = _step(field, decimals, lang)
            name, scale, read_value, words = step
            if scale:
                result[name] = _rounded(value, scale)
            elif read_value is not None:
                result[name] = read_value(value, keep)
            else:
                result[name] = value
                if words is not None:
                    result[words.key] = words.of(value, lang)
        return result

    return read


def _absent(field: FieldDescriptor) -> Any:
    """What stands in the JSON for a field that is not set. Shared between answers: never written to."""
    if is_map(field):
        return {}
    if field.is_repeated:
        return []
    return None if is_nullable(field) else field.default_value


def _step(field: FieldDescriptor, inherited: int | None, lang: Lang) -> _Step:
    decimals = decimals_of(field, inherited)
    single = value_field(field)
    scale = 10.0 ** (DEFAULT_DECIMALS if decimals is None else decimals) if single.type in _FLOATS else 0.0
    read = _value_reader(single, decimals, lang)
    if field.is_repeated:
        one: Read = read or (lambda value, _keep: _rounded(value, scale) if scale else value)
        if is_map(field):
            return _Step(json_name(field), 0.0, lambda items, keep: {str(k): one(v, keep) for k, v in items.items()})
        return _Step(json_name(field), 0.0, lambda items, keep: [one(item, keep) for item in items])
    return _Step(json_name(field), scale, read, WORDS.get(field))


def _rounded(value: float, scale: float) -> float:
    """`round` in half its time; infinities come out as not-a-number, which JSON writes as null."""
    return (value * scale + 0.5) // 1.0 / scale


def _picture(image: Image, keep: KeepPicture) -> str | None:
    data = image.data  # a copy, made once
    return keep(data) if data else None  # a picture without bytes is one that is not there


def _value_reader(field: FieldDescriptor, decimals: int | None, lang: Lang) -> Read | None:
    if field.message_type is Image.DESCRIPTOR:
        return _picture
    if field.message_type is not None:
        return _message_reader(field.message_type, decimals, lang)
    if field.enum_type is not None:
        enum = field.enum_type
        names = {number: enum_name(enum, number) for number in enum.values_by_number}
        return lambda number, _keep: names.get(number)
    return None
