"""Hair and brows as the parser sees them: length, bangs, colour, thickness. Left and right are the subject's."""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.describe_ratios import classify
from vision.describe_terms import HAIR_TOO_LITTLE, HAT, NO_HAIR, Feature
from vision.parsing import RASTER_PX, sample
from vision.types import FaceLandmarks, Label, ParsingMap, Photo, Points

Mask = NDArray[np.bool_]

PRESENT_MIN = 0.01
"""Area of the hair, in squares of the mesh height, from which there is any. A shaved head of the test pictures has
0.00, the shortest hair 0.23."""
HAT_MIN = 0.02
"""Area of a hat, in the same unit, from which length and bangs cannot be told."""
COLOUR_MIN_PX = 200
"""Pixels of the raster by which a colour is told."""
COLOUR_CERTAINTY = 0.6
"""Probability of hair from which a pixel counts for its colour."""
FROM_EDGE_PX = 5
ROW_MIN_PX = 4
"""A row of the raster with fewer pixels of hair is a stray strand."""

ANCHORS: Mapping[str, tuple[float, float, float]] = {
    "black": (10, 0, 1),
    "dark_brown": (18, 4, 8),
    "brown": (30, 6, 15),
    "light_brown": (42, 7, 20),
    "blonde": (62, 6, 19),
    "red": (36, 16, 30),
    "grey": (48, 2, 2),
    "white": (85, 1, 2),
}
"""Typical CIELAB of hair in photos (mean over its pixels); hair belongs to the nearest. Our own, from 33 portraits: no
more than a name for what the photo shows, as light and camera move it."""
CHROMA_WEIGHT = 2.0
"""Against lightness, which light moves most."""
SURE_OF_COLOUR = 0.35
"""How much nearer the nearest anchor must be than the second, as a share of the latter's distance."""
DYED_HUES_DEG = (120.0, 330.0)
DYED_CHROMA_MIN = 8.0
"""Green to violet: no hair grows so."""

_BROWS = ((Label.RIGHT_BROW, (107, 55), (70, 46)), (Label.LEFT_BROW, (336, 285), (300, 276)))
"""Class, and the points of the mesh whose middles are head and tail."""
_FOREHEAD = (
    *(70, 63, 105, 66, 107, 9, 336, 296, 334, 293, 300),
    *(251, 284, 332, 297, 338, 10, 109, 67, 103, 54, 21),
)
"""Along the brows' upper margin to the left, and back over the mesh's upper rim: forehead, whoever's it is."""
_CHIN = 152


def brow_thickness(landmarks: FaceLandmarks, parsing: ParsingMap) -> Feature:
    """By the area of the brows: the mesh draws everybody the same ones."""
    mesh = on_raster(landmarks.points, parsing)
    values = []
    for label, head, tail in _BROWS:
        length = np.linalg.norm(mesh[list(head)].mean(axis=0) - mesh[list(tail)].mean(axis=0))
        values.append(float(parsing.probabilities[label].sum(dtype=np.float64) / length**2))
    return classify("brows.thickness", float(np.mean(values)), {})


def hair_features(
    photo: Photo, landmarks: FaceLandmarks, parsing: ParsingMap
) -> tuple[bool | None, dict[str, Feature]]:
    """Whether there is hair (None: hidden by a hat), and length, bangs and colour; what cannot be told has a reason."""
    labels = parsing.labels
    hair = labels == Label.HAIR
    present = float(hair.sum()) / RASTER_PX**2 >= PRESENT_MIN
    hat = float((labels == Label.HAT).sum()) / RASTER_PX**2 >= HAT_MIN
    if not present:
        reason = HAT if hat else NO_HAIR
        return None if hat else False, {f"hair.{name}": Feature(None, reason=reason) for name in _HAIR_PARTS}
    mesh = on_raster(landmarks.points, parsing)
    found = {"hair.colour": _colour(photo, parsing, hair)}
    if hat:
        found |= {f"hair.{name}": Feature(None, reason=HAT) for name in ("length", "bangs")}
    else:
        found["hair.length"] = _length(hair, mesh)
        found["hair.bangs"] = _bangs(hair, mesh)
    return True, found


_HAIR_PARTS = ("length", "bangs", "colour")


def on_raster(points: Points, parsing: ParsingMap) -> Points:
    """Photo pixels (N, 2) to those of the parsing's raster."""
    to_map = parsing.map_from_photo
    return np.asarray(points @ to_map[:, :2].T + to_map[:, 2], dtype=np.float64)


def _length(hair: Mask, mesh: Points) -> Feature:
    rows = np.nonzero(hair.sum(axis=1) >= ROW_MIN_PX)[0]
    lowest = float(rows.max()) if rows.size else 0.0
    return classify("hair.length", (lowest - float(mesh[_CHIN, 1])) / RASTER_PX, {})


def _bangs(hair: Mask, mesh: Points) -> Feature:
    forehead = np.zeros(hair.shape, dtype=np.uint8)
    cv2.fillPoly(forehead, [np.rint(mesh[list(_FOREHEAD)]).astype(np.int32)], 1)
    inside = forehead > 0
    share = float(hair[inside].mean()) if inside.any() else 0.0
    return classify("hair.bangs", share, {})


def _colour(photo: Photo, parsing: ParsingMap, hair: Mask) -> Feature:
    certain = hair & (parsing.probabilities[Label.HAIR] > COLOUR_CERTAINTY) & _inside(photo, parsing)
    core = cv2.erode(certain.astype(np.uint8), np.ones((FROM_EDGE_PX, FROM_EDGE_PX), dtype=np.uint8)) > 0
    if int(core.sum()) < COLOUR_MIN_PX:
        return Feature(None, reason=HAIR_TOO_LITTLE)
    pixels = sample(photo.rgb, parsing.photo_from_map, hair.shape[0])[core]
    lab = cv2.cvtColor((pixels[None] / 255).astype(np.float32), cv2.COLOR_RGB2Lab)[0].mean(axis=0, dtype=np.float64)
    return name_colour(float(lab[0]), float(lab[1]), float(lab[2]))


def name_colour(lightness: float, a: float, b: float) -> Feature:
    """The named colour nearest to a mean in CIELAB."""
    ratios = {"lightness": lightness, "a": a, "b": b}
    weights = np.array([1.0, CHROMA_WEIGHT, CHROMA_WEIGHT])
    distances = {
        name: float(np.linalg.norm((np.array(anchor) - (lightness, a, b)) * weights))
        for name, anchor in ANCHORS.items()
    }
    nearest, second = sorted(distances, key=distances.__getitem__)[:2]
    chroma, hue_deg = float(np.hypot(a, b)), float(np.degrees(np.arctan2(b, a))) % 360
    low, high = DYED_HUES_DEG
    beyond = chroma / DYED_CHROMA_MIN if low <= hue_deg <= high else 0.0
    if beyond >= 1:
        return Feature("dyed", 1 - 1 / (1 + beyond), None if beyond >= 1 + SURE_OF_COLOUR else nearest, ratios)
    confidence = 1 - distances[nearest] / distances[second]
    if beyond > 1 - SURE_OF_COLOUR:
        return Feature(nearest, confidence, "dyed", ratios)
    return Feature(nearest, confidence, None if confidence >= SURE_OF_COLOUR else second, ratios)


def _inside(photo: Photo, parsing: ParsingMap) -> Mask:
    """(h, w): which pixels of the raster lie in the photo."""
    side = parsing.probabilities.shape[-1]
    y, x = np.mgrid[:side, :side]
    places = parsing.photo_from_map @ np.stack([x.ravel(), y.ravel(), np.ones(x.size)])
    limits = np.array([[photo.width_px], [photo.height_px]]) - 0.5
    return np.asarray(((places > -0.5) & (places < limits)).all(axis=0).reshape(side, side), dtype=np.bool_)
