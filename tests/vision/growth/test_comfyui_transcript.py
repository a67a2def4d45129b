"""The fake server beside a real one: the recorded requests, made again, get answers of the same shape."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from websockets.sync.client import connect

from tests.fakes.comfyui_server import ComfyUiServer
from tests.vision.growth.comfyui_jobs import until

TRANSCRIPT = Path(__file__).parents[4] / "shared" / "data" / "comfyui" / "transcript.json"
CLIENT = "8cdd6636c0574fd4a5c67c571006351e"


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    if not TRANSCRIPT.exists():
        pytest.skip("the recorded answers are not here")
    content: dict[str, Any] = json.loads(TRANSCRIPT.read_text())
    return content


@pytest.fixture
def server() -> Iterator[ComfyUiServer]:
    with ComfyUiServer() as fake:
        yield fake


@pytest.fixture
def http(server: ComfyUiServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        client.post("/upload/image", files={"image": ("photo.png", picture(40))})
        client.post("/upload/image", files={"image": ("bad.png", b"no picture")})
        yield client


def picture(grey: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (32, 24), (grey, grey, grey)).save(buffer, "PNG")
    return buffer.getvalue()


def shape(value: Any, words: bool = False) -> Any:
    """Keys and types; prompt ids as keys, names and numbers are as they fall."""
    if isinstance(value, dict):
        return {("id" if len(key) == 36 else key): shape(each, words) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each, words) for each in value]
    if isinstance(value, str):
        return value if words else "text"
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else value


def prompt_of(history: dict[str, Any]) -> dict[str, Any]:
    prompt: dict[str, Any] = next(iter(history.values()))["prompt"][2]
    return prompt


def run(
    http: httpx.Client, server: ComfyUiServer, prompt: dict[str, Any], client_id: str | None
) -> tuple[Any, list[Any]]:
    """History and socket messages of one prompt."""
    body = {"prompt": prompt} | ({"client_id": client_id} if client_id else {})
    heard: list[Any] = []
    with connect(f"{server.url.replace('http', 'ws', 1)}/ws?clientId={CLIENT}", proxy=None) as socket:
        first = json.loads(socket.recv())
        assert first == {"type": "status", "data": {"status": {"exec_info": {"queue_remaining": 0}}, "sid": CLIENT}}
        prompt_id = http.post("/prompt", json=body).json()["prompt_id"]
        until(lambda: prompt_id in server.engine.history)
        while not heard or not is_last(heard, client_id):
            heard.append(json.loads(socket.recv(timeout=60)))
    return http.get(f"/history/{prompt_id}").json(), heard


def is_last(heard: list[Any], client_id: str | None) -> bool:
    kind, data = heard[-1]["type"], heard[-1]["data"]
    if client_id is not None:
        return bool(kind == "executing" and data["node"] is None)
    return bool(kind == "status" and data == {"status": {"exec_info": {"queue_remaining": 0}}})


def events(messages: list[Any]) -> list[Any]:
    """Types with the node they are about."""
    return [(each["type"], each["data"].get("node"), sorted(each["data"].get("nodes", ()))) for each in messages]


@pytest.mark.parametrize(
    "name",
    ["a prompt", "the same prompt again, with client_id", "input that is no picture (fails while running)"],
)
def test_a_prompt_says_the_same_in_the_same_order(
    recorded: dict[str, Any], http: httpx.Client, server: ComfyUiServer, name: str
) -> None:
    prompt = prompt_of(recorded[name]["history"])
    if "again" in name:
        run(http, server, prompt, CLIENT)
    history, heard = run(http, server, prompt, CLIENT)
    real = [each["text"] for each in recorded[name]["socket"]]
    assert events(heard) == events(real)
    assert [shape(each) for each in heard] == [shape(each) for each in real]
    assert shape(history) == shape(recorded[name]["history"])


def test_without_a_client_id_a_cached_prompt_has_no_output(
    recorded: dict[str, Any], http: httpx.Client, server: ComfyUiServer
) -> None:
    real = recorded["the same prompt again, without client_id"]
    prompt = prompt_of(real["history"])
    run(http, server, prompt, CLIENT)
    history, heard = run(http, server, prompt, None)
    assert shape(history) == shape(real["history"])
    assert events(heard) == events([each["text"] for each in real["socket"]])


def test_uploads_answer_alike(recorded: dict[str, Any], http: httpx.Client) -> None:
    first = http.post("/upload/image", files={"image": ("other.png", picture(1))}).json()
    assert shape(first) == shape(recorded["upload image"]["body"])
    again = http.post("/upload/image", files={"image": ("photo.png", picture(2))}).json()
    assert again == recorded["upload the same name again, other bytes"]["body"]
    over = http.post("/upload/image", files={"image": ("photo.png", picture(3))}, data={"overwrite": "true"}).json()
    assert over == recorded["upload image"]["body"]
    assert http.get("/view", params={"filename": "photo.png", "type": "input"}).content == picture(3)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("unknown node class", {"1": {"class_type": "NoSuchNode", "inputs": {}}}),
        ("input file that is not there", {"1": {"class_type": "LoadImage", "inputs": {"image": "missing.png"}}}),
        (
            "value out of range",
            {
                "2": {
                    "class_type": "ImageScaleBy",
                    "inputs": {"image": ["1", 0], "upscale_method": "lanczos", "scale_by": 99.0},
                }
            },
        ),
        ("no output node", None),
    ],
)
def test_refusals_are_the_recorded_ones(
    recorded: dict[str, Any], http: httpx.Client, name: str, change: dict[str, Any] | None
) -> None:
    prompt = prompt_of(recorded["a prompt"]["history"])
    prompt = {key: node for key, node in prompt.items() if key != "4"} if change is None else prompt | change
    answer = http.post("/prompt", json={"prompt": prompt, "client_id": CLIENT})
    assert answer.status_code == recorded[name]["status"]
    assert answer.json() == recorded[name]["body"]


def test_queue_delete_and_interrupt(recorded: dict[str, Any], http: httpx.Client, server: ComfyUiServer) -> None:
    server.engine.hold = "ImageBlur"
    prompt = prompt_of(recorded["history of the interrupted"]["body"])
    ids = [http.post("/prompt", json={"prompt": prompt, "client_id": CLIENT}).json()["prompt_id"] for _ in range(3)]
    server.engine.reached.wait(60)
    queue, real = http.get("/queue").json(), recorded["queue while one runs and two wait"]["body"]
    assert {key: len(items) for key, items in queue.items()} == {key: len(items) for key, items in real.items()}
    assert [shape([*item[:2], "<prompt>", "<extra>", item[4]]) for item in queue["queue_running"]] == shape(
        real["queue_running"]
    )
    assert http.post("/queue", json={"delete": [ids[2]]}).content == b""
    assert http.post("/interrupt", json={"prompt_id": ids[1]}).content == b""  # which does not run
    assert http.post("/interrupt", json={"prompt_id": ids[0]}).content == b""
    until(lambda: ids[0] in server.engine.history)
    history = http.get(f"/history/{ids[0]}").json()
    assert shape(history) == shape(recorded["history of the interrupted"]["body"])
    assert http.get(f"/history/{ids[2]}").json() == recorded["history of the deleted"]["body"] == {}
    server.engine.release.set()
    until(lambda: ids[1] in server.engine.history)
    assert server.engine.history[ids[1]]["status"]["status_str"] == "success"


def test_system_stats(recorded: dict[str, Any], http: httpx.Client) -> None:
    fake, real = http.get("/system_stats").json(), recorded["system_stats"]["body"]
    assert fake["system"].keys() <= real["system"].keys()
    assert fake["devices"][0].keys() == real["devices"][0].keys()
    assert shape(http.get("/prompt").json()) == shape(recorded["prompt info"]["body"])
