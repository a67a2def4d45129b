"""The models of the local calls: landmarks always, the parser where its ONNX form is at hand.

Neither torch nor onnx is imported here: the parser's form is made by `hairmesh models fetch` where these are, and then
copied.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import cv2
import numpy as np
import structlog

from edge.errors import ApiError
from edge.local.findings import Described, Json, NotLoadedError, Place, Points, Ticket
from edge.photo import MIN_SIDE_PX
from vision import parser_form
from vision.canary import check_landmarks, check_logits, drawn_face
from vision.decode import DecoderMissingError, decode
from vision.describe import describe
from vision.errors import ModelError, PhotoError
from vision.features import check_features, see_features
from vision.hairline import find_hairline
from vision.landmarks import LandmarkDetector
from vision.models import FACE_LANDMARKER, FACE_PARSER, FileState, ModelFiles, check, default_cache_dir, placed
from vision.parsing import normalized, parse
from vision.photo_warnings import find_warnings
from vision.raster import Limits
from vision.runtime import OnnxParser
from vision.special_points import special_points
from vision.steady_mesh import find_face
from vision.types import FaceLandmarks, Photo

JPEG_SIDE_PX = 1024
"""Long side of the photo that a vision LLM is shown."""
JPEG_QUALITY = 88

log = structlog.get_logger()


class LocalEngine:
    """See `edge.local.findings.Engine`."""

    def __init__(self, detector: LandmarkDetector, parser: OnnxParser | None) -> None:
        self._detector = detector
        self._parser = parser

    @property
    def sees_hair(self) -> bool:
        """Whether there is a parser."""
        return self._parser is not None

    def special_points(self, data: bytes, max_pixels: int, ticket: Ticket) -> Points:
        """Named points of the face that counts."""
        try:
            photo, landmarks = self._find(data, max_pixels, ticket)
        except PhotoError as refused:
            raise ApiError(refused.reason, refused.details) from None
        named = special_points(landmarks)
        return Points(_place(photo, landmarks), {name: (point.x_px, point.y_px) for name, point in named.items()})

    def describe(self, data: bytes, max_pixels: int, ticket: Ticket, *, with_jpeg: bool) -> Described:
        """The face that counts in words."""
        try:
            return self._describe(data, max_pixels, ticket, with_jpeg=with_jpeg)
        except PhotoError as refused:
            raise ApiError(refused.reason, refused.details) from None

    def check(self) -> None:
        """The test picture through both models; raises `ModelError` when an answer differs from the known one."""
        picture = drawn_face()
        check_landmarks(self._detector.detect(picture))
        if self._parser is not None:
            logits = self._parser(normalized(picture))
            check_logits(logits, self._parser.weights_sha256, self._parser.canary_reference)

    def close(self) -> None:
        """Free the models."""
        self._detector.close()

    def _describe(self, data: bytes, max_pixels: int, ticket: Ticket, *, with_jpeg: bool) -> Described:
        photo, landmarks = self._find(data, max_pixels, ticket)
        parsing = hairline = None
        warnings: tuple[Json, ...] = ()
        if self._parser is not None:
            parsing = parse(photo, landmarks, self._parser, ticket.step)
            check_features(see_features(landmarks, parsing), lambda: None)  # the way up is known
            ticket.step()
            hairline = find_hairline(photo, landmarks, parsing)
            warnings = tuple(asdict(warning) for warning in find_warnings(photo, landmarks, parsing))
        ticket.step()
        found = describe(photo, landmarks, parsing, hairline)
        jpeg = plain_jpeg(photo) if with_jpeg else None
        return Described(_place(photo, landmarks), found, warnings, jpeg)

    def _find(self, data: bytes, max_pixels: int, ticket: Ticket) -> tuple[Photo, FaceLandmarks]:
        ticket.step()
        try:
            photo = decode(data, Limits(max_pixels=max_pixels, min_side_px=MIN_SIDE_PX), look=ticket.look)
        except DecoderMissingError as error:  # the photo has not been looked at
            log.exception("decoder_missing", problem=str(error))
            raise ApiError("EDGE_FAILED") from None
        ticket.step()
        return photo, find_face(photo, self._detector, ticket.step)


def load(models_dir: Path | None, parser_weights_sha256: str | None = None) -> LocalEngine:
    """Load what is in the folder (None: where `hairmesh models fetch` puts it); raises `NotLoadedError`.

    `parser_weights_sha256`: of the operator's own parser, in the place of the pinned one.
    """
    folder = models_dir or default_cache_dir()
    landmarker = check(FACE_LANDMARKER, folder / FACE_LANDMARKER.name)
    if landmarker.state is not FileState.GOOD:
        raise NotLoadedError("LOCAL_MODELS_MISSING", landmarker.detail)
    try:
        detector = LandmarkDetector(landmarker.path)
    except ModelError as error:
        raise NotLoadedError("LOCAL_VISION_MISSING", str(error)) from error
    weights_sha256 = (parser_weights_sha256 or FACE_PARSER.sha256).lower()
    return LocalEngine(detector, _load_parser(placed(folder, weights_sha256)))


def _load_parser(files: ModelFiles) -> OnnxParser | None:
    """The parser if its ONNX form is there whole: making it would take torch, and is not the edge's business."""
    state, problem = parser_form.look(files)
    if state is FileState.GOOD:
        try:
            return OnnxParser(files)
        except ModelError as error:
            problem = str(error)
    log.warning("local_parser_missing", problem=problem)
    return None


def plain_jpeg(photo: Photo) -> bytes:
    """The upright photo, at most `JPEG_SIDE_PX` long, as an 8-bit RGB JPEG that holds nothing but its pixels."""
    shrink = min(1.0, JPEG_SIDE_PX / max(photo.width_px, photo.height_px))
    size = (max(1, round(photo.width_px * shrink)), max(1, round(photo.height_px * shrink)))
    reduced = photo.rgb if shrink == 1 else cv2.resize(photo.rgb, size, interpolation=cv2.INTER_AREA)
    done, encoded = cv2.imencode(".jpg", reduced[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not done:
        raise RuntimeError("the JPEG encoder refuses a decoded photo")
    return np.asarray(encoded).tobytes()


def _place(photo: Photo, landmarks: FaceLandmarks) -> Place:
    box, pose = landmarks.box, landmarks.pose
    return Place(
        photo={
            "width_px": photo.width_px,
            "height_px": photo.height_px,
            "format": str(photo.format),
            "exif_orientation": photo.exif_orientation,
        },
        face={
            "box": {name: round(value, 2) for name, value in asdict(box).items()},
            "yaw_deg": round(pose.yaw_deg, 2),
            "pitch_deg": round(pose.pitch_deg, 2),
            "roll_deg": round(pose.roll_deg, 2),
            "faces_found": landmarks.faces_found,
        },
    )
