"""The hair that is there, as a design meets it: the present hairline in polar face coordinates about the glabella."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vision.designs.forehead import Forehead, polar
from vision.head import Array
from vision.types import Facts, HairlineState, Points

MAX_GAP_DEG = 6.0
"""The line is not guessed over a wider gap between two points where it was seen; they lie 2 to 3 degrees apart."""
LOWER = 0.3
"""The temporal hair goes on straight down from the lowest point where it was seen, so far."""
KNOWN_STATES = frozenset({HairlineState.OBSERVED, HairlineState.NONE})
"""Of the trichion: beside bangs or under a hat, what is seen of a line is not told from their edge."""


@dataclass(frozen=True, slots=True)
class PresentLine:
    """Where hair begins, ray by ray; on a bald head where the scalp that the photo shows ends.

    Arrays (N,), ordered by angle; empty where nothing is known.
    """

    angle_deg: Array
    radius: Array
    is_hair: NDArray[np.bool_]
    """Whether hair begins there; else only the photo's view of the scalp ends."""
    points: Points
    """(N, 2), the same in face coordinates."""
    mid_height: float | None
    """Of the trichion above the glabella; None unless observed."""
    edge_sd: float
    """Standard deviation of the line's place."""

    def radius_at(self, angle_deg: Array) -> Array:
        """(M,), NaN where the line is not known."""
        return self._between(angle_deg, self.radius)

    def hair_at(self, angle_deg: Array) -> NDArray[np.bool_]:
        """(M,), whether hair begins there; False where nothing is known."""
        found: NDArray[np.bool_] = self._between(angle_deg, self.is_hair.astype(np.float64)) == 1.0
        return found

    def width_at(self, height: float, side: float) -> float | None:
        """Distance of the hair from the midline at a height above the glabella; None where it is not seen.

        `side` is 1 for the subject's left, -1 for the right.
        """
        beside = self.is_hair & (side * self.points[:, 0] > 0)
        widths, heights = np.abs(self.points[beside, 0]), self.points[beside, 1]
        if not beside.any() or not heights.min() - LOWER <= height <= heights.max():
            return None
        order = np.argsort(heights)
        return float(np.interp(height, heights[order], widths[order]))

    def _between(self, angle_deg: Array, values: Array) -> Array:
        if self.angle_deg.size < 2:
            return np.full(angle_deg.shape, np.nan)
        after = np.clip(np.searchsorted(self.angle_deg, angle_deg), 1, self.angle_deg.size - 1)
        left, right = self.angle_deg[after - 1], self.angle_deg[after]
        inside = (left <= angle_deg) & (angle_deg <= right) & (right - left <= MAX_GAP_DEG)
        return np.where(inside, np.interp(angle_deg, self.angle_deg, values), np.nan)


def present_line(facts: Facts, forehead: Forehead) -> PresentLine:
    """What the photo shows of the present hair."""
    hairline = facts.hairline
    known = [point for point in hairline.points if point.state in KNOWN_STATES and hairline.status in KNOWN_STATES]
    places = np.array([(point.x_px, point.y_px) for point in known], dtype=np.float64).reshape(-1, 2)
    points = forehead.to_face(places)
    angle_deg, radius = polar(points)
    order = np.argsort(angle_deg, kind="stable")
    trichion = hairline.trichion
    return PresentLine(
        angle_deg=angle_deg[order],
        radius=radius[order],
        is_hair=np.array([point.state is HairlineState.OBSERVED for point in known], dtype=bool)[order],
        points=points[order],
        mid_height=None
        if trichion is None
        else float(forehead.to_face(np.array([[trichion.x_px, trichion.y_px]]))[0, 1]),
        edge_sd=hairline.edge_sd_px / forehead.unit_px,
    )
