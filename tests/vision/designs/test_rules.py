"""The surgical rules, computed anew from the points of a design."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.vision.designs.designed_faces import MM_PER_PX, facts_of, full, receded
from tests.vision.measured_faces import scale_of, straight
from vision import labels
from vision.calls import DesignOptions, DesignRule, HairlineDesign, HairlineHeight, Sex, Style
from vision.designs import design_hairlines
from vision.designs.forehead import Forehead
from vision.types import Facts, Lang, Points

NAMES = {
    "glabella_distance": "mm",
    "upper_court": "ratio",
    "temporal_angle_on_canthus": "mm",
    "temporal_angle": "deg",
    "temple_rise": "ratio",
    "no_hair_removed": "mm",
}


def rules_of(design: HairlineDesign) -> dict[str, DesignRule]:
    return {rule.name: rule for rule in design.rules}


def by_style(facts: Facts, sex: Sex, height: HairlineHeight = HairlineHeight.NATURAL) -> dict[Style, HairlineDesign]:
    return {design.style: design for design in design_hairlines(facts, DesignOptions(sex=sex, height=height))}


def left_half(design: HairlineDesign) -> Points:
    """Offsets from the mid-frontal point in mm: to the subject's left, up. The face neither turns nor leans."""
    half = design.curve[len(design.curve) // 2 :] - design.mid_point
    return np.asarray(half * (MM_PER_PX, -MM_PER_PX), dtype=np.float64)


def test_all_are_judged_and_have_words() -> None:
    for design in by_style(facts_of(), Sex.MALE).values():
        assert {rule.name: rule.unit for rule in design.rules} == NAMES
    assert set(labels.RULE) == set(NAMES)


@pytest.mark.parametrize("sex", Sex)
def test_kept_is_what_lies_within_the_limits(sex: Sex) -> None:
    for height in HairlineHeight:
        for design in by_style(facts_of(), sex, height).values():
            for rule in design.rules:
                assert rule.value is not None
                assert rule.low is not None
                assert rule.high is not None
                assert rule.kept == (rule.low - 1e-6 <= rule.value <= rule.high + 1e-6)


def test_distance_from_the_glabella() -> None:
    for style, design in by_style(facts_of(), Sex.FEMALE).items():
        rule = rules_of(design)["glabella_distance"]
        assert rule.value == pytest.approx(design.height.mm)
        assert rule.high == 70.0
        # Only a peak may reach below the limit of the front.
        assert rule.low is not None
        assert (rule.low < 50.0) == (style is Style.WIDOWS_PEAK)


@pytest.mark.parametrize(("mm_per_px", "certain"), [(0.18, False), (0.15, True)])
def test_what_the_error_of_millimetres_leaves_open_is_called_so(mm_per_px: float, certain: bool) -> None:
    """A line of its own at 48 mm, 50 being the limit, and one at 40; both give or take 8 %."""
    facts = facts_of(radius=full, scale=scale_of(mm_per_px))
    rule = rules_of(by_style(facts, Sex.FEMALE)[Style.ROUND])["glabella_distance"]
    assert not rule.kept
    assert rule.certain is certain
    assert (labels.RULE["glabella_distance"].en in labels.broken([rule], Lang.EN)) is certain
    assert (labels.RULE["glabella_distance"].en in labels.uncertain([rule], Lang.EN)) is not certain


def test_shapes_are_certain_and_every_rule_says_where_it_comes_from() -> None:
    for design in by_style(facts_of(), Sex.MALE).values():
        for rule in design.rules:
            assert rule.certain or rule.unit == "mm"
            assert rule.source


def test_of_two_temples_the_worse_one_is_judged() -> None:
    """Hair that reaches far into one temple brings that end in; the rules say the same on whichever side it is."""

    def aslant(angle_deg: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(receded(angle_deg) * np.where(angle_deg < -50, 0.85, 1.0), dtype=np.float64)

    one, mirror = (
        by_style(facts_of(radius=radius), Sex.MALE)[Style.M] for radius in (aslant, lambda angle: aslant(-angle))
    )
    ends = Forehead(facts_of().landmarks).to_face(one.curve)[[0, -1], 0]
    assert abs(ends[0]) < ends[1] - 0.1
    for name, unit in NAMES.items():
        assert rules_of(one)[name].value == pytest.approx(rules_of(mirror)[name].value, abs=0.5), unit


def test_a_line_below_the_limit_breaks_it() -> None:
    """The person's own line lies at 49 mm: a man's is no lower than 60."""
    facts = facts_of(radius=full)
    own = facts.measurements["mid_frontal_height"].mm
    assert own is not None
    assert own < 60
    broken = rules_of(by_style(facts, Sex.MALE)[Style.ROUND])["glabella_distance"]
    assert not broken.kept
    assert broken.value == pytest.approx(own, abs=0.2)


def test_the_upper_court_is_measured_against_the_middle_one() -> None:
    facts = facts_of()
    middle = facts.measurements["thirds.middle"].mm
    designs = by_style(facts, Sex.MALE)
    front = designs[Style.STRAIGHT].height.mm
    assert middle is not None
    assert front is not None
    # A peak hangs from the front; it makes no court smaller.
    for style in (Style.STRAIGHT, Style.WIDOWS_PEAK):
        assert rules_of(designs[style])["upper_court"].value == pytest.approx(front / middle)


@pytest.mark.parametrize("style", [Style.M, Style.STRAIGHT, Style.RECTANGULAR])
def test_angle_and_place_of_the_temple_corner(style: Style) -> None:
    design = by_style(facts_of(straight()), Sex.MALE)[style]
    half = left_half(design)
    # The corner: where the curve is furthest out to the upper left.
    outer = half[half[:, 0] > 15]
    chord = half[-1] - outer[0]
    normal = np.array([-chord[1], chord[0]]) / np.linalg.norm(chord)
    corner = outer[int(np.argmax(outer @ normal))]
    front = np.array([corner[0] / 2, np.interp(corner[0] / 2, half[:, 0], half[:, 1])])
    arms = [(end - corner) / np.linalg.norm(end - corner) for end in (front, half[-1])]
    rules = rules_of(design)
    angle = rules["temporal_angle"].value
    assert angle == pytest.approx(np.degrees(np.arccos(arms[0] @ arms[1])), abs=6)
    unit_mm = (design.left_temple_point[0] - design.right_temple_point[0]) / 2 * MM_PER_PX
    assert rules["temporal_angle_on_canthus"].value == pytest.approx(corner[0] - unit_mm, abs=1.5)
    assert design.height.mm is not None
    assert rules["temple_rise"].value == pytest.approx(corner[1] / design.height.mm, abs=0.03)


def test_a_round_line_flattens_a_mans_temples_but_suits_a_woman() -> None:
    """The reason for the rules about the temples."""
    facts = facts_of()
    men, women = by_style(facts, Sex.MALE), by_style(facts, Sex.FEMALE)
    temples = ("temporal_angle", "temple_rise")
    assert not any(rules_of(men[Style.ROUND])[name].kept for name in temples)
    assert all(rules_of(women[Style.ROUND])[name].kept for name in temples)
    for style in (Style.M, Style.RECTANGULAR, Style.STRAIGHT):
        assert all(rules_of(men[style])[name].kept for name in temples)


def test_where_the_sex_was_not_said_a_rule_is_broken_by_what_breaks_it_for_both() -> None:
    facts = facts_of()
    either, men, women = (by_style(facts, sex) for sex in (Sex.UNSPECIFIED, Sex.MALE, Sex.FEMALE))
    for style in Style:
        for name in ("temporal_angle", "temple_rise"):
            assert rules_of(either[style])[name].kept >= max(
                rules_of(men[style])[name].kept, rules_of(women[style])[name].kept
            )


def test_depth_in_the_present_hair() -> None:
    """A straight front before round, full hair: the deepest point on any ray from the glabella."""
    facts = facts_of(straight(), full, edge_sd_px=0.5)
    design = by_style(facts, Sex.FEMALE)[Style.STRAIGHT]
    glabella = facts.landmarks.points[9]
    line = np.array([(point.x_px, point.y_px) for point in facts.hairline.points]) - glabella
    curve = design.curve - glabella
    angles = [np.arctan2(points[:, 0], -points[:, 1]) for points in (curve, line)]
    depth = np.hypot(*curve.T) - np.interp(angles[0], angles[1], np.hypot(*line.T))
    rule = rules_of(design)["no_hair_removed"]
    assert rule.value == pytest.approx(depth.max() * MM_PER_PX, abs=1.0)
    assert not rule.kept
    assert rule.high == pytest.approx(2.0)


def test_a_design_before_all_hair_removes_none() -> None:
    for design in by_style(facts_of(), Sex.MALE).values():
        rule = rules_of(design)["no_hair_removed"]
        assert rule.kept
