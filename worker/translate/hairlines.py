"""`DesignHairlines`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hair.analysis.v1 import hairlines_pb2

from vision.calls import (
    DEFAULT_DENSITY_PER_CM2,
    DENSITY_PER_CM2,
    DesignOptions,
    DesignResult,
    DrawnDesign,
    HairlineDesign,
    HairlineHeight,
)
from worker.translate import facts, parameters

_HEIGHTS: Mapping[int, HairlineHeight] = MappingProxyType(
    {
        hairlines_pb2.HAIRLINE_HEIGHT_UNSPECIFIED: HairlineHeight.NATURAL,
        hairlines_pb2.HAIRLINE_HEIGHT_LOW: HairlineHeight.LOW,
        hairlines_pb2.HAIRLINE_HEIGHT_NATURAL: HairlineHeight.NATURAL,
        hairlines_pb2.HAIRLINE_HEIGHT_HIGH: HairlineHeight.HIGH,
    }
)


def options(request: hairlines_pb2.DesignHairlinesRequest) -> DesignOptions:
    """Parameters of the call; raises `Refusal` naming the field at fault."""
    parameters.photo(request.photo)
    if request.height not in _HEIGHTS:
        raise parameters.one_of("height", HairlineHeight)
    return DesignOptions(
        styles=parameters.styles(request.styles),
        sex=parameters.sex(request.sex),
        height=_HEIGHTS[request.height],
        density_per_cm2=parameters.within(
            "density_per_cm2", request.density_per_cm2 or DEFAULT_DENSITY_PER_CM2, DENSITY_PER_CM2, "grafts/cm²"
        ),
        lang=parameters.lang(request.options),
        max_output_side_px=parameters.max_output_side_px(request.options),
    )


def response(result: DesignResult) -> hairlines_pb2.DesignHairlinesResponse:
    """Every design with its picture, and the facts that they rest on."""
    found = result.facts
    return hairlines_pb2.DesignHairlinesResponse(
        hairline_images=[_drawn(drawn) for drawn in result.designs],
        photo=facts.to_photo(found.photo),
        face=facts.to_face(found.landmarks),
        hairline=facts.to_hairline(found.hairline),
        scale=facts.to_scale(found.scale),
        warnings=facts.to_warnings(found.warnings),
    )


def to_design(design: HairlineDesign) -> hairlines_pb2.HairlineDesign:
    """A design's numbers, without its picture."""
    return hairlines_pb2.HairlineDesign(
        style=design.style,
        curve=[facts.to_point((float(x), float(y))) for x, y in design.curve],
        mid_point=facts.to_point(design.mid_point),
        left_temple_point=facts.to_point(design.left_temple_point),
        right_temple_point=facts.to_point(design.right_temple_point),
        height=facts.to_measurement(design.height),
        area_cm2=design.area_cm2,
        area_interval_cm2=facts.to_interval(design.area_interval_cm2),
        grafts=design.grafts,
        density_per_cm2=design.density_per_cm2,
        rules=[
            hairlines_pb2.DesignRule(
                name=rule.name,
                kept=rule.kept,
                value=rule.value,
                low=rule.low,
                high=rule.high,
                unit=rule.unit,
                certain=rule.certain,
                source=rule.source,
            )
            for rule in design.rules
        ],
    )


def _drawn(drawn: DrawnDesign) -> hairlines_pb2.HairlineDesign:
    message = to_design(drawn.design)
    message.image.CopyFrom(facts.to_image(drawn.image))
    return message
