"""The pipeline and its first stages, with what they found on the test pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import cv2
import numpy as np

from bench.portraits.face import Face
from bench.portraits.negatives import SIDE_PX
from bench.portraits.pictures import read_photo
from vision.errors import PhotoError
from vision.landmarks import LandmarkDetector
from vision.models import default_cache_dir, locate
from vision.parsing import parse
from vision.pipeline import Pipeline
from vision.runtime import ParserRuntime, load_parser
from vision.types import FaceLandmarks, Facts, MeasureOptions, NoProgress, ParsingMap, Photo


class Looker:
    """The pipeline, and its first two stages alone; keeps what they found on the test pictures."""

    def __init__(self, pipeline: Pipeline, detector: LandmarkDetector, parser: ParserRuntime) -> None:
        self._pipeline = pipeline
        self._detector = detector
        self.parser = parser
        self.facts_of = cache(self._facts_of)
        self.parts_of = cache(self._parts_of)

    def facts(self, photo: Photo) -> Facts | PhotoError:
        """What the pipeline says of a photo: facts, or why it was refused."""
        try:
            return self._pipeline.facts(photo, MeasureOptions(annotate=False), NoProgress())
        except PhotoError as refused:
            return refused

    def _facts_of(self, picture: str) -> Facts | PhotoError:
        return self.facts(read_photo(picture))

    def _parts_of(self, picture: str) -> tuple[Photo, FaceLandmarks, ParsingMap]:
        return self.parts(read_photo(picture))

    def parts(self, photo: Photo) -> tuple[Photo, FaceLandmarks, ParsingMap]:
        """Landmarks and parsing without any gate."""
        landmarks = self._detector.find(photo.rgb)[0]
        return photo, landmarks, parse(photo, landmarks, self.parser, lambda: None)

    def person(self, number: str) -> Face:
        """A reduced studio portrait, for edits."""
        photo = read_photo(f"openpeople/{number}")
        small = cv2.resize(photo.rgb, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_AREA)
        reduced, landmarks, parsing = self.parts(Photo(np.asarray(small, dtype=np.uint8), photo.format, 1))
        return Face(reduced.rgb, landmarks, parsing)


@contextmanager
def looker() -> Iterator[Looker]:
    """With models loaded."""
    models = locate(default_cache_dir())
    pipeline = Pipeline.load(models, device="cpu")
    detector = LandmarkDetector(models.face_landmarker)
    try:
        yield Looker(pipeline, detector, load_parser(models, "cpu"))
    finally:
        detector.close()
        pipeline.close()
