"""What the parser must see of a face before it is measured."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from tests.vision.faces import face
from vision.errors import PhotoError, Reason
from vision.features import Features, check_features, refuse_upside_down, see_features
from vision.types import LABEL_COUNT, Label, ParsingMap

WHOLE = Features(eyes=1.0, nose=0.8, mouth=0.9)
NOTHING = Features(eyes=0.0, nose=0.0, mouth=0.0)
ON_UPSIDE_DOWN = Features(eyes=0.95, nose=0.5, mouth=0.0)
COVERED_MOUTH = Features(eyes=1.0, nose=0.8, mouth=0.0)


def never() -> Features | None:
    pytest.fail("a whole face is not looked at upside down")


def map_with(patches: Mapping[tuple[int, int], int]) -> ParsingMap:
    """100 × 100 map, each pixel 4 photo pixels wide, background but for 5 × 5 patches of one label each."""
    labels = np.zeros((100, 100), dtype=int)
    for (x, y), label in patches.items():
        labels[y - 2 : y + 3, x - 2 : x + 3] = label
    probabilities = np.eye(LABEL_COUNT, dtype=np.float32)[labels].transpose(2, 0, 1)
    return ParsingMap(probabilities, np.array([[4.0, 0, 0], [0, 4.0, 0]]))


def test_features_are_read_where_the_mesh_has_them() -> None:
    mesh = face(at={468: (160, 160), 473: (240, 160), 4: (200, 220), 13: (200, 260)})
    seen = see_features(
        mesh,
        map_with(
            {(40, 40): Label.RIGHT_EYE, (60, 40): Label.EYEGLASSES, (50, 55): Label.NOSE, (50, 65): Label.UPPER_LIP}
        ),
    )
    assert seen == Features(eyes=1.0, nose=1.0, mouth=1.0)
    assert see_features(mesh, map_with({})) == NOTHING


def test_points_outside_the_map_are_read_at_its_border() -> None:
    assert see_features(face(at={13: (9_000, -50)}), map_with({})).mouth == 0.0


def test_a_whole_face_passes_without_a_second_look() -> None:
    check_features(WHOLE, never)


@pytest.mark.parametrize("seen", [ON_UPSIDE_DOWN, NOTHING, COVERED_MOUTH])
def test_upside_down_when_the_turned_photo_shows_more(seen: Features) -> None:
    with pytest.raises(PhotoError) as refused:
        check_features(seen, lambda: WHOLE)
    assert refused.value.reason is Reason.UPSIDE_DOWN
    assert refused.value.details == {"roll_deg": 180, "max": 30}


@pytest.mark.parametrize("turned", [None, ON_UPSIDE_DOWN])
def test_a_covered_mouth_goes_on(turned: Features | None) -> None:
    check_features(COVERED_MOUTH, lambda: turned)


def test_without_a_mesh_the_turned_photo_alone_decides() -> None:
    with pytest.raises(PhotoError) as refused:
        refuse_upside_down(WHOLE)
    assert refused.value.reason is Reason.UPSIDE_DOWN
    refuse_upside_down(None)
    refuse_upside_down(ON_UPSIDE_DOWN)


def test_a_mesh_without_any_feature_is_no_face() -> None:
    with pytest.raises(PhotoError) as refused:
        check_features(NOTHING, lambda: None)
    assert refused.value.reason is Reason.NO_FACE
