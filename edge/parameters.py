"""The parameters of each call beside the photo, as clients write them: in form fields or in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from edge.calls import DetailValue
from edge.errors import ApiError, invalid
from edge.upload import public_name


def _no_boolean(value: object) -> object:
    """pydantic takes JSON's `true` for 1."""
    if isinstance(value, bool):
        raise PydanticCustomError("float_type", "no number")
    return value


class Parameters(BaseModel):
    """What every call takes."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    lang: Annotated[
        Literal["zh", "en"] | None,
        Field(description="Language of labels inside pictures; default: as `Accept-Language` says, else Chinese."),
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
    annotate: Annotated[bool, Field(description="Whether to draw the annotated picture.")] = True


P = TypeVar("P", bound=Parameters)

_EXPECTED = {"bool": "true or false", "float": "a number", "finite": "a number", "int": "a whole number"}
"""What a parameter should have been, by the beginning of pydantic's name for the complaint."""


def validate(kind: type[P], given: Mapping[str, object]) -> P:
    """Parameters of one call; raises `ApiError` with the first field that is wrong and its limits, never its value."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False, include_input=False)[0]) from None


def _refusal(complaint: ErrorDetails) -> ApiError:
    field = public_name(str(complaint["loc"][0]))
    if complaint["type"] == "extra_forbidden":
        return invalid(field, problem="is no parameter of this call")
    if complaint["type"] == "missing":
        return ApiError("MISSING_PARAMETER", {"field": field})
    return invalid(field, **_details(complaint))


def _details(complaint: ErrorDetails) -> dict[str, DetailValue]:
    context = complaint.get("ctx", {})
    if complaint["type"] == "literal_error":
        return {"expected": str(context["expected"]).replace("'", "")}
    limits = {name: context[key] for key, name in (("ge", "min"), ("le", "max")) if key in context}
    return limits or {"expected": _EXPECTED.get(complaint["type"].partition("_")[0], "another type")}
