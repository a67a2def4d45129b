"""The continued forehead against heads of known shape."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.vision.designs.designed_faces import MM_PER_PX, facts_of
from tests.vision.measured_faces import straight
from vision.calls import DesignOptions, HairlineHeight, Style
from vision.designs import design_hairlines
from vision.face_points import MESH_POINTS
from vision.forehead_surface import ForeheadSurface, on_forehead
from vision.types import FaceLandmarks

HEADS_MM = [(75.0, 115.0, 95.0), (75.0, 100.0, 95.0), (70.0, 110.0, 90.0)]
"""Half-axes of ellipsoids about the height of the glabella: to the side, up, back."""
CELL_PX = 2


class Ellipsoid:
    """A head that looks straight ahead, in the place of a face's own."""

    def __init__(self, face: FaceLandmarks, half_axes_mm: tuple[float, float, float]) -> None:
        self.half_axes_px = np.array(half_axes_mm) / MM_PER_PX
        self.glabella = face.points[MESH_POINTS["glabella"]]

    def depth(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,), behind the glabella."""
        side, up, back = self.half_axes_px
        away = (points - self.glabella) / (side, up)
        return np.asarray(back * (1 - np.sqrt(np.clip(1 - (away**2).sum(axis=1), 1e-3, 1))), dtype=np.float64)

    def area_cm2(self, polygon: NDArray[np.float64]) -> float:
        """On the head's surface, cell by cell."""
        low = polygon.min(axis=0) - 4 * CELL_PX
        cells = np.ceil((np.ptp(polygon, axis=0) + 8 * CELL_PX) / CELL_PX).astype(int)
        inside = np.zeros(cells[::-1], dtype=np.uint8)
        cv2.fillPoly(inside, [np.rint((polygon - low) / CELL_PX).astype(np.int32)], 1)
        y, x = np.nonzero(inside)
        at = low + CELL_PX * np.column_stack([x, y])
        slopes = [(self.depth(at + step) - self.depth(at - step)) / 2 for step in ((1.0, 0.0), (0.0, 1.0))]
        stretched = np.sqrt(1 + slopes[0] ** 2 + slopes[1] ** 2)
        return float(stretched.sum()) * (CELL_PX * MM_PER_PX) ** 2 / 100


def with_head(face: FaceLandmarks, head: Ellipsoid) -> FaceLandmarks:
    """The face, as deep as that head is."""
    return replace(face, depth=head.depth(face.points))


@pytest.mark.parametrize("half_axes_mm", HEADS_MM)
def test_areas_are_those_of_the_head_within_their_interval(half_axes_mm: tuple[float, float, float]) -> None:
    face = straight()
    head = Ellipsoid(face, half_axes_mm)
    facts = facts_of(with_head(face, head), edge_sd_px=0.5)
    for design in design_hairlines(facts, DesignOptions(height=HairlineHeight.LOW)):
        truth = sum(head.area_cm2(region) for region in design.regions)
        assert design.area_cm2 is not None
        assert design.area_interval_cm2 is not None
        assert design.area_cm2 == pytest.approx(truth, rel=0.2)
        assert design.area_interval_cm2.low < truth < design.area_interval_cm2.high


def test_areas_are_not_all_too_small() -> None:
    """Over the heads they err to either side."""
    face = straight()
    errors = []
    for half_axes_mm in HEADS_MM:
        head = Ellipsoid(face, half_axes_mm)
        for design in design_hairlines(facts_of(with_head(face, head)), DesignOptions(styles=(Style.ROUND, Style.M))):
            assert design.area_cm2 is not None
            errors.append(design.area_cm2 / sum(head.area_cm2(region) for region in design.regions) - 1)
    assert abs(np.mean(errors)) < 0.1


def test_the_depth_beyond_the_mesh_is_the_heads() -> None:
    """Within 7 mm up to 60 mm above the glabella, where straight on it would be off by up to 15."""
    face = straight()
    for half_axes_mm in HEADS_MM:
        head = Ellipsoid(face, half_axes_mm)
        up_mm = np.arange(0.0, 61.0, 5.0)
        midline = head.glabella + np.column_stack([np.zeros_like(up_mm), -up_mm / MM_PER_PX])
        found = on_forehead(with_head(face, head), midline)[:, 2]
        np.testing.assert_allclose(found * MM_PER_PX, head.depth(midline) * MM_PER_PX, atol=7.0)


def test_a_place_on_the_surface_is_seen_where_it_is() -> None:
    surface = ForeheadSurface(straight())
    places = np.array([(-0.8, 0.4), (0.0, 1.4), (0.6, 1.1)])
    found = surface.at(places)
    np.testing.assert_allclose(surface.seen_at(found[:, :2]), found, atol=1e-6)
    np.testing.assert_allclose(surface.face_of(found), places)
