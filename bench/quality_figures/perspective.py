"""The same faces from near and far: when the warning fires, what the correction leaves of the error in ratios, and
whether the intervals of the mm values hold what the face shows from 1.5 m.
"""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np
from numpy.typing import NDArray

from bench.harness import console, table
from bench.portraits.pictures import ADULTS, STUDIO
from bench.portraits.rendered_face import TAKEN_AT_MM, seen_from
from bench.quality_figures import Figures
from bench.quality_figures.looker import Looker
from vision.errors import PhotoError
from vision.perspective import NEAR_MM, camera_mm
from vision.types import Facts, Measurement, Photo

DISTANCES_MM = (250.0, 350.0, 500.0, 700.0, 1000.0, TAKEN_AT_MM)
FROM_NEAR_MM, FROM_FAR_MM = 350.0, 1000.0
"""At the one and nearer the warning ought to fire, from the other on it ought not to."""
SIDE_PX = 1024
LIMIT_PCT = 5.0
RATIOS: Mapping[str, tuple[str, ...]] = {
    "face height / width": ("face_height",),
    "jaw / face width": ("jaw_width",),
    "thirds": ("thirds.upper", "thirds.middle", "thirds.lower"),
    "inner fifths": ("fifths.right_eye", "fifths.middle", "fifths.left_eye"),
    "outer fifths": ("fifths.right_outer", "fifths.left_outer"),
}
INNER = tuple(kind for kind in RATIOS if kind != "outer fifths")
"""The outer fifths end where the face bends away; they are told apart."""


_Held = dict[tuple[str, bool], list[bool]]
"""Whether intervals hold, by kind of length and by whether the photo has the warning."""


def perspective(look: Looker) -> Figures:
    """On studio portraits, which set the table of `vision.perspective`, and on others, which did not."""
    shown: dict[str, list[NDArray[np.float64]]] = {kind: [] for kind in RATIOS}
    corrected: dict[str, list[NDArray[np.float64]]] = {kind: [] for kind in RATIOS}
    told: list[list[float]] = []
    held: _Held = {}
    for picture in (*STUDIO, *ADULTS):
        if (row := _rendered(look, picture)) is None:
            continue
        told.append([camera_mm(facts.landmarks) for facts in row])
        for facts in row[:-1]:
            _add_held(held, facts, row[-1])
        for kind, names in RATIOS.items():
            for name in names:
                values = [facts.measurements[name] for facts in row]
                if (truth := values[-1].ratio) is not None:
                    shown[kind].append(_errors_pct([value.ratio for value in values], truth))
                    corrected[kind].append(_errors_pct(_corrected(values), truth))
    near = np.array(told) < NEAR_MM
    rows = [["warned", *(f"{warned.sum()} of {len(warned)}" for warned in near.T)]]
    for kind in RATIOS:
        rows += [
            [f"{kind}, {which}", *(f"{np.nanmedian(column):.1f} / {np.nanmax(column):.1f}" for column in errors.T)]
            for which, errors in (("shown", np.array(shown[kind])), ("corrected", np.array(corrected[kind])))
        ]
    table(
        "Renderings from known distances: errors of ratios against those from 1.5 m, median / worst in %",
        ["", *(f"{distance / 1000:g} m" for distance in DISTANCES_MM)],
        rows,
    )
    inner = np.concatenate([np.array(corrected[kind]) for kind in INNER])[:, :-1]
    outer = np.array(corrected["outer fifths"])[:, :-1]
    for name, errors in (("inner", inner), ("outer fifths", outer)):
        within = f"{_within_pct(errors):.1f} % of {np.isfinite(errors).sum()}"
        console.print(f"corrected ratios within {LIMIT_PCT:g} %: {name} {within}")
    for (kind, warned), holds in sorted(held.items()):
        warning = "with" if warned else "without"
        console.print(f"the interval holds what 1.5 m shows, {kind}, {warning} the warning: {_share(holds)}")
    distance = np.array(DISTANCES_MM)
    return {
        "perspective_n": len(told) * len(DISTANCES_MM),
        "perspective_missed": int((~near[:, distance <= FROM_NEAR_MM]).sum()),
        "perspective_false": int(near[:, distance >= FROM_FAR_MM].sum()),
        "perspective_ratio_median_pct": float(np.nanmedian(inner)),
        "perspective_ratio_p95_pct": float(np.nanquantile(inner, 0.95)),
        "perspective_inner_within_pct": _within_pct(inner),
        "perspective_outer_within_pct": _within_pct(outer),
    }


def _rendered(look: Looker, picture: str) -> list[Facts] | None:
    """Facts of one face from every distance; None where a rendering is refused."""
    before = look.facts_of(picture)
    if isinstance(before, PhotoError):
        console.print(f"{picture} was refused: {before}")
        return None
    rgb = before.photo.rgb
    shrink = min(1.0, SIDE_PX / max(rgb.shape[:2]))
    small = np.asarray(cv2.resize(rgb, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    facts = look.facts(Photo(small, "PNG", 1))
    if isinstance(facts, PhotoError) or facts.scale.mm_per_px is None:
        console.print(f"{picture} has no scale")
        return None
    row = []
    for distance_mm in DISTANCES_MM:
        drawn = seen_from(small, facts.landmarks, facts.scale.mm_per_px, distance_mm)
        said = look.facts(Photo(drawn, "PNG", 1))
        if isinstance(said, PhotoError):
            console.print(f"{picture} from {distance_mm:g} mm was refused: {said}")
            return None
        row.append(said)
    return row


def _add_held(held: _Held, near: Facts, portrait: Facts) -> None:
    """Whether each interval of the one, without what both photos share, holds the mm value of the other."""
    warned = camera_mm(near.landmarks) < NEAR_MM
    for name, value in near.measurements.items():
        interval, truth_mm = value.interval_same_person_mm, portrait.measurements[name].mm
        if interval is not None and truth_mm is not None:
            kind = "outer fifths" if name in RATIOS["outer fifths"] else "all others"
            held.setdefault((kind, warned), []).append(interval.low <= truth_mm <= interval.high)


def _share(holds: list[bool]) -> str:
    return f"{100 * np.mean(holds):.1f} % of {len(holds)}"


def _within_pct(errors_pct: NDArray[np.float64]) -> float:
    """Share of those that were measured which are within `LIMIT_PCT`, in percent."""
    return float(100 * np.mean(errors_pct[np.isfinite(errors_pct)] <= LIMIT_PCT))


def _corrected(values: list[Measurement]) -> list[float | None]:
    return [value.ratio_perspective_corrected for value in values]


def _errors_pct(ratios: list[float | None], truth: float) -> NDArray[np.float64]:
    """(distances,); NaN where a ratio was not measured."""
    return np.array([np.nan if ratio is None else 100 * abs(ratio / truth - 1) for ratio in ratios])
