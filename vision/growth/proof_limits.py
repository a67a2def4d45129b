"""What the numbers of a proof may be, and why: the one table by which a grown picture is shown or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Limit(NamedTuple):
    """One number of the evidence and what it may be."""

    low: float
    high: float
    why: str


ANY = float("inf")

PROOF_LIMITS: Mapping[str, Limit] = {
    "outside_changed_pixels": Limit(0, 0, "the photo itself is never touched"),
    "hair_share": Limit(0.75, 1.0, "a face parser takes it for hair; a forehead as it was has next to none"),
    "edge_mm": Limit(0.0, 2.0, "hair begins where it was asked for, along every free border"),
    "edge_width_mm": Limit(0.8, ANY, "a hairline fades over 2 to 5 mm; what was cut out has less than half of one"),
    "edge_raggedness": Limit(
        0.5, 3.0, "in that of the own hairline: own hair has 0.6 to 1.4, a feathered cut 0.2 to 0.6"
    ),
    "delta_e": Limit(
        0.0, 8.0, "own hair has up to 6 at its worst depth, half transparent hair mostly 10, another colour 20"
    ),
    "bared_mm2": Limit(0.0, 8.0, "own hair leaves nothing bare that was covered but partings, which are narrow"),
    "fineness": Limit(-0.2, 0.45, "octaves: own hair has -0.12 to 0.27, blurred by 1.5 px mostly -0.5 to -0.3"),
    "contrast": Limit(-0.8, 0.8, "octaves: own hair has -0.6 to 0.5, flat paint less than -1.2"),
    "locks": Limit(-0.8, 1.0, "octaves: own hair has -0.4 to 0.5, noise -2.5 to -0.7, flat paint less than -1"),
    "coherence": Limit(0.5, 1.35, "own hair has 0.5 to 1.3, noise mostly less than 0.4, a barcode up to 1.9"),
    "turned_deg": Limit(
        -ANY, 30.0, "own hair has up to 22, in one case of 35 31; a barcode mostly 38 to 67, upside down 18 to 45"
    ),
    "orientation_ratio": Limit(
        0.0, 1.9, "own hair has 0.6 to 1.5, perfectly combed hair up to 1.8, a barcode 2 and more"
    ),
    "gradient_ratio": Limit(0.0, 1.5, "own hair has 0.3 to 1.3, flat paint 1.7 and more"),
    "foreign": Limit(
        0.0, 1.25, "in distances between own pieces: own hair has 0.5 to 1.1, noise of any spectrum 1.3 and more"
    ),
    "repetition": Limit(0.0, 0.8, "own hair has 0.1 to 0.7, a tile mostly 1"),
    "copied": Limit(0.0, 0.7, "own hair drawn to its place has up to 0.5, the photo shifted 0.85 and more"),
}
"""By the names of `vision.growth.proof.Evidence.measured`. "Own hair" is the person's own, drawn to the front by hand.
Set with ten studio portraits and eight smaller photos in view, that of `foreign` on five of the portraits alone;
`bench/growth.py` prints what they let pass on all portraits and on photos on which none was set. In regions of less
than half a square centimetre fakes may pass."""


class Broken(NamedTuple):
    """A number that forbids to show a picture."""

    name: str
    value: float
    limit: Limit

    def __str__(self) -> str:
        """For the log."""
        return f"{self.name} {self.value:.2f}, may be {self.limit.low:g} to {self.limit.high:g}"


def broken_by(measured: Mapping[str, float | None]) -> Broken | None:
    """The first number that breaks its limit; a number that is not known breaks none."""
    for name, limit in PROOF_LIMITS.items():
        value = measured[name]
        if value is not None and not limit.low <= value <= limit.high:
            return Broken(name, value, limit)
    return None
