"""The documentation says what the service does: every route, field, error, and examples that hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from hair.analysis.v1 import growth_pb2, hairlines_pb2, masks_pb2, measure_pb2
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from edge.errors import FRAMEWORK_REASONS, TABLE
from edge.openapi_examples import DETAILS
from edge.words import GROWN_REASONS
from tests.edge.documented import fill, talkative_edge
from tests.edge.rest import (
    CALLS,
    FEATURES,
    GROW,
    HAIRLINES,
    MASKS,
    MEASURE,
    SPECIAL_POINTS,
    STYLES,
    FakeMesh,
    Rest,
    failed,
    grown_region,
    grown_styles,
    serving,
)

Document = dict[str, Any]


@pytest.fixture
async def document(rest: Rest) -> Document:
    found: Document = (await rest.client.get("/openapi.json")).json()
    return found


def check(document: Document, schema: Document, instance: object) -> None:
    """Validate `instance` by a schema of the document; raises."""
    OAS31Validator({**schema, "components": document["components"]}).validate(instance)


def contents(document: Document) -> Iterator[tuple[str, Document]]:
    """Every JSON answer of every route."""
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if "application/json" in response.get("content", {}):
                    yield f"{path} {status}", response["content"]["application/json"]


def test_it_is_a_valid_document(document: Document) -> None:
    validate(document)


def test_every_route_is_in_it(document: Document) -> None:
    assert set(document["paths"]) == {
        *CALLS,
        FEATURES,
        SPECIAL_POINTS,
        "/health",
        "/gateway-health",
        "/livez",
        "/readyz",
        "/monitor",
        "/monitor/fault",
        "/admin/pool",
        "/admin/stats",
        "/metrics",
        "/static/annotations/{name}",
        "/api/v1/requests/{request_id}/pictures",
    }


def test_every_example_holds(document: Document) -> None:
    count = 0
    for _where, content in contents(document):
        examples = [content["example"]] if "example" in content else []
        for name in content.get("examples", {}):
            assert content["examples"][name] == {"$ref": f"#/components/examples/{name}"}
            examples.append(document["components"]["examples"][name]["value"])
        for example in examples:
            check(document, content["schema"], example)
            count += 1
    assert count > 30


OF_WORKERS = {
    *("NO_WORKER", "WORKER_FAILED"),
    *("STORE_FULL", "STORE_FAILED", "PICTURES_REMOVED"),
}


@pytest.mark.parametrize("path", [*CALLS, FEATURES, SPECIAL_POINTS])
def test_every_error_of_a_call_is_in_it(document: Document, path: str) -> None:
    responses = document["paths"][path]["post"]["responses"]
    found = {
        (int(status), reason)
        for status, response in responses.items()
        for reason in response["content"]["application/json"]["examples"]
        if status not in {"200", "default"}
    }
    elsewhere = {"HAIRLINE_HIDDEN", "NOT_FOUND", "METHOD_NOT_ALLOWED"}
    elsewhere |= {reason for reason in TABLE if reason.startswith("LOCAL_")} if path in CALLS else OF_WORKERS
    if path != GROW:
        elsewhere |= {reason for reason in TABLE if reason.startswith(("REGION_", "MASK_"))}
    assert found == {(row.http_status, reason) for reason, row in TABLE.items() if reason not in elsewhere}


@pytest.mark.parametrize("path", [*CALLS, FEATURES, SPECIAL_POINTS])
async def test_what_is_refused_beside_the_calls_is_documented_with_them(
    rest: Rest, document: Document, path: str
) -> None:
    default = document["paths"][path]["post"]["responses"]["default"]
    for answer in (await rest.client.get(path), await rest.client.post(f"{path}/nowhere")):
        body = answer.json()
        check(document, default["content"]["application/json"]["schema"], body)
        assert f"{answer.status_code} `{body['data']['reason']}`" in default["description"]
        assert body["data"]["reason"] in default["content"]["application/json"]["examples"]
    assert all(f"{status} `{FRAMEWORK_REASONS[status]}`" in default["description"] for status in (404, 405))
    assert "400 `HAIRLINE_HIDDEN`" in default["description"]


def test_every_field_says_what_it_is(document: Document) -> None:
    for name, schema in document["components"]["schemas"].items():
        for field, property_ in schema.get("properties", {}).items():
            if name != "Refusal":
                assert property_.get("description"), f"{name}.{field}"


@pytest.mark.parametrize("schema", ["StyleResult", "GrownRegion"])
def test_why_there_is_no_grown_picture_is_told_reason_by_reason(document: Document, schema: str) -> None:
    reason = document["components"]["schemas"][schema]["properties"]["grown_reason"]
    assert reason["anyOf"] == [{"type": "string", "enum": list(GROWN_REASONS)}, {"type": "null"}]
    for name, text in GROWN_REASONS.items():
        assert f"`{name}`: {text.en.rstrip('.')}." in reason["description"]


def test_a_grown_styles_design_has_no_picture_of_its_own(document: Document) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["StyleResult"]["properties"]["design"]["anyOf"][0] == {"$ref": "#/components/schemas/StyleDesign"}
    assert set(schemas["HairlineDesign"]["required"]) - set(schemas["StyleDesign"]["properties"]) == {"image_url"}


def test_operations_have_names_and_words_of_their_own(document: Document) -> None:
    operations = [operation for each in document["paths"].values() for operation in each.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    text = json.dumps(operations)
    assert "partial" not in text
    assert "functools" not in text


@pytest.mark.parametrize("path", [*CALLS, FEATURES, SPECIAL_POINTS])
async def test_examples_of_requests_are_answered_as_documented(tmp_path: Path, document: Document, path: str) -> None:
    operation = document["paths"][path]["post"]
    content = operation["requestBody"]["content"]["application/json"]
    async with talkative_edge(tmp_path) as edge:
        for example in content["examples"].values():
            check(document, content["schema"], example["value"])
            answer = await edge.client.post(path, json=example["value"])
            assert answer.status_code == 200
            check(document, operation["responses"]["200"]["content"]["application/json"]["schema"], answer.json())


def test_a_picture_is_a_png(document: Document) -> None:
    responses = document["paths"]["/static/annotations/{name}"]["get"]["responses"]
    assert set(responses["200"]["content"]) == {"image/png"}


def test_examples_have_the_details_that_refusals_have(document: Document) -> None:
    examples = document["components"]["examples"]
    assert examples["IMAGE_TOO_MANY_PIXELS"]["value"]["data"]["details"]["pixels"] == 48_000_000
    assert set(DETAILS) <= set(TABLE)
    assert "" not in json.dumps(examples["measure"]).split('"')[1::2], "what is not said is null"


@pytest.mark.parametrize(
    ("path", "method", "message"),
    [
        (MEASURE, "Measure", measure_pb2.MeasureResponse()),
        (HAIRLINES, "DesignHairlines", hairlines_pb2.DesignHairlinesResponse()),
        (MASKS, "SegmentFace", masks_pb2.SegmentFaceResponse()),
        (STYLES, "GrowStyles", growth_pb2.StyleResult()),
        (GROW, "GrowRegion", growth_pb2.RegionResult()),
    ],
)
async def test_every_call_answers_as_documented_when_it_has_everything_to_say(
    rest: Rest, mesh: FakeMesh, document: Document, path: str, method: str, message: Message
) -> None:
    fill(message)
    if isinstance(message, growth_pb2.StyleResult):
        mesh.results = grown_styles(message)
    elif isinstance(message, growth_pb2.RegionResult):
        mesh.results = grown_region(message)
    mesh.response = message
    fields: Document = {"region": "[[1, 1], [9, 1], [5, 9]]"} if path == GROW else {}
    answer = (await rest.post(path, **fields)).json()
    content = document["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]
    check(document, content["schema"], answer)
    assert mesh.calls[-1].method == method
    assert '"http' in json.dumps(answer), "its pictures are URLs"


async def test_real_answers_are_as_documented(rest: Rest, mesh: FakeMesh, document: Document) -> None:
    responses = document["paths"][MEASURE]["post"]["responses"]

    def schema(status: str) -> Document:
        found: Document = responses[status]["content"]["application/json"]["schema"]
        return found

    check(document, schema("200"), (await rest.measure()).json())
    mesh.failure = failed("YAW", details={"yaw_deg": 31.5, "max": 25})
    check(document, schema("400"), (await rest.measure()).json())
    mesh.failure = failed("BUSY")
    check(document, schema("503"), (await rest.measure()).json())
    for path in ("/health", "/gateway-health", "/livez", "/readyz", "/monitor"):
        content = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]
        check(document, content["schema"], (await rest.client.get(path)).json())


@pytest.mark.parametrize(
    ("path", "files", "parameters"),
    [
        (MEASURE, ["image"], ["pupillary_distance_mm", "annotate", "lang"]),
        (HAIRLINES, ["image"], ["styles", "sex", "height", "density_per_cm2", "lang"]),
        (MASKS, ["image"], ["parts", "lang"]),
        (STYLES, ["image"], ["styles", "sex", "seed", "lang"]),
        (GROW, ["image", "mask"], ["region", "seed", "lang"]),
        (FEATURES, ["image"], ["lang"]),
        (SPECIAL_POINTS, ["image"], ["lang"]),
    ],
)
async def test_parameters_are_documented_for_both_body_types(
    document: Document, path: str, files: list[str], parameters: list[str]
) -> None:
    content = document["paths"][path]["post"]["requestBody"]["content"]
    form, plain = content["multipart/form-data"]["schema"], content["application/json"]["schema"]
    assert set(form["properties"]) == {*files, *parameters}
    assert set(plain["properties"]) == {*(f"{name}_base64" for name in files), *parameters}
    assert all(each["description"] for each in [*form["properties"].values(), *plain["properties"].values()])


@pytest.mark.parametrize("path", CALLS)
def test_slow_calls_say_that_they_stream(document: Document, path: str) -> None:
    content = document["paths"][path]["post"]["responses"]["200"]["content"]
    assert ("text/event-stream" in content) == (path in {STYLES, GROW})
    for name in content.get("text/event-stream", {}).get("examples", {}):
        assert document["components"]["examples"][name]["value"].startswith("event: queued\ndata: {")


async def test_the_page_needs_nothing_from_elsewhere(rest: Rest) -> None:
    page = await rest.client.get("/docs")
    assert page.status_code == 200
    assert "http" not in page.text.replace("http://www.w3.org", "")
    for asset in ("swagger-ui-bundle.js", "swagger-ui.css"):
        assert asset in page.text
        assert (await rest.client.get(f"/static-offline-docs/{asset}")).status_code == 200


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/docs/oauth2-redirect"])
async def test_documentation_can_be_asked_for_its_head(rest: Rest, path: str) -> None:
    response = await rest.client.head(path)
    assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/static-offline-docs/swagger-ui-bundle.js"])
async def test_documentation_is_made_once_and_kept_by_those_who_have_it(
    rest: Rest, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs no token: whoever asks again and again costs the edge next to nothing."""
    first = await rest.client.get(path)
    for maker in ("openapi.components", "orjson.dumps", "get_swagger_ui_html"):
        monkeypatch.setattr(f"edge.documentation.{maker}", lambda *_a, **_k: pytest.fail("made again"))
    for opener in ("anyio.open_file", "pathlib.Path.read_bytes"):
        monkeypatch.setattr(opener, lambda *_a, **_k: pytest.fail("read again"))
    again = await rest.client.get(path)
    assert (again.status_code, again.content) == (200, first.content)
    kept = await rest.client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (kept.status_code, kept.content) == (304, b"")
    other = await rest.client.get(path, headers={"If-None-Match": '"of another release"'})
    assert (other.status_code, other.content) == (200, first.content)


async def test_it_can_be_switched_off(tmp_path: Path, mesh: FakeMesh) -> None:
    async with serving(tmp_path, mesh, docs={"enabled": False}) as rest:
        for path in ("/docs", "/openapi.json", "/redoc", "/static-offline-docs/swagger-ui.css"):
            assert (await rest.client.get(path)).status_code == 404
        assert (await rest.measure()).status_code == 200


def test_nothing_private_is_in_it(document: Document) -> None:
    text = json.dumps(document)
    assert "loopback-secret" not in text
    assert "28187" not in text
