"""The two languages of answers, and which of them a client asked for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple


class Lang(StrEnum):
    """Language of messages and advice, and of labels in pictures."""

    ZH = "zh"
    EN = "en"


class Text(NamedTuple):
    """One sentence in both languages."""

    zh: str
    en: str

    def of(self, lang: Lang) -> str:
        """The sentence in `lang`."""
        return self.en if lang is Lang.EN else self.zh


OK = Text("ok", "ok")


_PRIMARY_TAGS: Mapping[str, Lang] = {"zh": Lang.ZH, "cmn": Lang.ZH, "yue": Lang.ZH, "en": Lang.EN}
"""What language tags begin with. Phones set to Cantonese say `yue-Hant-HK`; ours is the nearest they get."""
_UNSAID, _REFUSED = 0.0, -1.0


MAX_HEADER_CHARACTERS = 1024
"""Of a header that lists what a client would like: more than any has, and what stands behind them is not read. 31 KB
of commas would take 20 ms."""


@lru_cache(maxsize=256)  # few different headers, one look-up per request
def preferred_language(accept_language: str) -> Lang:
    """What the value of an `Accept-Language` header puts first; Chinese where it names neither, or refuses both.

    As RFC 9110 has it: `q=0` refuses, and `*` speaks of what is not named. Of equals the one named first.
    """
    weights: dict[Lang, float] = {}
    others = _UNSAID
    for item in accept_language[:MAX_HEADER_CHARACTERS].split(","):
        tag, _, parameters = item.partition(";")
        primary = tag.strip().lower().partition("-")[0]
        weight = quality(parameters) or _REFUSED
        if primary == "*":
            others = weight
        elif lang := _PRIMARY_TAGS.get(primary):
            weights[lang] = max(weight, weights.get(lang, _REFUSED))
    for lang in Lang:
        weights.setdefault(lang, others)
    best = max(weights, key=weights.__getitem__)
    return Lang.ZH if weights[best] == _REFUSED else best


def quality(parameters: str) -> float:
    """The weight (`q=`) among an item's parameters, 0 to 1, 1 where none is given; unreadable ones: not wanted."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0.0 <= weight <= 1.0 else 0.0
    return 1.0
