"""Measurements as pure geometry: laid elsewhere, turned, mirrored, hidden."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from google.protobuf.descriptor import Descriptor
from hair.analysis.v1 import measure_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vision.measured_faces import hairline_of, laid, mirrored, scale_of, straight, turned
from vision.anthropometry import ANGLE, OUTLINE, SHAPES, face_shape, measure_face
from vision.norms import NORMS
from vision.types import FaceShapeClass, Hairline, HairlineState, Measurement

MIDDLE = range(14, 27)


def measured(**hairline: object) -> dict[str, Measurement]:
    """The face as it lies, with a scale."""
    face = laid()
    return measure_face(face, hairline_of(face, **hairline), scale_of())  # type: ignore[arg-type]


def names_of(message: Descriptor) -> set[str]:
    """Dotted names of all `Measurement` fields."""
    names = set()
    for field in message.fields:
        assert field.message_type
        if field.message_type.name == "Measurement":
            names.add(field.name)
        else:
            names |= {f"{field.name}.{inner}" for inner in names_of(field.message_type)}
    return names


def hangs_on_the_hairline(name: str) -> bool:
    """Whether one of its ends is no point of the mesh."""
    return "upper" in name or name.startswith(("brow_to", "mid_frontal", "temple_rec", "face_height"))


def test_every_quantity_of_the_contract_is_there_and_no_other() -> None:
    assert set(measured()) == names_of(measure_pb2.Measurements.DESCRIPTOR)


def test_a_whole_face_has_no_gaps() -> None:
    assert {name: m.unavailable_reason for name, m in measured().items() if m.unavailable_reason} == {}


@given(
    size=st.floats(0.15, 4.0),
    roll_deg=st.floats(-30, 30),
    x=st.floats(-2000, 2000),
    y=st.floats(-2000, 2000),
)
@settings(max_examples=30, deadline=None)
def test_lengths_follow_the_size_and_nothing_else(size: float, roll_deg: float, x: float, y: float) -> None:
    face = laid(size, roll_deg, (x, y))
    before, after = measured(), measure_face(face, hairline_of(face), scale_of(0.19 / size))
    for name, first in before.items():
        second = after[name]
        assert second.mm == pytest.approx(first.mm, abs=0.05), name
        assert second.ratio == pytest.approx(first.ratio, abs=2e-3), name
        assert second.angle_deg == pytest.approx(first.angle_deg, abs=0.05), name
        if first.px:
            assert second.px == pytest.approx(first.px * size, abs=0.3 * size), name


@given(yaw_deg=st.floats(-20, 20), pitch_deg=st.floats(-15, 20))
@settings(max_examples=30, deadline=None)
def test_a_turned_head_measures_the_same(yaw_deg: float, pitch_deg: float) -> None:
    frontal, away = straight(), turned(yaw_deg, pitch_deg)
    before = measure_face(frontal, hairline_of(frontal), scale_of())
    after = measure_face(away, hairline_of(away), scale_of())
    for name, first in before.items():
        if first.px is None or hangs_on_the_hairline(name):
            continue
        assert after[name].px == pytest.approx(first.px, rel=1e-6), name
    assert after[ANGLE].angle_deg == pytest.approx(before[ANGLE].angle_deg, rel=1e-6)


def test_heights_of_a_nodding_head_are_less_certain() -> None:
    """Where there is depth between their ends; widths are not."""

    def pose_mm(name: str, pitch_deg: float) -> float:
        face = turned(0.0, pitch_deg)
        causes = measure_face(face, hairline_of(face), scale_of())[name].causes_mm
        assert causes is not None
        return causes.pose_mm

    assert pose_mm("mid_frontal_height", -12.0) > pose_mm("mid_frontal_height", 7.0) + 2
    assert pose_mm("thirds.lower", 22.0) > pose_mm("thirds.lower", 7.0) + 2
    assert pose_mm("face_width", -12.0) == pytest.approx(pose_mm("face_width", 7.0), rel=0.2)


def test_trichion_to_glabella_grows_when_a_head_from_below_is_put_upright() -> None:
    """The forehead recedes: from below it looks shorter than it is."""
    face = turned(0.0, -10.0)
    hairline = hairline_of(face)
    assert hairline.trichion
    seen_px = float(np.hypot(*(face.points[9] - (hairline.trichion.x_px, hairline.trichion.y_px))))
    found = measure_face(face, hairline, scale_of())["mid_frontal_height"].px
    assert found is not None
    assert found > 1.05 * seen_px


def test_a_mirror_swaps_left_and_right() -> None:
    face = laid(roll_deg=6)
    other = mirrored(face)
    before = measure_face(face, hairline_of(face), scale_of())
    after = measure_face(other, hairline_of(other), scale_of())
    swapped = {"palpebral_width", "brow_to_hairline", "temple_recession"}
    for name in before:
        head, _, side = name.partition(".")
        twin = f"{head}.{'right' if side == 'left' else 'left'}" if head in swapped else name
        twin = {
            "fifths.right_outer": "fifths.left_outer",
            "fifths.left_outer": "fifths.right_outer",
            "fifths.right_eye": "fifths.left_eye",
            "fifths.left_eye": "fifths.right_eye",
        }.get(name, twin)
        assert after[twin].mm == pytest.approx(before[name].mm, abs=0.01), name


def test_thirds_make_the_face_and_fifths_the_width_between_the_temples() -> None:
    found = measured()
    for thirds in ("thirds", "thirds_nose_tip"):
        parts = [found[f"{thirds}.{part}"] for part in ("upper", "middle", "lower")]
        assert sum(part.mm or 0 for part in parts) == pytest.approx(found["face_height"].mm)
        assert sum(part.ratio or 0 for part in parts) == pytest.approx(1)
    fifths = [m for name, m in found.items() if name.startswith("fifths.")]
    ends = sorted(x for m in fifths for x, _ in m.line)
    assert sum(m.px or 0 for m in fifths) == pytest.approx(ends[-1] - ends[0], rel=1e-2)
    assert sum(m.ratio or 0 for m in fifths if 0.95 < (m.ratio or 0) < 1.05) == pytest.approx(2)


def test_an_adult_woman_measures_like_one() -> None:
    """A norm between other points than ours would show: they are to be of this face within 8 %."""
    found = measured()
    for name, norms in NORMS.items():
        of_women = [norm for norm in norms if norm.unit == "mm" and ", men" not in norm.population]
        if of_women and not hangs_on_the_hairline(name):
            mm = found[name].mm or 0.0
            assert any(norm.low * 0.92 < mm < norm.high * 1.08 for norm in of_women), (name, mm)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (HairlineState.OCCLUDED, "HAIRLINE_OCCLUDED"),
        (HairlineState.HAT, "HAIRLINE_HAT"),
        (HairlineState.NONE, "HAIRLINE_NONE"),
    ],
)
def test_a_hidden_hairline_takes_what_hangs_on_it_and_leaves_the_rest(state: HairlineState, reason: str) -> None:
    found = measured(hidden=range(41), state=state)
    gone = {name for name, m in found.items() if m.unavailable_reason == reason}
    assert gone == {name for name in found if hangs_on_the_hairline(name)}
    assert all(found[name].px is None and found[name].mm is None and not found[name].line for name in gone)
    assert all(not m.unavailable_reason for name, m in found.items() if name not in gone)
    assert found["thirds.middle"].ratio is None


@pytest.mark.parametrize("state", [HairlineState.OCCLUDED, HairlineState.HAT, HairlineState.NONE])
def test_a_hairline_of_which_nothing_is_found_is_missing_for_one_reason(state: HairlineState) -> None:
    found = measure_face(laid(), Hairline((), state, None, 0.0), scale_of())
    reasons = {m.unavailable_reason for name, m in found.items() if hangs_on_the_hairline(name)}
    assert reasons == {f"HAIRLINE_{state.name}"}


def test_a_line_hidden_on_one_side_costs_that_side_alone() -> None:
    found = measured(hidden=range(24, 41))
    assert found["brow_to_hairline.left"].unavailable_reason == "HAIRLINE_OCCLUDED"
    assert found["temple_recession.left"].unavailable_reason == "HAIRLINE_OCCLUDED"
    assert found["brow_to_hairline.right"].mm
    assert found["temple_recession.right"].mm is not None
    assert found["thirds.upper"].mm


def test_without_a_scale_pixels_and_ratios_remain() -> None:
    face = laid()
    found = measure_face(face, hairline_of(face), scale_of(None))
    for name, m in found.items():
        if name == ANGLE:
            continue
        assert m.unavailable_reason == "NO_SCALE", name
        assert m.px is not None
        assert m.mm is None
        assert m.interval_mm is None
        assert m.line


def test_the_population_term_is_kept_apart() -> None:
    face = laid()
    narrow = measure_face(face, hairline_of(face), scale_of(population_pct=0.0))
    wide = measure_face(face, hairline_of(face), scale_of())
    for name, m in wide.items():
        if m.mm is None or m.interval_mm is None or m.interval_same_person_mm is None:
            continue
        assert narrow[name].interval_mm == m.interval_same_person_mm
        whole, own = m.interval_mm.high - m.mm, m.interval_same_person_mm.high - m.mm
        assert whole == pytest.approx(np.hypot(own, 0.064 * m.mm))
        assert m.interval_mm.low >= 0


def test_the_causes_make_up_the_interval_and_each_answers_for_its_own() -> None:
    face = laid()
    quiet = measure_face(face, hairline_of(face), scale_of())
    loud = measure_face(face, hairline_of(face), scale_of(fit_pct=9.0))
    for name, m in quiet.items():
        if m.mm is None or m.interval_mm is None:
            continue
        causes, changed = m.causes_mm, loud[name].causes_mm
        assert causes
        assert changed
        assert m.interval_mm.high - m.mm == pytest.approx(causes.total_mm)
        assert causes.population_mm == pytest.approx(0.064 * m.mm)
        assert causes.segmentation_mm > 0
        assert changed == replace(causes, fit_mm=changed.fit_mm)
        assert changed.fit_mm == pytest.approx(0.09 * m.mm)


def test_from_near_the_outline_is_less_certain_and_what_lies_with_the_eyes_is_not() -> None:
    far = straight()
    points = far.points.copy()
    middle = (points[468, 0] + points[473, 0]) / 2
    for outline in (234, 454):
        points[outline, 0] = middle + 0.9 * (points[outline, 0] - middle)
    near = replace(far, points=points)
    before, after = (measure_face(face, hairline_of(face), scale_of()) for face in (far, near))

    def own_pct(found: dict[str, Measurement], name: str) -> float:
        m = found[name]
        assert m.mm
        assert m.interval_same_person_mm
        return 100 * (m.interval_same_person_mm.high / m.mm - 1)

    assert own_pct(after, "face_width") > own_pct(before, "face_width") + 3
    assert own_pct(after, "pupillary_distance") == pytest.approx(own_pct(before, "pupillary_distance"), abs=0.5)


@pytest.mark.parametrize(("side", "points"), [("left", slice(21, 41)), ("right", slice(0, 20))])
def test_recession_is_how_much_higher_one_side_rises_than_the_trichion(side: str, points: slice) -> None:
    face = straight()
    hairline = hairline_of(face)
    assert hairline.trichion
    ys = np.array([point.y_px for point in hairline.points])
    found = measure_face(face, hairline, scale_of())[f"temple_recession.{side}"]
    assert found.px == pytest.approx(ys[20] - ys[points].min())
    assert (found.px or 0) > 2
    falling = tuple(replace(point, y_px=point.y_px + abs(i - 20) * 4) for i, point in enumerate(hairline.points))
    none = measure_face(face, replace(hairline, points=falling), scale_of())[f"temple_recession.{side}"]
    assert none.px == 0
    assert none.ratio == 0
    assert none.interval_mm
    assert none.interval_mm.low == 0 < none.interval_mm.high


def test_a_lower_hairline_makes_a_lower_forehead() -> None:
    high, low = measured(), measured(height=0.35)
    for name in ("mid_frontal_height", "brow_to_hairline.left", "brow_to_hairline.right", "face_height"):
        assert (low[name].mm or 0) < (high[name].mm or 0), name


def test_norms_belong_to_measurements_and_name_their_source() -> None:
    found = measured()
    assert set(NORMS) <= set(found)
    for name, norms in NORMS.items():
        assert found[name].norms == norms
        assert all(norm.source and norm.population and norm.low <= norm.high for norm in norms)
        assert all(norm.unit in {"mm", "ratio", "deg"} for norm in norms)


def with_outline(typical: Iterable[float]) -> dict[str, Measurement]:
    return {
        name: Measurement(ratio_perspective_corrected=mean + sd * at)
        for (_, name, mean, sd), at in zip(OUTLINE, typical, strict=True)
    }


@pytest.mark.parametrize("shape", list(FaceShapeClass))
def test_each_class_recognises_its_typical_outline(shape: FaceShapeClass) -> None:
    found = face_shape(with_outline(SHAPES[shape]))
    assert found is not None
    assert found.shape is shape
    assert found.confidence == pytest.approx(1)
    assert set(found.ratios) == {ratio for ratio, *_ in OUTLINE}


def test_between_two_classes_nothing_is_certain() -> None:
    half_way = np.mean([SHAPES[FaceShapeClass.OVAL], SHAPES[FaceShapeClass.OBLONG]], axis=0)
    found = face_shape(with_outline(half_way))
    assert found is not None
    assert found.confidence == pytest.approx(0, abs=1e-9)


def test_no_shape_without_the_hairline() -> None:
    assert face_shape(measured(hidden=range(41))) is None
    assert face_shape(measured()) is not None
