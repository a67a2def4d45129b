"""Pictures made for the bench: edits change the upper head alone, the same every time; eyes are in measure."""

from __future__ import annotations

import numpy as np
import pytest

from bench.portraits.eyes import IRIS_MM, LEFT, PUPILS_APART_MM, RIGHT, EyeLook, looks, render
from bench.portraits.face import Face
from bench.portraits.negatives import NEGATIVES, Negative
from tests.vision.painted_forehead import paint


def painted_face() -> Face:
    forehead = paint()
    return Face(forehead.photo.rgb, forehead.landmarks, forehead.parsing)


def test_there_are_enough_negatives_of_every_kind() -> None:
    names = [negative.name for negative in NEGATIVES]
    assert len(names) == len(set(names)) >= 20
    for kind in ("bangs", "fringe", "beanie", "cap", "bald", "shaved", "hand"):
        assert any(kind in name for name in names), kind


EDITED = ("bangs over the brows", "beanie, red", "cap, blue", "bald, bearded", "hand, rising")


@pytest.mark.parametrize(
    "negative", [negative for negative in NEGATIVES if negative.name in EDITED], ids=lambda negative: negative.name
)
def test_an_edit_changes_the_upper_head_and_is_the_same_every_time(negative: Negative) -> None:
    face = painted_face()
    once, again = (negative.edit(face, np.random.default_rng(3)) for _ in range(2))
    assert (once == again).all()
    changed = np.abs(once - face.image).max(axis=2) > 0.02
    v = face.coordinates()[1]
    assert changed[v > 0.15].mean() > 0.05
    assert changed[v < -0.3].mean() < 0.02


@pytest.mark.parametrize("gaze_deg", [0.0, 15.0])
def test_rendered_eyes_stand_as_far_apart_as_they_say(gaze_deg: float) -> None:
    eyes = render(EyeLook(40.0, gaze_deg=gaze_deg), seed=0)
    points = eyes.landmarks.points
    corners = [(points[outer] + points[inner]) / 2 for _, outer, inner in (LEFT, RIGHT)]
    apart_mm = float(np.linalg.norm(corners[0] - corners[1])) * IRIS_MM / 40
    assert apart_mm == pytest.approx(PUPILS_APART_MM * np.cos(np.radians(gaze_deg)), rel=1e-6)
    assert points[LEFT[1], 0] > points[LEFT[2], 0] > points[RIGHT[2], 0] > points[RIGHT[1], 0]


def test_rendered_looks_cover_small_and_large_irises() -> None:
    sizes = {look.diameter_px for look in looks()}
    assert min(sizes) < 20
    assert max(sizes) > 60
