"""`SegmentFace`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hair.analysis.v1 import masks_pb2

from vision.calls import FaceMask, FacePart, MaskOptions, MaskResult
from worker.translate import facts, parameters

_PARTS: Mapping[int, FacePart] = MappingProxyType(
    {masks_pb2.FacePart.Value(f"FACE_PART_{part.name}"): part for part in FacePart}
)


def options(request: masks_pb2.SegmentFaceRequest) -> MaskOptions:
    """Parameters of the call; raises `Refusal` naming the field at fault."""
    parameters.photo(request.photo)
    if not set(request.parts) <= set(_PARTS):
        raise parameters.one_of("parts", FacePart)
    if len(set(request.parts)) < len(request.parts):
        raise parameters.invalid("parts", {"problem": "named twice"})
    return MaskOptions(
        parts=tuple(_PARTS[part] for part in request.parts),
        max_output_side_px=parameters.max_output_side_px(request.options),
    )


def response(result: MaskResult) -> masks_pb2.SegmentFaceResponse:
    """Every mask, and the facts that they rest on."""
    found = result.facts
    return masks_pb2.SegmentFaceResponse(
        masks=[_mask(mask) for mask in result.masks],
        photo=facts.to_photo(found.photo),
        face=facts.to_face(found.landmarks),
        scale=facts.to_scale(found.scale),
        warnings=facts.to_warnings(found.warnings),
    )


def _mask(mask: FaceMask) -> masks_pb2.FaceMask:
    return masks_pb2.FaceMask(
        part=masks_pb2.FacePart.Value(f"FACE_PART_{mask.part.name}"),
        image=facts.to_image(mask.image),
        area_px2=mask.area_px2,
        area_mm2=mask.area_mm2,
        area_interval_mm2=facts.to_interval(mask.area_interval_mm2),
    )
