"""`GrowStyles` and `GrowRegion`: what comes with the stream, message by message."""

from __future__ import annotations

import numpy as np
from hair.analysis.v1 import common_pb2, growth_pb2

from vision.calls import (
    GrowRegionOptions,
    GrowStylesOptions,
    GrowthProof,
    GrowthSummary,
    RegionGrowth,
    StyleGrowth,
)
from vision.types import Points
from worker.feed import Moved
from worker.translate import facts, parameters
from worker.translate.hairlines import to_design

MAX_CORNERS = 1000
"""Of a region's polygon: a hand never draws so many, and each is compared with every other."""

FIRST_ATTEMPT = 1
"""What a worker knows of attempts: each is the first it sees. Who tries again counts."""


def styles_options(request: growth_pb2.GrowStylesRequest, timeout_s: float | None) -> GrowStylesOptions:
    """Parameters of `GrowStyles`; raises `Refusal` naming the field at fault. `timeout_s`: left of the caller's."""
    parameters.photo(request.photo)
    return GrowStylesOptions(
        styles=parameters.styles(request.styles),
        sex=parameters.sex(request.sex),
        seed=parameters.seed(request.seed) if request.HasField("seed") else None,
        lang=parameters.lang(request.options),
        max_output_side_px=parameters.max_output_side_px(request.options),
        timeout_s=timeout_s,
    )


def region_options(request: growth_pb2.GrowRegionRequest, timeout_s: float | None) -> GrowRegionOptions:
    """Parameters of `GrowRegion`, as above."""
    parameters.photo(request.photo)
    area = request.WhichOneof("area")
    if area is None:
        raise parameters.invalid("region")
    if area == "mask" and not request.mask.data:
        raise parameters.invalid("mask")
    return GrowRegionOptions(
        polygon=_polygon(request.region) if area == "region" else None,
        mask=request.mask.data if area == "mask" else None,
        seed=parameters.seed(request.seed) if request.HasField("seed") else None,
        lang=parameters.lang(request.options),
        max_output_side_px=parameters.max_output_side_px(request.options),
        timeout_s=timeout_s,
    )


def styles_event(event: Moved | StyleGrowth, results: int) -> growth_pb2.GrowStylesResponse:
    """One message before the end of an answer with so many results."""
    if isinstance(event, Moved):
        return growth_pb2.GrowStylesResponse(progress=_progress(event, results))
    return growth_pb2.GrowStylesResponse(
        result=growth_pb2.StyleResult(
            style=event.drawn.design.style,
            image=facts.to_image(event.drawn.image),
            grown_image=facts.to_image(event.grown) if event.grown else None,
            grown_reason=event.grown_reason,
            design=to_design(event.drawn.design),
            proof=_proof(event.proof) if event.proof else None,
        )
    )


def region_event(event: Moved | RegionGrowth) -> growth_pb2.GrowRegionResponse:
    """One message before the end."""
    if isinstance(event, Moved):
        return growth_pb2.GrowRegionResponse(progress=_progress(event, results=1))
    return growth_pb2.GrowRegionResponse(
        result=growth_pb2.RegionResult(
            marked_image=facts.to_image(event.marked),
            grown_image=facts.to_image(event.grown) if event.grown else None,
            grown_reason=event.grown_reason,
            area_px2=event.area_px2,
            area_cm2=event.area_cm2,
            proof=_proof(event.proof) if event.proof else None,
        )
    )


def styles_end(summary: GrowthSummary) -> growth_pb2.GrowStylesResponse:
    """The last message of a whole answer."""
    return growth_pb2.GrowStylesResponse(summary=_summary(summary))


def region_end(summary: GrowthSummary) -> growth_pb2.GrowRegionResponse:
    """The last message of a whole answer."""
    return growth_pb2.GrowRegionResponse(summary=_summary(summary))


def _polygon(polygon: growth_pb2.Polygon) -> Points:
    corners = np.array([(point.x_px, point.y_px) for point in polygon.points], dtype=np.float64).reshape(-1, 2)
    if len(corners) > MAX_CORNERS:
        raise parameters.invalid("region", {"corners": len(corners), "max": MAX_CORNERS})
    if not np.isfinite(corners).all():
        raise parameters.invalid("region")
    return corners


def _progress(moved: Moved, results: int) -> common_pb2.Progress:
    at = moved.position
    return common_pb2.Progress(
        stage=at.stage,
        step=at.step,
        total=at.total,
        attempt=FIRST_ATTEMPT,
        results_done=moved.results,
        results_total=results,
    )


def _summary(summary: GrowthSummary) -> growth_pb2.GrowthSummary:
    return growth_pb2.GrowthSummary(
        photo=facts.to_photo(summary.facts.photo),
        face=facts.to_face(summary.facts.landmarks),
        seed=summary.seed,
        backend=summary.backend,
        warnings=facts.to_warnings(summary.warnings),
    )


def _proof(proof: GrowthProof) -> growth_pb2.GrowthProof:
    return growth_pb2.GrowthProof(
        hair_share=proof.hair_share,
        edge_distance_mm=proof.edge_distance_mm,
        delta_e=proof.delta_e,
        orientation_distance=proof.orientation_distance,
        gradient_distance=proof.gradient_distance,
        outside_changed_pixels=proof.outside_changed_pixels,
    )
