"""Text of other programs, made harmless where it is taken in or shown."""

from __future__ import annotations

EVIDENCE_CHARACTERS = 500
"""What somebody says about himself: reasons, messages, complaints."""
NAME_CHARACTERS = 128
"""Identities, stages, keys."""


def printable(text: str, limit: int = EVIDENCE_CHARACTERS) -> str:
    r"""`text` as one line of at most `limit` characters that neither a terminal nor a reader of logs obeys.

    Control characters, line breaks, marks of direction, odd spaces and lone surrogates become escapes such as `\x1b`;
    what is too long ends in an ellipsis. Done twice it changes nothing more.
    """
    if len(text) <= limit and text.isprintable():
        return text
    shown = "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text[: limit + 1]
    )
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
