"""The trichion against two markings by eye."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.harness import console, table
from bench.portraits.hair_outlines import read_outlines
from bench.portraits.marks import MARKINGS, MENTON, Reference, offset, read_marks, references
from bench.portraits.pictures import path_of, read_photo
from bench.quality_figures import Figures
from bench.quality_figures.looker import Looker
from vision import hair_edge
from vision.errors import PhotoError
from vision.forehead_rays import ANGLES_DEG, MIDLINE, RADII, forehead_rays
from vision.hairline import find_hairline

TRIED_SEPARATIONS = (2.0, 3.0, 4.0, 5.0, 6.0)


def trichion(look: Looker) -> Figures:
    """Against the markings."""
    first, second = (read_marks(path.read_text().splitlines()) for path in MARKINGS)
    rows, errors, repeats = [], [], []
    scored = []
    for reference in references(first, second):
        facts = look.facts_of(reference.picture)
        _, landmarks, _ = look.parts_of(reference.picture)
        repeat = offset(reference, reference.apart, landmarks)
        repeats.append(abs(repeat.up_pct))
        sure = 100 * reference.sure_px / np.linalg.norm(landmarks.points[152] - reference.place)
        row = [Path(reference.picture).stem, f"{repeat.up_pct:+.2f}", f"±{sure:.1f}"]
        if isinstance(facts, PhotoError) or facts.hairline.trichion is None:
            said = facts.reason.value if isinstance(facts, PhotoError) else facts.hairline.status.value
            rows.append([*row, f"not scored: {said}", "", ""])
            continue
        found = np.array([facts.hairline.trichion.x_px, facts.hairline.trichion.y_px])
        error = offset(reference, found - reference.place, landmarks)
        errors.append(abs(error.up_pct))
        scored.append(reference)
        rows.append(
            [*row, f"{error.up_pct:+.2f}", f"{error.left_pct:+.2f}", f"{facts.hairline.trichion.confidence:.2f}"]
        )
    rows.append(["median of the absolute", f"{statistics.median(repeats):.2f}", "", f"{statistics.median(errors):.2f}"])
    rows.append(["worst", f"{max(repeats):.2f}", "", f"{max(errors):.2f}"])
    table(
        "Trichion, in % of the face height; up and left are positive",
        ["picture", "second marking", "sure", "error up", "error left", "confidence"],
        rows,
    )
    for marking in (first, second):
        unmarked = [
            f"{name.split('/')[-1]} ({mark.state})" for name, mark in marking.items() if mark.state != "observed"
        ]
        console.print(f"not observed in this marking: {', '.join(unmarked)}")
    held_out(look, scored)
    against_outlines(look)
    return {
        "trichion_n": len(errors),
        "trichion_median_pct": statistics.median(errors),
        "trichion_max_pct": max(errors),
        "marking_repeat_pct": statistics.median(repeats),
    }


def held_out(look: Looker, scored: Sequence[Reference]) -> None:
    """Every second picture chooses the constant, the others are scored with it; then the other way round."""

    def errors(pictures: Sequence[Reference], separation: float) -> list[float]:
        hair_edge.EQUAL_SEPARATION = separation
        found = []
        for reference in pictures:
            photo, landmarks, parsing = look.parts_of(reference.picture)
            if trichion := find_hairline(photo, landmarks, parsing).trichion:
                shift = np.array([trichion.x_px, trichion.y_px]) - reference.place
                found.append(abs(offset(reference, shift, landmarks).up_pct))
        return found

    chosen, unseen = [], []
    kept = hair_edge.EQUAL_SEPARATION
    try:
        for fold in (0, 1):
            best = min(TRIED_SEPARATIONS, key=lambda value: float(np.square(errors(scored[fold::2], value)).mean()))
            chosen.append(best)
            unseen += errors(scored[1 - fold :: 2], best)
    finally:
        hair_edge.EQUAL_SEPARATION = kept
    console.print(
        f"EQUAL_SEPARATION is {kept:g}; chosen on one half of the pictures it would be {chosen[0]:g} or {chosen[1]:g}, "
        f"and the error on the other half: median {statistics.median(unseen):.2f} %, worst {max(unseen):.2f} %"
    )


def against_outlines(look: Looker) -> None:
    """Where the midline enters the hair as outlined on other pictures of the studio's people."""
    errors = []
    for outline in read_outlines():
        if outline.framing != "loose" or not path_of(outline.picture).exists():
            continue
        photo, landmarks, parsing = look.parts(read_photo(outline.picture))
        rays = forehead_rays(landmarks)
        midline = rays.at(np.broadcast_to(RADII[:, None], (RADII.size, ANGLES_DEG.size)))[:, MIDLINE]
        x, y = np.rint(midline).astype(int).T
        entered = np.flatnonzero(outline.mask(photo.height_px, photo.width_px)[y, x])
        trichion = find_hairline(photo, landmarks, parsing).trichion
        if trichion is None or not entered.size:
            continue
        place = midline[entered[0]]
        found = np.array([trichion.x_px, trichion.y_px])
        height_px = float(np.linalg.norm(landmarks.points[MENTON] - place))
        errors.append(100 * float(np.linalg.norm(found - place)) / height_px)
    console.print(
        f"against the outlines of hair on {len(errors)} selfies and full-length pictures: "
        f"median {statistics.median(errors):.2f} %, worst {max(errors):.2f} %"
    )
