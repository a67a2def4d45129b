"""Which language a client asked for, and words for every reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.errors import FRAMEWORK_REASONS, TABLE, ApiError
from edge.messages import Lang, preferred_language


@pytest.mark.parametrize(
    ("header", "lang"),
    [
        ("", "zh"),
        ("*", "zh"),
        ("fr", "zh"),
        ("zh", "zh"),
        ("zh-Hans-CN", "zh"),
        ("en", "en"),
        ("EN-us", "en"),
        ("en;q=0", "zh"),
        ("en;q=0.3, zh;q=0.8", "zh"),
        ("zh;q=0.3, en;q=0.8", "en"),
        ("en, zh", "en"),
        ("zh, en", "zh"),
        ("fr, en;q=0.5", "en"),
        ("en;q=x", "zh"),
        ("en; q = 0.9 , zh;q=0.1", "en"),
        ("en;q=5, zh;q=0.1", "zh"),
        ("english", "zh"),
        ("zh-TW", "zh"),
        ("zh-Hant-HK, en;q=0.9", "zh"),
        ("yue-Hant-HK, en-HK;q=0.9", "zh"),
        ("en-GB, zh-TW;q=0.9", "en"),
        ("zh-TW;q=0.5, zh;q=0.9, en;q=0.7", "zh"),
        ("zh;q=0", "en"),
        ("zh;q=0, *", "en"),
        ("zh;q=0.0, fr", "en"),
        ("en;q=0, *;q=0.1", "zh"),
        ("en;q=0, zh;q=0", "zh"),
        ("en;q=0.5, *", "zh"),
        ("en;q=0.5, *;q=0.1", "en"),
        ("*, en", "en"),
        ("*;q=0", "zh"),
        ("*;q=0, en;q=0.001", "en"),
        ("zh;q=0.8, *;q=0.9", "en"),
        (",, ;q=1, -, en", "en"),
        ("en;q=1;q=0", "en"),
        ("en;q=nan, zh;q=0.1", "zh"),
        ("en;q=-1", "zh"),
        ("en;level=1;q=0.2, zh;q=0.1", "en"),
    ],
)
def test_preferred_language(header: str, lang: str) -> None:
    assert preferred_language(header) == lang


@given(st.text(max_size=60))
def test_any_header_gives_a_language(header: str) -> None:
    assert preferred_language(header) in Lang


@pytest.mark.parametrize("reason", sorted(TABLE))
def test_every_reason_has_words_in_both_languages(reason: str) -> None:
    row = TABLE[reason]
    error = ApiError(reason)
    for text in filter(None, (row.message, error.advice)):
        assert text.zh
        assert max(text.en) < "\u0100"  # no Chinese in the English
        assert max(text.zh) > "\u4e00"


@pytest.mark.parametrize("reason", sorted(TABLE))
def test_status_fits_code(reason: str) -> None:
    row = TABLE[reason]
    allowed = {1004: {413}, 1007: {503, 504}, 1008: {400, 401, 404, 405, 408, 409, 415, 429, 431}}.get(row.code, {400})
    assert row.http_status in allowed
    if row.code == 1007:
        assert row.retry_after_s
    if row.code <= 1006:
        assert row.advice


def test_the_framework_speaks_our_words() -> None:
    for http_status, reason in FRAMEWORK_REASONS.items():
        assert (TABLE[reason].http_status, TABLE[reason].code) == (http_status, 1008)


@pytest.mark.parametrize("reason", ["glare", "A B", "", "X" * 65, "SÜD"])
def test_a_name_that_is_no_reason_is_not_passed_on(reason: str) -> None:
    assert ApiError(reason).reason == "INPUT_FAILED"


@pytest.mark.parametrize(("said_s", "told"), [(0.0, 1), (7.2, 8), (float("nan"), 5), (float("inf"), 5), (None, 5)])
def test_retry_after_is_whole_seconds(said_s: float | None, told: int) -> None:
    assert ApiError("BUSY", retry_after_s=said_s).retry_after_s == told


def test_no_retry_is_promised_where_it_does_not_help() -> None:
    assert ApiError("YAW", retry_after_s=3).retry_after_s is None
