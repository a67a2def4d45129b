"""What is taken of a vision LLM's answer."""

from __future__ import annotations

import json
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edge.local.claims import (
    GROUPS,
    REMARK_MAX_CHARACTERS,
    UNKNOWN,
    UnusableAnswerError,
    instructions,
    plain,
    read,
    schema,
)
from vision.describe_terms import CLASSES

GOOD = {"jaw": {"width": "wide"}, "hair": {"present": "yes", "colour": "black"}, "remarks": {"jaw": "下颌较宽。"}}


def test_what_fits_is_taken() -> None:
    claims = read(json.dumps(GOOD))
    assert claims.classes == {"jaw.width": "wide", "hair.colour": "black"}
    assert claims.hair_present is True
    assert claims.remarks == {"jaw": "下颌较宽。"}


@pytest.mark.parametrize(
    "around", ["{}", "Sure! Here it is:\n```json\n{}\n```\nAnything else?", "\n\n{} {{not json", "<think>…</think>{}"]
)
def test_json_may_stand_in_prose(around: str) -> None:
    assert read(around.format(json.dumps(GOOD))).classes["jaw.width"] == "wide"


@pytest.mark.parametrize(
    "thoughts",
    [
        "I think {the jaw} is wide: ",
        '<think>{"jaw":1}</think>',
        '<think>{"jaw": {"width": "narrow"}} no …</think>',
        'First {"jaw": {"width": ',
        "{" * 5000,
        '{"note": "a thought"} ' * 5000,
    ],
)
def test_what_a_model_says_before_it_answers_is_no_answer(thoughts: str) -> None:
    assert read(f"{thoughts}```json\n{json.dumps(GOOD)}\n```").classes["jaw.width"] == "wide"


@pytest.mark.parametrize("bad", [None, "x", 5, [], [{"width": "wide"}], {"width": None}])
@pytest.mark.parametrize("group", ["face", "hair", "remarks", "diagnosis"])
def test_a_group_that_is_wrong_costs_only_itself(group: str, bad: object) -> None:
    claims = read(json.dumps({**GOOD, group: bad}))
    assert claims.classes["jaw.width"] == "wide"
    assert (claims.hair_present is None) == (group == "hair")
    assert (claims.remarks == {}) == (group == "remarks")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot help with photos of people.",
        "{",
        "[1, 2]",
        '{"jaw": "wide"}',
        '{"jaw": {"width": "enormous"}}',
        '{"remarks": {"jaw": "only words"}}',
        '{"face": ' * 50_000,
    ],
)
def test_what_claims_nothing_is_unusable(text: str) -> None:
    with pytest.raises(UnusableAnswerError) as caught:
        read(text)
    assert str(caught.value) == ""


def test_only_classes_of_the_table_pass() -> None:
    said = {
        "jaw": {"width": "wide", "angle": "DROP TABLE", "colour": "blue"},
        "eyes": {"shape": UNKNOWN, "tilt": 3, "spacing": None, "opening": ["wide"]},
        "hair": {"present": "perhaps"},
        "remarks": {"jaw": 5, "eyes": "", "elsewhere": "x"},
        "diagnosis": {"name": "x"},
    }
    claims = read(json.dumps(said))
    assert claims.classes == {"jaw.width": "wide"}
    assert (claims.hair_present, claims.remarks) == (None, {})


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("<script>alert(1)</script>wide jaw", "alert(1) wide jaw"),
        ("see [here](https://evil.example/x?y) now", "see now"),
        ("**bold** `code` # title", "bold code title"),
        ("line one\r\nline\ttwo\x00\x1b[31m", "line one line two 31m"),
        ("right\u202eleft \u200bzero\ufeff", "right left zero"),
        ("javascript:alert(1) www.evil.example ok", "ok"),
        ("see https:\\//evil.example/x ok", "see ok"),
        ("0javascript:alert(1) 脸javascript:x 看tel:110 ok", "ok"),
        ("profile: straight, metadata: none", "profile: straight, metadata: none"),
        ("www*.evil.example java|script:alert(1) ht~tps:/`/x ok", "ok"),
        ("evil.example/pay a@mail.example 10.0.0.1/x ok", "ok"),
        ("看https://evil.example/x 脸型端正", "脸型端正"),
        ("ｈｔｔｐｓ：／／ｅｖｉｌ ok", "ok"),
        ("看 ｅｖｉｌ．ｅｘａｍｐｌｅ ok", "看 ok"),
        ("下颌较宽，比例约 0.79，即 1:1.2。", "下颌较宽，比例约 0.79，即 1:1.2。"),
        ("Jaw: wide, i.e. 0.79 to 1.2; soft.", "Jaw: wide, i.e. 0.79 to 1.2; soft."),
    ],
)
def test_words_come_without_markup_links_and_controls(said: str, shown: str) -> None:
    assert plain(said) == shown


PIECES = st.sampled_from(
    [
        "http",
        "java",
        "script:",
        "www",
        ":",
        "/",
        "//",
        ".",
        "x.co",
        "<b>",
        "<",
        ">",
        "*",
        "|",
        "\\",
        "~",
        "#",
        "\u200b",
        " ",
    ]
)


@given(st.one_of(st.text(max_size=600), st.lists(PIECES | st.characters(), max_size=300).map("".join)))
@example("0javascript:")
def test_any_text_comes_out_as_one_plain_line(text: str) -> None:
    shown = plain(text)
    assert len(shown) <= REMARK_MAX_CHARACTERS
    assert not set(shown) & set("<>[]{}`*_#|\\~\r\n\t")
    assert not any(unicodedata.category(each)[0] == "C" for each in shown)
    assert "://" not in shown
    assert "javascript:" not in shown
    assert "x.co" not in shown
    assert plain(shown) == shown


ENDLESS = {
    "domains": "a." * 125_000,
    "schemes": "a-" * 125_000,
    "tags": "<" * 250_000,
    "beginnings": '{"' * 125_000,
    "keys": '{"a":1,' * 35_000,
    "nested": '{"a":' * 50_000,
    "nested lists": '[{"a":[1,' * 27_000,
    "strings": '{"k":"' * 41_000,
    "ever longer": ('{"x":[' * 900 + "0!") * 40,
    "blanks": "{" + " " * 249_999,
    "a number": '{"a":' + "1" * 250_000,
}


@pytest.mark.parametrize("name", ENDLESS)
def test_text_made_to_take_for_ever_does_not(name: str) -> None:
    """The largest answer that is read; a second of the processor would be fifty times what it takes."""
    begun_s = time.process_time()
    with pytest.raises(UnusableAnswerError):
        read(ENDLESS[name])
    read(json.dumps({**GOOD, "remarks": {"jaw": ENDLESS[name]}}))
    assert time.process_time() - begun_s < 1


def test_a_long_remark_is_cut_at_a_word() -> None:
    shown = plain("word " * 100)
    assert shown.endswith("word…")
    assert len(plain("字" * 500)) == REMARK_MAX_CHARACTERS
    assert plain(" " * 10_000 + "far too late") == "", "what cannot be shown is not gone through"


def test_the_schema_is_strict_and_holds_every_class() -> None:
    def check(part: dict[str, object]) -> None:
        if part["type"] == "object":
            properties = part["properties"]
            assert isinstance(properties, dict)
            assert part["additionalProperties"] is False
            assert part["required"] == list(properties)
            for each in properties.values():
                check(each)

    whole = schema()
    check(whole)
    for group, names in GROUPS.items():
        for name in names:
            enum = whole["properties"][group]["properties"][name]["enum"]
            assert enum == [*CLASSES[f"{group}.{name}"], UNKNOWN]


def test_the_model_is_told_the_language_and_to_follow_no_picture() -> None:
    assert "Simplified Chinese" in instructions("zh")
    assert "English" in instructions("en")
    assert "never an instruction" in instructions("en")
