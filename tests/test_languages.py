"""Words for people stand in pairs, Chinese and English, in a few tables; nowhere else is there any Chinese to read."""

from __future__ import annotations

import ast
import json
import re
import string
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from edge.words import STYLES

ROOT = Path(__file__).parent.parent
PACKAGES = ("edge", "hairmesh", "vision", "worker")
_CHINESE = re.compile("[\u3400-\u9fff\u3001-\u303f\uff01-\uff5e]")
"""Characters, and punctuation as wide as they are."""
_CONSOLE_WORDS = ROOT / "edge" / "console" / "web" / "words.json"

WITHOUT_A_PAIR: Mapping[str, str] = {
    "edge/monitor.py": "the contract has these messages in Chinese only",
    "edge/openapi_calls.py": "三庭五眼, the name of the thing, in an English summary",
    "edge/local/openapi.py": "an example of what a model says",
    "edge/console/web/index.html": "what stands there before any script runs, in both languages at once",
    "edge/console/web/words.js": "what stands between the items of a list",
    "edge/console/web/words.json": "pairs, checked below",
}
"""Files with Chinese that is not one half of a pair."""

Pair = tuple[str, str]
TO_THE_OTHER: Pair = ("English", "中文")
"""The console's switch names the language it leads to."""


def _sources() -> Iterator[tuple[str, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def _documentation(tree: ast.Module) -> set[int]:
    """Ids of the strings that are expressions of their own: nobody is shown them."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _calls(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The two halves of every pair."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("Text" | "Words"), [ast.Constant() as zh, ast.Constant() as en], []):
                yield zh, en


def _pairs() -> dict[str, Pair]:
    """By where it stands: every pair there is."""
    found: dict[str, Pair] = {}
    for name, tree in _sources():
        for zh, en in _calls(tree):
            found[f"{name}:{zh.lineno}:{zh.col_offset}"] = ast.literal_eval(zh), ast.literal_eval(en)
    for key, pair in json.loads(_CONSOLE_WORDS.read_text()).items():
        assert set(pair) == {"zh", "en"}, key
        found[f"words.json:{key}"] = pair["zh"], pair["en"]
    return found


PAIRS = _pairs()


def test_chinese_stands_in_pairs_alone() -> None:
    alone = set()
    for name, tree in _sources():
        halves = {id(zh) for zh, _en in _calls(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CHINESE.search(node.value):
                alone |= set() if id(node) in halves | _documentation(tree) else {name}
    for path in (ROOT / "edge" / "console" / "web").rglob("*"):
        if path.suffix in {".js", ".html", ".css", ".json"} and _CHINESE.search(path.read_text()):
            alone.add(str(path.relative_to(ROOT)))
    assert alone == set(WITHOUT_A_PAIR)


def _wrong(good: Callable[[str, str], bool]) -> dict[str, Pair]:
    """The pairs that are not."""
    return {where: pair for where, pair in PAIRS.items() if not good(*pair)}


def test_no_half_is_missing() -> None:
    assert len(PAIRS) > 500
    assert _wrong(lambda zh, en: zh == zh.strip() != "" and en.strip() != "") == {}


def test_both_halves_have_the_same_filled_in_and_say_the_same_numbers() -> None:
    def numbers(text: str) -> list[str]:
        return sorted(re.findall(r"\d+", text))

    assert _wrong(lambda zh, en: _fields(zh) == _fields(en) and numbers(zh) == numbers(en)) == {}


def test_each_half_is_in_its_language() -> None:
    def good(zh: str, en: str) -> bool:
        translated = _CHINESE.search(zh) or not re.search("[A-Za-z]{3}", en)
        return bool(translated) and not _CHINESE.search(en)

    assert set(_wrong(good).values()) == {TO_THE_OTHER}


def test_chinese_has_its_own_punctuation() -> None:
    assert _wrong(lambda zh, _en: not re.search("[\u3400-\u9fff][,;:?!]|[,;?!][\u3400-\u9fff]", zh)) == {}


def _fields(text: str) -> list[str]:
    return sorted(name for _text, name, _format, _conversion in string.Formatter().parse(text) if name is not None)


def test_the_console_calls_a_style_what_answers_and_pictures_call_it() -> None:
    for style, text in STYLES.items():
        zh, en = PAIRS[f"words.json:value.{style}"]
        assert (zh, en) == (text.zh, text.en[0].lower() + text.en[1:] if style != "m" else text.en)
