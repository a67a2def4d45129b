"""The same faces smaller, compressed, turned, cropped, mirrored: how far every number of every call moves."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import numpy as np

from bench.harness import console, table
from bench.portraits.invariance import NEAR_ZERO_MM, Movement, movements, widest
from bench.portraits.numbers import CALLS, moved_pct
from bench.portraits.pictures import ADULTS, STUDIO
from bench.portraits.variants import MIRROR, VARIANTS
from bench.quality_figures import Figures
from bench.quality_figures.looker import Looker
from vision.errors import PhotoError
from vision.types import Measurement, Photo


def invariance(look: Looker) -> Figures:
    """On portraits of adults."""
    by_variant: dict[str, list[tuple[str, Movement]]] = {name: [] for name in VARIANTS}
    by_call: dict[str, list[float]] = {name: [] for name in CALLS}
    gone: list[str] = []
    on_studio: list[Mapping[str, Measurement]] = []
    for picture in (*STUDIO, *ADULTS):
        before = look.facts_of(picture)
        if isinstance(before, PhotoError):
            console.print(f"{picture} was refused: {before}")
            continue
        numbers = {name: call.numbers(before) for name, call in CALLS.items()}
        for name, change in VARIANTS.items():
            after = look.facts(Photo(change(before.photo.rgb, before.landmarks.box), "PNG", 1))
            if isinstance(after, PhotoError):
                console.print(f"{picture}, {name}: refused, {after}")
                continue
            moved, lost = movements(before.measurements, after.measurements, mirrored=name == MIRROR)
            by_variant[name] += [(picture, movement) for movement in moved]
            gone += [f"{picture}, {name}: {measurement}" for measurement in lost]
            for call_name, call in CALLS.items():
                changes = moved_pct(call, numbers[call_name], call.numbers(after), mirrored=name == MIRROR)
                by_call[call_name] += changes.values()
        if picture in STUDIO:
            on_studio.append(before.measurements)
    everything = [movement for in_variant in by_variant.values() for _, movement in in_variant]
    rows = [
        [
            name,
            str(len(in_variant)),
            f"{statistics.median(movement.pct for _, movement in in_variant):.2f}",
            f"{np.quantile([movement.pct for _, movement in in_variant], 0.95):.2f}",
            str(sum(movement.outside for _, movement in in_variant)),
        ]
        for name, in_variant in by_variant.items()
    ]
    table(
        "Movement of the mm values of the measure call, in %", ["variant", "values", "median", "95 %", "outside"], rows
    )
    for name, in_variant in by_variant.items():
        for picture, movement in in_variant:
            if movement.outside:
                console.print(
                    f"outside: {picture}, {name}: {movement.name} {movement.before_mm:.1f} ± "
                    f"{movement.half_width_mm:.1f} mm, then {movement.after_mm:.1f}"
                )
    console.print(f"measured before and not any more: {'; '.join(gone) or 'none'}")
    widths = widest(on_studio)
    table(
        f"Widest half-width of the whole interval on studio portraits (%: of values from {NEAR_ZERO_MM:g} mm on)",
        ["measurement", "%", "mm", "in interval_max_pct"],
        [
            [name, f"{width.pct:.1f}", f"{width.mm:.1f}", "no" if width.left_out else ""]
            for name, width in widths.items()
        ],
    )
    table(
        "Movement of all numbers of a call, in %",
        ["call", "values", "median", "95 %"],
        [
            [name, str(len(moved)), f"{statistics.median(moved):.2f}", f"{np.quantile(moved, 0.95):.2f}"]
            for name, moved in by_call.items()
        ],
    )
    return {
        "invariance_median_pct": statistics.median(moved for of_call in by_call.values() for moved in of_call),
        "invariance_mm_median_pct": statistics.median(movement.pct for movement in everything),
        "outside_interval": sum(movement.outside for movement in everything),
        "interval_max_pct": max(width.pct for width in widths.values() if not width.left_out),
        "interval_max_all_pct": max(width.pct for width in widths.values()),
    }
