"""Writes hairmesh/client/answers.py: what each call answers, as dataclasses, out of the edge's OpenAPI document.

`--check` only compares. Exit status 1 with --check: the module is stale.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MODULE = ROOT / "hairmesh" / "client" / "answers.py"
sys.path.insert(0, str(ROOT))

from edge.openapi import components  # noqa: E402  (the tree first)

Schema = Mapping[str, Any]

ANSWERS = (
    "MeasureResponse",
    "DesignHairlinesResponse",
    "SegmentFaceResponse",
    "GrownStyles",
    "GrownRegion",
    "FaceFeatures",
    "SpecialPoints",
)
"""What the calls answer; the rest follows from these."""
RENAMED = {"Warning": "PhotoWarning"}
"""Names that Python has for something else."""
INSIDE = {
    "FaceFeatures.features": "Feature",
    "FaceFeatures.disagreements": "Disagreement",
    "FaceFeatures.warnings": "Warning",
    "SpecialPoints.points": "Point",
}
"""Names of objects that the document describes where they stand."""
OF_MANY: Mapping[str, str] = {
    "Feature": "One feature of the face.",
    "Feature.value": "Its class, a stable name; null: not known.",
}
"""What the document says of each by itself, and the class says of all."""
PLAIN = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"}
WIDTH = 110
HEAD = '''"""What each call answers, as the contract's OpenAPI document has it. Made by scripts/client_answers.py.

Left and right are the subject's. Pixels are those of the upright photo. Names of classes and reasons are strings: a
newer service may know more of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
'''


class Writer:
    """Collects the classes that the answers lead to."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._classes: dict[str, str] = {}

    def module(self) -> str:
        """The whole text, unformatted."""
        for name in ANSWERS:
            self._add(name, self._schemas[name])
        return "\n\n".join([HEAD, *(self._classes[name] for name in sorted(self._classes))])

    def _add(self, name: str, schema: Schema) -> str:
        """The class of an object, made when it is met first; its Python name."""
        python = RENAMED.get(name, name)
        if python not in self._classes:
            self._classes[python] = ""
            self._classes[python] = "\n".join(self._lines(name, python, schema))
        return python

    def _lines(self, name: str, python: str, schema: Schema) -> Iterator[str]:
        if set(schema["required"]) != set(schema["properties"]):
            raise ValueError(f"{name}: a field that may be left out has no place in a dataclass without defaults")
        yield "@dataclass(frozen=True, slots=True)"
        yield f"class {python}:"
        yield from _docstring(OF_MANY.get(name) or schema["description"])
        for field, inside in schema["properties"].items():
            yield f"    {field}: {self._type(inside, f'{name}.{field}')}"
            if "description" in inside:
                yield from _docstring(OF_MANY.get(f"{name}.{field}") or inside["description"])

    def _type(self, schema: Schema, where: str) -> str:
        match schema:
            case {"$ref": str(reference)}:
                name = reference.rpartition("/")[2]
                python = self._add(name, self._schemas[name])
            case {"anyOf": [inside, {"type": "null"}]}:
                python = f"{self._type(inside, where)} | None"
            case {"type": "array", "items": items}:
                python = f"Sequence[{self._type(items, where)}]"
            case {"type": "object", "additionalProperties": {} as inside}:
                python = f"Mapping[str, {self._type(inside, where)}]"
            case {"type": "object", "properties": properties} if where not in INSIDE or _of_like_things(properties):
                (kind,) = {self._type(each, where) for each in properties.values()}
                python = f"Mapping[str, {kind}]"
            case {"type": "object"}:
                name = INSIDE[where]
                python = self._add(name, self._schemas.get(name, schema))
            case _:
                python = PLAIN[schema["type"]]
        return python


def _of_like_things(properties: Mapping[str, Schema]) -> bool:
    """Whether an object is a mapping written out: what it holds is in turn made of objects."""
    return all(each.get("type") == "object" for each in properties.values())


def _docstring(text: str) -> Iterator[str]:
    """Lines of at most `WIDTH` characters, indented."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) + 1 > WIDTH:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    yield f'    """{lines[0]}' + ('"""' if len(lines) == 1 else "")
    yield from (f"    {line}" for line in lines[1:])
    if len(lines) > 1:
        yield '    """'


def render() -> str:
    """The module as it should be."""
    text = Writer(components()["schemas"]).module()
    ruff = str(Path(sys.executable).with_name("ruff"))
    command = [ruff, "format", "--quiet", f"--config={ROOT / 'pyproject.toml'}", f"--stdin-filename={MODULE}", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)  # noqa: S603  (ours)
    return done.stdout


def main() -> None:
    """Write the module, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    module = render()
    if not parser.parse_args().check:
        MODULE.write_text(module)
    elif module != MODULE.read_text():
        raise SystemExit(f"{MODULE.relative_to(ROOT)} is stale: run scripts/client_answers.py")


if __name__ == "__main__":
    main()
