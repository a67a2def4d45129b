"""The two configuration files as JSON Schema: what `hairmesh config` and docs/configuration.md tell is all in there.

What stands below each field in the settings of edge and worker becomes its description. Added to what JSON Schema
knows, since people ask for it first: `x-unit` of every number, `x-takes-effect` of every key (`live` or `restart`), and
`x-environment`, the variable that overrides a key of a worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, get_args

from edge.reload import TAKES_EFFECT
from edge.settings import Settings

Schema = dict[str, Any]
"""One JSON Schema, or a part of one."""
SideName = Literal["edge", "worker"]
SIDES: tuple[SideName, ...] = get_args(SideName)
Effect = Literal["live", "restart"]

FILES: Mapping[SideName, str] = {"edge": "edge_config.json", "worker": "worker_config.json"}
"""What the file of each is called in examples and documents."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"

UNITS: Mapping[str, str] = {
    "_seconds": "s",
    "_minutes": "min",
    "_hours": "h",
    "_bytes": "bytes",
    "_gb": "GiB",
    "_pixels": "pixels",
    "_per_minute": "per min",
    "_threshold": "probes",
    "_concurrency": "calls",
    "_waiting": "calls",
    "_in_flight": "requests",
    "_connections": "connections",
    "_retries": "attempts",
    "max_output_side": "px",
    "burst": "requests",
    "keep": "files",
}
"""How the name of a number ends, and what is counted."""


class SideMissingError(Exception):
    """What reads this side's file is not installed here."""


@cache
def of(side: SideName) -> Schema:
    """All of one file, without references. Raises `SideMissingError`."""
    schema, effects, variables = _worker() if side == "worker" else _edge()
    whole = _plain(schema, schema.get("$defs", {}))
    for key, value in whole["properties"].items():
        value["x-takes-effect"] = effects[key]
    for name, node in leaves(whole):
        if number_in(node) and (unit := unit_of(name)):
            node["x-unit"] = unit
        if name in variables:
            node["x-environment"] = variables[name]
    return {"$schema": DIALECT, "title": FILES[side], **whole}


def leaves(node: Schema, prefix: str = "") -> Iterator[tuple[str, Schema]]:
    """Every key that is no section, with its part of the schema: `limits.max_pixels`, `api_keys[].name`."""
    for key, value in node.get("properties", {}).items():
        if "properties" in value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
            yield from leaves(value.get("items", {}), f"{prefix}{key}[].")


def sections(node: Schema) -> Iterator[tuple[str, Schema]]:
    """The keys at the top that are sections."""
    return ((key, value) for key, value in node["properties"].items() if "properties" in value)


def unit_of(name: str) -> str:
    """What a number called so counts; empty when nobody said."""
    return next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")


def number_in(node: Schema) -> bool:
    """Whether a key holds a number, or numbers by name."""
    inner = (*node.get("anyOf", ()), *filter(None, (node.get("additionalProperties"),)))
    return node.get("type") in {"integer", "number"} or any(
        isinstance(each, dict) and number_in(each) for each in inner
    )


def _edge() -> tuple[Schema, Mapping[str, Effect], Mapping[str, str]]:
    return Settings.model_json_schema(), TAKES_EFFECT, {}


def _worker() -> tuple[Schema, Mapping[str, Effect], Mapping[str, str]]:
    try:
        from worker import reload, settings  # noqa: PLC0415  (need numpy, which is not where only an edge runs)
    except ModuleNotFoundError as error:
        raise SideMissingError(f"{FILES['worker']}: install hairmesh[worker]: {error.name} is missing") from None
    fields = settings.Settings.model_fields
    effects: Mapping[str, Effect] = {key: "live" if key in reload.LIVE else "restart" for key in fields}
    variables = {".".join(keys): name for keys, name in settings.variables()}
    return settings.Settings.model_json_schema(), effects, variables


def _plain(node: Any, parts: Mapping[str, Schema]) -> Any:
    """`node` with what it refers to in its place; without titles, which repeat names, and defaults of sections, which
    repeat those of their keys.
    """
    if isinstance(node, list):
        return [_plain(each, parts) for each in node]
    if not isinstance(node, dict):
        return node
    if reference := node.get("$ref"):
        node = parts[reference.rpartition("/")[2]] | {key: value for key, value in node.items() if key != "$ref"}
    plain = {
        key: {name: _plain(each, parts) for name, each in value.items()}
        if key == "properties"
        else _plain(value, parts)
        for key, value in node.items()
        if key not in {"$defs", "title"}
    }
    if "properties" in plain:
        plain.pop("default", None)
    if plain.get("uniqueItems") and "default" in plain:  # a set has no order
        plain["default"] = sorted(plain["default"])
    return plain
