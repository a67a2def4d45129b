"""The RPC shell of `hair.analysis.v1.AnalyzeService`: which parameters, which call of the pipeline, which answer."""

from __future__ import annotations

from typing import Any

from grpc import aio
from hair.analysis.v1 import growth_pb2, hairlines_pb2, masks_pb2, measure_pb2
from hair.analysis.v1.analyze_service_pb2_grpc import AnalyzeServiceServicer
from typing_extensions import override

from vision.calls import GROWN_BY_DEFAULT, DesignResult, EmitRegion, EmitStyle, GrowthSummary, MaskResult, StyleGrowth
from vision.types import MeasureResult
from worker.calls import Calls, Work
from worker.engine import Engine
from worker.feed import Moved
from worker.translate import growth, hairlines, masks, measure

Context = aio.ServicerContext[Any, Any]


class AnalyzeServicer(AnalyzeServiceServicer):
    """One method for each call; see the proto."""

    def __init__(self, calls: Calls, engine: Engine) -> None:
        self._calls = calls
        self._engine = engine

    @override
    async def Measure(self, request: measure_pb2.MeasureRequest, context: Context) -> measure_pb2.MeasureResponse:
        """Facts, and a picture."""
        photo = request.photo.data

        def prepare() -> Work[MeasureResult]:
            options = measure.options(request)
            return lambda pipeline, progress: pipeline.measure(photo, options, progress)

        def encode(result: MeasureResult) -> measure_pb2.MeasureResponse:
            return measure.response(result, self._engine.versions)

        return await self._calls.answer("Measure", photo, context, prepare=prepare, encode=encode)

    @override
    async def DesignHairlines(
        self, request: hairlines_pb2.DesignHairlinesRequest, context: Context
    ) -> hairlines_pb2.DesignHairlinesResponse:
        """Designs, each with its picture."""
        photo = request.photo.data

        def prepare() -> Work[DesignResult]:
            options = hairlines.options(request)
            return lambda pipeline, progress: pipeline.design(photo, options, progress)

        return await self._calls.answer("DesignHairlines", photo, context, prepare=prepare, encode=hairlines.response)

    @override
    async def SegmentFace(
        self, request: masks_pb2.SegmentFaceRequest, context: Context
    ) -> masks_pb2.SegmentFaceResponse:
        """Masks."""
        photo = request.photo.data

        def prepare() -> Work[MaskResult]:
            options = masks.options(request)
            return lambda pipeline, progress: pipeline.segment(photo, options, progress)

        return await self._calls.answer("SegmentFace", photo, context, prepare=prepare, encode=masks.response)

    # The two that stream write to their context: a generator that is left in mid-write hears nothing of it, and would
    # not give up its call.

    @override
    async def GrowStyles(self, request: growth_pb2.GrowStylesRequest, context: Context) -> None:  # type: ignore[override]
        """Progress, one result per style, the summary."""
        photo = request.photo.data
        results = len(request.styles or GROWN_BY_DEFAULT)

        def prepare(emit: EmitStyle) -> Work[GrowthSummary]:
            options = growth.styles_options(request, context.time_remaining())
            return lambda pipeline, progress: pipeline.grow_styles(photo, options, progress, emit)

        def encode(event: Moved | StyleGrowth) -> growth_pb2.GrowStylesResponse:
            return growth.styles_event(event, results)

        await self._calls.stream(
            "GrowStyles", photo, context, prepare=prepare, encode=encode, encode_end=growth.styles_end
        )

    @override
    async def GrowRegion(self, request: growth_pb2.GrowRegionRequest, context: Context) -> None:  # type: ignore[override]
        """Progress, the result, the summary."""
        photo = request.photo.data

        def prepare(emit: EmitRegion) -> Work[GrowthSummary]:
            options = growth.region_options(request, context.time_remaining())
            return lambda pipeline, progress: pipeline.grow_region(photo, options, progress, emit)

        await self._calls.stream(
            "GrowRegion", photo, context, prepare=prepare, encode=growth.region_event, encode_end=growth.region_end
        )
