"""The two languages of answers, and which of them a client asked for."""

from __future__ import annotations

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


@lru_cache(maxsize=256)  # few different headers, one look-up per request
def preferred_language(accept_language: str) -> Lang:
    """Chinese, unless the value of an `Accept-Language` header puts English first."""
    best = {Lang.ZH: 0.0, Lang.EN: 0.0}
    first_named: Lang | None = None
    for item in accept_language.split(","):
        tag, _, parameters = item.partition(";")
        primary = tag.strip().lower().partition("-")[0]
        if primary not in best:
            continue
        lang = Lang(primary)
        first_named = first_named or lang
        best[lang] = max(best[lang], quality(parameters))
    if best[Lang.EN] == best[Lang.ZH]:
        return first_named if first_named and best[first_named] > 0 else Lang.ZH
    return max(best, key=best.__getitem__)


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
