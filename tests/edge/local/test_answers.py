"""Whose word stands where geometry and a vision LLM differ, and what is told of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from edge.local.answers import features_data
from edge.local.claims import Claims
from edge.local.findings import Described
from edge.messages import Lang
from tests.edge.local.engines import PLACE, described, without_parser
from vision.describe_terms import CLASSES, EYES_NOT_SEEN, GLASSES, HIDDEN, NO_HAIR, NO_PARSER, FaceDescription, Feature

UNSURE = Feature("average", 0.55, "wide", ratios={"width_to_face_width": 0.77})


def merged(
    description: FaceDescription, *, present: bool | None = None, lang: Lang = Lang.ZH, **said: str
) -> dict[str, Any]:
    """Data of the answer where the model claims `said`, `jaw_width="wide"` and so on."""
    claims = Claims({name.replace("_", ".", 1): claim for name, claim in said.items()}, present, {})
    return features_data(Described(PLACE, description, (), None), claims, None, lang)


def test_geometry_alone_says_so_and_tells_its_ratios() -> None:
    description = described(jaw_width=UNSURE)
    data = features_data(Described(PLACE, description, ({"reason": "GLASSES"},), None), None, "LLM_TIMEOUT", Lang.EN)
    assert (data["source"], data["llm_reason"], data["remarks"]) == ("geometry", "LLM_TIMEOUT", None)
    assert data["features"]["jaw"]["width"] == {
        "value": "average",
        "text": "between jaw of average width and wide jaw",
        "borderline_with": "wide",
        "source": "geometry",
        "confidence": 0.55,
        "ratios": {"width_to_face_width": 0.77},
        "reason": None,
    }
    assert data["warnings"] == [{"reason": "GLASSES", "message": "Glasses: wider interval"}]


def test_where_geometry_is_sure_it_holds_and_the_difference_is_told() -> None:
    data = merged(described(), jaw_width="wide")
    assert data["source"] == "vision_llm+geometry"
    assert data["features"]["jaw"]["width"]["value"] == "average"
    assert data["features"]["jaw"]["width"]["source"] == "geometry"
    assert data["disagreements"] == [
        {"field": "jaw.width", "claimed": "wide", "measured": "average", "kept": "geometry"}
    ]


def test_where_geometry_is_not_sure_the_model_is_believed_and_the_difference_is_told() -> None:
    data = merged(described(jaw_width=UNSURE), jaw_width="narrow")
    width = data["features"]["jaw"]["width"]
    assert (width["value"], width["text"], width["source"]) == ("narrow", "下颌偏窄", "vision_llm")
    assert (width["confidence"], width["borderline_with"]) == (None, None)
    assert [each["kept"] for each in data["disagreements"]] == ["vision_llm"]


def test_agreement_is_geometrys_word() -> None:
    data = merged(described(jaw_width=UNSURE), jaw_width="average")
    width = data["features"]["jaw"]["width"]
    assert (width["source"], width["borderline_with"], width["text"]) == ("geometry", None, "下颌宽度适中")
    assert data["disagreements"] == []


def test_what_a_parser_would_see_is_the_models_word_without_one() -> None:
    data = merged(without_parser(), present=True, hair_colour="black", hair_length="long")
    hair = data["features"]["hair"]
    assert data["hair_present"] is True
    assert (hair["colour"]["value"], hair["colour"]["source"]) == ("black", "vision_llm")
    assert (hair["bangs"]["value"], hair["bangs"]["reason"]) == (None, NO_PARSER)
    assert data["disagreements"] == []


@pytest.mark.parametrize("reason", sorted(HIDDEN))
def test_what_the_photo_hides_stays_unknown_whatever_is_claimed(reason: str) -> None:
    assert reason in {GLASSES, EYES_NOT_SEEN, NO_HAIR, "HAT"}
    data = merged(described(eyes_shape=Feature(None, reason=reason)), eyes_shape="round")
    shape = data["features"]["eyes"]["shape"]
    assert (shape["value"], shape["text"], shape["source"], shape["reason"]) == (None, None, None, reason)


def test_hair_that_is_not_there_is_not_claimed_into_being() -> None:
    bald = replace(described(hair_colour=Feature(None, reason=NO_HAIR)), hair_present=False)
    data = merged(bald, present=True, hair_colour="black")
    assert data["hair_present"] is False
    assert data["features"]["hair"]["colour"]["value"] is None
    assert data["disagreements"] == [{"field": "hair_present", "claimed": "yes", "measured": "no", "kept": "geometry"}]


@pytest.mark.parametrize("lang", Lang)
def test_every_class_of_every_feature_has_words(lang: Lang) -> None:
    for name, classes in CLASSES.items():
        texts = set()
        for value in classes:
            group, _, feature = name.partition(".")
            description = described(**{name.replace(".", "_"): Feature(value, 1.0)})
            found = features_data(Described(PLACE, description, (), None), None, None, lang)
            texts.add(found["features"][group][feature]["text"])
        assert len(texts) == len(classes)
