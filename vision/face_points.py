"""Anatomical points of one face: those of the mesh, and those where its hairline is seen.

Everything the measurements start from. Left and right are the subject's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vision.forehead_surface import on_forehead
from vision.head import GLABELLA, HeadAxes, Spatial, frontal_axes, spatial_points
from vision.types import FaceLandmarks, Hairline, HairlineState

MESH_POINTS: Mapping[str, int] = {
    "glabella": GLABELLA,
    "subnasale": 2,
    "pronasale": 4,
    "menton": 152,
    "right_zygion": 234,
    "left_zygion": 454,
    "right_gonion": 172,
    "left_gonion": 397,
    "right_temple": 127,
    "left_temple": 356,
    "right_brow_temple": 21,
    "left_brow_temple": 251,
    "right_exocanthion": 33,
    "left_exocanthion": 263,
    "right_endocanthion": 133,
    "left_endocanthion": 362,
    "right_pupil": 468,
    "left_pupil": 473,
    "right_alare": 64,
    "left_alare": 294,
    "right_cheilion": 61,
    "left_cheilion": 291,
    "right_brow": 105,
    "left_brow": 334,
}
"""Index in MediaPipe's mesh. Temples: the outline of the face at the height of the eyes, and at that of the brows.
Brows: the middle of the upper margin."""

HAIRLINE_REASONS: Mapping[HairlineState, str] = {
    HairlineState.OBSERVED: "HAIRLINE_NOT_SEEN",
    HairlineState.OCCLUDED: "HAIRLINE_OCCLUDED",
    HairlineState.HAT: "HAIRLINE_HAT",
    HairlineState.NONE: "HAIRLINE_NONE",
}
"""Why a point of the hairline is missing, by the state found there; where nothing was found, by that of the midline."""

SLOPE_REACH = 3
"""Points of the hairline to either side by which its slope is told."""
STEEPEST = 10.0


@dataclass(frozen=True, slots=True)
class FacePoints:
    """Points by name, in the photo's frame, with the axes to measure along."""

    axes: HeadAxes
    at: Mapping[str, Spatial]
    """(3,) each. Beside those of `MESH_POINTS`: `trichion`, and for each side `hairline` (straight above the brow),
    `recess` (the highest point of the hairline) and `recess_foot` (below it, level with the trichion)."""
    missing: Mapping[str, str]
    """Why a point is not there, by name."""
    edge_sd_px: float
    """How soft the hairline is."""
    slopes: Mapping[str, float]
    """How steeply the hairline runs where a point lies on it (rise per run), by name; where it is nearly upright, its
    height is hardly known."""
    eye_depth_px: float
    """Depth of the irises."""


def face_points(landmarks: FaceLandmarks, hairline: Hairline) -> FacePoints:
    """All points of one face; those the hairline does not show are in `missing`."""
    mesh = spatial_points(landmarks)
    axes = frontal_axes(landmarks.pose)
    at: dict[str, Spatial] = {name: mesh[index] for name, index in MESH_POINTS.items()}
    missing: dict[str, str] = {}
    slopes: dict[str, float] = {}
    line = _Line(landmarks, hairline, axes)
    if hairline.trichion is None:
        missing["trichion"] = HAIRLINE_REASONS[hairline.status]
    else:
        at["trichion"] = on_forehead(landmarks, np.array([[hairline.trichion.x_px, hairline.trichion.y_px]]))[0]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        above = line.above(at[f"{side}_brow"])
        if above is None:
            missing[f"{side}_hairline"] = line.reason_above(at[f"{side}_brow"])
        else:
            at[f"{side}_hairline"], slopes[f"{side}_hairline"] = above
        recess = None if "trichion" in missing else line.highest(at["trichion"], at[f"{side}_brow"], sign)
        if recess is None:
            why = missing.get("trichion") or missing.get(f"{side}_hairline") or line.reason_above(at[f"{side}_brow"])
            missing[f"{side}_recess"] = missing[f"{side}_recess_foot"] = why
        else:
            at[f"{side}_recess"] = recess
            rise = float((at["trichion"] - recess) @ axes.down)
            at[f"{side}_recess_foot"] = recess + rise * axes.down
    eyes = (mesh[MESH_POINTS["left_pupil"], 2] + mesh[MESH_POINTS["right_pupil"], 2]) / 2
    return FacePoints(axes, at, missing, hairline.edge_sd_px, slopes, float(eyes))


class _Line:
    """The hairline's polyline on the forehead."""

    def __init__(self, landmarks: FaceLandmarks, hairline: Hairline, axes: HeadAxes) -> None:
        places = np.array([(point.x_px, point.y_px) for point in hairline.points], dtype=np.float64).reshape(-1, 2)
        self.points = on_forehead(landmarks, places)
        self.states = [point.state for point in hairline.points]
        self.status = hairline.status
        self.seen: NDArray[np.bool_] = np.array([s is HairlineState.OBSERVED for s in self.states], dtype=bool)
        self.axes = axes

    def _crossing(self, at: Spatial) -> tuple[int, float] | None:
        """Segment, and place on it, where the line crosses the vertical above `at`."""
        across = (self.points - at) @ self.axes.lateral
        for i in range(len(across) - 1):
            if across[i] <= 0 < across[i + 1] and (at - self.points[i]) @ self.axes.down > 0:
                return i, float(-across[i] / (across[i + 1] - across[i]))
        return None

    def above(self, at: Spatial) -> tuple[Spatial, float] | None:
        """Where the observed line crosses the vertical above `at`, and its slope there; None where it is not seen."""
        crossing = self._crossing(at)
        if crossing is None:
            return None
        i, share = crossing
        if not (self.seen[i] and self.seen[i + 1]):
            return None
        found: Spatial = self.points[i] + share * (self.points[i + 1] - self.points[i])
        run = self.points[min(i + SLOPE_REACH, len(self.points) - 1)] - self.points[max(0, i + 1 - SLOPE_REACH)]
        along, rise = abs(float(run @ self.axes.lateral)), abs(float(run @ self.axes.down))
        return found, rise / max(along, rise / STEEPEST, 1e-9)

    def reason_above(self, at: Spatial) -> str:
        """Why the line is not seen above `at`."""
        crossing = self._crossing(at)
        if crossing is None:
            return HAIRLINE_REASONS[self.status]
        i, _ = crossing
        hidden = self.states[i] if not self.seen[i] else self.states[i + 1]
        return HAIRLINE_REASONS[hidden]

    def highest(self, trichion: Spatial, brow: Spatial, sign: float) -> Spatial | None:
        """The highest observed point on one side, at least level with the trichion.

        None where the line is not seen from the midline to above the brow.
        """
        outwards = sign * ((self.points - trichion) @ self.axes.lateral)
        reach = sign * float((brow - trichion) @ self.axes.lateral)
        within = (outwards > 0) & (outwards <= reach)
        if not within.any() or not self.seen[within].all() or not (self.seen & (outwards > reach)).any():
            return None
        side = self.points[(outwards > 0) & self.seen]
        rises = (trichion - side) @ self.axes.down
        best = int(np.argmax(rises))
        return side[best] if rises[best] > 0 else trichion
