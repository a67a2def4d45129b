"""What the OpenAPI document says of the two calls that the edge computes itself."""

from __future__ import annotations

from typing import Any

from edge.local.answers import BOTH, GEOMETRY, VISION_LLM, features_data, points_data
from edge.local.claims import GROUPS, REMARK_MAX_CHARACTERS, Claims
from edge.local.findings import Described, Place, Points
from edge.local.llm import REASONS
from edge.messages import Lang
from edge.openapi_calls import call
from edge.openapi_examples import REQUEST_ID
from edge.openapi_messages import Schema, or_null, ref
from edge.parameters import Parameters
from edge.words import WARNING
from vision.describe_terms import CLASSES, NO_PARSER, FaceDescription, Feature

FEATURES = call(
    "Describe face, brows, eyes, nose, lips, jaw and hair. Computed on the edge: needs no worker",
    "FaceFeatures",
    Parameters,
    "features",
    local=True,
)
SPECIAL_POINTS = call(
    "Named anatomical points. Computed on the edge: needs no worker",
    "SpecialPoints",
    Parameters,
    "special_points",
    local=True,
)


def _object(description: str, properties: dict[str, Schema]) -> Schema:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_RATIOS: Schema = {
    "type": "object",
    "description": "What was measured, by name; degrees where the name ends in `_deg`.",
    "additionalProperties": _NUMBER,
}


def _feature(name: str) -> Schema:
    classes: Schema = {"type": "string", "enum": list(CLASSES[name])}
    words = "; ".join(f"`{each}` {text.en}" for each, text in CLASSES[name].items())
    properties = {
        "value": or_null(classes, f"Its class, a stable name: {words}."),
        "text": or_null(_TEXT, "The class in words, in the language asked for; on a border both classes."),
        "borderline_with": or_null(
            classes,
            "The other class where the measured lies so near to it that another photo, or the same in another size, "
            "may fall into it; null where it does not, or where the LLM has decided.",
        ),
        "source": or_null({"type": "string", "enum": [GEOMETRY, VISION_LLM]}, "Whose word it is."),
        "confidence": or_null(_NUMBER, "Of geometry's word, 0 to 1: how far the measured is from another class."),
        "ratios": _RATIOS,
        "reason": or_null(_TEXT, f"Why there is no class, such as `{NO_PARSER}`, `GLASSES`, `HAIRLINE_OCCLUDED`."),
    }
    return _object(f"The feature `{name}`.", properties)


def _features() -> Schema:
    groups = {
        group: _object(f"What concerns the {group}.", {name: _feature(f"{group}.{name}") for name in names})
        for group, names in GROUPS.items()
    }
    return _object("By part of the face.", groups)


def _remarks() -> Schema:
    one = {"type": "string", "maxLength": REMARK_MAX_CHARACTERS}
    said = _object("By part.", {group: or_null(one, f"Of the {group}.") for group in GROUPS})
    return or_null(said, "Plain sentences of the vision LLM, not checked; null without one.")


_DISAGREEMENT = _object(
    "A feature in which the vision LLM and geometry differ.",
    {
        "field": {**_TEXT, "description": "Such as `jaw.width`, or `hair_present`."},
        "claimed": {**_TEXT, "description": "What the LLM says."},
        "measured": {**_TEXT, "description": "What geometry says."},
        "kept": {"type": "string", "enum": [GEOMETRY, VISION_LLM], "description": "Whose word stands."},
    },
)
_WARNING = _object(
    "Something the reader should know of the photo; only an edge with a parser looks.",
    {
        "reason": {**_TEXT, "description": "Such as `PERSPECTIVE`, `GLASSES`, `CHILD`."},
        WARNING.key: or_null(_TEXT, WARNING.description),
        "value": or_null(_NUMBER, "The measured value."),
        "limit": or_null(_NUMBER, "The limit it broke."),
        "unit": {**_TEXT, "description": "Of both, such as `ratio` or `pct`."},
    },
)
_POINT = _object(
    "In pixels of the upright photo; beyond it where the face sticks out.",
    {
        "x_px": {**_NUMBER, "description": "From the left edge."},
        "y_px": {**_NUMBER, "description": "From the top edge."},
    },
)


def _photo_and_face() -> dict[str, Schema]:
    return {
        "photo": {**ref("PhotoInfo"), "description": "The photo as decoded."},
        "face": {**ref("FaceInfo"), "description": "The face that counts."},
    }


def schemas() -> dict[str, Schema]:
    """What the two calls refer to; photo and face are those of the workers' calls."""
    return {
        "FaceFeatures": _object(
            "A face in words.",
            {
                "source": {"type": "string", "enum": [GEOMETRY, BOTH], "description": "Who was asked, and answered."},
                "llm_reason": or_null(
                    {"type": "string", "enum": list(REASONS)},
                    "Why the configured vision LLM says nothing; null where it does, or where none is configured.",
                ),
                **_photo_and_face(),
                "hair_present": or_null({"type": "boolean"}, "Whether there is hair on the head; null: not known."),
                "features": _features(),
                "remarks": _remarks(),
                "disagreements": {"type": "array", "items": _DISAGREEMENT, "description": "Where both differ."},
                "warnings": {"type": "array", "items": _WARNING, "description": "About the photo."},
            },
        ),
        "SpecialPoints": _object(
            "Named points. Left and right are the subject's.",
            {
                **_photo_and_face(),
                "points": {"type": "object", "additionalProperties": _POINT, "description": "By name."},
            },
        ),
    }


_PLACE = Place(
    photo={"width_px": 2048, "height_px": 2048, "format": "JPEG", "exif_orientation": 1},
    face={
        "box": {"x_px": 640.88, "y_px": 420.55, "width_px": 765.83, "height_px": 906.57},
        "yaw_deg": -0.56,
        "pitch_deg": 8.99,
        "roll_deg": -0.61,
        "faces_found": 1,
    },
)


def _envelope(data: dict[str, Any]) -> Schema:
    return {"value": {"code": 0, "message": "ok", "request_id": REQUEST_ID, "data": data}}


def examples() -> dict[str, Schema]:
    """Of a made-up person."""
    measured = {name: Feature(list(classes)[1], 0.86) for name, classes in CLASSES.items()}
    measured["jaw.width"] = Feature("average", 0.94, ratios={"width_to_face_width": 0.791})
    measured["eyes.opening"] = Feature("wide", 0.58, "average", ratios={"height_to_iris": 0.771})
    for name in ("hair.length", "hair.bangs", "hair.colour", "brows.thickness", "face.thirds"):
        measured[name] = Feature(None, reason=NO_PARSER)
    claims = Claims(
        {"jaw.width": "wide", "eyes.opening": "average", "hair.colour": "black"},
        hair_present=True,
        remarks={"eyes": "双眼皮，目光平视。"},
    )
    described = Described(_PLACE, FaceDescription(measured, None), (), None)
    points = {"glabella": (1017.2, 612.4), "left_pupil": (1153.6, 689.1), "right_pupil": (881.3, 690.8)}
    return {
        "features": _envelope(features_data(described, claims, None, Lang.ZH)),
        "special_points": _envelope(points_data(Points(_PLACE, points))),
    }
