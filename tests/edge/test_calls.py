"""What each call takes, asks of a worker and answers."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import tracemalloc
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from google.protobuf.message import Message
from hair.analysis.v1 import common_pb2, growth_pb2, hairlines_pb2, masks_pb2

from edge import parameters, words
from edge.errors import ApiError
from edge.images.local import LocalStore
from edge.messages import Lang
from edge.parameters import MAX_SEED, HeightName, PartName, SexName, StyleName, validate
from tests.edge.rest import (
    ANNOTATED,
    CALLS,
    GROW,
    HAIRLINES,
    MASKS,
    MEASURE,
    PHOTO,
    STYLES,
    FakeMesh,
    Rest,
    eventually,
    failed,
    grown_region,
    grown_styles,
    picture,
    serving,
)
from vision import calls as vision_calls
from vision import labels
from vision.growth.backend import GrowthReason

TRIANGLE = [[10, 10], [100, 10], [50, 90.5]]
MASK = picture("PNG", (240, 320))
"""Of the size of `PHOTO`."""


def as_json(**parameters_: Any) -> dict[str, Any]:
    return {"image_base64": base64.b64encode(PHOTO).decode(), **parameters_}


def region_result(**fields: Any) -> growth_pb2.RegionResult:
    result = growth_pb2.RegionResult(**fields)
    result.marked_image.data = ANNOTATED
    return result


@pytest.fixture(autouse=True)
def _answers(mesh: FakeMesh) -> None:
    """A slow call that is asked of the mesh has an answer."""
    mesh.results = grown_region(region_result())


def test_names_are_those_of_the_catalogue() -> None:
    """The edge imports nothing of vision: its tables of names are held to be the same here."""
    assert get_args(StyleName) == tuple(vision_calls.Style)
    assert get_args(PartName) == tuple(vision_calls.FacePart)
    assert get_args(HeightName) == tuple(vision_calls.HairlineHeight)
    assert {*get_args(SexName), "unspecified"} == set(vision_calls.Sex)
    assert set(words.GROWN_REASONS) == set(GrowthReason)
    assert {style: tuple(text) for style, text in words.STYLES.items()} == labels.STYLE
    assert {rule: tuple(text) for rule, text in words.RULES.items()} == labels.RULE
    assert {reason: tuple(text) for reason, text in words.WARNINGS.items()} == labels.WARNING


def test_what_is_said_of_defaults_holds() -> None:
    fields = parameters.StylesParameters.model_fields, parameters.HairlinesParameters.model_fields
    assert ", ".join(vision_calls.GROWN_BY_DEFAULT) in str(fields[0]["styles"].description)
    assert f"default: {vision_calls.DEFAULT_DENSITY_PER_CM2:g}" in str(fields[1]["density_per_cm2"].description)
    limits = parameters.HairlinesParameters.model_json_schema()["properties"]["density_per_cm2"]["anyOf"][0]
    assert (limits["minimum"], limits["maximum"]) == vision_calls.DENSITY_PER_CM2


# What a worker is asked


@pytest.mark.parametrize("styles", [["m,bell"], ["m", "bell"], [" m , bell "]])
async def test_a_form_names_styles_with_commas_or_again_and_again(
    rest: Rest, mesh: FakeMesh, styles: list[str]
) -> None:
    response = await rest.post(
        HAIRLINES, styles=styles, sex="female", height="low", density_per_cm2="35.5", headers={"Accept-Language": "en"}
    )
    assert response.status_code == 200
    asked = mesh.asked(hairlines_pb2.DesignHairlinesRequest)
    assert asked.photo.data == PHOTO
    assert list(asked.styles) == ["m", "bell"]
    assert (asked.sex, asked.height) == (common_pb2.SEX_FEMALE, hairlines_pb2.HAIRLINE_HEIGHT_LOW)
    assert asked.density_per_cm2 == 35.5
    assert (asked.options.lang, asked.options.max_output_side_px) == (common_pb2.LANGUAGE_EN, 2048)
    assert not mesh.calls[-1].slow


async def test_the_same_as_json(rest: Rest, mesh: FakeMesh) -> None:
    wanted = {"styles": ["m", "bell"], "sex": "male", "height": "high", "density_per_cm2": 50, "lang": "zh"}
    assert (await rest.client.post(HAIRLINES, json=as_json(**wanted))).status_code == 200
    asked = mesh.asked(hairlines_pb2.DesignHairlinesRequest)
    assert list(asked.styles) == ["m", "bell"]
    assert (asked.sex, asked.height) == (common_pb2.SEX_MALE, hairlines_pb2.HAIRLINE_HEIGHT_HIGH)
    assert (asked.density_per_cm2, asked.options.lang) == (50, common_pb2.LANGUAGE_ZH)


@pytest.mark.parametrize("none", [{}, {"styles": None, "sex": None, "height": None, "density_per_cm2": None}])
async def test_designs_without_parameters_are_the_workers_choice(
    rest: Rest, mesh: FakeMesh, none: dict[str, Any]
) -> None:
    assert (await rest.client.post(HAIRLINES, json=as_json(**none))).status_code == 200
    asked = mesh.asked(hairlines_pb2.DesignHairlinesRequest)
    assert (list(asked.styles), asked.sex, asked.height, asked.density_per_cm2) == ([], 0, 0, 0.0)


async def test_parts_are_asked_for_in_their_order(rest: Rest, mesh: FakeMesh) -> None:
    assert (await rest.post(MASKS, parts="hair,neck,eyes")).status_code == 200
    asked = mesh.asked(masks_pb2.SegmentFaceRequest)
    assert list(asked.parts) == [masks_pb2.FACE_PART_HAIR, masks_pb2.FACE_PART_NECK, masks_pb2.FACE_PART_EYES]
    assert (await rest.post(MASKS)).status_code == 200
    assert list(mesh.asked(masks_pb2.SegmentFaceRequest).parts) == []


@pytest.mark.parametrize("seed", [0, 7, MAX_SEED])
async def test_growth_is_slow_and_wants_a_worker_that_can(rest: Rest, mesh: FakeMesh, seed: int) -> None:
    mesh.results = grown_styles(growth_pb2.StyleResult())
    assert (await rest.post(STYLES, styles="bell", sex="male", seed=str(seed))).status_code == 200
    asked = mesh.asked(growth_pb2.GrowStylesRequest)
    assert (list(asked.styles), asked.sex, asked.seed) == (["bell"], common_pb2.SEX_MALE, seed)
    assert (mesh.calls[-1].slow, mesh.calls[-1].capability) == (True, "growth")
    assert (await rest.client.post(STYLES, json=as_json())).status_code == 200
    assert not mesh.asked(growth_pb2.GrowStylesRequest).HasField("seed")


@pytest.mark.parametrize("body", ["form", "json"])
async def test_a_region_goes_to_the_worker_corner_by_corner(rest: Rest, mesh: FakeMesh, body: str) -> None:
    if body == "form":
        response = await rest.post(GROW, region=json.dumps(TRIANGLE), seed="3")
    else:
        response = await rest.client.post(GROW, json=as_json(region=TRIANGLE, seed=3))
    assert response.status_code == 200
    asked = mesh.asked(growth_pb2.GrowRegionRequest)
    assert [[point.x_px, point.y_px] for point in asked.region.points] == TRIANGLE
    assert (asked.WhichOneof("area"), asked.seed) == ("region", 3)
    assert (mesh.calls[-1].method, mesh.calls[-1].slow, mesh.calls[-1].capability) == ("GrowRegion", True, "growth")


async def test_a_region_may_have_a_thousand_corners(rest: Rest, mesh: FakeMesh) -> None:
    corners = [[number + 0.123456789012345, number * 0.987654321098765] for number in range(1000)]
    assert (await rest.post(GROW, region=json.dumps(corners))).status_code == 200
    assert len(mesh.asked(growth_pb2.GrowRegionRequest).region.points) == 1000


@pytest.mark.parametrize("size", [(240, 320), (320, 240)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
async def test_a_mask_goes_to_the_worker_as_it_is(rest: Rest, mesh: FakeMesh, kind: str, size: tuple[int, int]) -> None:
    """Stored upright or turned by a right angle: which of them it is, the worker finds out."""
    mask = picture(kind, size)
    for response in (
        await rest.post(GROW, mask=mask),
        await rest.client.post(GROW, json=as_json(mask_base64=base64.b64encode(mask).decode())),
    ):
        assert response.status_code == 200, response.text
        asked = mesh.asked(growth_pb2.GrowRegionRequest)
        assert (asked.photo.data, asked.mask.data) == (PHOTO, mask)
        assert asked.mask.media_type == f"image/{kind.lower()}"
        assert (asked.mask.width_px, asked.mask.height_px) == size


async def test_patience_holds_for_slow_calls_too(rest: Rest, mesh: FakeMesh) -> None:
    await rest.post(GROW, mask=MASK, headers={"X-Request-Timeout-Ms": "90000"})
    timeout_s = mesh.calls[-1].timeout_s
    assert timeout_s is not None
    assert 60 < timeout_s <= 90


# What is refused, row by row

STYLE_NAMES = "round, m, widows_peak, rectangular, bell, triangular or straight"
PART_NAMES = "hair, skin, forehead, brows, eyes, nose, lips, ears or neck"
NO_REGION = "a JSON array of [x, y]"
NO_CORNER = "[x, y], two numbers"


@pytest.mark.parametrize(
    ("path", "fields", "details"),
    [
        (HAIRLINES, {"styles": "m,SENTINEL"}, {"field": "styles", "expected": STYLE_NAMES}),
        (HAIRLINES, {"styles": ""}, {"field": "styles", "expected": STYLE_NAMES}),
        (HAIRLINES, {"styles": "m,"}, {"field": "styles", "expected": STYLE_NAMES}),
        (HAIRLINES, {"styles": "M"}, {"field": "styles", "expected": STYLE_NAMES}),
        (HAIRLINES, {"styles": "m,bell,m"}, {"field": "styles", "problem": "holds a name twice"}),
        (HAIRLINES, {"styles": ["m", "m"]}, {"field": "styles", "problem": "holds a name twice"}),
        (HAIRLINES, {"sex": "SENTINEL"}, {"field": "sex", "expected": "female or male"}),
        (HAIRLINES, {"sex": ["female", "male"]}, {"field": "sex", "problem": "sent twice"}),
        (HAIRLINES, {"height": "SENTINEL"}, {"field": "height", "expected": "low, natural or high"}),
        (HAIRLINES, {"density_per_cm2": "9.9"}, {"field": "density_per_cm2", "min": 10}),
        (HAIRLINES, {"density_per_cm2": "81"}, {"field": "density_per_cm2", "max": 80}),
        (HAIRLINES, {"density_per_cm2": "nan"}, {"field": "density_per_cm2", "expected": "a number"}),
        (HAIRLINES, {"seed": "1"}, {"field": "seed", "problem": "is no parameter of this call"}),
        (STYLES, {"styles": "SENTINEL"}, {"field": "styles", "expected": STYLE_NAMES}),
        (STYLES, {"seed": "-1"}, {"field": "seed", "min": 0}),
        (STYLES, {"seed": str(MAX_SEED + 1)}, {"field": "seed", "max": MAX_SEED}),
        (STYLES, {"seed": "1.5"}, {"field": "seed", "expected": "a whole number"}),
        (STYLES, {"seed": "SENTINEL"}, {"field": "seed", "expected": "a whole number"}),
        (STYLES, {"seed": "9" * 5000}, {"field": "seed", "expected": "a whole number"}),
        (STYLES, {"height": "low"}, {"field": "height", "problem": "is no parameter of this call"}),
        (STYLES, {"region": "[]"}, {"field": "region", "problem": "is no parameter of this call"}),
        (STYLES, {"mask": MASK}, {"field": "mask", "problem": "is not a file of this call"}),
        (MASKS, {"parts": "SENTINEL"}, {"field": "parts", "expected": PART_NAMES}),
        (MASKS, {"parts": "hair,hair"}, {"field": "parts", "problem": "holds a name twice"}),
        (MASKS, {"lang": "SENTINEL"}, {"field": "lang", "expected": "zh or en"}),
        (
            MASKS,
            {"image_base64": "AAAA"},
            {"field": "image_base64", "expected": "a file named image; base64 is for JSON bodies"},
        ),
        (GROW, {"region": "SENTINEL"}, {"field": "region", "expected": NO_REGION}),
        (GROW, {"region": "{}"}, {"field": "region", "expected": NO_REGION}),
        (GROW, {"region": '"[[1,1],[2,1],[2,2]]"'}, {"field": "region", "expected": NO_REGION}),
        (GROW, {"region": "[[1,1],[NaN,1],[2,2]]"}, {"field": "region", "expected": NO_REGION}),
        (GROW, {"region": "[" * 30_000}, {"field": "region", "expected": NO_REGION}),
        (GROW, {"region": "[[1,1],[2,1]]"}, {"field": "region", "corners": 2, "min": 3, "max": 1000}),
        (
            GROW,
            {"region": json.dumps([[1, 1]] * 1001)},
            {"field": "region", "corners": 1001, "min": 3, "max": 1000},
        ),
        (GROW, {"region": "[[1,1],[2],[2,2]]"}, {"field": "region", "corner": 1, "expected": NO_CORNER}),
        (GROW, {"region": "[[1,1],[2,1],[2,2,3]]"}, {"field": "region", "corner": 2, "expected": NO_CORNER}),
        (GROW, {"region": '[["1",1],[2,1],[2,2]]'}, {"field": "region", "corner": 0, "expected": NO_CORNER}),
        (GROW, {"region": "[[true,1],[2,1],[2,2]]"}, {"field": "region", "corner": 0, "expected": NO_CORNER}),
        (GROW, {"region": "[[null,1],[2,1],[2,2]]"}, {"field": "region", "corner": 0, "expected": NO_CORNER}),
        (GROW, {"region": "[1,2,3]"}, {"field": "region", "corner": 0, "expected": NO_CORNER}),
        (
            GROW,
            {"region": "[[1e300,1],[2,1],[2,2]]"},
            {"field": "region", "corner": 0, "min": -1_000_000, "max": 1_000_000},
        ),
        (GROW, {"region": " " * 70_000}, {"field": "region", "max_bytes": 65_536}),
        (
            GROW,
            {"region": ["[[1,1],[2,1],[2,2]]", "[[1,1],[2,1],[2,2]]"]},
            {"field": "region", "problem": "sent twice"},
        ),
        (GROW, {"styles": "m"}, {"field": "styles", "problem": "is no parameter of this call"}),
        (GROW, {"mask": "no file"}, {"field": "mask", "expected": "a file"}),
        (GROW, {"region": b"[[1,1],[2,1],[2,2]]"}, {"field": "region", "problem": "is not a file of this call"}),
        (
            GROW,
            {"mask_base64": "AAAA"},
            {"field": "mask_base64", "expected": "a file named mask; base64 is for JSON bodies"},
        ),
        (
            GROW,
            {"mask": MASK, "region": json.dumps(TRIANGLE)},
            {"field": "region", "problem": "a region or a mask, not both"},
        ),
    ],
)
async def test_wrong_form_fields_are_named(
    rest: Rest, mesh: FakeMesh, path: str, fields: dict[str, Any], details: dict[str, Any]
) -> None:
    response = await rest.post(path, **fields)
    assert (response.status_code, response.json()["code"]) == (400, 1008)
    assert response.json()["data"]["reason"] == "INVALID_PARAMETER"
    assert response.json()["data"]["details"] == details
    assert "SENTINEL" not in response.text
    assert mesh.calls == []


@pytest.mark.parametrize(
    ("path", "field", "values", "expected"),
    [
        (HAIRLINES, "styles", [5, {}, True], "a list of names"),
        (HAIRLINES, "styles", [[5], [None], [["m"]], ["SENTINEL"]], STYLE_NAMES),
        (MASKS, "parts", [5, {}, False], "a list of names"),
        (MASKS, "parts", [[5], ["SENTINEL"]], PART_NAMES),
        (HAIRLINES, "density_per_cm2", [True, "SENTINEL", [40]], "a number"),
        (HAIRLINES, "sex", [5, ["male"], True], "female or male"),
        (STYLES, "seed", [True], "a number"),
        (STYLES, "seed", [1.5, "SENTINEL", [1]], "a whole number"),
        (GROW, "region", [5, {}, True], NO_REGION),
    ],
)
async def test_json_of_another_type_is_told_what_was_expected(
    rest: Rest, mesh: FakeMesh, path: str, field: str, values: Iterable[object], expected: str
) -> None:
    for value in values:
        response = await rest.client.post(path, json=as_json(**{field: value}))
        assert response.status_code == 400, value
        assert response.json()["data"]["details"] == {"field": field, "expected": expected}, value
        assert "SENTINEL" not in response.text
    assert mesh.calls == []


@pytest.mark.parametrize("value", ["SENTINEL", [[1, 2]], None])
@pytest.mark.parametrize("field", ["mask", "image"])
async def test_a_file_under_its_forms_name_in_json_is_told_what_it_is_called_there(
    rest: Rest, mesh: FakeMesh, field: str, value: object
) -> None:
    response = await rest.client.post(GROW, json=as_json(**{field: value}))
    assert (response.status_code, response.json()["data"]["reason"]) == (400, "INVALID_PARAMETER")
    details = {"field": field, "problem": "is a file: in JSON its base64 text", "in_json": f"{field}_base64"}
    assert response.json()["data"]["details"] == details
    assert "SENTINEL" not in response.text
    response = await rest.client.post(STYLES, json=as_json(mask=value))
    assert response.json()["data"]["details"] == {"field": "mask", "problem": "is no parameter of this call"}
    assert mesh.calls == []


@pytest.mark.parametrize("path", CALLS)
async def test_every_call_takes_a_language(rest: Rest, path: str) -> None:
    """So that a client may send the same form to all of them."""
    refused = await rest.post(path, lang="fr")
    assert refused.json()["data"]["details"] == {"field": "lang", "expected": "zh or en"}
    accepted = await rest.post(path, lang="en")
    assert accepted.json()["data"].get("details", {}).get("field") != "lang"


PARAMETERS = (
    parameters.MeasureParameters,
    parameters.HairlinesParameters,
    parameters.StylesParameters,
    parameters.GrowParameters,
    parameters.MasksParameters,
)
MANY = 200_000
GIANTS: dict[str, object] = {
    "numbers": [1] * MANY,
    "names": ["m"] * MANY,
    "commas": "a," * MANY,
    "commas in a list": ["a," * MANY],
    "lists": [[1, 2]] * MANY,
    "objects": [{}] * MANY,
    "text": "9" * 2 * MANY,
    "object": {str(number): number for number in range(MANY)},
}
"""What fits into a body of the default limit, ten times over."""


@pytest.mark.parametrize("giant", GIANTS)
@pytest.mark.parametrize("kind", PARAMETERS)
def test_a_giant_where_a_parameter_should_be_costs_next_to_nothing(
    kind: type[parameters.Parameters], giant: str
) -> None:
    """One complaint for each of a million names took the whole edge 20 s and 1.4 GB."""
    for field in kind.model_fields:
        tracemalloc.start()
        try:
            with pytest.raises(ApiError) as caught:
                validate(kind, {field: GIANTS[giant]})
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert caught.value.details["field"] == field
        assert peak_bytes < 1_000_000


@pytest.mark.parametrize("path", [STYLES, MASKS])
async def test_no_names_are_no_choice(rest: Rest, mesh: FakeMesh, path: str) -> None:
    """None is the way to say all of them; an empty list is a mistake, however it is sent."""
    field = "styles" if path == STYLES else "parts"
    form: dict[str, Any] = {field: ""}
    for response in (await rest.client.post(path, json=as_json(**{field: []})), await rest.post(path, **form)):
        assert (response.status_code, response.json()["data"]["details"]["field"]) == (400, field)
    assert mesh.calls == []


@pytest.mark.parametrize("body", [{}, {"region": None}, {"mask_base64": None}, {"seed": 5}])
async def test_a_region_or_a_mask_must_be_there(rest: Rest, mesh: FakeMesh, body: dict[str, Any]) -> None:
    response = await rest.client.post(GROW, json=as_json(**body))
    assert (response.status_code, response.json()["code"]) == (400, 1008)
    assert response.json()["data"]["reason"] == "MISSING_PARAMETER"
    assert response.json()["data"]["details"] == {"field": "region", "or": "mask"}
    assert mesh.calls == []


SUPPORTED = "BMP, HEIF, JPEG, PNG, TIFF, WEBP"


@pytest.mark.parametrize(
    ("mask", "reason", "details"),
    [
        (picture("GIF", (240, 320)), "MASK_UNREADABLE", {"format": "GIF", "supported": SUPPORTED}),
        (b"SENTINEL is no picture", "MASK_UNREADABLE", {"format": "unknown", "supported": SUPPORTED}),
        (b"", "MASK_UNREADABLE", {"size_bytes": 0}),
        (MASK[:20], "MASK_UNREADABLE", {"format": "PNG"}),
        (
            picture("PNG", (120, 160)),
            "MASK_SIZE_DIFFERS",
            {"width": 120, "height": 160, "photo_width": 240, "photo_height": 320},
        ),
        (
            picture("PNG", (8000, 6000), compress_level=1),
            "MASK_SIZE_DIFFERS",
            {"width": 8000, "height": 6000, "photo_width": 240, "photo_height": 320},
        ),
    ],
)
async def test_a_mask_that_cannot_be_one_never_reaches_a_worker(
    rest: Rest, mesh: FakeMesh, mask: bytes, reason: str, details: dict[str, Any]
) -> None:
    response = await rest.post(GROW, mask=mask)
    assert (response.status_code, response.json()["code"]) == (400, 1008)
    assert response.json()["data"]["reason"] == reason
    assert response.json()["data"]["details"] == {"field": "mask", **details}
    assert "SENTINEL" not in response.text
    assert mesh.calls == []


async def test_a_mask_of_a_photo_whose_size_is_not_known_is_the_workers_to_judge(rest: Rest, mesh: FakeMesh) -> None:
    heic = b"\0\0\0\x18ftypheic" + bytes(1000)
    assert (await rest.post(GROW, heic, mask=MASK)).status_code == 200
    assert mesh.asked(growth_pb2.GrowRegionRequest).mask.data == MASK
    huge = picture("PNG", (8000, 6000), compress_level=1)
    response = await rest.post(GROW, heic, mask=huge)
    assert response.json()["data"]["reason"] == "MASK_SIZE_DIFFERS"
    assert response.json()["data"]["details"] == {"field": "mask", "width": 8000, "height": 6000}


async def test_the_mask_counts_in_the_limit_of_the_body(rest: Rest, mesh: FakeMesh) -> None:
    half = bytes(1_100_000)
    for response in (
        await rest.post(GROW, PHOTO + half, mask=MASK + half),
        await rest.client.post(GROW, json=as_json(mask_base64=base64.b64encode(MASK + half * 2).decode())),
    ):
        assert (response.status_code, response.json()["code"]) == (413, 1004)
    assert mesh.calls == []


@pytest.mark.parametrize(
    "reason",
    [
        "REGION_SELF_CROSSING",
        "REGION_OUTSIDE_IMAGE",
        "REGION_EMPTY",
        "REGION_OFF_SCALP",
        "REGION_TOO_LARGE",
        "REGION_TOO_FINE",
        "MASK_SIZE_DIFFERS",
    ],
)
async def test_what_a_worker_says_of_a_region(rest: Rest, mesh: FakeMesh, reason: str) -> None:
    mesh.failure = failed(reason, field="region", details={"area_px2": 0})
    response = await rest.post(GROW, region=json.dumps(TRIANGLE))
    assert (response.status_code, response.json()["code"]) == (400, 1008)
    data = response.json()["data"]
    assert (data["reason"], data["details"]) == (reason, {"field": "region", "area_px2": 0})
    assert data["advice"]


# What is answered


async def test_styles_stand_side_by_side_with_what_is_common_to_them(rest: Rest, mesh: FakeMesh) -> None:
    grown = growth_pb2.StyleResult(style="m", design=hairlines_pb2.HairlineDesign(style="m", grafts=500))
    grown.image.data = grown.grown_image.data = ANNOTATED
    grown.proof.hair_share = 0.95
    grown.design.rules.add(name="upper_court")
    not_grown = growth_pb2.StyleResult(style="bell", grown_reason="NOT_CONVINCING")
    not_grown.image.data = ANNOTATED
    mesh.results = grown_styles(grown, not_grown)
    data = (await rest.post(STYLES)).json()["data"]
    assert list(data) == ["results", "photo", "face", "seed", "backend", "warnings"]
    assert (data["seed"], data["backend"], data["photo"], data["warnings"]) == (7, "local", None, [])
    first, second = data["results"]
    pictures = ["image_url", "grown_image_url", "grown_reason", "grown_message"]
    assert list(first) == ["style", "style_text", *pictures, "design", "proof"]
    assert (first["style"], first["grown_reason"], first["grown_message"]) == ("m", None, None)
    assert (first["proof"]["hair_share"], first["design"]["grafts"]) == (0.95, 500)
    assert "image_url" not in first["design"], "it stands beside the design"
    assert (second["style"], second["grown_image_url"], second["grown_reason"]) == ("bell", None, "NOT_CONVINCING")
    assert (second["design"], second["proof"]) == (None, None)
    urls = [first["image_url"], first["grown_image_url"], second["image_url"]]
    assert len(set(urls)) == 3
    assert {(await rest.client.get(url)).content for url in urls} == {ANNOTATED}


@pytest.mark.parametrize(
    ("fields", "headers", "lang"),
    [
        ({}, {}, Lang.ZH),
        ({}, {"Accept-Language": "en"}, Lang.EN),
        ({"lang": "en"}, {}, Lang.EN),
        ({"lang": "zh"}, {"Accept-Language": "en"}, Lang.ZH),
    ],
)
async def test_names_are_followed_by_words_in_the_language_asked_for(
    rest: Rest, mesh: FakeMesh, fields: dict[str, Any], headers: dict[str, str], lang: Lang
) -> None:
    result = growth_pb2.StyleResult(style="m", grown_reason="NOT_CONVINCING")
    result.design.style = "m"
    result.design.rules.add(name="upper_court")
    mesh.results = grown_styles(result)
    (said,) = (await rest.post(STYLES, headers=headers, **fields)).json()["data"]["results"]
    style, rule = words.STYLES["m"].of(lang), words.RULES["upper_court"].of(lang)
    assert (said["style_text"], said["design"]["style_text"]) == (style, style)
    assert (said["design"]["rules"][0]["name"], said["design"]["rules"][0]["text"]) == ("upper_court", rule)
    assert said["grown_message"] == words.GROWN_REASONS["NOT_CONVINCING"].of(lang)


async def test_names_of_a_newer_worker_have_no_words_but_a_missing_picture_is_excused(
    rest: Rest, mesh: FakeMesh
) -> None:
    mesh.results = grown_styles(growth_pb2.StyleResult(style="wave", grown_reason="MOON_PHASE"))
    (said,) = (await rest.post(STYLES, lang="en")).json()["data"]["results"]
    assert (said["style"], said["style_text"], said["grown_reason"]) == ("wave", None, "MOON_PHASE")
    assert said["grown_message"] == "No picture could be made this time. Please try again later."


async def test_a_grown_region_and_its_proof(rest: Rest, mesh: FakeMesh) -> None:
    result = region_result(area_px2=1234.56, area_cm2=18.404)
    result.grown_image.data = ANNOTATED
    result.proof.hair_share, result.proof.outside_changed_pixels = 0.91, 0
    mesh.results = grown_region(result)
    data = (await rest.post(GROW, mask=MASK)).json()["data"]
    names = ["marked_image_url", "grown_image_url", "grown_reason", "grown_message", "area_px2", "area_cm2", "proof"]
    assert list(data) == [*names, "photo", "face", "seed", "backend", "warnings"]
    assert (data["grown_reason"], data["area_px2"], data["area_cm2"], data["seed"]) == (None, 1234.6, 18.4, 7)
    assert data["proof"]["hair_share"] == 0.91
    for name in ("marked_image_url", "grown_image_url"):
        assert (await rest.client.get(data[name])).content == ANNOTATED


async def test_without_growth_the_marked_picture_is_still_there(rest: Rest, mesh: FakeMesh) -> None:
    mesh.results = grown_region(region_result(grown_reason="BACKEND_NONE"))
    response = await rest.post(GROW, mask=MASK)
    assert (response.status_code, response.json()["code"]) == (200, 0)
    data = response.json()["data"]
    assert (data["grown_image_url"], data["grown_reason"], data["proof"]) == (None, "BACKEND_NONE", None)
    assert data["grown_message"] == words.GROWN_REASONS["BACKEND_NONE"].zh
    assert (await rest.client.get(data["marked_image_url"])).content == ANNOTATED


async def test_designs_and_masks_have_a_picture_each(rest: Rest, mesh: FakeMesh) -> None:
    designs = hairlines_pb2.DesignHairlinesResponse()
    for style in ("m", "bell"):
        designs.hairline_images.add(style=style).image.data = ANNOTATED
    mesh.results, mesh.response = (), designs
    data = (await rest.post(HAIRLINES)).json()["data"]
    assert [design["style"] for design in data["hairline_images"]] == ["m", "bell"]
    masks = masks_pb2.SegmentFaceResponse()
    masks.masks.add(part=masks_pb2.FACE_PART_HAIR, area_px2=10).image.data = ANNOTATED
    mesh.response = masks
    mask = (await rest.post(MASKS)).json()["data"]["masks"][0]
    assert (mask["part"], mask["area_px2"], mask["area_mm2"]) == ("hair", 10.0, None)
    for url in (mask["image_url"], *(design["image_url"] for design in data["hairline_images"])):
        assert (await rest.client.get(url)).content == ANNOTATED


@pytest.mark.parametrize("streamed", [False, True])
async def test_pictures_of_an_answer_that_cannot_be_stored_whole_are_removed(tmp_path: Path, streamed: bool) -> None:
    """Nobody knows their URLs, and they would keep the store full for days."""
    results = []
    for style in ("m", "bell", "round"):
        results.append(growth_pb2.StyleResult(style=style))
        results[-1].image.data = secrets.token_bytes(450_000)
    mesh, folder = FakeMesh(results=grown_styles(*results)), tmp_path / "pictures"
    async with serving(tmp_path, mesh, static={"dir": str(folder), "max_bytes": 1_048_576}) as rest:
        response = await rest.post(STYLES, headers={"Accept": "text/event-stream" if streamed else "*/*"})
        assert "STORE_FULL" in response.text
        await eventually(lambda: not list(folder.glob("*.png")))
        mesh.results = grown_styles(*results[:2])
        async with asyncio.timeout(60):  # a picture is gone a moment before its room is free again
            while (response := await rest.post(STYLES)).status_code != 200:
                assert "STORE_FULL" in response.text
        for result in response.json()["data"]["results"]:
            assert (await rest.client.get(result["image_url"])).status_code == 200


@pytest.mark.parametrize("streamed", [False, True])
async def test_pictures_of_a_client_that_left_are_removed(
    tmp_path: Path, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It left while they were being stored."""
    put, begun, gate, folder = LocalStore.put, asyncio.Event(), asyncio.Event(), tmp_path / "pictures"

    async def slow(store: LocalStore, pictures: Mapping[str, bytes], began_s: float) -> None:
        await put(store, pictures, began_s)
        begun.set()
        await gate.wait()

    monkeypatch.setattr(LocalStore, "put", slow)
    result = growth_pb2.StyleResult(style="m")
    result.image.data = secrets.token_bytes(3000)
    async with serving(tmp_path, FakeMesh(results=grown_styles(result)), static={"dir": str(folder)}) as rest:
        headers = {"Accept": "text/event-stream" if streamed else "*/*"}
        gone = asyncio.create_task(rest.post(STYLES, headers=headers))
        await begun.wait()
        await eventually(lambda: len(list(folder.glob("*.png"))) == 1)
        gone.cancel()
        await eventually(lambda: not list(folder.glob("*.png")))


@pytest.mark.parametrize("path", [STYLES, GROW])
async def test_a_stream_without_a_result_is_no_answer(rest: Rest, mesh: FakeMesh, path: str) -> None:
    mesh.results = mesh.results[-1:]
    fields: dict[str, Any] = {"mask": MASK} if path == GROW else {}
    response = await rest.post(path, **fields)
    assert (response.status_code, response.json()["data"]["reason"]) == (503, "WORKER_FAILED")


@pytest.mark.parametrize(("path", "message"), [(HAIRLINES, hairlines_pb2.DesignHairlinesResponse()), (MEASURE, None)])
async def test_fast_calls_know_no_streams(rest: Rest, mesh: FakeMesh, path: str, message: Message | None) -> None:
    mesh.results, mesh.response = (), message or mesh.response
    response = await rest.post(path, headers={"Accept": "text/event-stream"})
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert response.json()["code"] == 0
