"""Pictures without a visible hairline, made from studio portraits of `openpeople` when they are needed.

Deterministic: each has its own seed. Nothing of them is stored in the project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bench.portraits.bald import make_bald, shave
from bench.portraits.bangs import Bangs, add_bangs
from bench.portraits.face import Face, Image
from bench.portraits.hands import Hand, lay_hand
from bench.portraits.hats import Hat, HatKind, put_on
from vision.types import RgbImage

SIDE_PX = 1024
"""Portraits are reduced to this side first: the edits are drawn for it."""

Edit = Callable[[Face, np.random.Generator], Image]


@dataclass(frozen=True)
class Negative:
    """One picture to make."""

    name: str
    person: str
    edit: Edit


def _bangs(cut: Bangs) -> Edit:
    return lambda face, rng: add_bangs(face, cut, rng)


def _hat(kind: HatKind, colour: tuple[float, float, float], edge: float, tilt: float = 0.0) -> Edit:
    return lambda face, rng: put_on(face, Hat(kind, colour, edge, tilt), rng)


def _hand(hand: Hand) -> Edit:
    return lambda face, rng: lay_hand(face, hand, rng)


def _shaven(darkening: float) -> Edit:
    return lambda face, rng: shave(face, darkening, rng)


NEGATIVES: tuple[Negative, ...] = (
    Negative("bangs over the brows", "P003", _bangs(Bangs(end=0.02))),
    Negative("bangs to the brows", "P009", _bangs(Bangs(end=0.06))),
    Negative("bangs above the brows", "P006", _bangs(Bangs(end=0.10))),
    Negative("short bangs", "P010", _bangs(Bangs(end=0.14))),
    Negative("thin bangs", "P003", _bangs(Bangs(end=0.07, gap=0.55))),
    Negative("slanted bangs", "P008", _bangs(Bangs(end=0.06, slant=0.25, sweep=0.10))),
    Negative("swept fringe", "P005", _bangs(Bangs(end=0.11, slant=0.30, sweep=0.14))),
    Negative("curly bangs", "P002", _bangs(Bangs(end=0.06, wave=0.020))),
    Negative("curly bangs, short", "P007", _bangs(Bangs(end=0.11, wave=0.025))),
    Negative("beanie, red", "P003", _hat(HatKind.BEANIE, (0.55, 0.12, 0.12), 0.14)),
    Negative("beanie, blue, low", "P009", _hat(HatKind.BEANIE, (0.25, 0.30, 0.40), 0.10, 0.05)),
    Negative("beanie, black", "P005", _hat(HatKind.BEANIE, (0.12, 0.11, 0.11), 0.18)),
    Negative("beanie, brown, high", "P008", _hat(HatKind.BEANIE, (0.35, 0.24, 0.15), 0.25)),
    Negative("beanie, pale", "P007", _hat(HatKind.BEANIE, (0.75, 0.70, 0.60), 0.20)),
    Negative("cap, blue", "P008", _hat(HatKind.CAP, (0.15, 0.20, 0.35), 0.20)),
    Negative("cap, grey, high", "P010", _hat(HatKind.CAP, (0.70, 0.70, 0.68), 0.24, -0.03)),
    Negative("bald, bearded", "P005", make_bald),
    Negative("bald, dark skin", "P006", make_bald),
    Negative("bald, fair skin", "P010", make_bald),
    Negative("shaved, bearded", "P005", _shaven(0.28)),
    Negative("shaved, dark skin", "P006", _shaven(0.24)),
    Negative("shaved, fair skin", "P010", _shaven(0.24)),
    Negative("hand, rising", "P003", _hand(Hand(0.25, 12))),
    Negative("hand from the left", "P005", _hand(Hand(0.22, -8, from_left=True))),
    Negative("hand, steep", "P008", _hand(Hand(0.30, 25))),
    Negative("hand, low", "P009", _hand(Hand(0.20, 5))),
)


def make_negatives(face_of: Callable[[str], Face]) -> Iterator[tuple[Negative, RgbImage]]:
    """Every negative with its picture; `face_of` gives the reduced portrait of a person."""
    for seed, negative in enumerate(NEGATIVES):
        picture = negative.edit(face_of(negative.person), np.random.default_rng(seed))
        yield negative, (np.clip(picture, 0, 1) * 255).round().astype(np.uint8)
