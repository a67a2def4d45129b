"""One key of a configuration file in words, for people in a terminal and for docs/configuration.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from hairmesh.config_nodes import Schema, bounds, leaves, number_in
from hairmesh.config_schema import FILES, Effect, SideName, of

EFFECTS: dict[Effect, str] = {"live": "in force at once", "restart": "in force after a restart"}
"""What becomes of a changed value while its server runs."""
_TYPES = {"integer": "whole number", "number": "number", "boolean": "true or false", "null": "null", "object": "object"}


@dataclass(frozen=True, slots=True)
class Key:
    """What there is to say of one key."""

    side: SideName
    name: str
    """`health_check.cooldown_seconds`; of the objects in a list `api_keys[].name`."""
    kind: str
    """What may stand there, with unit and bounds."""
    default: str
    """As it would be written; empty where it must be given."""
    effect: Effect
    variable: str
    """Of the environment, where one overrides it; else empty."""
    meaning: str

    def text(self) -> str:
        """All of it, a few lines."""
        default = f"default {self.default}" if self.default else "must be given"
        variable = f"\nIn the environment: {self.variable}" if self.variable else ""
        return (
            f"{self.name} in {FILES[self.side]}\n{self.kind}; {default}\nA change is {EFFECTS[self.effect]}."
            f"{variable}\n\n{self.meaning}"
        )


def keys(side: SideName) -> Iterator[Key]:
    """Every key of a file, as it stands there. Raises `SideMissingError`."""
    whole = of(side)
    for name, node in leaves(whole):
        top = whole["properties"][re.split(r"[.\[]", name)[0]]
        yield Key(
            side,
            name,
            kind(node),
            _written(node["default"]) if "default" in node else "",
            top["x-takes-effect"],
            node.get("x-environment", ""),
            node.get("description", ""),
        )


def kind(node: Schema) -> str:
    """What may stand there: `number (s), above 0, or null`."""
    unit = node.get("x-unit", "")
    return ", or ".join(_one_kind(each, unit) for each in node.get("anyOf") or [node])


def _one_kind(node: Schema, unit: str) -> str:
    if "enum" in node:
        return "one of " + ", ".join(f"`{value}`" for value in node["enum"])
    if "const" in node:
        return f"`{node['const']}`"
    if "items" in node:
        inner = "objects" if "properties" in node["items"] else _one_kind(node["items"], unit).removeprefix("one of ")
        return f"list of {inner}{', not empty' if node.get('minItems') else ''}"
    if node.get("type") == "string":
        return "secret text" if node.get("writeOnly") else {"path": "path"}.get(node.get("format", ""), "text")
    if isinstance(node.get("additionalProperties"), dict) and number_in(node):
        return f"object of {_one_kind(node['additionalProperties'], unit)}"
    number = number_in(node)
    return ", ".join([_TYPES[node["type"]] + (f" ({unit})" if number and unit else ""), *bounds(node)])


def _written(value: object) -> str:
    """As in the examples: whole seconds without a point."""
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)


def section_text(side: SideName, name: str, node: Schema) -> str:
    """A section and what it holds."""
    inner = "\n".join(f"  {name}.{key}" for key, _node in leaves(node))
    change = f"A change is {EFFECTS[node['x-takes-effect']]}."
    return f"{name} in {FILES[side]}: a section\n{change}\n\n{node['description']}\n\n{inner}"
