"""Sections about what the edge answers by itself, without a worker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from edge.settings.values import ApiKey, LlmUrl, Section, check_llm_request


class Features(Section):
    """A vision LLM for the call that describes a face. Off by default: with it every photo of that call leaves the
    house for `base_url` (see docs/privacy.md).
    """

    base_url: LlmUrl | None = None
    """OpenAI-compatible, without `/chat/completions`: https, or http on loopback. Null: geometry alone."""
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Its name, as that API knows it."""
    api_key: ApiKey | None = None
    """Sent to `base_url` in the Authorization header; null: none is sent."""
    timeout_seconds: Annotated[float, Field(gt=0, le=120)] = 20.0
    """For its answer, a second try included; then geometry answers alone."""
    request: Annotated[Mapping[str, JsonValue], AfterValidator(check_llm_request)] = {
        "temperature": 0,
        "max_tokens": 1500,
    }
    """More of the question's body, as that API takes it: some refuse `max_tokens`, or know a switch for thinking."""

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        if (self.base_url is None) != (self.model is None):
            raise ValueError("base_url and model belong together")
        if self.api_key is not None and self.base_url is None:
            raise ValueError("api_key means nothing without base_url")
        return self


class LocalVision(Section):
    """What the edge computes itself: features and special points. Takes the extra `edge-vision`."""

    enabled: bool = True
    """Off, or without that extra, these two calls answer 1007 LOCAL_VISION_MISSING."""
    models_dir: Path | None = None
    """Folder with `face_landmarker.task` and, for what concerns hair, the parser's `.onnx`; null: where
    `hairmesh models fetch` puts them."""
    parser_weights_sha256: Annotated[str, Field(pattern="^[0-9a-fA-F]{64}$")] | None = None
    """Of the operator's own face parser, as at the workers: its ONNX form lies in that folder, where
    `hairmesh models fetch --parser-weights` made it or from where it was copied; null: the pinned parser."""
    max_waiting: Annotated[int, Field(ge=0, le=1000)] = 8
    """Calls in line behind the one that runs; the next gets BUSY."""
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = 30.0
    """For the line and the computing of one call; the first one also loads the models."""
