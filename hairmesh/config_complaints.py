"""What is wrong with a configuration, in words for whoever wrote it: out of the schema, and never with a value.

Edge and worker tell it alike, wherever they tell it: at the start, by `--check`, in the log of a running one.
"""

from __future__ import annotations

from collections.abc import Mapping

from hairmesh.config_nodes import Schema, at, bounds, meant, names

NO_SUCH_KEY = "there is no such key"
_WORDS = {
    "extra_forbidden": NO_SUCH_KEY,
    "unexpected_keyword_argument": NO_SUCH_KEY,
    "missing": "must be given",
    "json_invalid": "not JSON that could be a configuration: half of a character, or nested too deeply",
}
"""By pydantic's type of error."""
_OWN_WORDS = frozenset({"value_error", "assertion_error"})
"""Types of error whose message is ours."""
_OUT_OF_BOUNDS = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number"})
"""Types of error of a number that is written as numbers are."""
UNITS_IN_WORDS: Mapping[str, str] = {
    "s": "seconds",
    "min": "minutes",
    "h": "hours",
    "px": "pixels",
    "per min": "requests per minute",
}
"""Of `hairmesh.config_nodes.UNITS`, those that are no words by themselves."""
PATTERNS: Mapping[str, str] = {
    "^[0-9a-f]{64}$": "the 64 hexadecimal digits of a SHA-256, small letters",
    "^[0-9a-fA-F]{64}$": "the 64 hexadecimal digits of a SHA-256",
    "^[A-Za-z0-9._-]{1,64}$": "1 to 64 of A-Z a-z 0-9 . _ -",
}
"""What texts of a pattern are."""
_MARKS: Mapping[str, str] = {"accept_passwords": "worker", "shared_password": "edge", "workers": "edge"}
"""Keys that only one of the files has, and cannot do without."""


def marked_for(content: Mapping[str, object]) -> set[str]:
    """Whose configuration it is by keys that only the one or the other has: `edge`, `worker`, both or none."""
    return {side for key, side in _MARKS.items() if key in content}


def wrong_side(side: str, content: Mapping[str, object]) -> str:
    """What to say where the other side's file was given to `side`; empty where it was not."""
    if marked_for(content) != ({"edge", "worker"} - {side}):
        return ""
    return {
        "edge": "this is a worker's configuration, and an edge's is wanted: worker and edge have a file each",
        "worker": "this is an edge's configuration, and a worker's is wanted: edge and worker have a file each",
    }[side]


def in_words(schema: Schema, kind: str, place: tuple[int | str, ...], message: str) -> str:
    """One complaint of pydantic's (its type, place and message) in ours, without the place; `schema` is of the whole
    file, without references.
    """
    if kind in _OWN_WORDS:
        return message.removeprefix("Value error, ")
    if words := _WORDS.get(kind):
        where = ".".join(map(str, place))
        return words + (meant(where, names(schema)) if words == NO_SUCH_KEY else "")
    if node := at(schema, place):
        return f"must be {wanted(node, written=kind not in _OUT_OF_BOUNDS)}"
    return message.replace("Input should be", "must be")


def wanted(node: Schema, *, written: bool = True) -> str:
    """What has to stand there, and how it is written: `a number of seconds, above 0, without quotes or unit`."""
    unit = node.get("x-unit", "")
    return ", or ".join(_one(each, unit, written=written) for each in node.get("anyOf") or [node])


def _one(node: Schema, unit: str, *, written: bool) -> str:
    if "enum" in node:
        return f"one of {', '.join(map(str, node['enum']))}"
    kind = node.get("type")
    if kind in {"number", "integer"}:
        counted = f" of {UNITS_IN_WORDS.get(unit, unit)}" if unit else ""
        how = ["without quotes or unit"] if written else []
        return ", ".join([f"a {'whole ' if kind == 'integer' else ''}number{counted}", *bounds(node), *how])
    if kind == "string":
        return PATTERNS.get(node.get("pattern", "")) or f"text{_length(node)}, in quotes"
    if kind == "array":
        return 'a list of objects: [{"...": ...}]' if "properties" in node["items"] else 'a list: ["...", "..."]'
    return {"boolean": "true or false, without quotes", "null": "null"}.get(str(kind), 'an object: {"...": ...}')


def _length(node: Schema) -> str:
    least, most = node.get("minLength"), node.get("maxLength")
    return f" of {least or 0} to {most} characters" if most else ""
