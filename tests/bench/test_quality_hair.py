"""Outlines of hair: what is committed, and how a mask is scored against them."""

from __future__ import annotations

import numpy as np
import pytest

from bench.portraits.hair_outlines import SECOND, HairOutline, overlap, read_outlines
from bench.portraits.pictures import path_of, read_photo

SQUARE = np.array([(10, 10), (49, 10), (49, 49), (10, 49)], dtype=np.float64)
HOLE = np.array([(20, 20), (29, 20), (29, 29), (20, 29)], dtype=np.float64)


def test_there_are_enough_outlines_and_half_of_them_are_loosely_framed() -> None:
    outlines = read_outlines()
    assert len({outline.picture for outline in outlines}) == len(outlines) >= 16
    loose = sum(outline.framing == "loose" for outline in outlines)
    assert loose >= len(outlines) / 2
    assert all(sum(map(len, outline.outer)) >= 40 for outline in outlines)


def test_outlines_lie_in_their_pictures() -> None:
    here = [outline for outline in read_outlines() if path_of(outline.picture).exists()]
    assert len(here) >= 15
    for outline in here[::6]:
        photo = read_photo(outline.picture)
        for polygon in (*outline.outer, *outline.holes):
            assert (polygon >= 0).all()
            assert (polygon <= [photo.width_px, photo.height_px]).all()
        assert 0.005 < outline.mask(photo.height_px, photo.width_px).mean() < 0.6


def test_second_outlines_are_other_outlines_of_the_same_hair() -> None:
    """Drawn anew, not copied, and in the same pixels: two eyes agree on most of a head of hair and never on all."""
    first = {outline.picture: outline for outline in read_outlines()}
    seconds = read_outlines(SECOND)
    assert len(seconds) >= 5
    for second in seconds:
        polygon = np.vstack([*first[second.picture].outer, *second.outer])
        width_px, height_px = polygon.max(axis=0).astype(int) + 1
        masks = (outline.mask(height_px, width_px) for outline in (first[second.picture], second))
        assert 0.85 < overlap(*masks) < 0.99, second.picture


def test_holes_are_no_hair() -> None:
    mask = HairOutline("any", "tight", (SQUARE,), (HOLE,)).mask(60, 60)
    assert mask.shape == (60, 60)
    assert mask[15, 15]
    assert not mask[25, 25]
    assert not mask[5, 5]
    assert mask.sum() == 40 * 40 - 10 * 10


def test_overlap_is_intersection_over_union() -> None:
    whole = HairOutline("any", "tight", (SQUARE,), ()).mask(60, 60)
    left = whole.copy()
    left[:, 30:] = False
    assert overlap(whole, whole) == 1
    assert overlap(whole, left) == pytest.approx(0.5)
    assert overlap(whole, ~whole) == 0
    assert overlap(np.zeros_like(whole), np.zeros_like(whole)) == 1
