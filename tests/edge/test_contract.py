"""The public contract, row by row, over real HTTP."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
import structlog
from hair.analysis.v1 import common_pb2, measure_pb2

from edge.calls import CallFailedError
from edge.errors import TABLE
from tests.edge.rest import ANNOTATED, MEASURE, PHOTO, FakeMesh, Rest, failed, picture, serving

NEW_ID = re.compile(r"[0-9a-f]{32}")


def refusal(response: Any, http_status: int, code: int, reason: str) -> dict[str, Any]:
    """Check the outside of a refusal; returns its `data`."""
    assert response.status_code == http_status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert list(body) == ["code", "message", "request_id", "data"]
    assert (body["code"], body["data"]["reason"]) == (code, reason)
    assert body["message"]
    assert body["request_id"] == response.headers["x-request-id"]
    assert set(body["data"]) == {"reason", "details", "advice"}
    assert len(response.content) < 1024
    data: dict[str, Any] = body["data"]
    return data


async def test_a_good_answer(rest: Rest, mesh: FakeMesh) -> None:
    response = await rest.measure(pupillary_distance_mm="63.5", annotate="true", lang="en")
    assert response.status_code == 200
    body = response.json()
    assert (body["code"], body["message"]) == (0, "ok")
    assert body["request_id"] == response.headers["x-request-id"]
    assert response.headers["cache-control"] == "no-store"
    assert body["data"]["measurements"]["face_height"]["px"] == 925.12
    assert body["data"]["hairline"] is None
    asked = mesh.request
    assert asked.photo.data == PHOTO
    assert (asked.photo.media_type, asked.photo.width_px, asked.photo.height_px) == ("image/jpeg", 240, 320)
    assert asked.pupillary_distance_mm == 63.5
    assert asked.annotate is True
    assert asked.options.lang == common_pb2.LANGUAGE_EN
    assert asked.options.max_output_side_px == 2048
    assert mesh.calls[-1].method == "Measure"
    assert mesh.calls[-1].request_id == body["request_id"]
    assert mesh.calls[-1].timeout_s is None


async def test_the_same_photo_as_json(rest: Rest, mesh: FakeMesh) -> None:
    body = {"image_base64": base64.b64encode(PHOTO).decode(), "annotate": False, "pupillary_distance_mm": 60}
    response = await rest.client.post(MEASURE, json=body)
    assert response.status_code == 200
    assert mesh.request.photo.data == PHOTO
    assert mesh.request.annotate is False
    assert mesh.request.pupillary_distance_mm == 60


async def test_a_picture_is_readable_in_the_moment_its_answer_arrives(rest: Rest) -> None:
    url = (await rest.measure()).json()["data"]["annotated_image_url"]
    assert re.fullmatch(rf"http://127\.0\.0\.1:{rest.port}/static/annotations/[0-9a-f]{{48}}\.png", url)
    response = await rest.client.get(url)
    assert (response.status_code, response.content) == (200, ANNOTATED)
    assert response.headers["content-type"] == "image/png"
    assert response.headers["cache-control"] == "private, no-store"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["x-robots-tag"] == "noindex"
    assert response.headers["x-content-type-options"] == "nosniff"
    head = await rest.client.head(url)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == "image/png"


@pytest.mark.parametrize("name", [f"{'0' * 32}.png", "x", "..%5cedge_config.json", f"{'0' * 32}.jpg"])
async def test_a_picture_that_is_not_there(rest: Rest, name: str) -> None:
    response = await rest.client.get(f"/static/annotations/{name}")
    assert response.status_code == 404
    assert response.json() == {"status": "error", "message": "Not Found"}
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "private, no-store"


@pytest.mark.parametrize(
    "path", ["/monitor", "/health", "/docs", "/openapi.json", f"/static/annotations/{'0' * 32}.png"]
)
async def test_what_can_be_read_can_be_asked_for_its_head_and_says_so(rest: Rest, path: str) -> None:
    response = await rest.client.post(path)
    assert response.status_code == 405
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD"}
    assert (await rest.client.head(path)).status_code == (await rest.client.get(path)).status_code


async def test_no_picture_is_null(rest: Rest, mesh: FakeMesh) -> None:
    mesh.response = measure_pb2.MeasureResponse()
    data = (await rest.measure(annotate="false")).json()["data"]
    assert data["annotated_image_url"] is None


@pytest.mark.parametrize("given", ["a", "A.b-c_9", "x" * 64])
async def test_a_good_request_id_is_kept(rest: Rest, mesh: FakeMesh, given: str) -> None:
    response = await rest.measure(headers={"X-Request-ID": given})
    assert response.json()["request_id"] == response.headers["x-request-id"] == given
    assert mesh.calls[-1].request_id == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a/b", "ä", "a\tb", "<script>"])
async def test_any_other_request_id_gets_a_new_one(rest: Rest, given: str) -> None:
    response = await rest.client.post(
        MEASURE, files={"image": ("p.jpg", PHOTO)}, headers=[(b"X-Request-ID", given.encode("latin-1"))]
    )
    assert NEW_ID.fullmatch(response.json()["request_id"])


async def test_two_request_ids_are_none(rest: Rest) -> None:
    headers = [("X-Request-ID", "one"), ("X-Request-ID", "two")]
    response = await rest.client.post(MEASURE, files={"image": ("p.jpg", PHOTO)}, headers=headers)
    assert NEW_ID.fullmatch(response.json()["request_id"])


async def test_request_ids_differ(rest: Rest) -> None:
    ids = {(await rest.measure()).json()["request_id"] for _ in range(5)}
    assert len(ids) == 5


@pytest.mark.parametrize(
    ("header", "message", "language"),
    [
        (None, "照片中未检测到人脸", common_pb2.LANGUAGE_ZH),
        ("en-GB,en;q=0.9", "No face was found in the photo.", common_pb2.LANGUAGE_EN),
        ("zh-CN,zh;q=0.9,en;q=0.8", "照片中未检测到人脸", common_pb2.LANGUAGE_ZH),
    ],
)
async def test_words_follow_the_language_header(
    rest: Rest, mesh: FakeMesh, header: str | None, message: str, language: int
) -> None:
    mesh.failure = failed("NO_FACE")
    response = await rest.measure(headers={"Accept-Language": header} if header else None)
    refusal(response, 400, 1001, "NO_FACE")
    assert response.json()["message"] == message
    assert mesh.request.options.lang == language
    assert response.headers["content-language"] == ("en" if language == common_pb2.LANGUAGE_EN else "zh")
    assert response.headers["vary"] == "Accept-Language"


async def test_lang_counts_for_pictures_alone(rest: Rest, mesh: FakeMesh) -> None:
    mesh.failure = failed("NO_FACE")
    response = await rest.measure(lang="en", headers={"Accept-Language": "zh"})
    assert mesh.request.options.lang == common_pb2.LANGUAGE_EN
    assert response.json()["message"] == "照片中未检测到人脸"


PHOTO_REASONS = [
    ("NO_FACE", 1001),
    ("IMAGE_TOO_SMALL", 1002),
    ("IMAGE_TOO_MANY_PIXELS", 1002),
    ("FACE_TOO_SMALL", 1002),
    ("FACE_CUT_OFF", 1002),
    ("YAW", 1003),
    ("PITCH", 1003),
    ("ROLL", 1003),
    ("UPSIDE_DOWN", 1003),
    ("UNSUPPORTED_FORMAT", 1005),
    ("DAMAGED_IMAGE", 1005),
    ("INPUT_FAILED", 1005),
    ("POISON_INPUT", 1005),
    ("MULTIPLE_FACES", 1006),
    ("HAIRLINE_HIDDEN", 1006),
]


@pytest.mark.parametrize(("reason", "code"), PHOTO_REASONS)
async def test_photo_problems(rest: Rest, mesh: FakeMesh, reason: str, code: int) -> None:
    mesh.failure = failed(reason, details={"measured": 31.5, "max": 25})
    response = await rest.measure()
    data = refusal(response, 400, code, reason)
    assert data["details"] == {"measured": 31.5, "max": 25}
    assert data["advice"]
    assert "retry-after" not in response.headers


@pytest.mark.parametrize(
    ("reason", "details", "advice"),
    [
        ("YAW", {"yaw_deg": 31, "max": 25}, "向您的右侧"),
        ("YAW", {"yaw_deg": -31, "max": 25}, "向您的左侧"),
        ("PITCH", {"pitch_deg": 31, "max": 25}, "抬高"),
        ("PITCH", {"pitch_deg": -31, "max": 25}, "放低"),
        ("ROLL", {"roll_deg": 31, "max": 25}, "右肩"),
        ("ROLL", {"roll_deg": -31, "max": 25}, "左肩"),
        ("ROLL", {"roll_deg": 60, "max": 25}, "右肩"),
        ("ROLL", {"roll_deg": 88.5, "max": 25}, "照片逆时针旋转 90°"),
        ("ROLL", {"roll_deg": -91, "max": 25}, "照片顺时针旋转 90°"),
        ("ROLL", {}, "摆正"),
        ("YAW", {}, "把头转正一点"),
    ],
)
async def test_advice_says_which_way(
    rest: Rest, mesh: FakeMesh, reason: str, details: dict[str, float], advice: str
) -> None:
    mesh.failure = failed(reason, details=details)
    assert advice in refusal(await rest.measure(), 400, 1003, reason)["advice"]


@pytest.mark.parametrize(
    ("reason", "http_status", "message"),
    [
        ("NO_WORKER", 503, "后端服务暂不可用，请稍后重试"),
        ("BUSY", 503, "后端服务繁忙，请稍后重试"),
        ("WORKER_FAILED", 503, None),
        ("DEADLINE", 504, None),
    ],
)
async def test_system_errors(rest: Rest, mesh: FakeMesh, reason: str, http_status: int, message: str | None) -> None:
    mesh.failure = failed(reason)
    response = await rest.measure()
    refusal(response, http_status, 1007, reason)
    assert int(response.headers["retry-after"]) >= 1
    if message:
        assert response.json()["message"] == message


@pytest.mark.parametrize(("said_s", "told"), [(0.2, "1"), (12.1, "13"), (None, "5")])
async def test_retry_after_is_what_the_pool_says(rest: Rest, mesh: FakeMesh, said_s: float | None, told: str) -> None:
    mesh.failure = failed("BUSY", retry_after_s=said_s)
    assert (await rest.measure()).headers["retry-after"] == told


async def test_a_worker_that_is_newer_keeps_its_reason(rest: Rest, mesh: FakeMesh) -> None:
    mesh.failure = failed("GLARE", details={"share": 0.4})
    assert refusal(await rest.measure(), 400, 1005, "GLARE")["details"] == {"share": 0.4}


async def test_a_worker_refuses_a_parameter(rest: Rest, mesh: FakeMesh) -> None:
    mesh.failure = failed("INVALID_PARAMETER", field="annotate")
    assert refusal(await rest.measure(), 400, 1008, "INVALID_PARAMETER")["details"] == {"field": "annotate"}


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"pupillary_distance_mm": "500"}, {"field": "pupillary_distance_mm", "max": 80}),
        ({"pupillary_distance_mm": "-1"}, {"field": "pupillary_distance_mm", "min": 40}),
        ({"pupillary_distance_mm": "nan"}, {"field": "pupillary_distance_mm", "expected": "a number"}),
        ({"pupillary_distance_mm": "inf"}, {"field": "pupillary_distance_mm", "expected": "a number"}),
        ({"pupillary_distance_mm": "SENTINEL"}, {"field": "pupillary_distance_mm", "expected": "a number"}),
        ({"annotate": "SENTINEL"}, {"field": "annotate", "expected": "true or false"}),
        ({"lang": "SENTINEL"}, {"field": "lang", "expected": "zh or en"}),
        ({"colour": "SENTINEL"}, {"field": "colour", "problem": "is no parameter of this call"}),
        ({"SENT INEL": "x"}, {"field": "?", "problem": "is no parameter of this call"}),
    ],
)
async def test_wrong_parameters_are_named(
    rest: Rest, mesh: FakeMesh, fields: dict[str, str], details: dict[str, Any]
) -> None:
    response = await rest.client.post(MEASURE, files={"image": ("p.jpg", PHOTO)}, data=fields)
    assert refusal(response, 400, 1008, "INVALID_PARAMETER")["details"] == details
    assert "SENT" not in response.text
    assert mesh.calls == []


@pytest.mark.parametrize("value", [True, False, "SENTINEL", [1], {}])
@pytest.mark.parametrize(
    ("field", "expected"),
    [("pupillary_distance_mm", "a number"), ("annotate", "true or false"), ("lang", "zh or en")],
)
async def test_json_of_another_type_is_told_the_type(rest: Rest, field: str, value: object, expected: str) -> None:
    if field == "annotate" and isinstance(value, bool):
        return
    response = await rest.client.post(MEASURE, json={"image_base64": base64.b64encode(PHOTO).decode(), field: value})
    details = refusal(response, 400, 1008, "INVALID_PARAMETER")["details"]
    assert details == {"field": field, "expected": expected}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("pupillary_distance_mm=60", "pupillary_distance_mm"),
        ("token=SENTINEL", "token"),
        ("SENTINEL", "?"),
        ("a%20b=1&token=SENTINEL", "?"),
        ("l%61ng=", "lang"),
        ("&", "?"),
        ("%ff=1", "?"),
    ],
)
async def test_a_query_is_refused_and_goes_no_further(rest: Rest, mesh: FakeMesh, query: str, field: str) -> None:
    response = await rest.client.post(f"{MEASURE}?{query}", files={"image": ("p.jpg", PHOTO)})
    details = refusal(response, 400, 1008, "INVALID_PARAMETER")["details"]
    assert (details["field"], "not in the query" in details["problem"]) == (field, True)
    assert "SENTINEL" not in response.text
    assert mesh.calls == []
    assert (await rest.client.post(f"{MEASURE}?", files={"image": ("p.jpg", PHOTO)})).status_code == 200
    await rest.stop()
    assert "SENTINEL" not in rest.settings.request_log.path.read_text()


@pytest.mark.parametrize("body", [{}, {"image_base64": None}, {"annotate": True}])
async def test_a_photo_must_be_there(rest: Rest, body: dict[str, Any]) -> None:
    data = refusal(await rest.client.post(MEASURE, json=body), 400, 1008, "MISSING_PARAMETER")
    assert data["details"]["field"] == "image"


@pytest.mark.parametrize(
    ("photo", "code", "reason", "details"),
    [
        (picture(size=(180, 400)), 1002, "IMAGE_TOO_SMALL", {"width": 180, "height": 400, "min": 200}),
        (
            picture("PNG", (8000, 6000), compress_level=1),
            1002,
            "IMAGE_TOO_MANY_PIXELS",
            {"width": 8000, "height": 6000, "pixels": 48_000_000, "max": 40_000_000},
        ),
        (
            picture("GIF"),
            1005,
            "UNSUPPORTED_FORMAT",
            {"format": "GIF", "supported": "BMP, HEIF, JPEG, PNG, TIFF, WEBP"},
        ),
        (
            b"%PDF-1.7 and so on",
            1005,
            "UNSUPPORTED_FORMAT",
            {"format": "PDF", "supported": "BMP, HEIF, JPEG, PNG, TIFF, WEBP"},
        ),
        (PHOTO[:40], 1005, "DAMAGED_IMAGE", {"format": "JPEG"}),
        (b"", 1005, "DAMAGED_IMAGE", {"size_bytes": 0}),
    ],
)
async def test_what_the_edge_sees_in_the_bytes_never_reaches_a_worker(
    rest: Rest, mesh: FakeMesh, photo: bytes, code: int, reason: str, details: dict[str, Any]
) -> None:
    assert refusal(await rest.measure(photo), 400, code, reason)["details"] == details
    assert mesh.calls == []


@pytest.mark.parametrize(
    ("method", "path", "content_type", "http_status", "reason"),
    [
        ("GET", "/api/v1/nothing", None, 404, "NOT_FOUND"),
        ("GET", "/api/", None, 404, "NOT_FOUND"),
        ("POST", MEASURE + "/", "application/json", 404, "NOT_FOUND"),
        ("POST", "/api/v1/hair", "application/json", 404, "NOT_FOUND"),
        ("GET", MEASURE, None, 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", MEASURE, None, 405, "METHOD_NOT_ALLOWED"),
        ("POST", MEASURE, "text/plain", 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("POST", MEASURE, "image/png", 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("POST", MEASURE, "application/x-www-form-urlencoded", 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("POST", MEASURE, "", 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("POST", MEASURE, "application/json", 400, "BAD_JSON"),
        ("POST", MEASURE, "multipart/form-data", 400, "BAD_MULTIPART"),
        ("POST", MEASURE, "multipart/form-data; boundary=x", 400, "BAD_MULTIPART"),
    ],
)
async def test_errors_of_the_framework_come_in_the_envelope(
    rest: Rest, method: str, path: str, content_type: str | None, http_status: int, reason: str
) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    response = await rest.client.request(method, path, headers=headers, content=b"SENTINEL {" if headers else None)
    refusal(response, http_status, 1008, reason)
    assert "SENTINEL" not in response.text
    if http_status == 405:
        assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("content", [b"[1]", b"null", b'"text"', b'{"a":', b'{"a": NaN}', b'{"\\ud800": 1}', b"\xff"])
async def test_json_must_be_an_object(rest: Rest, content: bytes) -> None:
    response = await rest.client.post(MEASURE, content=content, headers={"Content-Type": "application/json"})
    refusal(response, 400, 1008, "BAD_JSON")


async def test_declared_too_large(rest: Rest, mesh: FakeMesh) -> None:
    response = await rest.measure(PHOTO + bytes(3_000_000))
    data = refusal(response, 413, 1004, "BODY_TOO_LARGE")
    assert data["details"]["max_bytes"] == 2_097_152
    assert data["details"]["size_bytes"] > 3_000_000
    assert mesh.calls == []


async def test_patience_of_the_client(rest: Rest, mesh: FakeMesh) -> None:
    await rest.measure(headers={"X-Request-Timeout-Ms": "1500"})
    timeout_s = mesh.calls[-1].timeout_s
    assert timeout_s is not None
    assert 0.5 < timeout_s <= 1.5


async def test_patience_that_is_too_short_from_the_start_is_said(rest: Rest, mesh: FakeMesh) -> None:
    mesh.failure = CallFailedError("DEADLINE", details={"needed_ms": 41200}, retry_after_s=0.0)
    response = await rest.measure(headers={"X-Request-Timeout-Ms": "30000", "Accept-Language": "en"})
    data = refusal(response, 504, 1007, "DEADLINE")
    assert data["details"] == {"timeout_ms": 30000, "needed_ms": 41200, "retry_after_s": 1}
    assert "shorter than processing takes" in response.json()["message"]
    assert "Allow more time" in data["advice"]


@pytest.mark.parametrize(
    ("reason", "details", "told"),
    [
        ("DEADLINE", {}, {"timeout_ms": 30000, "retry_after_s": 5}),
        ("BUSY", {"needed_ms": 90000}, {"timeout_ms": 30000, "needed_ms": 90000, "retry_after_s": 5}),
        ("BUSY", {}, {"retry_after_s": 5}),
        ("YAW", {"yaw_deg": 31}, {"yaw_deg": 31}),
    ],
)
async def test_patience_stands_beside_what_broke_it(
    rest: Rest, mesh: FakeMesh, reason: str, details: dict[str, float], told: dict[str, float]
) -> None:
    mesh.failure = failed(reason, details=details)
    response = await rest.measure(headers={"X-Request-Timeout-Ms": "30000"})
    assert response.json()["data"]["details"] == told
    assert response.json()["message"] == TABLE[reason].message.zh


@pytest.mark.parametrize("given", ["", "0", "-5", "1.5", "abc", "9" * 30, "3600001"])
async def test_patience_must_be_a_number_of_ms(rest: Rest, mesh: FakeMesh, given: str) -> None:
    data = refusal(await rest.measure(headers={"X-Request-Timeout-Ms": given}), 400, 1008, "INVALID_PARAMETER")
    assert data["details"]["field"] == "X-Request-Timeout-Ms"
    assert mesh.calls == []


async def test_a_fault_of_the_edge_itself_says_nothing_of_it(rest: Rest, mesh: FakeMesh) -> None:
    mesh.failure = KeyError("SENTINEL /etc/passwd")
    with structlog.testing.capture_logs():
        response = await rest.measure()
    refusal(response, 503, 1007, "EDGE_FAILED")
    assert "SENTINEL" not in response.text
    assert "Traceback" not in response.text


async def test_every_reason_of_the_contract_is_in_the_table() -> None:
    contract = (
        "NO_FACE IMAGE_TOO_SMALL IMAGE_TOO_MANY_PIXELS FACE_TOO_SMALL FACE_CUT_OFF YAW PITCH ROLL UPSIDE_DOWN"
        " BODY_TOO_LARGE UNSUPPORTED_FORMAT DAMAGED_IMAGE BAD_BASE64 INPUT_FAILED POISON_INPUT MULTIPLE_FACES"
        " HAIRLINE_HIDDEN NO_WORKER BUSY WORKER_FAILED DEADLINE STORE_FULL"
    )
    assert set(contract.split()) <= set(TABLE)


async def test_rare_formats_can_be_switched_off(tmp_path: Path, mesh: FakeMesh) -> None:
    async with serving(tmp_path, mesh, limits={"rare_formats": []}) as rest:
        data = refusal(await rest.measure(picture("BMP")), 400, 1005, "UNSUPPORTED_FORMAT")
        assert data["details"] == {"format": "BMP", "supported": "JPEG, PNG, WEBP"}
        assert (await rest.measure(picture("WEBP"))).status_code == 200


async def test_smaller_limits_hold(tmp_path: Path, mesh: FakeMesh) -> None:
    limits = {"max_body_bytes": 65_536, "max_pixels": 60_000, "max_output_side": 512}
    async with serving(tmp_path, mesh, limits=limits) as rest:
        refusal(await rest.measure(PHOTO + bytes(66_000)), 413, 1004, "BODY_TOO_LARGE")
        refusal(await rest.measure(picture(size=(240, 320))), 400, 1002, "IMAGE_TOO_MANY_PIXELS")
        assert (await rest.measure(picture(size=(240, 240)))).status_code == 200
        assert mesh.request.options.max_output_side_px == 512
