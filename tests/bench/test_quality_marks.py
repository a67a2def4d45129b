"""Marks made by eye, and errors told in percent of the face height."""

from __future__ import annotations

import numpy as np
import pytest

from bench.portraits.marks import MARKINGS, Reference, offset, read_marks, references
from tests.vision.measured_faces import laid

HEADER = "picture\tstate\tx_px\ty_px\tsure_px\tnote"


def test_only_pictures_on_which_both_saw_it_are_references() -> None:
    first = read_marks([HEADER, "a\tobserved\t10\t20\t3\t", "b\toccluded\t\t\t\tbangs", "c\tnone\t\t\t\t"])
    second = read_marks([HEADER, "a\tobserved\t14\t22\t5\t", "b\toccluded\t\t\t\t", "c\tobserved\t1\t2\t9\tfaint"])
    (only,) = references(first, second)
    assert only.picture == "a"
    assert only.place == pytest.approx([12, 21])
    assert only.apart == pytest.approx([4, 2])
    assert only.sure_px == 5


def test_the_committed_markings_have_nineteen_references_of_twenty_six_pictures() -> None:
    first, second = (read_marks(path.read_text().splitlines()) for path in MARKINGS)
    assert list(first) == list(second)
    assert len(first) == 26
    assert len(references(first, second)) == 19


@pytest.mark.parametrize("roll_deg", [0.0, 20.0])
def test_an_offset_is_told_along_the_face(roll_deg: float) -> None:
    upright = laid()
    face = laid(roll_deg=roll_deg)
    down = (face.points[152] - face.points[9]) / np.linalg.norm(face.points[152] - face.points[9])
    trichion = face.points[9] - 300 * down
    reference = Reference("x", trichion, np.zeros(2), 1.0)
    height = np.linalg.norm(face.points[152] - trichion)
    up = offset(reference, -0.02 * height * down, face)
    assert up.up_pct == pytest.approx(2, abs=0.05)
    assert abs(up.left_pct) < 0.1
    to_the_subjects_left = np.array([down[1], -down[0]])
    assert offset(reference, 10 * to_the_subjects_left, face).left_pct > 0
    assert upright.points[263, 0] > upright.points[33, 0]  # the subject's left eye is on the viewer's right
