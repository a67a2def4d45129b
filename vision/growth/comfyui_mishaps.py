"""What can happen to a job on a diffusion server, and what is made of it: one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from vision.errors import VisionError
from vision.growth.backend import GrowthReason


class Mishap(StrEnum):
    """Why a job brought no picture. The names stand in the log."""

    UNREACHABLE = "unreachable"
    """No connection, or no answer within `Patience.unreachable_s`."""
    NOT_COMFYUI = "not_comfyui"
    """Something answers, in another protocol: a wrong URL, a login page, a proxy's error."""
    REFUSED = "refused"
    """The workflow is not valid on this server: a node or a model file is missing there."""
    FORGOTTEN = "forgotten"
    """Taken, and now neither in its queue nor in its history: the server has restarted."""
    INTERRUPTED = "interrupted"
    """Somebody else has interrupted it."""
    NO_OUTPUT = "no_output"
    """Ended well without a picture: answered from a cache."""
    NODE_FAILED = "node_failed"
    OUT_OF_MEMORY = "out_of_memory"
    BAD_PICTURE = "bad_picture"
    """Its output is no picture, or too large, or of another shape than what it was given."""
    STALLED = "stalled"
    """Our job runs and nothing moves."""
    QUEUE_STALLED = "queue_stalled"
    """Our job waits and what is before it does not move."""
    OUT_OF_TIME = "out_of_time"
    """The caller's time is over, and the server was at work."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """What a mishap means for the caller."""

    reason: GrowthReason
    again: bool
    """Whether a second attempt, with new names, may end better. There is never a third."""


CONSEQUENCES: Mapping[Mishap, Consequence] = {
    Mishap.UNREACHABLE: Consequence(GrowthReason.DIFFUSION_UNAVAILABLE, again=False),
    Mishap.NOT_COMFYUI: Consequence(GrowthReason.DIFFUSION_UNAVAILABLE, again=False),
    # A workflow that this server cannot run fails every call: the capability has to show it.
    Mishap.REFUSED: Consequence(GrowthReason.DIFFUSION_UNAVAILABLE, again=False),
    Mishap.FORGOTTEN: Consequence(GrowthReason.DIFFUSION_FAILED, again=True),
    Mishap.INTERRUPTED: Consequence(GrowthReason.DIFFUSION_FAILED, again=True),
    # New names make new cache keys.
    Mishap.NO_OUTPUT: Consequence(GrowthReason.DIFFUSION_FAILED, again=True),
    Mishap.NODE_FAILED: Consequence(GrowthReason.DIFFUSION_FAILED, again=False),
    Mishap.OUT_OF_MEMORY: Consequence(GrowthReason.DIFFUSION_FAILED, again=False),
    Mishap.BAD_PICTURE: Consequence(GrowthReason.DIFFUSION_FAILED, again=False),
    Mishap.STALLED: Consequence(GrowthReason.DIFFUSION_STALLED, again=False),
    Mishap.QUEUE_STALLED: Consequence(GrowthReason.DIFFUSION_STALLED, again=False),
    Mishap.OUT_OF_TIME: Consequence(GrowthReason.OUT_OF_TIME, again=False),
}


class MishapError(VisionError):
    """One attempt came to nothing.

    `detail` is for the log: status codes, node ids, class names; no path, address or piece of a photo or prompt.
    """

    def __init__(self, mishap: Mishap, detail: str = "") -> None:
        super().__init__(f"{mishap.value}: {detail}" if detail else mishap.value)
        self.mishap = mishap
        self.detail = detail


class NotSentError(MishapError):
    """UNREACHABLE before anything of a request had reached the server: it left nothing there."""

    def __init__(self, detail: str) -> None:
        super().__init__(Mishap.UNREACHABLE, detail)
