"""`Measure`."""

from __future__ import annotations

from collections.abc import Mapping

from hair.analysis.v1 import measure_pb2

from vision.types import MeasureOptions, MeasureResult
from worker.translate import facts, parameters

PUPILLARY_DISTANCE_MM = (40.0, 80.0)


def options(request: measure_pb2.MeasureRequest) -> MeasureOptions:
    """Parameters of the call; raises `Refusal` naming the field at fault."""
    parameters.photo(request.photo)
    given = request.HasField("pupillary_distance_mm")
    distance_mm = request.pupillary_distance_mm
    return MeasureOptions(
        pupillary_distance_mm=parameters.within("pupillary_distance_mm", distance_mm, PUPILLARY_DISTANCE_MM, "mm")
        if given
        else None,
        annotate=request.annotate if request.HasField("annotate") else True,
        lang=parameters.lang(request.options),
        max_output_side_px=parameters.max_output_side_px(request.options),
    )


def response(result: MeasureResult, versions: Mapping[str, str]) -> measure_pb2.MeasureResponse:
    """All facts of a measured photo, and its picture when there is one."""
    found = result.facts
    return measure_pb2.MeasureResponse(
        annotated_image=facts.to_image(result.annotated) if result.annotated else None,
        photo=facts.to_photo(found.photo),
        face=facts.to_face(found.landmarks),
        scale=facts.to_scale(found.scale),
        hairline=facts.to_hairline(found.hairline),
        measurements=facts.to_measurements(found.measurements),
        face_shape=facts.to_face_shape(found.face_shape) if found.face_shape else None,
        warnings=facts.to_warnings(found.warnings),
        model_versions=dict(versions),
    )
