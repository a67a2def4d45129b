"""Rendered eyes of known size."""

from __future__ import annotations

import statistics

from bench.harness import console, table
from bench.portraits.eyes import looks, render
from bench.quality_figures import Figures
from vision.scale import IRIS_MM, find_scale


def irises() -> Figures:
    """Rendered eyes."""
    by_size: dict[float, list[tuple[float, float]]] = {}
    for seed, look in enumerate(looks()):
        drawn = render(look, seed)
        scale = find_scale(drawn.photo, drawn.landmarks, drawn.parsing, None)
        if scale.mm_per_px is None:
            console.print(f"no fit: {look}")
            continue
        error = 100 * (scale.mm_per_px * look.diameter_px / IRIS_MM - 1)
        by_size.setdefault(look.diameter_px, []).append((error, scale.causes.same_person_pct))
    rows = [
        [
            f"{size:.0f} px",
            str(len(found)),
            f"{statistics.median(abs(error) for error, _ in found):.2f}",
            f"{max(abs(error) for error, _ in found):.2f}",
            f"{statistics.median(half for _, half in found):.2f}",
            str(sum(abs(error) > half for error, half in found)),
        ]
        for size, found in sorted(by_size.items())
    ]
    table(
        "Rendered irises of known size: error of the scale in %",
        ["iris", "pictures", "median", "worst", "half-width", "outside"],
        rows,
    )
    return {}
