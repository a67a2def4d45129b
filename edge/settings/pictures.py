"""Sections about photos and pictures: what is taken in and given out, and where pictures are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from edge.settings.values import Section, StoreUrl
from hairmesh import wire

RareFormat = Literal["BMP", "TIFF", "HEIF"]


class Limits(Section):
    """What is taken in and given out."""

    max_body_bytes: Annotated[int, Field(ge=65_536, le=wire.MAX_MESSAGE_BYTES // 2)] = 2_097_152
    """Whole request body, as sent. Its photo travels in one gRPC message."""
    max_pixels: Annotated[int, Field(ge=40_000)] = 40_000_000
    """Width times height of a photo."""
    max_output_side: Annotated[int, Field(ge=256, le=wire.MAX_OUTPUT_SIDE_PX)] = 2048
    """Long side of pictures in answers, in pixels."""
    rare_formats: frozenset[RareFormat] = frozenset[RareFormat]({"BMP", "TIFF", "HEIF"})
    """Formats that are read beside JPEG, PNG and WebP."""
    max_uploading_bytes: PositiveInt = 268_435_456
    """All request bodies together while they arrive and are taken apart; what finds no room is answered 1007 BUSY."""
    max_sending_bytes: Annotated[int, Field(ge=16_777_216)] = 268_435_456
    """All answers together that clients have not taken yet; beyond it whoever takes its own the most slowly is cut
    off."""
    max_connections: Annotated[int, Field(ge=8, le=100_000)] = 1000
    """Of clients, and requests under `/api/` at once. Beyond it connections without a request are closed, the idlest
    first, then those that take their answers the most slowly, and requests under `/api/` are answered 1007 BUSY; probes
    and `/monitor` always come in."""

    @model_validator(mode="after")
    def _check_room(self) -> Self:
        if self.max_uploading_bytes < self.max_body_bytes:
            raise ValueError("max_uploading_bytes must not be below max_body_bytes")
        return self


class Static(Section):
    """Pictures of answers: patients' faces, kept for a while."""

    dir: Path = Path("static/annotations")
    """Folder they lie in, made when it is not there."""
    shared: bool = False
    """Whether other edges serve from `dir` too: an answer then waits until its pictures lie there."""
    store_url: StoreUrl | None = None
    """Object storage instead of `dir`: `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`.
    Credentials come from the environment (see docs/pictures.md). Takes the extra `edge-objects`."""
    max_age_hours: Annotated[float, Field(gt=0, le=87_600)] = 72.0
    """Older pictures are removed."""
    max_bytes: Annotated[int, Field(ge=1_048_576)] = 10_737_418_240
    """All pictures together. Where there is no room the oldest are removed."""
    min_age_minutes: Annotated[float, Field(ge=0, le=10_080)] = 10.0
    """Younger ones are not: where only such are left, a full store answers 1007 STORE_FULL."""

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        if self.shared and self.store_url is not None:
            raise ValueError("shared is said of dir, and store_url is given instead of it")
        return self
