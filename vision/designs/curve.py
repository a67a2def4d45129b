"""From a shape of the catalogue to a smooth curve in face coordinates (`vision.designs.forehead`).

A uniform cubic B-spline over the shape's control points: continuous to the second derivative, never further out than
its control polygon. Both halves are the same shape; each ends in the temporal hair of its own side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vision.designs.catalogue import Shape
from vision.types import Points

STEPS = 16
"""Points to each piece of the spline: less than 1 mm apart on a face."""
USUAL_END_WIDTH = 1.3
"""Where the catalogue's shapes end: the median of portraits whose temples are seen."""
BASIS = np.array([[1, 4, 1, 0], [-3, 0, 3, 0], [3, -6, 3, 0], [-1, 3, -3, 1]]) / 6
"""Of the uniform cubic B-spline: powers of the parameter to four control points."""


@dataclass(frozen=True, slots=True)
class TempleEnd:
    """Where a design ends in the temporal hair of one side, in face coordinates."""

    width: float
    """Distance from the midline."""
    height: float


def design_curve(shape: Shape, mid_height: float, right: TempleEnd, left: TempleEnd) -> Points:
    """(N, 2), the curve from the subject's right (negative) to the left, through (0, `mid_height`) in its middle."""
    halves = [_control_points(shape, mid_height, end) for end in (right, left)]
    return spline(np.vstack([halves[0][:0:-1] * (-1, 1), halves[1]]))


def _control_points(shape: Shape, mid_height: float, end: TempleEnd) -> Points:
    """(N, 2), half of the control polygon, from the midline outwards."""
    front_height = mid_height + shape.peak_depth
    rise = front_height - end.height

    def point(width: float, share: float) -> Points:
        return np.array([width, front_height + share * rise])

    # Narrow temples leave less room beyond the canthus vertical.
    room = min(1.0, (end.width - 1) / (USUAL_END_WIDTH - 1))
    front = point(shape.front_width, shape.front_rise)
    temple = point(1 + (shape.temple_width - 1) * room, shape.temple_rise)
    foot = np.array([end.width, end.height])
    limb = temple + (foot - temple) / 2
    across = np.array([foot[1] - temple[1], temple[0] - foot[0]]) / np.linalg.norm(foot - temple)
    limb = limb - across * shape.limb_bulge * room
    before = temple + (front - temple) * shape.temple_rounding
    after = temple + (limb - temple) * shape.temple_rounding
    inner = point(shape.peak_width or shape.front_width / 2, shape.front_rise / 4)
    # The spline's middle is two thirds this control point's, one third its neighbours'.
    middle = np.array([0.0, 1.5 * mid_height - 0.5 * inner[1]])
    return np.vstack([middle, inner, front, before, after, limb, foot])


def spline(control: Points) -> Points:
    """(N, 2), the uniform cubic B-spline over control points (M, 2); begins and ends in the first and the last."""
    first, last = 2 * control[0] - control[1], 2 * control[-1] - control[-2]
    padded = np.vstack([first, control, last])
    t = np.arange(STEPS)[:, None] / STEPS
    weights = t ** np.arange(4) @ BASIS
    pieces = [weights @ padded[i : i + 4] for i in range(len(padded) - 3)]
    return np.vstack([*pieces, control[-1:]])
