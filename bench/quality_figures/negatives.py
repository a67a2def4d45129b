"""Pictures without a hairline, and selfies, which have one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import cv2

from bench.harness import console, table
from bench.portraits.invariance import apart
from bench.portraits.negatives import make_negatives
from bench.portraits.pictures import HIDDEN, STUDIO
from bench.quality_figures import Figures
from bench.quality_figures.looker import Looker
from vision.decode import decode
from vision.errors import PhotoError
from vision.types import Facts, Photo


def negatives(look: Looker, keep: Path | None) -> Figures:
    """Pictures that show no hairline; and selfies, which do."""
    rows, total, false = [], 0, 0

    def judge(name: str, said: Facts | PhotoError) -> None:
        nonlocal total, false
        total += 1
        observed = not isinstance(said, PhotoError) and said.hairline.trichion is not None
        false += observed
        answer = f"refused: {said.reason}" if isinstance(said, PhotoError) else said.hairline.status.value
        rows.append([name, answer, "FALSE" if observed else ""])

    for negative, rgb in make_negatives(cache(look.person)):
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(keep / f"{total:02}_{negative.name.replace(' ', '_')}.png"), rgb[:, :, ::-1])
        judge(f"{negative.name} ({negative.person})", look.facts(Photo(rgb, "PNG", 1)))
    for picture in HIDDEN:
        judge(picture, look.facts_of(picture))
    table("Pictures without a hairline", ["picture", "trichion", ""], rows)
    taken = list(selfies(look))
    seen = [said.hairline.status.value if isinstance(said, Facts) else said.reason.value for said in taken]
    console.print(f"selfies of ten people: {seen.count('observed')} of {len(seen)} observed")
    against_studio(look, taken)
    return {"negatives_n": total, "false_observed": false}


def selfies(look: Looker) -> Iterator[Facts | PhotoError]:
    """What the pipeline says of them."""
    for number in range(1, 11):
        path = files("openpeople") / "data" / "curated" / f"P{number:03}" / "assets" / "amateur_selfie.jpg"
        yield look.facts(decode(path.read_bytes()))


def against_studio(look: Looker, taken: Sequence[Facts | PhotoError]) -> None:
    """Selfies and studio portraits of the same people: other camera, distance and expression."""
    outside: dict[str, list[bool]] = {}
    for picture, selfie in zip(STUDIO, taken, strict=True):
        studio = look.facts_of(picture)
        if isinstance(studio, Facts) and isinstance(selfie, Facts):
            for name, far in apart(studio.measurements, selfie.measurements).items():
                outside.setdefault(name, []).append(far)
    total = [far for values in outside.values() for far in values]
    worst = sorted(outside.items(), key=lambda item: -sum(item[1]))[:8]
    console.print(
        f"selfies against studio portraits: {sum(total)} of {len(total)} mm values further apart than both intervals "
        f"without the population term; {', '.join(f'{name} {sum(far)} of {len(far)}' for name, far in worst)}"
    )
