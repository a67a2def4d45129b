"""A growth call from facts to pictures: design or mark, grow, put back, prove, encode; each result as it is finished.

Who grows is behind `vision.growth.backend`; this is the order of things around it, and what is told when nothing grew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from secrets import randbelow

from vision.answer_size import PICTURES_BYTES, encode_fitting, fitting
from vision.calls import (
    GROWN_BY_DEFAULT,
    DesignOptions,
    DrawnDesign,
    EmitRegion,
    EmitStyle,
    GrowRegionOptions,
    GrowStylesOptions,
    GrowthProof,
    GrowthSummary,
    HairlineDesign,
    RegionGrowth,
    StyleGrowth,
)
from vision.designs import design_hairlines, draw_design
from vision.growth.backend import GrowthBackend, GrowthJob, GrowthReason, GrowthScene, GrowthUnavailableError
from vision.growth.composite import composite, reach
from vision.growth.deadline import Deadline
from vision.growth.marked import draw_marked
from vision.growth.proof import convincing, prove
from vision.growth.region import MarkedRegion, check_region
from vision.growth.scene import job_for_design, job_for_region, landmarks_of, scene_of
from vision.parsing import CROPS
from vision.photo_warnings import is_child
from vision.types import (
    EncodedImage,
    FaceLandmarks,
    Facts,
    HairlineState,
    Lang,
    ParsingMap,
    Progress,
    RgbImage,
    Stage,
)

log = logging.getLogger(__name__)

AROUND_S = 4.0
"""What a picture takes beside its growth: proof, encoding and sending. Measured at 2048 px: 1.3 to 2.7 s of processor
time, which is 1 to 2 s on two cores; so twice of what an idle machine needs, before a picture exists by which that
could be learnt."""
SENDING_S = 1.0
"""The last of it: a proof that is not done by then is none, and the picture is not shown."""
LEAST_S = 2.0
"""With less time than this no growth is begun."""
SEEDS = 2**31
"""Seeds that are chosen here lie below: every client's numbers can hold them."""
HIDDEN = frozenset({HairlineState.OCCLUDED, HairlineState.HAT})
"""From a hairline that nobody sees no hair can be grown down to a design. From none, on a bald head, it can."""

RESULT_BYTES = PICTURES_BYTES // 2
"""For each of the two pictures of a result, the drawn and the grown one."""

Parse = Callable[[RgbImage, FaceLandmarks, Callable[[], None]], ParsingMap]
"""The real parser, on a picture and the face in it; it says that it moves."""
MakeJob = Callable[[float | None], GrowthJob]
"""A timeout in seconds to a job. Raises `GrowthUnavailableError` when there is nothing to grow."""


@dataclass(frozen=True, slots=True)
class Grown:
    """What came of one job."""

    image: EncodedImage | None
    reason: str
    """A `GrowthReason` where there is no image; else empty."""
    proof: GrowthProof | None


class Growth:
    """Grows the pictures of one call within its time. Used by the thread that computes."""

    def __init__(
        self,
        backend: GrowthBackend,
        parse: Parse,
        progress: Progress,
        *,
        timeout_s: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.backend = backend.name
        self.progress = progress
        self._grow = backend.grow
        self._parse = parse
        self._clock = clock
        self._ends_s = None if timeout_s is None else clock() + timeout_s
        self._out_of_order: GrowthReason | None = None
        """The server's fault that a picture of this call has met: the others do not wait for it again."""

    def grow(self, make_job: MakeJob, pictures: int = 1) -> Grown:
        """The next of so many pictures that are still to be made; raises `CancelledCallError`."""
        try:
            timeout_s = self._timeout_s(pictures)
            until = self._until(None if timeout_s is None else self._clock() + timeout_s)
            until.enter(Stage.GROWING)  # a backend may go on to stages of its own
            job = make_job(timeout_s)
            until.look()
            return self._proven(job, self._grow(job, until))
        except GrowthUnavailableError as error:
            if error.reason.is_servers_fault:
                self._out_of_order = error.reason
            return Grown(None, error.reason, None)

    def _proven(self, job: GrowthJob, canvas: RgbImage) -> Grown:
        until = self._until(None if self._ends_s is None else self._ends_s - SENDING_S)
        until.enter(Stage.PROVING, len(CROPS) + 1)
        weights, face = reach(job), landmarks_of(job.scene)
        finished = composite(job.scene.rgb, canvas, weights)
        evidence = prove(job, finished, weights, lambda rgb: self._parse(rgb, face, until.step), until.look)
        broken = convincing(evidence)
        if broken is not None:
            log.info("not_grown: %s, %s, %s", self.backend, GrowthReason.NOT_CONVINCING, broken)
            return Grown(None, GrowthReason.NOT_CONVINCING, evidence.proof)
        until.step()
        return Grown(encode_fitting(finished, RESULT_BYTES), "", evidence.proof)

    def _until(self, ends_s: float | None) -> Progress:
        return Deadline(self.progress, ends_s, self._clock)

    def _timeout_s(self, pictures: int) -> float | None:
        """For the growth of the next of so many: an equal part of what is left, and never less than growth takes.

        Raises `GrowthUnavailableError` when none is worth to be begun.
        """
        if self._out_of_order:
            raise GrowthUnavailableError(self._out_of_order)
        if self._ends_s is None:
            return None
        left_s = self._ends_s - self._clock()
        share_s = min(left_s, max(left_s / pictures, LEAST_S + AROUND_S)) - AROUND_S
        if share_s < LEAST_S:
            raise GrowthUnavailableError(GrowthReason.OUT_OF_TIME)
        return share_s


def grow_styles(facts: Facts, options: GrowStylesOptions, growth: Growth, emit: EmitStyle) -> GrowthSummary:
    """Every style designed, drawn and grown, one after the other. Raises `CancelledCallError`.

    Where the present hairline is covered (HAIRLINE_HIDDEN) the designs are told and nothing is grown.
    """
    side_px, seed = options.max_output_side_px, _seed(options.seed)
    growth.progress.enter(Stage.DESIGNING)
    designs = design_hairlines(facts, DesignOptions(options.styles or GROWN_BY_DEFAULT, options.sex))
    growth.progress.enter(Stage.DRAWING, len(designs))
    drawn = []
    for design in designs:  # all of them first: they are shown whatever becomes of growth, and its time then is known
        drawn.append(DrawnDesign(design, _drawn(facts, design, options.lang, side_px)))
        growth.progress.step()
    scene = scene_of(facts, side_px)
    for made, each in enumerate(drawn):
        make_job = _from_seen(facts, _design_job(scene, each.design, seed))
        grown = growth.grow(_of_adult(facts, make_job), len(drawn) - made)
        emit(StyleGrowth(each, grown.image, grown.reason, grown.proof))
    return GrowthSummary(facts, seed, growth.backend, facts.warnings)


def grow_region(
    facts: Facts, region: MarkedRegion, options: GrowRegionOptions, growth: Growth, emit: EmitRegion
) -> GrowthSummary:
    """The marked region, drawn and grown. Raises `PhotoError` (REGION_…), `CancelledCallError`."""
    side_px, seed = options.max_output_side_px, _seed(options.seed)
    growth.progress.enter(Stage.DRAWING)
    scene = scene_of(facts, side_px)
    growth.progress.step()
    check_region(region, scene)
    growth.progress.step()
    marked = fitting(
        lambda side: draw_marked(facts, region, options.lang, side), _alone, side_px, most_bytes=RESULT_BYTES
    )
    grown = growth.grow(_of_adult(facts, lambda timeout_s: job_for_region(scene, region.mask, seed, timeout_s)))
    area_cm2 = region.area_cm2(facts.landmarks, facts.scale.mm_per_px)
    emit(RegionGrowth(marked, grown.image, grown.reason, region.area_px2, area_cm2, grown.proof))
    return GrowthSummary(facts, seed, growth.backend, facts.warnings)


def _drawn(facts: Facts, design: HairlineDesign, lang: Lang, side_px: int) -> EncodedImage:
    return fitting(lambda side: draw_design(facts, design, lang, side), _alone, side_px, most_bytes=RESULT_BYTES)


def _alone(image: EncodedImage) -> tuple[EncodedImage]:
    return (image,)


def _design_job(scene: GrowthScene, design: HairlineDesign, seed: int) -> MakeJob:
    return lambda timeout_s: job_for_design(scene, design, seed, timeout_s)


def _from_seen(facts: Facts, make_job: MakeJob) -> MakeJob:
    """The same, that refuses to grow down from a hairline that nobody sees."""

    def refuse(_timeout_s: float | None) -> GrowthJob:
        raise GrowthUnavailableError(GrowthReason.HAIRLINE_HIDDEN)

    return refuse if facts.hairline.status in HIDDEN else make_job


def _of_adult(facts: Facts, make_job: MakeJob) -> MakeJob:
    """The same, that refuses children: nothing is grown on them."""

    def refuse(_timeout_s: float | None) -> GrowthJob:
        raise GrowthUnavailableError(GrowthReason.CHILD)

    return refuse if is_child(facts.warnings) else make_job


def _seed(given: int | None) -> int:
    return randbelow(SEEDS) if given is None else given
