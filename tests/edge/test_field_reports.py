"""Reports from the field that concern the REST side, by their number."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import socket
from pathlib import Path

import pytest
import structlog
from hair.analysis.v1 import growth_pb2

from tests.edge.rest import (
    ANNOTATED,
    CALLS,
    FEATURES,
    GROW,
    MEASURE,
    PASSWORD,
    PHOTO,
    SPECIAL_POINTS,
    FakeMesh,
    Rest,
    eventually,
    failed,
    grown_region,
    picture,
    serving,
)


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


async def test_b09_heic_under_a_jpeg_name(rest: Rest, mesh: FakeMesh) -> None:
    heic = b"\0\0\0\x18ftypheic" + bytes(1000)
    mesh.failure = failed("DAMAGED_IMAGE", details={"format": "HEIF"})  # that no size is in it, a worker finds out
    response = await rest.client.post(MEASURE, files={"image": ("face.jpg", heic, "image/jpeg")})
    assert (response.status_code, response.json()["code"]) == (400, 1005)
    assert mesh.request.photo.media_type == "image/heif"
    mesh.failure = None
    response = await rest.client.post(MEASURE, files={"image": ("face.heic", PHOTO, "image/heic")})
    assert response.status_code == 200
    assert mesh.request.photo.media_type == "image/jpeg"


@pytest.mark.parametrize(
    "name",
    [
        *("../../static/owned.png", "/tmp/outside.png", "a\\..\\b.png", "x" * 300, "", "顔🚀.png", "’.png"),
        'a\nb\\"c.png',
        "p\"; filename*=\"UTF-8''%e9%a1%94.png",
    ],
)
async def test_b12_b13_names_make_no_files(rest: Rest, tmp_path: Path, name: str) -> None:
    before = files_below(tmp_path)
    disposition = f'form-data; name="image"; filename="{name}"'.encode()
    body = b"--b\r\nContent-Disposition: " + disposition + b"\r\n\r\n" + PHOTO + b"\r\n--b--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    response = await rest.client.post(MEASURE, content=body, headers=headers)
    assert response.status_code == 200
    url = response.json()["data"]["annotated_image_url"]
    assert url.isascii()
    assert (await rest.client.get(url)).content == ANNOTATED
    await rest.stop()
    assert files_below(tmp_path) - before == {f"pictures/{url.rpartition('/')[2]}", "request_log.jsonl"}
    assert len(rest.log_lines()) == 1


@pytest.mark.parametrize(
    "path",
    [
        "/static/..%2f..%2fedge.json",
        "/static/%2e%2e/",
        "/static/annotations/..%2f..%2frequest_log.jsonl",
        "/static/annotations/../../request_log.jsonl",
        "/static/annotations/",
        "/static/annotations/%00.png",
        "/static/annotations/" + "a" * 32 + ".png%2f..",
        "/static/annotations/" + "a" * 32,
        "/static-offline-docs/..%2f..%2f__init__.py",
    ],
)
async def test_b12_nothing_but_pictures_is_served(rest: Rest, path: str) -> None:
    await rest.measure()
    reader, writer = await rest.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert (await reader.read()).startswith(b"HTTP/1.1 404")
    writer.close()


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"x"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="image"; filename="p"\r\n\r\nx',
        ),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="image"\r\n\r\nx\r\n--b--'),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="image"; filename="p"\r\n\r\nx\r\n' * 2 + b"--b--",
        ),
    ],
)
async def test_b16_broken_forms(rest: Rest, content_type: str, body: bytes) -> None:
    response = await rest.client.post(MEASURE, content=body, headers={"Content-Type": content_type})
    assert (response.status_code, response.json()["code"]) == (400, 1008)
    await rest.stop()
    (line,) = rest.log_lines()
    assert line["request_id"] == response.json()["request_id"]


@pytest.mark.parametrize("prefix", ["data:image/png;base64,", "DATA:IMAGE/PNG;charset=x;base64,", " ", "\n"])
async def test_b17_data_urls(rest: Rest, mesh: FakeMesh, prefix: str) -> None:
    body = {"image_base64": prefix + base64.b64encode(PHOTO).decode()}
    assert (await rest.client.post(MEASURE, json=body)).status_code == 200
    assert mesh.request.photo.data == PHOTO
    assert mesh.request.photo.media_type == "image/jpeg"


async def test_b18_base64_damaged_on_the_way(rest: Rest, mesh: FakeMesh) -> None:
    photo = PHOTO + b"\xfb\xef\xbe" * 2000
    text = base64.b64encode(photo).decode()
    for damaged in (text.replace("+", " "), text[:-4097]):
        response = await rest.client.post(MEASURE, json={"image_base64": damaged})
        assert (response.status_code, response.json()["data"]["reason"]) == (400, "BAD_BASE64")
    assert mesh.calls == []
    # A tail of whole groups is valid base64: that the picture is not whole is for the worker to see.
    await rest.client.post(MEASURE, json={"image_base64": text[:-4096]})
    assert mesh.request.photo.data == base64.b64decode(text[:-4096])


MASK = picture("PNG", (240, 320))


@pytest.fixture
def growing(mesh: FakeMesh) -> FakeMesh:
    """A mesh that answers the call that takes a second file."""
    result = growth_pb2.RegionResult()
    result.marked_image.data = ANNOTATED
    mesh.results = grown_region(result)
    return mesh


@pytest.mark.parametrize("name", ["../../static/owned.png", "/tmp/outside.png", "", "顔🚀.png", 'a\nb\\"c.png'])
async def test_b12_b13_a_masks_name_makes_no_file_either(
    rest: Rest, growing: FakeMesh, tmp_path: Path, name: str
) -> None:
    before = files_below(tmp_path)
    parts = (("image", PHOTO), ("mask", MASK))
    body = b"".join(
        f'--b\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n\r\n'.encode() + data + b"\r\n"
        for field, data in parts
    )
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    response = await rest.client.post(GROW, content=body + b"--b--\r\n", headers=headers)
    assert response.status_code == 200
    assert growing.asked(growth_pb2.GrowRegionRequest).mask.data == MASK
    url = response.json()["data"]["marked_image_url"]
    await rest.stop()
    assert files_below(tmp_path) - before == {f"pictures/{url.rpartition('/')[2]}", "request_log.jsonl"}


@pytest.mark.parametrize(
    ("parts", "details"),
    [
        ([("mask", MASK), ("mask", MASK)], {"field": "mask", "problem": "sent twice"}),
        ([("mask", None)], {"field": "mask", "expected": "a file"}),
    ],
)
async def test_b16_masks_in_broken_forms(
    rest: Rest, parts: list[tuple[str, bytes | None]], details: dict[str, str]
) -> None:
    files = [("image", ("p.jpg", PHOTO)), *((name, (name if data else None, data or b"x")) for name, data in parts)]
    response = await rest.client.post(GROW, files=files)
    assert (response.status_code, response.json()["code"]) == (400, 1008)
    assert response.json()["data"]["details"] == details


@pytest.mark.parametrize("prefix", ["data:image/jpeg;base64,", "DATA:IMAGE/JPEG;charset=x;base64,", " ", "\n"])
async def test_b17_masks_as_data_urls(rest: Rest, growing: FakeMesh, prefix: str) -> None:
    body = {"image_base64": base64.b64encode(PHOTO).decode(), "mask_base64": prefix + base64.b64encode(MASK).decode()}
    assert (await rest.client.post(GROW, json=body)).status_code == 200
    mask = growing.asked(growth_pb2.GrowRegionRequest).mask
    assert (mask.data, mask.media_type) == (MASK, "image/png")


async def test_b18_a_masks_base64_damaged_on_the_way(rest: Rest, growing: FakeMesh) -> None:
    text = base64.b64encode(MASK + b"\xfb\xef\xbe" * 2000).decode()
    for damaged in (text.replace("+", " "), text[:-4097]):
        body = {"image_base64": base64.b64encode(PHOTO).decode(), "mask_base64": damaged}
        response = await rest.client.post(GROW, json=body)
        assert (response.status_code, response.json()["code"]) == (400, 1008)
        assert response.json()["data"]["reason"] == "MASK_UNREADABLE"
        assert response.json()["data"]["details"]["field"] == "mask_base64"
    assert growing.calls == []


@pytest.mark.parametrize("route", [*CALLS, FEATURES, SPECIAL_POINTS])
async def test_b52_pictures_as_bodies_stay_out_of_logs(
    rest: Rest, route: str, capfd: pytest.CaptureFixture[str]
) -> None:
    body = b"\x89PNG SENTINEL" + os.urandom(5_000_000)
    types = ("image/png", "application/json", "text/html", "multipart/form-data; boundary=SENTINEL")
    with structlog.testing.capture_logs() as logs:
        responses = [await rest.client.post(route, content=body, headers={"Content-Type": each}) for each in types]
        small = await rest.client.post(route, content=body[:9000], headers={"Content-Type": "application/json"})
    assert [response.status_code for response in responses] == [415, 413, 415, 413]
    assert (small.status_code, small.json()["data"]["reason"]) == (400, "BAD_JSON")
    await rest.stop()
    said = "".join(capfd.readouterr()) + json.dumps(logs) + rest.settings.request_log.path.read_text()
    assert "SENTINEL" not in said + "".join(response.text for response in (*responses, small))
    assert len(said) < 2000 * (len(types) + 1)


async def test_b54_refusals_do_not_repeat_what_was_sent(rest: Rest, capfd: pytest.CaptureFixture[str]) -> None:
    body = {"image": ["SENTINEL" * 1500], "password": "SENTINEL"}
    with structlog.testing.capture_logs() as logs:
        response = await rest.client.post(MEASURE, json=body)
    assert (response.status_code, response.json()["data"]["details"]["field"]) == (400, "image")
    assert len(response.content) < 1024
    await rest.stop()
    said = "".join(capfd.readouterr()) + json.dumps(logs) + rest.settings.request_log.path.read_text()
    assert "SENTINEL" not in response.text + said


async def test_b55_thirty_clients_leave(rest: Rest, mesh: FakeMesh) -> None:
    mesh.gate = asyncio.Event()
    requests = [asyncio.create_task(rest.measure()) for _ in range(30)]
    await eventually(lambda: len(mesh.calls) == 30)
    await rest.client.aclose()
    for request in requests:
        request.cancel()
    await asyncio.gather(*requests, return_exceptions=True)
    await eventually(lambda: not rest.server.server_state.tasks)
    assert mesh.cancelled.is_set()
    await rest.stop()
    assert [line["client"] for line in rest.log_lines()] == ["client_closed"] * 30


async def test_b56_uploads_leave_nothing_open(rest: Rest) -> None:
    async def uploads() -> None:
        for photo in (PHOTO + bytes(1_500_000), picture("GIF") + bytes(1_500_000), bytes(3_000_000)):
            await rest.measure(photo)
        with socket.create_connection(("127.0.0.1", rest.port)) as connection:
            connection.sendall(f"POST {MEASURE} HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n".encode())

    await uploads()
    folders = (Path("/proc/self/fd"), Path("/tmp"))
    before = [len(list(folder.iterdir())) for folder in folders]
    for _ in range(10):
        await uploads()
    await eventually(lambda: len(rest.server.server_state.connections) <= 1)
    after = [len(list(folder.iterdir())) for folder in folders]
    assert after[0] <= before[0] + 2
    assert after[1] <= before[1] + 2  # other programs use it too


async def test_b57_idle_connections_cost_nobody_an_answer(rest: Rest) -> None:
    idle = [await rest.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(100)]
    assert (await rest.client.get("/health")).status_code == 200
    assert (await rest.client.get("/monitor")).status_code == 200
    for _reader, writer in idle:
        writer.close()


FORGED = {
    "Host": "evil.example",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Prefix": "/face",
    "Forwarded": "host=evil.example;proto=https",
}


async def test_b61_addresses_in_answers_come_from_the_configuration(rest: Rest) -> None:
    url = (await rest.measure(headers=FORGED)).json()["data"]["annotated_image_url"]
    assert url.startswith(f"http://127.0.0.1:{rest.port}/static/annotations/")
    response = await rest.client.get("/health/", headers=FORGED)
    assert response.status_code == 404
    assert "location" not in response.headers


async def test_b61_behind_a_proxy_the_configured_base_counts_even_where_the_proxy_is_trusted(
    tmp_path: Path, mesh: FakeMesh
) -> None:
    base = "https://clinic.example/face"
    async with serving(tmp_path, mesh, public_base_url=base, trusted_proxies=["127.0.0.1"]) as rest:
        url = (await rest.measure(headers=FORGED)).json()["data"]["annotated_image_url"]
        assert url.startswith(f"{base}/static/annotations/")
        assert (await rest.client.get(url.removeprefix(base))).content == ANNOTATED  # the proxy takes its prefix off


async def test_b100_tokens_in_addresses_are_not_kept(rest: Rest, capfd: pytest.CaptureFixture[str]) -> None:
    with structlog.testing.capture_logs() as logs:
        for path in ("/monitor", "/api/v1/nothing", MEASURE):
            await rest.client.get(path, params={"token": "SENTINEL", "X-Internal-Token": "SENTINEL"})
        response = await rest.client.post(f"/monitor/fault?token={PASSWORD}", json={"enabled": True})
    assert response.status_code == 401
    await rest.stop()
    said = "".join(capfd.readouterr()) + json.dumps(logs) + rest.settings.request_log.path.read_text()
    assert "SENTINEL" not in said
    assert PASSWORD not in said


async def test_huge_headers_are_no_way_in(rest: Rest) -> None:
    with contextlib.suppress(Exception):
        await rest.measure(headers={"X-Request-ID": "x" * 200_000, "Accept-Language": "en," * 50_000})
    assert (await rest.client.get("/monitor")).status_code == 200


async def test_hop_by_hop_headers_change_nothing(rest: Rest) -> None:
    connection = "keep-alive, X-Request-ID, Upgrade"
    headers = {"TE": "trailers", "Keep-Alive": "timeout=1", "Connection": connection, "Upgrade": "h2c"}
    assert (await rest.measure(headers=headers)).status_code == 200
