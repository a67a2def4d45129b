"""The interface behind which hair grows, whoever grows it.

A backend paints; what becomes of its picture is decided outside of it: `vision.growth.composite` puts nothing but the
feathered region of it back into the photo, `vision.growth.proof` measures the result, and what does not pass is not
shown.

Frame: the *canvas*, which is the upright photo at the size of the answer's picture (`GrowthScene.scale` times the
photo). Pixels, origin at the top left corner, x right as the viewer sees it, y down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vision.errors import VisionError
from vision.types import ParsingMap, Points, Progress, RgbImage


class GrowthReason(StrEnum):
    """Why there is no grown picture. Part of the public contract (`grown_reason`)."""

    BACKEND_NONE = "BACKEND_NONE"
    """This worker's configuration grows nothing."""
    NOTHING_TO_GROW = "NOTHING_TO_GROW"
    """The present hair reaches the design everywhere, or fills the region already."""
    CHILD = "CHILD"
    """Nothing is grown on a child."""
    HAIRLINE_HIDDEN = "HAIRLINE_HIDDEN"
    """Hair or a hat covers the present hairline: nobody sees from where hair would have to grow."""
    NO_OWN_HAIR = "NO_OWN_HAIR"
    """Too little of the person's own hair is in the photo to take colour and texture from."""
    NOT_CONVINCING = "NOT_CONVINCING"
    """The picture was made and did not pass its proof."""
    DIFFUSION_UNAVAILABLE = "DIFFUSION_UNAVAILABLE"
    """The diffusion server could not be reached, or refused the job."""
    DIFFUSION_FAILED = "DIFFUSION_FAILED"
    """It took the job and did not bring a picture."""
    DIFFUSION_STALLED = "DIFFUSION_STALLED"
    """It took the job and stood still."""
    OUT_OF_TIME = "OUT_OF_TIME"
    """The caller's time was nearly over."""
    GROWTH_FAILED = "GROWTH_FAILED"
    """What grows hair here broke. A fault of this program or its machine, never the photo's."""

    @property
    def is_servers_fault(self) -> bool:
        """Whether growth for other photos would fail as well: costs `capability/growth`."""
        return self in _SERVERS_FAULTS


_SERVERS_FAULTS = frozenset(
    {
        GrowthReason.DIFFUSION_UNAVAILABLE,
        GrowthReason.DIFFUSION_FAILED,
        GrowthReason.DIFFUSION_STALLED,
        GrowthReason.GROWTH_FAILED,
    }
)


class GrowthUnavailableError(VisionError):
    """No picture this time, for a named reason. The message is for the log: no path, address or piece of a photo."""

    def __init__(self, reason: GrowthReason, message: str = "") -> None:
        super().__init__(message or reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class GrowthScene:
    """One photo at the size of the canvas, and what is known of it there. Shared by all jobs of a call.

    Equal to itself alone: what `vision.growth.scene` finds in it is kept as long as it is.
    """

    rgb: RgbImage
    """(H, W, 3)."""
    scale: float
    """Canvas pixels per photo pixel, at most 1."""
    landmarks: Points
    """(478, 2)."""
    parsing: ParsingMap
    """Its `photo_from_map` leads to the canvas."""
    hairline: Points | None
    """(N, 2), the observed points of the present hairline from the subject's right temple to the left one; None when
    it is not observed."""
    mm_per_px: float | None
    roll_deg: float
    """As in `vision.types.Pose`."""


@dataclass(frozen=True, slots=True)
class GrowthJob:
    """One region to be filled with hair."""

    scene: GrowthScene
    region: NDArray[np.float32] = field(repr=False)
    """(H, W), 1 where hair is to grow, 0 outside, antialiased at the border."""
    front: Points | None
    """(N, 2), the free edge towards the face: the design's curve. None for a region that the user marked; there it is
    the part of the border beyond which no hair lies."""
    seed: int
    timeout_s: float | None
    """What is left for this job; None: as long as the backend's own limits allow. `progress` ends what takes longer:
    only who has to tidy up, or waits without a look at it, need mind the time by itself."""


class GrowthBackend(Protocol):
    """Used by one thread."""

    @property
    def name(self) -> str:
        """`local`, `comfyui` or `none`, as in the configuration."""

    def grow(self, job: GrowthJob, progress: Progress) -> RgbImage:
        """The whole canvas (H, W, 3) with hair in the region; only the feathered region of it will be used.

        The same job gives the same picture where the backend can promise that. Raises `GrowthUnavailableError`, and
        `CancelledCallError` when nobody waits any more, having tidied up behind itself; both may come out of
        `progress`, the first one when the time is over.
        """

    def close(self) -> None:
        """Free what it holds."""


class NoGrowth:
    """The backend `none`."""

    name = "none"

    def grow(self, job: GrowthJob, progress: Progress) -> RgbImage:
        """Always raises."""
        raise GrowthUnavailableError(GrowthReason.BACKEND_NONE)

    def close(self) -> None:
        """Nothing to free."""
