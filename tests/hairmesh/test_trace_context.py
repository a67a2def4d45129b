"""W3C Trace Context, by its own examples."""

from __future__ import annotations

import re

import pytest

from hairmesh.trace_context import TraceContext

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("header", "sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"cc-{TRACE}-{SPAN}-01-what-a-later-version-adds", True),
        (f"cc-{TRACE}-{SPAN}-01", True),
    ],
)
def test_a_valid_one_is_taken(header: str, sampled: bool) -> None:
    assert TraceContext.read([header]) == TraceContext(TRACE, SPAN, sampled)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [""],
        ["x"],
        [f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01"],
        [f"ff-{TRACE}-{SPAN}-01"],
        [f"00-{TRACE}-{SPAN}-01-more"],
        [f"00-{TRACE}-{SPAN}-01 "],
        [f" 00-{TRACE}-{SPAN}-01"],
        [f"00-{TRACE}-{SPAN}-01\n"],
        [f"cc-{TRACE}-{SPAN}-01more"],
        [f"00-{TRACE.upper()}-{SPAN}-01"],
        [f"00-{'0' * 32}-{SPAN}-01"],
        [f"00-{TRACE}-{'0' * 16}-01"],
        [f"00-{TRACE[1:]}-{SPAN}-01"],
        [f"00-{TRACE}-{SPAN}-1"],
        [f"00-{TRACE}-{SPAN}"],
        [f"0-{TRACE}-{SPAN}-01"],
        ["00-" + "g" * 32 + f"-{SPAN}-01"],
        ["00-" + "٠" * 32 + f"-{SPAN}-01"],
    ],
)
def test_anything_else_is_not(headers: list[str]) -> None:
    assert TraceContext.read(headers) is None


def test_new_ones_are_valid_and_differ() -> None:
    made = [TraceContext.new(sampled=number % 2 == 0) for number in range(200)]
    assert len({each.trace_id for each in made}) == len({each.span_id for each in made}) == 200
    for each in made:
        assert TraceContext.read([each.header]) == each
        child = each.child()
        assert (child.trace_id, child.sampled) == (each.trace_id, each.sampled)
        assert child.span_id != each.span_id
        assert re.fullmatch(r"[0-9a-f]{16}", child.span_id)
