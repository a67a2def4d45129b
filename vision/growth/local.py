"""The backend `local`: hair from the person's own, by geometry and texture alone, on any CPU.

Where the region joins the present hair the person's own front is moved onto the new one (`strands.moved`): it is their
hairline, with its own softness, colours and strands. Where there is not enough hair behind it, or the region lies by
itself, and on heads whose hairline is not seen, new hair is sown in the own texture (`strands.sown`).
"""

from __future__ import annotations

import numpy as np

from vision.growth.backend import GrowthJob
from vision.growth.strands.looks import Looks
from vision.growth.strands.moved import move_front
from vision.growth.strands.own_hair import look_at_hair
from vision.growth.strands.plot import survey
from vision.growth.strands.sown import SOWING_STEPS, sow
from vision.types import Progress, RgbImage, Stage

STEPS = 3 + SOWING_STEPS
"""At most: where all of it can be moved, nothing is sown."""
LEAST_SOWN_MM2 = 2.0
"""Where the moved front leaves less than this to be done, nothing is sown."""


class LocalGrowth:
    """Grows hair on this machine. Holds nothing between jobs; the same job gives the same picture."""

    name = "local"

    def grow(self, job: GrowthJob, progress: Progress) -> RgbImage:
        """As `vision.growth.backend.GrowthBackend.grow`: NOTHING_TO_GROW or NO_OWN_HAIR where it cannot."""
        progress.enter(Stage.GROWING, STEPS)
        rng = np.random.default_rng(job.seed)
        coarse, plot = survey(job)
        looks = Looks.of(coarse)
        progress.step()
        own = look_at_hair(job.scene.rgb, coarse, looks)
        progress.step()
        moved = move_front(job, coarse, plot, looks, rng)
        progress.step()
        share = np.zeros_like(plot.region) if moved is None else moved.share
        painted = plot.rgb if moved is None else moved.picture
        if float((plot.region * (1 - share)).sum()) * plot.mm**2 > LEAST_SOWN_MM2:
            sown = sow(job.scene.rgb, coarse, plot, own, where=share < 1, rng=rng, progress=progress)
            painted = sown + share[..., None] * (painted - sown)
        canvas = job.scene.rgb.copy()
        canvas[plot.window] = np.clip(np.rint(painted * 255), 0, 255).astype(np.uint8)
        return canvas

    def close(self) -> None:
        """Nothing to free."""
