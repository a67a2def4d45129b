"""Trichia marked by eye, twice and blind to each other, before any detector had been run on the pictures."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vision.head import photo_axes
from vision.types import FaceLandmarks

MARKINGS = tuple(Path(__file__).parent / f"trichion_{marking}.tsv" for marking in "ab")
MENTON = 152
OBSERVED = "observed"


@dataclass(frozen=True)
class Mark:
    """One marking of one picture."""

    state: str
    place: NDArray[np.float64]
    """(2,), pixels; NaN where nothing was marked."""
    sure_px: float


@dataclass(frozen=True)
class Reference:
    """Where both markings saw a trichion: their mean."""

    picture: str
    place: NDArray[np.float64]
    apart: NDArray[np.float64]
    """(2,), from the first marking to the second."""
    sure_px: float


def read_marks(lines: Iterable[str]) -> dict[str, Mark]:
    """Marks by picture, from the lines of a file."""

    def number(text: str) -> float:
        return float(text) if text else float("nan")

    return {
        row["picture"]: Mark(
            state=row["state"],
            place=np.array([number(row["x_px"]), number(row["y_px"])]),
            sure_px=number(row["sure_px"]),
        )
        for row in csv.DictReader(lines, delimiter="\t")
    }


def references(first: dict[str, Mark], second: dict[str, Mark]) -> list[Reference]:
    """Pictures on which both markings say that the hairline is observed."""
    return [
        Reference(
            picture=picture,
            place=(mark.place + second[picture].place) / 2,
            apart=second[picture].place - mark.place,
            sure_px=max(mark.sure_px, second[picture].sure_px),
        )
        for picture, mark in first.items()
        if mark.state == OBSERVED == second[picture].state
    ]


@dataclass(frozen=True)
class Offset:
    """A displacement in percent of the face height (reference trichion to menton)."""

    up_pct: float
    """Along the face axis; positive towards the crown."""
    left_pct: float
    """Across it; positive to the subject's left."""


def offset(reference: Reference, displacement: NDArray[np.float64], landmarks: FaceLandmarks) -> Offset:
    """A displacement (2,) in pixels, along and across the face."""
    lateral, down = photo_axes(landmarks)
    height = float((landmarks.points[MENTON] - reference.place) @ down)
    return Offset(
        up_pct=-100 * float(displacement @ down) / height, left_pct=100 * float(displacement @ lateral) / height
    )
