"""What other programs say, as it may be shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hairmesh.plain import printable


@pytest.mark.parametrize("text", ["", "dep_down:comfyui", "面部解析停住", "naïve – 12 µm", "😀", "\\x1b"])
def test_what_is_harmless_stays(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jx", r"\x1b[2Jx"),
        ("\x1b]52;c;ZXZpbA==\x07", r"\x1b]52;c;ZXZpbA==\x07"),
        ("one\ntwo\r\u2028three\x85", r"one\ntwo\r\u2028three\x85"),
        ("\x9b31m\x7f\0", r"\x9b31m\x7f\x00"),
        ("\u202egnp\u2066\u200b\ufeff", r"\u202egnp\u2066\u200b\ufeff"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_what_is_long_is_cut() -> None:
    assert printable("x" * 10, 10) == "x" * 10
    assert printable("x" * 11, 10) == "x" * 9 + "…"
    assert printable("\n" * 6, 10) == r"\n\n\n\n\…"
    assert len(printable("\x1b" * 10_000_000)) == 500


@given(st.text(), st.integers(1, 40))
def test_nothing_else_ever_gets_through(text: str, limit: int) -> None:
    shown = printable(text, limit)
    assert len(shown) <= limit
    assert not {unicodedata.category(one) for one in shown} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert printable(shown, limit) == shown
