"""One key of a configuration file in words, for people in a terminal and for docs/configuration.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from hairmesh.config_schema import FILES, Effect, Schema, SideName, leaves, number_in, of

EFFECTS: dict[Effect, str] = {"live": "in force at once", "restart": "in force after a restart"}
"""What becomes of a changed value while its server runs."""
_BOUNDS = {"exclusiveMinimum": "above", "minimum": "at least", "maximum": "at most"}
_TYPES = {"integer": "whole number", "number": "number", "boolean": "true or false", "null": "null", "object": "object"}
_PLACE_IN_LIST = re.compile(r"\.\d+(?=\.|$)")
MAX_GUESSES = 3
A_SLIP = 0.85
"""How alike two names are (`difflib`'s ratio) of which one is the other with a letter or two wrong."""


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
    bounds = [f"{words} {node[key]}" for key, words in _BOUNDS.items() if key in node]
    return ", ".join([_TYPES[node["type"]] + (f" ({unit})" if number and unit else ""), *bounds])


def _written(value: object) -> str:
    """As in the examples: whole seconds without a point."""
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)


def section_text(side: SideName, name: str, node: Schema) -> str:
    """A section and what it holds."""
    inner = "\n".join(f"  {name}.{key}" for key, _node in leaves(node))
    change = f"A change is {EFFECTS[node['x-takes-effect']]}."
    return f"{name} in {FILES[side]}: a section\n{change}\n\n{node['description']}\n\n{inner}"


def plain_name(place: str) -> str:
    """The key's name where a complaint gives a place: `api_keys.0.name` is `api_keys[].name`."""
    return _PLACE_IN_LIST.sub("[]", place)


def nearest(name: str, known: list[str]) -> list[str]:
    """Keys that may have been meant, by what is surest: the same word in another section, a slip in the whole name, a
    slip in the word itself, anything like it.
    """
    plain = plain_name(name)
    last = plain.rpartition(".")[2]
    by_word = {key.rpartition(".")[2]: key for key in reversed(known)}
    return (
        [key for key in known if key.rpartition(".")[2] == last]
        or get_close_matches(plain, known, n=1, cutoff=A_SLIP)
        or [by_word[word] for word in get_close_matches(last, by_word, n=MAX_GUESSES, cutoff=A_SLIP)]
        or get_close_matches(plain, known, n=MAX_GUESSES)
    )[:MAX_GUESSES]
