"""What the page is made of: its words in both languages, its table of calls, nothing that a browser would refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from hair.analysis.v1 import growth_pb2, measure_pb2

import edge.console
from edge.console.calls import described_calls
from edge.parameters import PartName, StyleName
from edge.pool.endpoint import State
from edge.pool.events import Cause
from tests.edge.rest import Rest
from vision.describe_terms import CLASSES
from vision.types import Stage

WEB = Path(edge.console.__file__).with_name("web")
WORDS: dict[str, dict[str, str]] = json.loads((WEB / "words.json").read_text())
SCRIPTS = {path.name: path.read_text() for path in WEB.glob("*.js")}
ALL = "\n".join(SCRIPTS.values())


def test_every_word_is_there_in_both_languages_with_the_same_gaps() -> None:
    for key, words in WORDS.items():
        assert set(words) == {"zh", "en"}, key
        assert all(words.values()), key
        gaps = {language: set(re.findall(r"\{(\w+)\}", text)) for language, text in words.items()}
        assert gaps["zh"] == gaps["en"], key


def test_scripts_say_only_what_is_in_the_table_and_the_table_holds_nothing_else() -> None:
    said = set(re.findall(r'say\(\s*"([^"]+)"', ALL)) | set(re.findall(r'key: "([^"]+)"', ALL))
    written = set(re.findall(r'"([a-z_]+(?:\.[\w/-]+)+)"', ALL)) | said
    families = set(re.findall(r'named\(\s*"(\w+)"', ALL)) | set(re.findall(r"`([\w.]+)\.\$\{", ALL))
    assert {key for key in said if "." in key or key in WORDS} <= set(WORDS)
    unsaid = {key for key in WORDS if key not in written}
    assert not [key for key in unsaid if not any(key.startswith(f"{family}.") for family in families)]


def leaves(message: Any, path: str = "") -> list[str]:
    """Names of measurements as the page's table has them."""
    found: list[str] = []
    for field in message.fields:
        inside = field.message_type
        here = f"{path}.{field.name}" if path else field.name
        found += [here] if inside.name == "Measurement" else leaves(inside, here)
    return found


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("state", list(State)),
        ("cause", list(Cause)),
        ("do", list(Cause)),
        ("stage", list(Stage)),
        ("measure", leaves(measure_pb2.Measurements.DESCRIPTOR)),
        ("proof", [field.name for field in growth_pb2.GrowthProof.DESCRIPTOR.fields]),
        ("value", [*get_args(StyleName), *get_args(PartName)]),
        ("group", sorted({name.partition(".")[0] for name in CLASSES})),
        ("feature", sorted({name.partition(".")[2] for name in CLASSES})),
        ("param", [name for call in described_calls() for name in (each["name"] for each in call["parameters"])]),
        ("call", [call["route"] for call in described_calls()]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_stable_name_has_its_words(family: str, names: list[str]) -> None:
    assert names
    missing = [name for name in names if f"{family}.{name}" not in WORDS]
    assert not missing


async def test_the_page_knows_every_call_and_its_parameters(rest: Rest) -> None:
    document = (await rest.client.get("/openapi.json")).json()
    paths = {
        path: entry["post"] for path, entry in document["paths"].items() if path.startswith("/api/") and "post" in entry
    }
    described = {call["route"]: call for call in described_calls()}
    assert set(described) == set(paths)
    for path, call in described.items():
        form = paths[path]["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"]
        assert {each["name"] for each in call["parameters"]} | set(call["files"]) == set(form), path
        assert call["slow"] is ("text/event-stream" in paths[path]["responses"]["200"]["content"])


def test_limits_and_values_of_a_parameter_are_those_it_is_checked_by() -> None:
    parameters = {each["name"]: each for call in described_calls() for each in call["parameters"]}
    assert parameters["pupillary_distance_mm"] == {
        "name": "pupillary_distance_mm", "default": None, "kind": "number", "min": 40, "max": 80,
    }  # fmt: skip
    assert parameters["annotate"] == {"name": "annotate", "default": True, "kind": "boolean"}
    assert parameters["styles"]["kind"] == "choices"
    assert parameters["sex"] == {"name": "sex", "default": None, "kind": "choice", "values": ["female", "male"]}
    assert parameters["region"]["kind"] == "region"


def test_nothing_is_fetched_from_elsewhere_and_nothing_is_read_as_markup() -> None:
    for path in WEB.iterdir():
        text = path.read_text()
        hosts = set(re.findall(r"https?://([\w.-]+)", text)) - {"www.w3.org"}  # a name of SVG, not an address
        assert not hosts, path.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            path.name
        )
    page = (WEB / "index.html").read_text()
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*src=)", page)
