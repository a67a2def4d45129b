"""From what was found, and what a model claims, to the data of an answer.

Geometry holds against the model where it is sure; where it is not, or has seen nothing, the model's word stands, and
says so. Wherever both speak and differ, that is told. What the photo itself hides stays unknown, whatever is claimed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edge.local.claims import GROUPS, Claims
from edge.local.findings import Described, Points
from edge.messages import Lang
from edge.words import WARNING
from vision.describe_terms import HIDDEN, Feature, in_words

GEOMETRY, VISION_LLM = "geometry", "vision_llm"
BOTH = f"{VISION_LLM}+{GEOMETRY}"

_NOTHING = Claims({}, None, {})


def points_data(found: Points) -> dict[str, Any]:
    """Data of the special-points call."""
    points = {name: {"x_px": round(x, 2), "y_px": round(y, 2)} for name, (x, y) in found.points.items()}
    return {"photo": found.place.photo, "face": found.place.face, "points": points}


def features_data(found: Described, claims: Claims | None, llm_reason: str | None, lang: Lang) -> dict[str, Any]:
    """Data of the features call; `claims` are None where no model was asked, or had nothing usable to say."""
    said = claims or _NOTHING
    measured = found.description.features
    features = {
        group: {name: _feature(f"{group}.{name}", measured, said, lang) for name in names}
        for group, names in GROUPS.items()
    }
    present = found.description.hair_present
    return {
        "source": GEOMETRY if claims is None else BOTH,
        "llm_reason": llm_reason,
        "photo": found.place.photo,
        "face": found.place.face,
        "hair_present": said.hair_present if present is None else present,
        "features": features,
        "remarks": {group: said.remarks.get(group) for group in GROUPS} if claims else None,
        "disagreements": _disagreements(found, said),
        "warnings": [{**warning, WARNING.key: WARNING.of(str(warning["reason"]), lang)} for warning in found.warnings],
    }


def _feature(name: str, measured: Mapping[str, Feature], said: Claims, lang: str) -> dict[str, Any]:
    found, claimed = measured[name], said.classes.get(name)
    value, source = found.value, GEOMETRY
    if claimed is not None and claimed != value and not found.sure and found.reason not in HIDDEN:
        value, source = claimed, VISION_LLM
    from_geometry = source == GEOMETRY and value is not None
    borderline_with = found.borderline_with if claimed is None else None  # a second opinion decides
    return {
        "value": value,
        "text": None if value is None else in_words(name, value, borderline_with, lang),
        "borderline_with": borderline_with,
        "source": None if value is None else source,
        "confidence": round(found.confidence, 3) if from_geometry else None,
        "ratios": {ratio: round(number, 4) for ratio, number in found.ratios.items()},
        "reason": None if value is not None else found.reason,
    }


def _disagreements(found: Described, said: Claims) -> list[dict[str, Any]]:
    """Every feature that both speak of and differ in, and whose word stands."""
    different = [
        (name, said.classes[name], feature.value, GEOMETRY if feature.sure else VISION_LLM)
        for name, feature in found.description.features.items()
        if feature.value is not None and said.classes.get(name, feature.value) != feature.value
    ]
    present = found.description.hair_present
    if None not in (present, said.hair_present) and present != said.hair_present:
        names = {True: "yes", False: "no"}
        different.append(("hair_present", names[bool(said.hair_present)], names[bool(present)], GEOMETRY))
    return [
        {"field": name, "claimed": claimed, "measured": measured, "kept": kept}
        for name, claimed, measured, kept in sorted(different)
    ]
