"""What the console's page needs to know of the calls: made from the tables by which they are checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edge import kinds
from edge.parameters import Parameters

_LOCAL: Mapping[str, type[Parameters]] = {
    "/api/v1/face/features": Parameters,
    "/api/v1/face/special-points": Parameters,
}
"""Those that the edge computes itself."""
_ON_WORKERS: Mapping[str, kinds.Kind[Any]] = {
    "/api/v1/face/measure": kinds.MEASURE,
    "/api/v1/hair/hairlines": kinds.HAIRLINES,
    "/api/v1/hair/styles": kinds.STYLES,
    "/api/v1/hair/grow": kinds.REGION,
    "/api/v1/face/masks": kinds.MASKS,
}


def described_calls() -> list[dict[str, Any]]:
    """Every call in the order of the page: route, files, parameters; `slow` ones tell their progress."""
    on_workers = [_call(route, kind.parameters, slow=kind.grows) for route, kind in _ON_WORKERS.items()]
    return on_workers + [_call(route, parameters, slow=False) for route, parameters in _LOCAL.items()]


def _call(route: str, parameters: type[Parameters], *, slow: bool) -> dict[str, Any]:
    schemas = parameters.model_json_schema().get("properties", {})
    return {
        "route": route,
        "slow": slow,
        "files": sorted(parameters.shape.files),
        "parameters": [_parameter(name, schema) for name, schema in schemas.items()],
    }


def _parameter(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """One parameter as a form shows it: its `kind`, what it may be, and what it is where nothing is said."""
    known = next((each for each in schema.get("anyOf", ()) if each["type"] != "null"), schema)
    described = {"name": name, "default": schema.get("default")}
    if "enum" in known:
        return {**described, "kind": "choice", "values": known["enum"]}
    if known["type"] == "array" and "enum" in known["items"]:
        return {**described, "kind": "choices", "values": known["items"]["enum"]}
    if known["type"] == "array":
        return {**described, "kind": "region"}
    limits = {"min": known.get("minimum"), "max": known.get("maximum")}
    return {**described, "kind": known["type"], **({} if known["type"] == "boolean" else limits)}
