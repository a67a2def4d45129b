"""The parameters of each call beside its files, as clients write them: in form fields or in JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeVar, get_args

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from edge.calls import DetailValue
from edge.errors import ApiError, invalid
from edge.upload import MAX_FIELD_BYTES, Shape, in_json, public_name

StyleName = Literal["round", "m", "widows_peak", "rectangular", "bell", "triangular", "straight"]
PartName = Literal["hair", "skin", "forehead", "brows", "eyes", "nose", "lips", "ears", "neck"]
SexName = Literal["female", "male"]
HeightName = Literal["low", "natural", "high"]

MIN_CORNERS, MAX_CORNERS = 3, 1000
"""Of a region."""
MAX_COORDINATE_PX = 1_000_000
"""Beyond any photo; where in the photo a region lies is for the worker to judge."""
MAX_SEED = 2**63 - 1
MAX_NAMES = max(len(get_args(StyleName)), len(get_args(PartName)))
MAX_NAMES_CHARACTERS = 1024
"""Of a list of names in all, blanks and commas included."""

Corner = tuple[float, float]
_FLAGS = {"true": True, "false": False}


def _wrong(**details: DetailValue) -> PydanticCustomError:
    """A complaint whose details are told as they are."""
    return PydanticCustomError("wrong", "wrong", details)


def _no_boolean(value: object) -> object:
    """pydantic takes JSON's `true` for 1."""
    if isinstance(value, bool):
        raise PydanticCustomError("boolean", "no number")
    return value


def _flag(value: object) -> object:
    """True or false, in a form its word; pydantic takes 0, 1, on, off and more."""
    flag = _FLAGS.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(flag, bool):
        raise _wrong(expected="true or false")
    return flag


def _names(value: object) -> object:
    """Names as a list in JSON; in a form one field with commas, or the field repeated."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list):
        raise _wrong(expected="a list of names")
    # Before anything is taken apart: each name that is wrong would be a complaint of its own, however many there are.
    if len(listed) > MAX_NAMES:
        raise _wrong(names=len(listed), max=MAX_NAMES)
    if (characters := sum(len(each) for each in listed if isinstance(each, str))) > MAX_NAMES_CHARACTERS:
        raise _wrong(characters=characters, max=MAX_NAMES_CHARACTERS)
    return [name for each in listed for name in (map(str.strip, each.split(",")) if isinstance(each, str) else [each])]


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise _wrong(problem="holds a name twice")
    return names


def _corners(value: object) -> tuple[Corner, ...]:
    """Corners as a list in JSON; in a form its text."""
    if isinstance(value, str):
        if len(value) > MAX_FIELD_BYTES:
            raise _wrong(max_bytes=MAX_FIELD_BYTES)
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            raise _wrong(expected="a JSON array of [x, y]") from None
    if not isinstance(value, list):
        raise _wrong(expected="a JSON array of [x, y]")
    if not MIN_CORNERS <= len(value) <= MAX_CORNERS:
        raise _wrong(corners=len(value), min=MIN_CORNERS, max=MAX_CORNERS)
    return tuple(_corner(number, each) for number, each in enumerate(value))


def _corner(number: int, value: object) -> Corner:
    if not isinstance(value, list) or len(value) != 2 or not all(_is_number(each) for each in value):
        raise _wrong(corner=number, expected="[x, y], two numbers")
    if not all(abs(each) <= MAX_COORDINATE_PX for each in value):
        raise _wrong(corner=number, min=-MAX_COORDINATE_PX, max=MAX_COORDINATE_PX)
    return float(value[0]), float(value[1])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_REGION_SCHEMA = {
    "type": "array",
    "items": {
        "type": "array",
        "items": {"type": "number", "minimum": -MAX_COORDINATE_PX, "maximum": MAX_COORDINATE_PX},
        "minItems": 2,
        "maxItems": 2,
    },
    "minItems": MIN_CORNERS,
    "maxItems": MAX_CORNERS,
}

_SOME = Field(min_length=1, json_schema_extra={"uniqueItems": True})
Styles = Annotated[tuple[StyleName, ...], _SOME, BeforeValidator(_names), AfterValidator(_each_once)]
Parts = Annotated[tuple[PartName, ...], _SOME, BeforeValidator(_names), AfterValidator(_each_once)]
Region = Annotated[tuple[Corner, ...], PlainValidator(_corners), WithJsonSchema(_REGION_SCHEMA)]
Seed = Annotated[
    Annotated[int, Field(ge=0, le=MAX_SEED), BeforeValidator(_no_boolean)] | None,
    Field(description="The same seed gives the same picture. Default: one is chosen, and told in the answer."),
]
Sex = Annotated[
    SexName | None,
    Field(description="Whose design rules apply; default: rules that hold for both. Never guessed from the photo."),
]


class Parameters(BaseModel):
    """Those of every call, also of one that has no words to say: a client needs one form for all."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    shape: ClassVar[Shape] = Shape()
    """What else its body may hold."""

    lang: Annotated[
        Literal["zh", "en"] | None,
        Field(
            description=(
                "Language of words in `data` and in pictures; default: as `Accept-Language` says, else Chinese. "
                "`message` and `advice` follow that header alone."
            )
        ),
    ] = None


class MeasureParameters(Parameters):
    """Parameters of the measure call."""

    pupillary_distance_mm: Annotated[
        Annotated[float, Field(ge=40, le=80, allow_inf_nan=False), BeforeValidator(_no_boolean)] | None,
        Field(
            description=(
                "Measured pupillary distance of the person, in mm. Replaces the iris as the scale and narrows the "
                "intervals."
            ),
        ),
    ] = None
    annotate: Annotated[bool, BeforeValidator(_flag), Field(description="Whether to draw the annotated picture.")] = (
        True
    )


class HairlinesParameters(Parameters):
    """Parameters of the design call."""

    shape = Shape(lists=frozenset({"styles"}))

    styles: Annotated[
        Styles | None, Field(description="Designs to draw, in this order; default: the whole catalogue.")
    ] = None
    sex: Sex = None
    height: Annotated[
        HeightName | None, Field(description="How high the designs sit on the forehead; default: natural.")
    ] = None
    density_per_cm2: Annotated[
        Annotated[float, Field(ge=10, le=80, allow_inf_nan=False), BeforeValidator(_no_boolean)] | None,
        Field(description="Planned density, in grafts per cm², for the graft estimate; default: 40."),
    ] = None


class StylesParameters(Parameters):
    """Parameters of growing hair to styles."""

    shape = Shape(lists=frozenset({"styles"}))

    styles: Annotated[
        Styles | None, Field(description="Styles to grow, in this order; default: round, m, widows_peak, bell.")
    ] = None
    sex: Sex = None
    seed: Seed = None


class GrowParameters(Parameters):
    """Parameters of growing hair in a marked region. Exactly one of `region` and the file `mask` is given."""

    shape = Shape(files=frozenset({"image", "mask"}))

    region: Annotated[
        Region | None,
        Field(
            description=(
                "Corners of the region in order, `[[x, y], …]` in pixels of the upright photo; closes itself. "
                "Exactly one of this and the mask is given."
            ),
        ),
    ] = None
    seed: Seed = None


class MasksParameters(Parameters):
    """Parameters of the mask call."""

    shape = Shape(lists=frozenset({"parts"}))

    parts: Annotated[Parts | None, Field(description="Parts to mask, in this order; default: all.")] = None


P = TypeVar("P", bound=Parameters)

_LIMITS = (("ge", "min"), ("le", "max"), ("min_length", "min"))
_EXPECTED = {"float": "a number", "finite": "a number", "int": "a whole number"}
"""What a parameter should have been, by the beginning of pydantic's name for the complaint."""


def validate(kind: type[P], given: Mapping[str, object]) -> P:
    """Parameters of one call; raises `ApiError` with the first field that is wrong and its limits, never its value."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False, include_input=False)[0], kind.shape.files) from None


def _refusal(complaint: ErrorDetails, files: frozenset[str]) -> ApiError:
    field = public_name(str(complaint["loc"][0]))
    if field in files:  # in JSON: a form's would be a file
        return invalid(field, problem="is a file: in JSON its base64 text", in_json=in_json(field))
    if complaint["type"] == "extra_forbidden":
        return invalid(field, problem="is no parameter of this call")
    if complaint["type"] == "missing":
        return ApiError("MISSING_PARAMETER", {"field": field})
    return invalid(field, **_details(complaint))


def _details(complaint: ErrorDetails) -> dict[str, DetailValue]:
    context = complaint.get("ctx", {})
    if complaint["type"] == "wrong":
        return context
    if complaint["type"] == "boolean":
        return {"expected": "a number"}
    if complaint["type"] == "literal_error":
        return {"expected": str(context["expected"]).replace("'", "")}
    limits = {name: context[key] for key, name in _LIMITS if key in context}
    return limits or {"expected": _EXPECTED.get(complaint["type"].partition("_")[0], "another type")}
