"""Fakes that a face parser takes for hair, and the one thing that is hair: the person's own, moved by hand.

Each makes a whole canvas (H, W, 3) for a job, as a backend would. The fakes must fail the proof; the moved hair must
pass it, where there is enough of it to be moved. Textures are laid behind the soft front of the moved hair: what
refuses them is what they are made of, not where and how they end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.growth.backend import GrowthJob
from vision.growth.scene import hair, px_per_mm
from vision.head import GLABELLA
from vision.types import Points, RgbImage

NEAR_MM = 25.0
BAR_PX = (1, 5)
"""Widths of the barcode's bars: from the first to just below the second."""
TILE_MM = (3.0, 7.0)
"""Side of a tile: a third of that of a square as large as the region, within these limits. What does not come again
is no tile."""
GRAIN_PX, NOISE_SHARE = 1.2, 0.6
"""Smoothness of noise, and its strength in that of the own hair."""
SPECTRUM_MM = 8.0
SHIFT_MM = 12.0
FULL_MM = (1.0, 2.5)
"""From the first to the second depth a texture behind a front takes over wholly."""
HAIR_MOVED = 0.99
"""Part of what was moved behind the front that has to be hair: behind a thin rim of hair lies the background."""
SEED = 7


class Ground:
    """What the controls of one job are made of and laid on, each found once."""

    def __init__(self, job: GrowthJob) -> None:
        self.job = job

    @cached_property
    def distance(self) -> NDArray[np.float32]:
        """(H, W), pixels to the region."""
        outside = (self.job.region < 0.5).astype(np.uint8)
        return np.asarray(cv2.distanceTransform(outside, cv2.DIST_L2, 5), dtype=np.float32)

    @cached_property
    def own(self) -> NDArray[np.bool_]:
        """(H, W), hair near the region that was there before."""
        near = (self.distance > 0) & (self.distance < NEAR_MM * px_per_mm(self.job.scene))
        own: NDArray[np.bool_] = (hair(self.job.scene) > 0.9) & near
        return own

    @cached_property
    def depth_mm(self) -> NDArray[np.float64]:
        """(H, W), how far behind the new edge each pixel of region and present hair lies."""
        either = ((self.job.region > 0.5) | (hair(self.job.scene) > 0.5)).astype(np.uint8)
        depth = np.asarray(cv2.distanceTransform(either, cv2.DIST_L2, 5), dtype=np.float64)
        return depth / px_per_mm(self.job.scene)

    @cached_property
    def moved(self) -> RgbImage:
        """The own hair, drawn to the front."""
        return self._drawn[0]

    @cached_property
    def _drawn(self) -> tuple[RgbImage, NDArray[np.float32]]:
        return drawn(self.job)

    def is_hair_moved(self) -> bool:
        """Whether what lies behind the moved front is hair throughout, and not what is seen beyond it."""
        behind = self._drawn[1][(self.job.region > 0.5) & (self.depth_mm >= FULL_MM[1])]
        return bool(behind.size) and float((behind >= 0.5).mean()) >= HAIR_MOVED

    @cached_property
    def share(self) -> NDArray[np.float64]:
        """(H, W, 1), how far the moved hair goes from skin to hair: what a texture behind its front takes over."""
        scene, drawn = self.job.scene, self.moved.astype(np.float32)
        bare = (self.job.region > 0.5) & (hair(scene) < 0.05)
        skin = np.median(scene.rgb[bare if bare.any() else self.job.region > 0.5], axis=0)
        towards = scene.rgb[self.own].mean(axis=0) - skin
        level = np.clip((drawn - skin) @ towards / max(float(towards @ towards), 1.0), 0, 1)
        deep = np.clip((self.depth_mm - FULL_MM[0]) / (FULL_MM[1] - FULL_MM[0]), 0, 1)
        return np.asarray(np.maximum(level, deep)[..., None], dtype=np.float64)

    def covered_mm2(self) -> float:
        """How much of the region lies so far behind its front that a fake covers it wholly."""
        deep = (self.job.region > 0.5) & (self.depth_mm >= FULL_MM[1])
        return float(np.count_nonzero(deep)) / px_per_mm(self.job.scene) ** 2


Make = Callable[[Ground], RgbImage]


def barcode(ground: Ground) -> RgbImage:
    """Upright bars, each in the colour of some pixel of the own hair."""
    rng = np.random.default_rng(SEED)
    height, width = ground.job.region.shape
    own = ground.job.scene.rgb[ground.own]
    bars = np.repeat(own[rng.integers(0, len(own), width)], rng.integers(*BAR_PX, width), axis=0)[:width]
    return np.broadcast_to(bars, (height, width, 3)).copy()


def tiled(ground: Ground) -> RgbImage:
    """One square of the own hair, laid side by side."""
    height, width = ground.job.region.shape
    scale = px_per_mm(ground.job.scene)
    tile = _square(ground, round(scale * float(np.clip(np.sqrt(ground.job.region.sum()) / scale / 3, *TILE_MM))))
    side = len(tile)
    return np.tile(tile, (height // side + 1, width // side + 1, 1))[:height, :width]


def paint(ground: Ground) -> RgbImage:
    """The mean colour of the own hair, flat."""
    mean = ground.job.scene.rgb[ground.own].mean(axis=0)
    return np.broadcast_to(np.rint(mean).astype(np.uint8), ground.job.scene.rgb.shape).copy()


def noise(ground: Ground) -> RgbImage:
    """Noise without any strand, as light, as coloured and nearly as strong as the own hair."""
    own = ground.job.scene.rgb[ground.own].astype(np.float64)
    grain = cv2.GaussianBlur(np.random.default_rng(SEED).standard_normal(ground.job.region.shape), (0, 0), GRAIN_PX)
    return _bytes(own.mean(axis=0) + NOISE_SHARE * own.std(axis=0) * (grain / grain.std())[..., None])


def spectrum_noise(ground: Ground) -> RgbImage:
    """Noise with the spectrum of a square of the own hair: its directions and its fineness, and no strand."""
    square = _square(ground, round(SPECTRUM_MM * px_per_mm(ground.job.scene))).astype(np.float64)
    mean = square.mean(axis=(0, 1))
    around = (square - mean) * np.outer(np.hanning(len(square)), np.hanning(len(square)))[..., None]
    grain = np.random.default_rng(SEED).standard_normal(ground.job.region.shape)
    planes = []
    for plane in np.moveaxis(around, 2, 0):
        kernel = np.fft.fftshift(np.fft.ifft2(np.abs(np.fft.fft2(plane))).real)
        kernel /= np.sqrt((kernel**2).sum())
        planes.append(cv2.filter2D(grain, -1, kernel, borderType=cv2.BORDER_REFLECT))
    return _bytes(mean + (square - mean).std(axis=(0, 1)) * np.dstack(planes))


def upside_down(ground: Ground) -> RgbImage:
    """The photo mirrored about the upper end of the region."""
    height = len(ground.job.region)
    top = int(np.flatnonzero((ground.job.region > 0.5).any(axis=1))[0])
    return ground.job.scene.rgb[np.clip(2 * top - np.arange(height), 0, height - 1)]


def shifted(ground: Ground) -> RgbImage:
    """The whole photo, moved down until hair lies on the region."""
    return np.roll(ground.job.scene.rgb, round(SHIFT_MM * px_per_mm(ground.job.scene)), axis=0)


def blurred(sigma_px: float) -> Make:
    """The moved hair, out of focus."""
    return lambda ground: np.asarray(cv2.GaussianBlur(ground.moved, (0, 0), sigma_px), dtype=np.uint8)


def behind_front(texture: Make) -> Make:
    """`texture` where the moved hair is, with that one's front."""

    def laid(ground: Ground) -> RgbImage:
        drawn = ground.moved.astype(np.float32)
        return _bytes(drawn + ground.share * (texture(ground) - drawn))

    return laid


def drawn(job: GrowthJob) -> tuple[RgbImage, NDArray[np.float32]]:
    """The photo and its hair (H, W), drawn towards the glabella, ray by ray, until the hairline lies on the front where
    that is nearer.

    Raises ValueError without a hairline or a front.
    """
    scene, front = job.scene, job.front
    if scene.hairline is None or front is None:
        raise ValueError("nothing can be moved without a hairline and a front")
    height, width = job.region.shape
    present = hair(scene)
    centre = scene.landmarks[GLABELLA]
    y, x = np.mgrid[:height, :width].astype(np.float32)
    across, up = x - np.float32(centre[0]), np.float32(centre[1]) - y
    radius, angle = np.hypot(across, up), np.arctan2(across, up)
    line, wanted = (_radius_at(points - centre, angle) for points in (scene.hairline, front))
    stretch = (radius + np.maximum(0.0, line - wanted)) / np.maximum(radius, 1.0)
    at = [(origin + offset * stretch).astype(np.float32) for origin, offset in zip(centre, (across, -up), strict=True)]

    def pulled(plane: NDArray[np.uint8] | NDArray[np.float32]) -> NDArray[np.float32]:
        values = cv2.remap(plane, at[0], at[1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(values, dtype=np.float32)

    picture, its_hair = pulled(scene.rgb), pulled(present)
    # The background is not drawn over hair with it.
    kept = cv2.GaussianBlur(np.clip(present - its_hair, 0, 1), (0, 0), px_per_mm(scene))[..., None]
    return _bytes(picture + kept * (scene.rgb.astype(np.float32) - picture)), its_hair


FAKES: Mapping[str, Make] = {
    "barcode": behind_front(barcode),
    "tiled": behind_front(tiled),
    "paint": behind_front(paint),
    "noise": behind_front(noise),
    "spectrum noise": behind_front(spectrum_noise),
    "upside down": behind_front(upside_down),
    "shifted": shifted,
    "blurred 1.5 px": blurred(1.5),
    "blurred 3 px": blurred(3.0),
}


def _bytes(values: NDArray[np.floating]) -> RgbImage:
    return np.asarray(np.clip(np.rint(values), 0, 255), dtype=np.uint8)


def _square(ground: Ground, side: int) -> RgbImage:
    """(side, side, 3), the square nearest to the region that holds hair alone, or as nearly as there is one."""
    height, width = ground.job.region.shape
    full = cv2.blur(ground.own.astype(np.float32), (side, side))
    whole = full >= min(0.999, float(full.max()))
    y, x = np.unravel_index(np.argmin(np.where(whole, ground.distance, np.inf)), whole.shape)
    top, left = min(max(0, int(y) - side // 2), height - side), min(max(0, int(x) - side // 2), width - side)
    return ground.job.scene.rgb[top : top + side, left : left + side]


def _radius_at(line: Points, angle: NDArray[np.floating]) -> NDArray[np.floating]:
    """How far a line (N, 2) about the origin is from it, in directions `angle` from straight up, clockwise."""
    angles = np.arctan2(line[:, 0], -line[:, 1])
    order = np.argsort(angles)
    return np.asarray(np.interp(angle, angles[order], np.hypot(*line[order].T)))
