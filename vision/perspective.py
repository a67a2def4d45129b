"""How far away the camera stood, and what proportions look like from where portraits are taken.

Seen from `d`, what lies `z` behind the pupils is smaller by d / (d + z): from near, the outline of the face shrinks
against the eyes and the nose grows. So the camera's distance can be told from proportions, as far as those of people
agree: Burgos-Artizzu, Ronchi & Perona, Distance Estimation of an Unknown Person from a Portrait, ECCV 2014, do so with
53 landmarks; here two proportions of the mesh are enough that no expression changes much, the distance of the pupils
and the length of the nose, both against the width of the face.

The numbers were measured on renderings of ten studio portraits from 0.25 to 1.5 m (`bench/portraits/rendered_face.py`)
with the mesh that the detector finds in them. The mesh yields less than geometry would have it, so lengths have an
effective depth that is not the one of their ends. Between these ten the estimated 1/d has a standard deviation of 0.5
per metre: 0.35 m is told as 0.24 to 0.47 m, and 1.5 m as anything beyond 0.6 m. Seven other people, whom nothing here
was set by, are told as farther away, by 1.1 per metre in the mean at 0.25 and 0.35 m: of them 0.35 m is told as 0.39 to
1.6 m. More proportions do not help: of nine sets of two to seventeen, weighed by how they differ between people and
tried on people left out, none tells near from far better than these two (six to ten of 34 missed where no far one
is taken for near). People differ by as much as perspective changes a face.

Selfies of ten people against their studio portraits, median: face height over width is off by 5.9 % as shown and by
1.7 % corrected, the right and the left outer fifth by 21 and 12 %, then 6 and 5 %; jaw over face width by 1.3, then
2.4 %.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vision.head import head_axes, spatial_points
from vision.types import FaceLandmarks

PORTRAIT_MM = 1500.0
"""Distance from which portraits, and the photographs that norms rest on, are taken."""
NEAR_MM = 500.0
"""An estimate nearer than this makes the PERSPECTIVE warning. Nine of ten selfies are told as 0.23 to 0.46 m, the
portraits of eighteen adults as 0.64 m and farther. Of renderings from 0.35 m and nearer 27 of 34 fall below it (20 of
20 where the face is one of those that set the table), of those from 1 m on none."""
NEAREST_MM = 200.0
"""No nearer distance is believed: the face would not fit into the picture."""

NOSE_WEIGHT = 0.67
"""What the logarithm of the nose's share counts against that of the pupils' one."""
INDEX_FAR, INDEX_GAIN, INDEX_DEPTH_MM = -1.682, 1.305, 50.0
"""The weighed logarithms are `INDEX_FAR + INDEX_GAIN * log(1 + INDEX_DEPTH_MM / d)` on average."""

EFFECTIVE_DEPTH_MM: Mapping[str, float] = {
    "thirds.middle": -14.0,
    "thirds.lower": 16.0,
    "thirds_nose_tip.middle": -12.0,
    "thirds_nose_tip.lower": 11.0,
    "fifths.right_outer": 102.0,
    "fifths.left_outer": 102.0,
    "fifths.right_eye": 9.0,
    "fifths.left_eye": 9.0,
    "face_width": 36.0,
    "jaw_width": 47.0,
    "temple_width": 25.0,
    "palpebral_width.left": 9.0,
    "palpebral_width.right": 9.0,
    "mouth_width": 4.0,
    "brow_to_hairline.left": 10.0,
    "brow_to_hairline.right": 10.0,
}
"""Depth behind the pupils at which a length would shrink as the measured one does (millimetres, by name of
`vision.anthropometry.LENGTHS`): the one that leaves the least mean error over the ten studio portraits, seen from known
distances; one value for both sides. Those that are not here are within 1 % from 0.35 m on."""

_PUPILS, _NOSE, _ZYGIA = (468, 473), (168, 4), (234, 454)


def camera_mm(landmarks: FaceLandmarks) -> float:
    """Estimated distance of the camera from the eyes; at least `NEAREST_MM`, infinite when nothing speaks for one."""
    mesh, axes = spatial_points(landmarks), head_axes(landmarks.pose)
    pupils, nose, width = (
        abs(float((mesh[second] - mesh[first]) @ axis))
        for (first, second), axis in ((_PUPILS, axes.lateral), (_NOSE, axes.down), (_ZYGIA, axes.lateral))
    )
    index = np.log(pupils / width) + NOSE_WEIGHT * np.log(nose / width)
    nearness = (np.exp((index - INDEX_FAR) / INDEX_GAIN) - 1) / INDEX_DEPTH_MM
    return float(1 / min(nearness, 1 / NEAREST_MM)) if nearness > 0 else np.inf


def as_in_portrait(name: str, length: float, distance_mm: float) -> float:
    """A length (any unit) as a camera at `PORTRAIT_MM` would show it, at the same distance of the pupils.

    From farther away than that nothing changes: there perspective does next to nothing, and the estimate says little.
    """
    depth = EFFECTIVE_DEPTH_MM.get(name, 0.0)
    return length * (1 + depth / min(distance_mm, PORTRAIT_MM)) / (1 + depth / PORTRAIT_MM)
