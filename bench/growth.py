"""How good grown hair is: the backend `local` on ten studio portraits, as the service grows it.

    python -m bench.growth [--keep FOLDER]

The region comes from the design alone. Of each person three pictures are made at height `low`, of those designs that
leave most to fill, and the call's own default: four styles at natural height. A receded head is made of one portrait
by taking the hair above the forehead away and leaving it at the sides. The canvas has two megapixels. Every finished
picture is proved as the service does it (`vision.growth.proof`), against the person's own hair. The figures are of all
`pictures` that were made, whether they would be shown or not: `not_convincing` of them would not, and `…_shown` leave
those out; `not_grown` counts the jobs of which the backend said that it cannot. `texture_ratio` is the worse of two:
the mean distance of cells of grown hair to the nearest cells of own hair, divided by the same distance of own hair near
by, cut out in the region's shape and compared with the hair around that; once of strand directions (total variation),
once of gradient strengths (Bray-Curtis). `seconds` is the backend alone. `outside_changed_pixels` is counted in the PNG
of the answer, decoded, against the photo, reduced anew, further from the region than anything may be painted.

The proof itself is put to the test on every job: the fakes of `bench.growth_controls` must fail it (`controls_passed`
counts those that do not), though a parser is fooled by all of them: theirs calls all of the region hair. The person's
own hair, moved to the front by hand, must pass (`moved_failed` counts those that do not), where there is enough of it:
behind the thin rim of hair of a receded head lies the background. Jobs in which a fake would cover less than half a
square centimetre are left out: the rest is the moved hair's own front. The limits were set with these portraits in
view, that of foreign hair on those with odd numbers; `held_out` are selfies of the same people, on which none was set:
one low design each. `edge_width_mm` goes from a quarter to three quarters of the way from skin to hair, as in
`vision.hair_edge`, `edge_whole_width_mm` from a tenth to nine tenths; `own_…` are those of the people's own hairlines.

`--keep` writes a sheet for each photo, before and after at full size, and every whole picture.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from bench.growth_controls import FAKES, Ground
from bench.growth_receded import receded
from bench.harness import BenchError, console, emit, table
from bench.mark_crop import resolve
from bench.portraits.face import Face
from vision.calls import GROWN_BY_DEFAULT, DesignOptions, HairlineHeight, Style
from vision.decode import decode
from vision.designs import design_hairlines
from vision.errors import PhotoError
from vision.growth.backend import GrowthJob, GrowthUnavailableError
from vision.growth.composite import INTO_HAIR_MM, INTO_SKIN_MM, composite, reach
from vision.growth.local import LocalGrowth
from vision.growth.proof import Evidence, convincing, prove
from vision.growth.proof_edge import FrontEdge
from vision.growth.scene import Weights, hair, job_for_design, landmarks_of, px_per_mm, scene_of
from vision.landmarks import LandmarkDetector
from vision.models import default_cache_dir, locate
from vision.parsing import parse
from vision.pipeline import Pipeline
from vision.png import encode_png
from vision.runtime import ParserRuntime, load_parser
from vision.types import Label, MeasureOptions, NoProgress, ParsingMap, Photo, RgbImage

PEOPLE = tuple(f"P{number:03}" for number in range(1, 11))
LOW = DesignOptions(height=HairlineHeight.LOW)
DEFAULT = DesignOptions(styles=GROWN_BY_DEFAULT)
STYLES = 3
SELFIE = "selfie"
RECEDED = "P005"
RECEDED_STYLES = 2
JUDGED_MM2 = 50.0
"""The proof is put to the test where a fake covers as much."""
WORKERS = 2
"""Fakes proved at once."""
SIDE_PX = 1448
"""Of the square canvas: 2.1 megapixels."""
SEED = 1
OUTSIDE_MM = 0.5
"""Beyond the widest feather: the borders of regions are antialiased."""
AROUND_PX = 60
"""Of the photo around what changed, on the sheets."""

NamedJobs = list[tuple[str, GrowthJob]]


@dataclass(frozen=True, slots=True)
class Grown:
    """One style of one person."""

    name: str
    seconds: float
    sent: bytes
    """The answer's PNG."""
    evidence: Evidence
    outside_changed_pixels: int

    @property
    def texture_ratio(self) -> float:
        """The worse of the two."""
        return max(self.evidence.likeness.orientation_ratio, self.evidence.likeness.gradient_ratio)

    def row(self) -> list[str]:
        """For people."""
        evidence, proof, edge = self.evidence, self.evidence.proof, self.evidence.edge
        return [
            self.name,
            f"{proof.hair_share:.2f}",
            *(_told(value, 1) for value in ((edge.distance_mm, edge.width_mm) if edge else (None, None))),
            _told(proof.delta_e, 1),
            f"{evidence.likeness.orientation_ratio:.2f}",
            f"{evidence.likeness.gradient_ratio:.2f}",
            _told(evidence.foreign, 2),
            f"{evidence.repetition:.2f}",
            f"{self.seconds:.1f}",
            broken.name if (broken := convincing(evidence)) else "",
        ]


def _told(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


HEADINGS = ("picture", "hair", "edge mm", "wide", "ΔE", "dirs", "grads", "alien", "rep", "s", "fails")
"""Share of hair; place and width of the edge; colour; ratios of directions and gradients; how foreign it is;
repetition."""


@dataclass(slots=True)
class Tally:
    """Of all jobs."""

    grown: list[Grown] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Picture and reason of what the backend did not grow."""
    controls: list[str] = field(default_factory=list)
    controls_passed: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    """Jobs with enough hair to be moved."""
    moved_failed: list[tuple[str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        """For those who wait."""
        fakes, moved = len(self.controls_passed), len(self.moved_failed)
        return (
            f"{len(self.grown)} pictures, {fakes} of {len(self.controls)} fakes passed, "
            f"{moved} of {len(self.moved)} times own hair failed"
        )


def held_out(names: Iterable[str]) -> int:
    """How many of the pictures are among those on which no limit was set."""
    return sum(name.split()[1] == SELFIE for name in names)


class Grower:
    """Models and backend."""

    def __init__(self, pipeline: Pipeline, detector: LandmarkDetector, parser: ParserRuntime) -> None:
        self._pipeline = pipeline
        self._detector = detector
        self._parser = parser
        self._backend = LocalGrowth()
        self._workers = ThreadPoolExecutor(WORKERS)

    def close(self) -> None:
        """Free the threads."""
        self._workers.shutdown()

    def sheets(self, person: str) -> Iterator[tuple[str, NamedJobs]]:
        """By the name of the sheet, the jobs on one photo."""
        photo = decode(resolve(f"openpeople/{person}").read_bytes())
        low = sorted(self._designed(photo, LOW), key=_size, reverse=True)[:STYLES]
        jobs = [(f"{person} {style} low", job) for style, job in low]
        yield person, jobs + [(f"{person} {style}", job) for style, job in self._designed(photo, DEFAULT)]
        if person == RECEDED:
            back = sorted(self._designed(self._receded(photo), DEFAULT), key=_size, reverse=True)[:RECEDED_STYLES]
            yield f"{person}_receded", [(f"{person} {style} receded", job) for style, job in back]

    def held_out_jobs(self, person: str) -> NamedJobs:
        """The same of the person's selfie, for the controls alone; none where the photo is refused."""
        selfie = resolve(f"openpeople/{person}").with_name("amateur_selfie.jpg")
        try:
            designed = self._designed(decode(selfie.read_bytes()), LOW)
        except PhotoError as refused:
            console.print(f"{person} {SELFIE}: {refused.reason}")
            return []
        return [(f"{person} {SELFIE} {style} low", job) for style, job in sorted(designed, key=_size)[-1:]]

    def _designed(self, photo: Photo, options: DesignOptions) -> list[tuple[Style, GrowthJob]]:
        facts = self._pipeline.facts(photo, MeasureOptions(annotate=False), NoProgress())
        scene = scene_of(facts, SIDE_PX)
        jobs: list[tuple[Style, GrowthJob]] = []
        for design in design_hairlines(facts, options):
            with suppress(GrowthUnavailableError):  # nothing to grow for this one
                jobs.append((design.style, job_for_design(scene, design, SEED, None)))
        return jobs

    def _receded(self, photo: Photo) -> Photo:
        small = cv2.resize(photo.rgb, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_AREA)
        reduced = Photo(np.asarray(small, dtype=np.uint8), photo.format, 1)
        landmarks = self._detector.find(reduced.rgb)[0]
        parsing = parse(reduced, landmarks, self._parser, lambda: None)
        return Photo(receded(Face(reduced.rgb, landmarks, parsing)), "PNG", 1)

    def evidence(self, job: GrowthJob, weights: Weights, finished: RgbImage) -> Evidence:
        """As the service measures it."""

        def parsed(rgb: RgbImage) -> ParsingMap:
            return parse(Photo(rgb, "PNG", 1), landmarks_of(job.scene), self._parser, lambda: None)

        return prove(job, finished, weights, parsed)

    def person(self, person: str, tally: Tally, keep: Path | None) -> None:
        """All pictures of one person, and the controls on each job."""
        for name, job in self.held_out_jobs(person):
            self._controls(name, job, reach(job), tally)
        for sheet, jobs in self.sheets(person):
            made = [grown for name, job in jobs if (grown := self._grown(name, job, tally))]
            tally.grown += made
            if keep is not None and made:
                for each in made:
                    (keep / f"{each.name.replace(' ', '_')}.png").write_bytes(each.sent)
                scene = jobs[0][1].scene
                both = before_and_after(scene.rgb, [decode(each.sent).rgb for each in made])
                (keep / f"{sheet}.png").write_bytes(encode_png(both).data)

    def _grown(self, name: str, job: GrowthJob, tally: Tally) -> Grown | None:
        weights = reach(job)
        self._controls(name, job, weights, tally)
        begun_s = time.perf_counter()
        try:
            painted = self._backend.grow(job, NoProgress())
        except GrowthUnavailableError as unavailable:
            tally.refused.append((name, unavailable.reason))
            return None
        seconds = time.perf_counter() - begun_s
        finished = composite(job.scene.rgb, painted, weights)
        sent = encode_png(finished).data
        evidence = self.evidence(job, weights, finished)
        return Grown(name, seconds, sent, evidence, changed_outside(job, decode(sent).rgb))

    def _controls(self, name: str, job: GrowthJob, weights: Weights, tally: Tally) -> None:
        ground = Ground(job)
        if ground.covered_mm2() < JUDGED_MM2 or job.scene.hairline is None:
            return
        tally.controls += [name] * len(FAKES)
        for fake, is_passed in self._workers.map(lambda fake: (fake, is_taken_for_hair(ground, fake, weights)), FAKES):
            if is_passed:
                tally.controls_passed.append(f"{name}: {fake}")
        if ground.is_hair_moved():
            tally.moved.append(name)
            failed = convincing(self.evidence(job, weights, composite(job.scene.rgb, ground.moved, weights)))
            if failed is not None:
                tally.moved_failed.append((name, str(failed)))


def _size(job: tuple[Style, GrowthJob]) -> float:
    return float(job[1].region.sum())


def is_taken_for_hair(ground: Ground, fake: str, weights: Weights) -> bool:
    """Whether a fake passes the proof."""
    job = ground.job
    finished = composite(job.scene.rgb, FAKES[fake](ground), weights)
    return convincing(prove(job, finished, weights, fooled_parser(job))) is None


def fooled_parser(job: GrowthJob) -> Callable[[RgbImage], ParsingMap]:
    """One that takes whatever is in the region for hair, as a barcode, a tile and paint are taken."""
    parsing = job.scene.parsing
    there = cv2.warpAffine(
        job.region,
        parsing.photo_from_map,
        parsing.probabilities.shape[:0:-1],
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
    )
    probabilities = parsing.probabilities * (1 - np.asarray(there))
    probabilities[Label.HAIR] += there
    told = ParsingMap(probabilities, parsing.photo_from_map)
    return lambda _finished: told


def changed_outside(job: GrowthJob, sent: RgbImage) -> int:
    """Pixels of the answer's picture that differ from the photo where nothing may have been painted."""
    scale = px_per_mm(job.scene)
    away = cv2.distanceTransform((job.region <= 0).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE) / scale
    widest = np.where(hair(job.scene) > 0, INTO_HAIR_MM, INTO_SKIN_MM) + OUTSIDE_MM
    return int(np.count_nonzero((sent != job.scene.rgb).any(axis=2) & (np.asarray(away) > widest)))


def before_and_after(before: RgbImage, finished: list[RgbImage]) -> RgbImage:
    """The changed part of the photo, then of every finished picture below it, two in a row, at full size."""
    changed = np.any([(picture != before).any(axis=2) for picture in finished], axis=0)
    left, top, width, height = cv2.boundingRect(changed.astype(np.uint8))
    part = np.s_[
        max(0, top - AROUND_PX) : top + height + AROUND_PX, max(0, left - AROUND_PX) : left + width + AROUND_PX
    ]
    parts = [picture[part] for picture in (before, *finished)]
    if len(parts) % 2:
        parts.append(np.zeros_like(parts[0]))
    return np.vstack([np.hstack(parts[at : at + 2]) for at in range(0, len(parts), 2)])


def main() -> None:
    """Grow, prove, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("people", nargs="*", default=PEOPLE, help="of openpeople; all ten without")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the pictures there")
    args = parser.parse_args()
    if args.keep is not None:
        args.keep.mkdir(parents=True, exist_ok=True)
    models = locate(default_cache_dir())
    pipeline = Pipeline.load(models, device="cpu")
    detector = LandmarkDetector(models.face_landmarker)
    grower = Grower(pipeline, detector, load_parser(models, "cpu"))
    tally = Tally()
    try:
        for person in args.people:
            begun_s = time.perf_counter()
            grower.person(person, tally, args.keep)
            console.print(f"{person}: {tally}, {time.perf_counter() - begun_s:.0f} s", soft_wrap=True)
    finally:
        grower.close()
        detector.close()
        pipeline.close()
    show(tally)
    emit(figures(tally))


def show(tally: Tally) -> None:
    """For people."""
    table("Grown by the backend local", HEADINGS, [one.row() for one in tally.grown])
    if tally.refused:
        table("Not grown", ["picture", "reason"], [list(row) for row in tally.refused])
    if tally.controls_passed:
        table("Fakes that passed the proof", ["picture"], [[name] for name in tally.controls_passed])
    if tally.moved_failed:
        table(
            "Own hair, moved by hand, that failed it", ["picture", "number"], [list(row) for row in tally.moved_failed]
        )


def figures(tally: Tally) -> dict[str, float | int | None]:
    """For machines."""
    grown = tally.grown
    shown = [one for one in grown if convincing(one.evidence) is None]
    if not shown:
        raise BenchError("nothing was grown that would be shown")

    def median_of(edges: Sequence[FrontEdge | None], number: str) -> float | None:
        known = [value for edge in edges if edge is not None and (value := getattr(edge, number)) is not None]
        return statistics.median(known) if known else None

    edges = [one.evidence.edge for one in grown]
    own_edges = [one.evidence.own_edge for one in grown]
    shares = [one.evidence.proof.hair_share for one in grown]
    return {
        "hair_share_mean": statistics.mean(shares),
        "hair_share_min": min(shares),
        "hair_share_min_shown": min(one.evidence.proof.hair_share for one in shown),
        "edge_mm_median": median_of(edges, "distance_mm"),
        "edge_width_mm_median": median_of(edges, "width_mm"),
        "edge_whole_width_mm_median": median_of(edges, "whole_width_mm"),
        "own_edge_width_mm_median": median_of(own_edges, "width_mm"),
        "own_edge_whole_width_mm_median": median_of(own_edges, "whole_width_mm"),
        "delta_e_max": max(one.evidence.proof.delta_e for one in grown),
        "delta_e_max_shown": max(one.evidence.proof.delta_e for one in shown),
        "texture_ratio_max": max(one.texture_ratio for one in grown),
        "texture_ratio_max_shown": max(one.texture_ratio for one in shown),
        "texture_ratio_median": statistics.median(one.texture_ratio for one in grown),
        "foreign_max": max((one.evidence.foreign for one in grown if one.evidence.foreign is not None), default=None),
        "repetition_max": max(one.evidence.repetition for one in grown),
        "outside_changed_pixels": sum(one.outside_changed_pixels for one in grown),
        "pictures": len(grown),
        "not_convincing": len(grown) - len(shown),
        "not_grown": len(tally.refused),
        "controls": len(tally.controls),
        "controls_held_out": held_out(tally.controls),
        "controls_passed": len(tally.controls_passed),
        "controls_passed_held_out": held_out(tally.controls_passed),
        "moved": len(tally.moved),
        "moved_held_out": held_out(tally.moved),
        "moved_failed": len(tally.moved_failed),
        "moved_failed_held_out": held_out(name for name, _ in tally.moved_failed),
        "seconds_p50": statistics.median(one.seconds for one in grown),
    }


if __name__ == "__main__":
    main()
