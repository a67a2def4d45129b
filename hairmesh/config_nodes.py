"""Parts of a configuration's JSON Schema, whichever side's: its keys, what their numbers count, which one was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

Schema = dict[str, Any]
"""One JSON Schema, or a part of one."""

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

_BOUNDS = {"exclusiveMinimum": "above", "minimum": "at least", "maximum": "at most"}
MAX_GUESSES = 3
A_SLIP = 0.85
"""How alike two names are (`difflib`'s ratio) of which one is the other with a letter or two wrong."""
_PLACE_IN_LIST = re.compile(r"\.\d+(?=\.|$)")


def plain(schema: Schema) -> Schema:
    """`schema` without references. Also without titles, which repeat names, and defaults of sections, which repeat
    those of their keys.
    """
    whole: Schema = _plain(schema, schema.get("$defs", {}))
    for name, node in leaves(whole):
        if number_in(node) and (unit := unit_of(name)):
            node["x-unit"] = unit
    return whole


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


def names(node: Schema) -> list[str]:
    """Of all sections and keys."""
    return [name for name, _node in (*sections(node), *leaves(node))]


def unit_of(name: str) -> str:
    """What a number called so counts; empty when nobody said."""
    return next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")


def number_in(node: Schema) -> bool:
    """Whether a key holds a number, or numbers by name."""
    inner = (*node.get("anyOf", ()), *filter(None, (node.get("additionalProperties"),)))
    return node.get("type") in {"integer", "number"} or any(
        isinstance(each, dict) and number_in(each) for each in inner
    )


def bounds(node: Schema) -> list[str]:
    """Of a number, in words: `above 0`, `at most 60`."""
    numbers = ((words, node[key]) for key, words in _BOUNDS.items() if key in node)
    return [f"{words} {int(number) if number == int(number) else number}" for words, number in numbers]


def at(node: Schema, place: Iterable[int | str]) -> Schema | None:
    """The part of `node` for what stands at a place of a file, such as `("api_keys", 0, "name")`; with `x-unit` where
    it is one of several numbers. None where nothing is known of it.
    """
    for part in place:
        unit = {"x-unit": node["x-unit"]} if "x-unit" in node else {}
        inner = node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part)
        inner = inner or node.get("additionalProperties")
        if not isinstance(inner, dict):
            return None
        node = unit | inner
    return node


def plain_name(place: str) -> str:
    """The key's name where a complaint gives a place: `api_keys.0.name` is `api_keys[].name`."""
    return _PLACE_IN_LIST.sub("[]", place)


def nearest(name: str, known: list[str]) -> list[str]:
    """Keys that may have been meant, by what is surest: the same word in another section, a slip in the whole name, a
    slip in the word itself, anything like it.
    """
    wanted = plain_name(name)
    last = wanted.rpartition(".")[2]
    by_word = {key.rpartition(".")[2]: key for key in reversed(known)}
    return (
        [key for key in known if key.rpartition(".")[2] == last]
        or get_close_matches(wanted, known, n=1, cutoff=A_SLIP)
        or [by_word[word] for word in get_close_matches(last, by_word, n=MAX_GUESSES, cutoff=A_SLIP)]
        or get_close_matches(wanted, known, n=MAX_GUESSES)
    )[:MAX_GUESSES]


def meant(name: str, known: list[str]) -> str:
    """The question behind a complaint about a key that there is not; empty where nothing is like it."""
    guesses = nearest(name, known)
    return f"; did you mean {' or '.join(guesses)}?" if guesses else ""


def _plain(node: Any, parts: Mapping[str, Schema]) -> Any:
    if isinstance(node, list):
        return [_plain(each, parts) for each in node]
    if not isinstance(node, dict):
        return node
    if reference := node.get("$ref"):
        node = parts[reference.rpartition("/")[2]] | {key: value for key, value in node.items() if key != "$ref"}
    bare = {
        key: {name: _plain(each, parts) for name, each in value.items()}
        if key == "properties"
        else _plain(value, parts)
        for key, value in node.items()
        if key not in {"$defs", "title"}
    }
    if "properties" in bare:
        bare.pop("default", None)
    if bare.get("uniqueItems") and "default" in bare:  # a set has no order
        bare["default"] = sorted(bare["default"])
    return bare
