"""Designs on faces: where they lie, what they fill, and that neither hangs on how the photo was taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.vision.designs.designed_faces import MM_PER_PX, facts_of, full, receded, without_scale
from tests.vision.measured_faces import laid, mirrored, scale_of, straight, turned
from vision.calls import DesignOptions, HairlineDesign, HairlineHeight, Sex, Style
from vision.designs import design_hairlines
from vision.designs.area import Z95, Region, find_regions, surface_mm2
from vision.designs.forehead import Forehead, polar
from vision.designs.present import present_line
from vision.face_points import MESH_POINTS
from vision.forehead_surface import MODEL_SD
from vision.types import Facts, HairlineState, PhotoWarning, Points

MALE = DesignOptions(sex=Sex.MALE)


def designed(facts: Facts, style: Style = Style.ROUND, options: DesignOptions = MALE) -> HairlineDesign:
    (design,) = design_hairlines(facts, replace(options, styles=(style,)))
    return design


def hairline_of(facts: Facts) -> Points:
    return np.array([(point.x_px, point.y_px) for point in facts.hairline.points])


def shoelace(polygon: Points) -> float:
    x, y = polygon.T
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)


def test_the_whole_catalogue_unless_styles_are_named() -> None:
    facts = facts_of()
    assert [design.style for design in design_hairlines(facts, DesignOptions())] == list(Style)
    wanted = (Style.STRAIGHT, Style.M)
    assert tuple(design.style for design in design_hairlines(facts, DesignOptions(styles=wanted))) == wanted


@pytest.mark.parametrize("style", Style)
def test_points_of_a_design(style: Style) -> None:
    facts = facts_of(straight())
    design = designed(facts, style)
    glabella = facts.landmarks.points[MESH_POINTS["glabella"]]
    assert design.curve[0, 0] < glabella[0] < design.curve[-1, 0]  # the subject's right is the viewer's left
    # This face does not turn or lean: the midline is upright through the glabella.
    assert design.mid_point[0] == pytest.approx(glabella[0], abs=3)
    assert design.mid_point == pytest.approx(tuple(design.curve[len(design.curve) // 2]))
    for temple, eye in (
        (design.left_temple_point, MESH_POINTS["left_exocanthion"]),
        (design.right_temple_point, MESH_POINTS["right_exocanthion"]),
    ):
        assert temple[0] == pytest.approx(facts.landmarks.points[eye, 0], abs=12)  # above the corner of the eye
        assert np.hypot(*(design.curve - temple).T).min() < 5
    height_px = glabella[1] - design.mid_point[1]
    assert design.height.mm is not None
    assert design.height.mm == pytest.approx(height_px * MM_PER_PX, rel=1e-3)
    assert design.height.interval_mm is not None
    assert design.height.interval_mm.low < design.height.mm < design.height.interval_mm.high
    assert design.height.causes_mm is not None
    assert design.height.causes_mm.population_mm == pytest.approx(0.064 * design.height.mm)


@settings(max_examples=25, deadline=None)
@given(
    size=st.floats(0.3, 2.5),
    roll_deg=st.floats(-25, 25),
    x=st.floats(300, 3000),
    y=st.floats(300, 3000),
    style=st.sampled_from(Style),
)
def test_size_tilt_and_place_of_the_face_change_no_number(
    size: float, roll_deg: float, x: float, y: float, style: Style
) -> None:
    still = designed(facts_of(), style)
    facts = facts_of(laid(size, roll_deg, (x, y)), scale=scale_of(MM_PER_PX / size), edge_sd_px=2.0 * size)
    moved = designed(facts, style)
    assert moved.height.mm == pytest.approx(still.height.mm, rel=1e-3)
    assert moved.area_cm2 == pytest.approx(still.area_cm2, rel=2e-3)
    assert moved.grafts == pytest.approx(still.grafts, abs=3)
    roll = np.radians(roll_deg)
    turn = np.array([[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]])
    np.testing.assert_allclose(moved.curve, size * (still.curve - 1000.0) @ turn.T + (x, y), atol=0.5 * size)
    assert [(rule.name, rule.kept) for rule in moved.rules] == [(rule.name, rule.kept) for rule in still.rules]


@pytest.mark.parametrize("yaw_deg", [0.0, -12.0, 18.0])
def test_a_design_is_as_symmetric_as_the_face(yaw_deg: float) -> None:
    """In a mirror the face gets the mirrored design; turned, the design turns with it."""
    facts, mirror = facts_of(turned(yaw_deg, 4.0)), facts_of(mirrored(turned(yaw_deg, 4.0)))
    design, image = designed(facts, Style.M), designed(mirror, Style.M)
    np.testing.assert_allclose(image.curve[::-1] * (-1, 1) + (2000.0, 0.0), design.curve, atol=2.0)
    halves = Forehead(facts.landmarks).to_face(design.curve)
    np.testing.assert_allclose(halves, halves[::-1] * (-1, 1), atol=1e-6)


@pytest.mark.parametrize("pose", [(15.0, 0.0), (-15.0, 10.0), (0.0, 20.0)])
def test_turning_the_head_hardly_changes_the_area(pose: tuple[float, float]) -> None:
    """The surface is measured, not its picture: which would shrink by a tenth and more."""
    ahead, aside = (designed(facts_of(turned(*angles))) for angles in ((0.0, 0.0), pose))
    assert aside.area_cm2 == pytest.approx(ahead.area_cm2, rel=0.06)


# How high.


def test_natural_follows_the_persons_own_middle_court() -> None:
    facts = facts_of()
    middle = facts.measurements["thirds.middle"].mm
    assert middle is not None
    heights = {sex: designed(facts, options=DesignOptions(sex=sex)).height.mm for sex in Sex}
    for sex, share in ((Sex.MALE, 0.95), (Sex.FEMALE, 0.85), (Sex.UNSPECIFIED, 0.90)):
        assert heights[sex] == pytest.approx(share * middle, rel=0.01)


@given(line=st.floats(0.8, 2.4), mm_per_px=st.sampled_from([None, 0.14, 0.19, 0.26]), sex=st.sampled_from(Sex))
@settings(max_examples=30, deadline=None)
def test_low_is_not_above_natural_which_is_not_above_high_nor_above_the_hair(
    line: float, mm_per_px: float | None, sex: Sex
) -> None:
    facts = facts_of(radius=lambda angle: np.full(angle.shape, line), scale=scale_of(mm_per_px))
    low, natural, high = (
        designed(facts, options=DesignOptions(sex=sex, height=height)).height.px for height in HairlineHeight
    )
    trichion = facts.measurements["mid_frontal_height"].px
    assert low is not None
    assert natural is not None
    assert high is not None
    assert trichion is not None
    assert low <= natural + 1e-6
    assert natural <= high + 1e-6
    assert natural <= trichion + 1e-6


def test_the_limits_of_the_sex_bound_what_the_thirds_ask_for() -> None:
    """A middle court of 47 mm would put a man's line at 45."""
    small = facts_of(radius=lambda angle: np.full(angle.shape, 2.3), scale=scale_of(0.135))
    assert designed(small).height.mm == pytest.approx(60.0, abs=0.5)
    assert designed(small, options=DesignOptions(sex=Sex.FEMALE)).height.mm == pytest.approx(50.0, abs=0.5)


def test_without_a_scale_a_design_lies_where_it_would_lie_with_one() -> None:
    facts = facts_of()
    known, unknown = designed(facts), designed(without_scale(facts))
    np.testing.assert_allclose(unknown.curve, known.curve)
    assert unknown.height.px == pytest.approx(known.height.px)
    assert unknown.height.mm is None
    assert unknown.area_cm2 is None
    assert unknown.area_interval_cm2 is None
    assert unknown.grafts is None
    assert unknown.regions  # it can still be grown
    assert not any(rule.unit == "mm" for rule in unknown.rules)


# What it fills.


def test_the_region_lies_between_design_and_hair() -> None:
    facts = facts_of()
    design = designed(facts, Style.RECTANGULAR)
    forehead = Forehead(facts.landmarks)
    (region,) = design.regions
    angles, radii = polar(forehead.to_face(region))
    inner = np.interp(angles, *polar(forehead.to_face(design.curve)))
    front = np.abs(angles) < 40
    assert (radii[front] > inner[front] - 1e-3).all()
    assert (radii[front] < receded(angles)[front] + 1e-2).all()
    assert np.abs(radii[front] - inner[front]).min() < 1e-3
    assert np.abs(radii[front] - receded(angles)[front]).min() < 1e-2


def test_the_area_is_that_of_the_head_not_of_its_picture() -> None:
    """Larger than the polygon in the photo, but no more than the slant of forehead and temples explains."""
    for design in design_hairlines(facts_of(), MALE):
        flat = sum(shoelace(region) for region in design.regions) * MM_PER_PX**2 / 100
        assert design.area_cm2 is not None
        assert 1.3 < design.area_cm2 / flat < 2.1


def test_areas_add_up() -> None:
    """What lies between two lines and what lies between the upper one and the hair is the whole."""
    facts = facts_of()
    forehead = Forehead(facts.landmarks)
    design = designed(facts)
    (region,) = find_regions(forehead.to_face(design.curve), present_line(facts, forehead))
    between = region.inner + 0.3 * (region.outer - region.inner)
    parts = [Region(region.angle_deg, region.inner, between), Region(region.angle_deg, between, region.outer)]
    whole = surface_mm2([region], forehead, MM_PER_PX)
    assert surface_mm2(parts, forehead, MM_PER_PX) == pytest.approx(whole, rel=1e-4)
    assert sum(surface_mm2([part], forehead, MM_PER_PX) for part in parts) == pytest.approx(whole, rel=1e-4)
    assert design.area_cm2 == pytest.approx(whole / 100)


def test_a_flat_forehead_has_the_area_of_its_picture() -> None:
    landmarks = laid()
    flat = replace(landmarks, depth=np.zeros(len(landmarks.depth)), pose=replace(landmarks.pose, pitch_deg=0.0))
    for design in design_hairlines(facts_of(flat), MALE):
        picture = sum(shoelace(region) for region in design.regions) * MM_PER_PX**2 / 100
        assert design.area_cm2 == pytest.approx(picture, rel=0.01)


def test_the_interval_tells_of_scale_edge_and_head() -> None:
    def half_width_pct(facts: Facts) -> float:
        design = designed(facts)
        interval = design.area_interval_cm2
        assert interval is not None
        assert design.area_cm2 is not None
        assert interval.low < design.area_cm2 < interval.high
        return 50 * (interval.high - interval.low) / design.area_cm2

    exact = {"population_pct": 0.0, "fit_pct": 0.0, "pose_pct": 0.0}
    sharp = half_width_pct(facts_of(edge_sd_px=0.0))
    of_head = 100 * Z95 * MODEL_SD
    assert np.hypot(2 * 6.8, of_head) < sharp < np.hypot(2 * 6.8, of_head) + 4  # the scale's 6.8 %, and perspective
    assert half_width_pct(facts_of(edge_sd_px=6.0)) > sharp + 2
    assert of_head < half_width_pct(facts_of(edge_sd_px=0.0, scale=scale_of(MM_PER_PX, **exact))) < of_head + 2


def test_that_there_is_nothing_to_fill_is_as_uncertain_as_the_hairline() -> None:
    """Hair 1 mm behind the design: less than is filled, and perhaps more."""
    bare = facts_of(radius=lambda angle: np.full(angle.shape, 2.4))
    curve = Forehead(bare.landmarks).to_face(designed(bare).curve)

    def high(edge_sd_px: float) -> float:
        behind = facts_of(
            radius=lambda angle: np.interp(angle, *polar(curve)) + np.where(np.abs(angle) < 60, 0.025, 0.0),
            edge_sd_px=edge_sd_px,
        )
        design = designed(behind)
        assert design.area_cm2 == 0
        assert design.area_interval_cm2 is not None
        assert design.area_interval_cm2.low == 0
        return design.area_interval_cm2.high

    assert 1 < high(2.0) < 5  # a strip as long as the hairline, 1.7 mm wide in the picture
    assert high(8.0) == pytest.approx(2 * high(4.0), rel=0.2)


def test_grafts_are_area_times_density() -> None:
    design = designed(facts_of(), options=replace(MALE, density_per_cm2=55.0))
    assert design.area_cm2 is not None
    assert design.grafts == round(55.0 * design.area_cm2)
    assert design.density_per_cm2 == 55.0


def test_where_the_hair_reaches_the_design_nothing_is_filled() -> None:
    options = DesignOptions(sex=Sex.MALE, height=HairlineHeight.HIGH, styles=(Style.M,))
    (design,) = design_hairlines(facts_of(radius=full), options)
    assert not [region for region in design.regions if shoelace(region) * MM_PER_PX**2 > 100]
    (rule,) = [rule for rule in design.rules if rule.name == "no_hair_removed"]
    assert not rule.kept
    assert rule.value is not None
    assert rule.value > 15


@pytest.mark.parametrize("state", [HairlineState.OCCLUDED, HairlineState.HAT])
def test_under_bangs_or_a_hat_nobody_knows_what_to_fill(state: HairlineState) -> None:
    """What is seen of hair beside them is not told from their edge."""
    for design in design_hairlines(facts_of(state=state), MALE):
        assert design.regions == ()
        assert design.area_cm2 is None
        assert design.grafts is None
        assert not any(rule.name == "no_hair_removed" for rule in design.rules)
        assert design.height.mm is not None  # from the glabella


def test_hair_beside_bangs_is_no_hairline_either() -> None:
    design = designed(facts_of(hidden=range(30, 50)))
    assert design.regions == ()
    assert design.area_cm2 is None


def test_what_is_less_than_the_lines_certainty_is_not_filled() -> None:
    """Hair a millimetre behind the design, all along."""
    bare = facts_of(radius=lambda angle: np.full(angle.shape, 2.4))
    curve = Forehead(bare.landmarks).to_face(designed(bare).curve)

    def behind(units: float) -> Facts:
        def radius(angle: NDArray[np.float64]) -> NDArray[np.float64]:
            inner = np.interp(angle, *polar(curve))
            return np.asarray(inner + np.where(np.abs(angle) < 60, units, 0.0), dtype=np.float64)

        return facts_of(radius=radius)

    assert designed(behind(0.025)).regions == ()
    assert designed(behind(0.15)).regions


def test_a_bald_head_is_filled_as_far_as_it_is_seen_but_has_no_area() -> None:
    """The scalp turns away from the camera; its visible part is not what a surgeon would fill."""
    facts = facts_of(radius=lambda angle: np.full(angle.shape, 2.2), state=HairlineState.NONE)
    for design in design_hairlines(facts, MALE):
        assert design.area_cm2 is None
        assert design.grafts is None
        (region,) = design.regions
        heights = Forehead(facts.landmarks).to_face(region)[:, 1]
        assert heights.max() == pytest.approx(2.2, abs=0.01)


def test_a_part_that_is_not_seen_leaves_no_area() -> None:
    """A strand over the right temple: what is seen beside it can be filled, the whole is not known."""
    design = designed(facts_of(hidden=range(20, 30)))
    assert design.area_cm2 is None
    assert len(design.regions) == 2


def test_under_a_lock_a_region_has_no_notch() -> None:
    """Four points of the hairline hidden beside the middle."""
    facts, seen = facts_of(hidden=range(20, 24)), facts_of()
    design, whole = designed(facts), designed(seen)
    assert design.area_cm2 is None
    (region,), (wanted,) = design.regions, whole.regions
    assert shoelace(region) == pytest.approx(shoelace(wanted), rel=0.02)


def test_where_the_hairline_is_lost_in_a_temple_the_region_goes_on_to_the_end_of_the_design() -> None:
    """And is not cut off half way down."""
    facts = facts_of(hidden=range(7))
    forehead = Forehead(facts.landmarks)
    curve = forehead.to_face(designed(facts).curve)
    (region,) = find_regions(curve, present_line(facts, forehead))
    assert region.angle_deg[0] == pytest.approx(polar(curve[:1])[0][0], abs=0.5)
    assert region.outer[0] - region.inner[0] < 0.03
    assert region.angle_deg[0] < np.degrees(np.arctan2(*forehead.to_face(hairline_of(facts))[7])) - 2


def test_ends_tie_into_the_temporal_hair() -> None:
    facts = facts_of()
    forehead = Forehead(facts.landmarks)
    for style in Style:
        end = forehead.to_face(designed(facts, style).curve)[-1]
        hair = receded(np.array([np.degrees(np.arctan2(end[0], end[1]))]))[0]
        assert np.hypot(*end) == pytest.approx(hair, abs=0.05) or end[0] == pytest.approx(1.55)


def test_each_end_ties_into_the_hair_of_its_own_side() -> None:
    """Narrower temples on the subject's right."""

    def aslant(angle_deg: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(receded(angle_deg) * np.where(angle_deg < -50, 0.85, 1.0), dtype=np.float64)

    facts = facts_of(radius=aslant)
    curve = Forehead(facts.landmarks).to_face(designed(facts).curve)
    for end in (curve[0], curve[-1]):
        hair = aslant(np.array([np.degrees(np.arctan2(end[0], end[1]))]))[0]
        assert np.hypot(*end) == pytest.approx(hair, abs=0.05)
    assert curve[-1, 0] > -curve[0, 0] + 0.1
    middle = np.abs(curve[:, 0]) < 0.3
    np.testing.assert_allclose(curve[middle][::-1] * (-1, 1), curve[middle], atol=1e-6)  # the front is one


# Whom it is for.

CHILD = PhotoWarning("CHILD", 0.27, 0.24, "ratio")


@pytest.mark.parametrize("sex", Sex)
def test_a_child_gets_a_design_but_no_numbers_and_rules_of_adults(sex: Sex) -> None:
    facts = replace(facts_of(), warnings=(CHILD,))
    for design in design_hairlines(facts, DesignOptions(sex=sex)):
        assert (design.area_cm2, design.area_interval_cm2, design.grafts) == (None, None, None)
        assert design.rules == ()
        assert design.regions  # still drawn
        assert design.height.mm is not None


def test_a_childs_line_is_not_lifted_to_an_adults_height() -> None:
    """A middle court of 47 mm: adults' limits in millimetres would put the line at 60."""
    small = facts_of(radius=lambda angle: np.full(angle.shape, 2.3), scale=scale_of(0.135))
    assert designed(small).height.mm == pytest.approx(60.0, abs=0.5)
    height = designed(replace(small, warnings=(CHILD,))).height.mm
    assert height is not None
    assert height < 47
