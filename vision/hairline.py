"""The hairline: where it lies, ray by ray, and whether it is the hairline at all.

Rays leave the glabella over the forehead (`vision.forehead_rays`); `vision.hair_edge` finds where the face ends on each
and refines it by the photo's own colours. This module judges what was found. Whatever hides the root line is named
rather than measured: bangs are hair and skin in one picture too, so the parser alone would report their ends as a
hairline.

The rules in order, each for one ray and for its near neighbours; the first that holds decides. What each limit was set
by stands beside it.

    no forehead at all: hidden from the brows on       OCCLUDED
    the face does not end                              NONE
    the photo ends before the face does                OCCLUDED
    the face ends in a hat                             HAT
    the face ends in something that is no hair         NONE: bald, or receded past the crown
    the edge lies lower than a hairline can            OCCLUDED: bangs, a fringe
    something with an outline lies on the forehead     OCCLUDED: a hand
    skin and hair cannot be told apart by colour       OCCLUDED
    otherwise                                          OBSERVED

A fringe so short that it ends where hairlines can begin is not told from a low hairline.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vision.forehead_rays import ANGLE_STEP_DEG, ANGLES_DEG, MIDLINE, RADII, ForeheadColours, Rays, forehead_rays
from vision.hair_edge import ROW_STEP, HairEdge, find_hair_edge
from vision.head import Array
from vision.types import FaceLandmarks, Hairline, HairlinePoint, HairlineState, Label, ParsingMap, Photo, Points

FACE = (
    Label.SKIN,
    Label.LEFT_BROW,
    Label.RIGHT_BROW,
    Label.LEFT_EYE,
    Label.RIGHT_EYE,
    Label.EYEGLASSES,
    Label.NOSE,
)

BEYOND = (0.02, 0.10)
"""What lies so far beyond the edge is what the face ends in."""
LOWEST = 0.175
"""In face units, or 0.525 middle courts. Adults have 0.85 ± 0.09 (women of `vision.norms.COURTS`): that is 3.6
standard deviations below. Bangs that end above this are not recognised."""
LOWEST_COSINE = 0.7
"""To the sides the limit rises as a level line would, up to this cosine of the ray's angle: hair that falls over the
temple comes nearer than 0.25, the test portraits' hairlines lie at 0.26 and more."""
RELIEF_FROM = 0.05
RELIEF_MARGIN = 0.035
"""The forehead is looked at from here up to so far below the edge or the parser's border, whichever is lower, in face
units: between the two lies baby hair."""
RELIEF_STEP = 0.004
RELIEF_SMOOTH = 0.03
"""Shading wider than this is the forehead's own."""
RELIEF_SPAN = round(4 / ANGLE_STEP_DEG)
"""Rays to either side that are looked at together."""
MAX_RELIEF = 12.0
"""Distance in Lab between the forehead and its smoothed self. Wrinkles and shine of the test portraits reach 9.5; the
outline of a hand or finger 16 and more."""
MIN_MARGIN = 0.02
"""An edge so near to the border of the photo is that border."""
MIN_SEPARATION = 2.5
"""Standard deviations between the colours of skin and hair. Portraits have 4 and more, a hand
against the skin 1.4 and less."""
JUDGED_WITH = round(8 / ANGLE_STEP_DEG)
"""A ray is judged by the median of itself and so many to either side."""

EDGE_SD_OF_WIDTH = 1 / 7
EDGE_SD_OF_DISAGREEMENT = 1 / 4
"""Standard deviation of the edge's place from the width of its transition, and from how far parser and colours
disagree. Against two markings by eye errors are 0.8 of this on ten studio portraits, and 1.2 on nine others, whose
hair and skin are nearer to each other in colour."""
CONFIDENT_SD = 0.02
"""In face units: an edge known so well has 0.6 of the confidence of one known perfectly."""
UNKNOWN_SD = 2 * CONFIDENT_SD
"""Where no width of the transition was found on a ray that its neighbours speak for."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a judgement rests on, per ray (N,). Lengths in face units; NaN where nothing was found."""

    radius: Array
    margin: Array
    """From the edge to the border of the photo; negative outside."""
    forehead: Array
    """Probability of face where the ray begins, just above the glabella."""
    hair: Array
    """Probability of hair beyond the edge."""
    hat: Array
    other: Array
    """Probability of all that is neither face nor hair nor hat beyond the edge."""
    relief: Array
    """How much stands out of the forehead below the edge."""
    separation: Array
    """Of skin and hair, in standard deviations of their colours; 0 where that was not to be learned."""


def find_hairline(photo: Photo, landmarks: FaceLandmarks, parsing: ParsingMap) -> Hairline:
    """The hairline from the subject's right temple (viewer's left) to the left one."""
    rays = forehead_rays(landmarks)
    grid = np.broadcast_to(RADII[:, None], (RADII.size, ANGLES_DEG.size))
    face = rays.probability(parsing, FACE, grid)
    hair = rays.probability(parsing, (Label.HAIR,), grid)
    hat = rays.probability(parsing, (Label.HAT,), grid)
    colours = ForeheadColours(photo, rays, ROW_STEP)
    edge = find_hair_edge(colours, rays, hair, face)
    beyond_hair, beyond_hat, beyond_face = (_beyond(values, edge.border) for values in (hair, hat, face))
    findings = Findings(
        radius=edge.radius,
        margin=_margin(photo, rays.at(edge.radius)) / rays.unit_px,
        forehead=face[0].astype(np.float64),
        hair=beyond_hair,
        hat=beyond_hat,
        other=1 - beyond_hair - beyond_hat - beyond_face,
        relief=_relief(colours, rays, np.fmin(edge.border, edge.radius)),
        separation=edge.separation,
    )
    return _hairline(rays, edge, findings, judge(findings))


def judge(findings: Findings) -> tuple[HairlineState, ...]:
    """State of every ray, by the rules above."""
    near = Findings(*(_median_near(getattr(findings, name)) for name in Findings.__slots__))
    return tuple(_state(near, ray) for ray in range(findings.radius.size))


def _state(found: Findings, ray: int) -> HairlineState:
    if np.isnan(found.radius[ray]):
        return HairlineState.OCCLUDED if found.forehead[ray] < 0.5 else HairlineState.NONE
    if found.margin[ray] < MIN_MARGIN:
        return HairlineState.OCCLUDED
    if found.hat[ray] > max(found.hair[ray], found.other[ray]):
        return HairlineState.HAT
    if found.other[ray] > found.hair[ray]:
        return HairlineState.NONE
    too_low = found.radius[ray] * max(np.cos(np.radians(ANGLES_DEG[ray])), LOWEST_COSINE) < LOWEST
    if too_low or found.relief[ray] > MAX_RELIEF or found.separation[ray] < MIN_SEPARATION:
        return HairlineState.OCCLUDED
    return HairlineState.OBSERVED


def _hairline(rays: Rays, edge: HairEdge, findings: Findings, states: tuple[HairlineState, ...]) -> Hairline:
    places = rays.at(edge.radius)
    edge_sd = np.hypot(EDGE_SD_OF_WIDTH * edge.width, EDGE_SD_OF_DISAGREEMENT * edge.disagreement)
    edge_sd = np.where(np.isnan(edge_sd), UNKNOWN_SD, edge_sd)
    sharp = np.exp(-0.5 * (edge_sd / CONFIDENT_SD) ** 2)
    sure = {
        HairlineState.OBSERVED: findings.hair * sharp,
        HairlineState.OCCLUDED: findings.hair,
        HairlineState.HAT: findings.hat,
        HairlineState.NONE: findings.other,
    }

    def point(ray: int) -> HairlinePoint:
        confidence = float(np.clip(sure[states[ray]][ray], 0, 1))
        return HairlinePoint(float(places[ray, 0]), float(places[ray, 1]), states[ray], confidence)

    found = [ray for ray in range(len(states)) if not np.isnan(edge.radius[ray])]
    status = states[MIDLINE]
    if status is HairlineState.OBSERVED and np.isnan(edge.radius[MIDLINE]):
        status = HairlineState.OCCLUDED  # the neighbours show it, the midline itself does not: a strand before it
    seen = status is HairlineState.OBSERVED
    return Hairline(
        points=tuple(point(ray) for ray in found),
        status=status,
        trichion=point(MIDLINE) if seen else None,
        edge_sd_px=float(edge_sd[MIDLINE] * rays.unit_px) if seen else 0.0,
    )


def _margin(photo: Photo, places: Points) -> Array:
    """(N,), distance of places (N, 2) to the nearest border of the photo, in px; negative outside."""
    far = np.array([photo.width_px - 1, photo.height_px - 1])
    margin: Array = np.minimum(places, far - places).min(axis=1)
    return margin


def _beyond(values: NDArray[np.float32], border: Array) -> Array:
    """Mean of `values` (M, N) over the zone beyond the border (N,)."""
    inside = (RADII[:, None] >= border + BEYOND[0]) & (RADII[:, None] <= border + BEYOND[1])
    count = inside.sum(axis=0)
    mean: Array = np.where(count > 0, (values * inside).sum(axis=0) / np.maximum(count, 1), np.nan)
    return mean


def _relief(colours: ForeheadColours, rays: Rays, radius: Array) -> Array:
    """(N,), greatest distance in Lab between the forehead on each ray and its smoothed self."""
    radii = np.arange(RELIEF_FROM, RADII[-1], RELIEF_STEP)[:, None]
    lab = colours.at(rays.at(np.broadcast_to(radii, (radii.size, radius.size))))[..., :3]
    blurred = cv2.blur(np.ascontiguousarray(lab), (2 * RELIEF_SPAN + 1, 1), borderType=cv2.BORDER_REPLICATE)
    lab = np.asarray(blurred, dtype=np.float32)
    forehead = (radii < radius - RELIEF_MARGIN).astype(np.float32)
    smooth = _along(lab * forehead[..., None]) / np.maximum(_along(forehead), 1e-3)[..., None]
    relief: Array = (np.linalg.norm(lab - smooth, axis=2) * forehead).max(axis=0)
    return relief


def _along(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Smoothed along the rays; beyond both ends lies nothing."""
    sigma = RELIEF_SMOOTH / RELIEF_STEP
    return np.asarray(
        cv2.GaussianBlur(values, (1, 0), sigmaX=1, sigmaY=sigma, borderType=cv2.BORDER_CONSTANT), dtype=np.float32
    )


def _median_near(values: Array) -> Array:
    """Median of each ray and its neighbours; a ray stays unknown where most of them are."""
    windows = sliding_window_view(np.pad(values, JUDGED_WITH, mode="edge"), 2 * JUDGED_WITH + 1, axis=0)
    # NaN sorts behind all numbers: with k numbers in a window their median is at (k - 1) // 2.
    known = np.count_nonzero(~np.isnan(windows), axis=1)
    ordered = np.sort(windows, axis=1)
    middle = ordered[np.arange(values.size), np.maximum(known - 1, 0) // 2]
    return np.where(known > JUDGED_WITH, middle, np.nan)
