"""Both calls over a real socket, with an engine that sees what it is told: lines, deadlines, faults, words."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_schema_validator import OAS31Validator
from structlog.testing import capture_logs

from edge.calls import OnlineCounts
from edge.errors import ApiError
from edge.local import thread as local_thread
from edge.local.findings import Described, NotLoadedError, Points, Ticket
from edge.settings import LocalVision
from hairmesh.client import FEATURES_ROUTE, SPECIAL_POINTS_ROUTE
from tests.edge.local.engines import PATIENCE_S, ScriptedEngine, described, without_parser
from tests.edge.rest import FEATURES, PHOTO, SPECIAL_POINTS, FakeMesh, Rest, eventually, picture, serving
from tests.fakes.openai_server import KEY, OpenAiServer, claims, completion, error
from vision.describe_terms import NO_PARSER, Feature
from vision.errors import Reason

NOBODY = OnlineCounts(total=2, healthy=0, primary_total=2, primary_healthy=0)
BOTH = [FEATURES, SPECIAL_POINTS]


@asynccontextmanager
async def local(folder: Path, engine: ScriptedEngine, **changes: Any) -> AsyncIterator[Rest]:
    """An edge without any worker, that sees by `engine`."""
    async with serving(folder, FakeMesh(counts=NOBODY), load_local=engine.load, **changes) as rest:
        yield rest


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
async def edge(tmp_path: Path, engine: ScriptedEngine) -> AsyncIterator[Rest]:
    async with local(tmp_path, engine) as rest:
        yield rest


async def reached(event: threading.Event) -> None:
    """Wait for what happens in the local thread."""
    assert await asyncio.to_thread(event.wait, PATIENCE_S)


def test_the_routes_are_those_of_the_client() -> None:
    assert BOTH == [FEATURES_ROUTE, SPECIAL_POINTS_ROUTE]


async def test_points_come_without_any_worker(edge: Rest, engine: ScriptedEngine) -> None:
    response = await edge.post(SPECIAL_POINTS)
    assert response.status_code == 200
    data = response.json()["data"]
    assert data["points"] == {"glabella": {"x_px": 120.12, "y_px": 150.0}}
    assert data["photo"]["width_px"] == 240
    assert engine.seen == [PHOTO]


async def test_a_description_comes_without_any_worker_in_the_language_asked_for(edge: Rest) -> None:
    chinese = (await edge.post(FEATURES)).json()["data"]
    by_header = (await edge.post(FEATURES, headers={"accept-language": "en"})).json()["data"]
    by_parameter = (await edge.post(FEATURES, headers={"accept-language": "zh"}, lang="en")).json()["data"]
    assert chinese["features"]["jaw"]["width"]["text"] == "下颌宽度适中"
    assert by_header["features"]["jaw"]["width"]["text"] == "jaw of average width"
    assert by_parameter == by_header
    assert (chinese["source"], chinese["llm_reason"]) == ("geometry", None)


async def test_both_are_in_the_request_log_without_a_worker(edge: Rest) -> None:
    for route in BOTH:
        await edge.post(route)
    await edge.stop()
    lines = edge.log_lines()
    assert [line["route"] for line in lines] == BOTH
    for line in lines:
        assert (line["code"], line["worker"], line["workers"], line["attempts"]) == (0, "", [], 0)
        assert line["duration_ms"] >= line["queue_ms"] >= 0


async def test_a_photo_that_is_refused_is_refused_by_name(edge: Rest, engine: ScriptedEngine) -> None:
    engine.failure = ApiError("YAW", {"yaw_deg": 31.5, "max": 20})
    for route in BOTH:
        response = await edge.post(route)
        assert (response.status_code, response.json()["code"]) == (400, 1003)
        assert response.json()["data"]["details"] == {"yaw_deg": 31.5, "max": 20}


async def test_statistics_tell_the_reasons_that_vision_gives(tmp_path: Path, engine: ScriptedEngine) -> None:
    """Its reasons are members of an enumeration, which are no keys in JSON."""
    engine.failure = ApiError(Reason.NO_FACE)
    async with local(tmp_path, engine, admin_tokens=[TOKEN]) as edge:
        assert (await edge.post(FEATURES)).status_code == 400
        answer = await edge.client.get("/admin/stats", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.json()["routes"][0]["since_start"]["reasons"] == {"NO_FACE": 1}


async def test_a_body_is_checked_as_for_any_call(edge: Rest, engine: ScriptedEngine) -> None:
    small = await edge.post(FEATURES, picture(size=(180, 240)))
    assert small.json()["data"]["reason"] == "IMAGE_TOO_SMALL"
    unknown = await edge.post(SPECIAL_POINTS, styles="m")
    assert unknown.json()["data"]["details"]["field"] == "styles"
    assert engine.seen == []


async def test_points_take_a_language_like_every_call(edge: Rest) -> None:
    assert (await edge.post(SPECIAL_POINTS, lang="en")).status_code == 200
    refused = await edge.post(SPECIAL_POINTS, lang="fr")
    assert refused.json()["data"]["details"] == {"field": "lang", "expected": "zh or en"}


async def test_one_more_than_the_line_holds_is_told_to_come_again(tmp_path: Path, engine: ScriptedEngine) -> None:
    engine.gate = threading.Event()
    async with local(tmp_path, engine, local_vision={"max_waiting": 1}) as edge:
        asked = {asyncio.create_task(edge.post(SPECIAL_POINTS)) for _ in range(3)}
        (too_many,), inside = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        refused = too_many.result()
        assert (refused.status_code, refused.json()["code"], refused.json()["data"]["reason"]) == (503, 1007, "BUSY")
        assert int(refused.headers["retry-after"]) > 0
        engine.gate.set()
        assert [response.status_code for response in await asyncio.gather(*inside)] == [200, 200]
        assert (await edge.post(FEATURES)).status_code == 200, "there is room again"


async def test_nothing_else_waits_while_it_computes(edge: Rest, engine: ScriptedEngine) -> None:
    engine.gate = threading.Event()
    running = asyncio.create_task(edge.post(FEATURES))
    await reached(engine.busy)
    assert (await edge.client.get("/monitor")).status_code == 503
    assert (await edge.client.get("/readyz")).status_code == 200
    assert not running.done()
    engine.gate.set()
    assert (await running).status_code == 200


async def test_a_client_that_leaves_takes_its_place_in_line_along(edge: Rest, engine: ScriptedEngine) -> None:
    engine.gate = threading.Event()
    first = asyncio.create_task(edge.post(SPECIAL_POINTS))
    await reached(engine.busy)
    gone = asyncio.create_task(edge.post(SPECIAL_POINTS, picture(size=(300, 300))))
    await eventually(lambda: len(edge.server.server_state.tasks) == 2)
    gone.cancel()
    log = edge.settings.request_log.path
    await eventually(lambda: log.exists() and "client_closed" in log.read_text())
    engine.gate.set()
    staying = picture(size=(400, 400))
    last = await edge.post(SPECIAL_POINTS, staying)
    assert [(await first).status_code, last.status_code] == [200, 200]
    assert engine.seen == [PHOTO, staying]


async def test_a_running_job_ends_when_its_client_leaves(edge: Rest, engine: ScriptedEngine) -> None:
    engine.gate = threading.Event()
    gone = asyncio.create_task(edge.post(FEATURES))
    await reached(engine.busy)
    gone.cancel()
    await reached(engine.gave_up)
    engine.gate.set()
    assert (await edge.post(FEATURES)).status_code == 200


async def test_a_client_waits_no_longer_than_it_said(edge: Rest, engine: ScriptedEngine) -> None:
    engine.gate = threading.Event()
    response = await edge.post(FEATURES, headers={"x-request-timeout-ms": "300"})
    assert (response.status_code, response.json()["code"]) == (504, 1007)
    assert response.json()["data"]["reason"] == "DEADLINE"
    assert response.json()["data"]["details"] == {"timeout_ms": 300, "retry_after_s": 5}
    await reached(engine.gave_up)


async def test_nor_longer_than_the_configuration_says(tmp_path: Path, engine: ScriptedEngine) -> None:
    engine.gate = threading.Event()
    async with local(tmp_path, engine, local_vision={"timeout_seconds": 0.2}) as edge:
        response = await edge.post(FEATURES, headers={"x-request-timeout-ms": "60000"})
    assert response.status_code == 504
    assert response.json()["data"]["details"] == {"timeout_ms": 200, "retry_after_s": 5}


async def test_a_photo_that_breaks_what_looks_at_it_is_at_fault(edge: Rest, engine: ScriptedEngine) -> None:
    """Not to be tried again, and nobody else pays for it with new models."""
    engine.failure = RuntimeError("SENTINEL inside")
    with capture_logs() as lines:
        for route in BOTH:
            refused = await edge.post(route)
            assert (refused.status_code, refused.json()["code"]) == (400, 1005)
            assert refused.json()["data"]["reason"] == "INPUT_FAILED"
            assert "retry-after" not in refused.headers
            assert "SENTINEL" not in refused.text
    assert [line["event"] for line in lines].count("local_vision_loaded") == 1
    assert not engine.closed
    engine.failure = None
    assert (await edge.post(FEATURES)).status_code == 200


async def test_an_engine_that_a_photo_broke_is_loaded_anew_and_the_photo_refused(
    edge: Rest, engine: ScriptedEngine
) -> None:
    engine.failure, engine.broken = RuntimeError("SENTINEL inside"), ValueError("SENTINEL answer")
    broken = await edge.post(FEATURES)
    assert (broken.status_code, broken.json()["data"]["reason"]) == (503, "EDGE_FAILED")
    assert "SENTINEL" not in broken.text
    assert engine.closed
    engine.failure = engine.broken = None
    assert (await edge.post(SPECIAL_POINTS, picture(size=(300, 300)))).status_code == 200
    again = await edge.post(FEATURES)
    assert (again.status_code, again.json()["data"]["reason"]) == (400, "POISON_INPUT")


async def test_time_in_line_is_logged_whatever_comes_of_it(edge: Rest, engine: ScriptedEngine) -> None:
    engine.gate, engine.failure = threading.Event(), ApiError("NO_FACE")
    first = asyncio.create_task(edge.post(SPECIAL_POINTS))
    await reached(engine.busy)
    late = await edge.post(SPECIAL_POINTS, headers={"x-request-timeout-ms": "2000"})
    second = asyncio.create_task(edge.post(FEATURES))
    await eventually(lambda: len(edge.server.server_state.tasks) == 2)
    asyncio.get_running_loop().call_later(0.3, engine.gate.set)
    assert [(await each).json()["code"] for each in (first, second)] == [1001, 1001]
    await edge.stop()
    queue_ms = {line["reason"] + line["route"]: line["queue_ms"] for line in edge.log_lines()}
    assert late.status_code == 504
    assert queue_ms[f"DEADLINE{SPECIAL_POINTS}"] >= 200
    assert queue_ms[f"NO_FACE{FEATURES}"] >= 200
    assert queue_ms[f"NO_FACE{SPECIAL_POINTS}"] < queue_ms[f"NO_FACE{FEATURES}"]


TOKEN = "sixteen-characters"


async def test_a_thread_that_hangs_is_told_and_replaced_and_a_second_one_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One may be left behind; calls are refused at once while another hangs; it goes on when one of them comes back."""
    monkeypatch.setattr(local_thread, "STILL_MAX_S", 1.5)
    monkeypatch.setattr(local_thread, "LOOK_EVERY_S", 0.25)
    gates, hanging = [threading.Event() for _ in range(2)], list[threading.Event]()
    photos = [picture(size=(300 + number, 300)) for number in range(2)]

    class Hanging(ScriptedEngine):
        """Takes one of the photos and never moves again, until its gate is open."""

        def special_points(self, data: bytes, max_pixels: int, ticket: Ticket) -> Points:
            if data in photos:
                hanging.append(gates[photos.index(data)])
                hanging[-1].wait(PATIENCE_S)
            return super().special_points(data, max_pixels, ticket)

    async def state(rest: Rest) -> Any:
        answer = await rest.client.get("/admin/pool", headers={"x-admin-token": TOKEN})
        return answer.json()["local_vision"]

    async def hang(rest: Rest, photo: bytes) -> Any:
        return await rest.post(SPECIAL_POINTS, photo, headers={"x-request-timeout-ms": "1500"})

    changes: dict[str, Any] = {"admin_tokens": [TOKEN]}
    with capture_logs() as lines:
        async with (
            serving(tmp_path, FakeMesh(counts=NOBODY), load_local=lambda _: Hanging(), **changes) as edge,
            asyncio.timeout(PATIENCE_S),
        ):
            assert (await hang(edge, photos[0])).status_code == 504
            while (await state(edge))["hanging"] != 1:
                pass
            assert (await edge.post(SPECIAL_POINTS)).status_code == 200, "another thread does it"
            again = await edge.post(SPECIAL_POINTS, photos[0])
            assert again.json()["data"]["reason"] == "POISON_INPUT", "it is not to hang that one too"
            assert (await hang(edge, photos[1])).status_code == 504
            waiting = asyncio.create_task(edge.post(SPECIAL_POINTS))
            while not (await state(edge))["stuck"]:
                pass
            assert (await state(edge))["hanging"] == 2
            for refused in (await waiting, await edge.post(FEATURES)):
                assert (refused.status_code, refused.json()["code"]) == (503, 1007)
                assert refused.json()["data"]["reason"] == "LOCAL_VISION_STUCK"
                assert int(refused.headers["retry-after"]) > 0
            ready, monitor = [await edge.client.get(path) for path in ("/readyz", "/monitor")]
            assert (ready.status_code, ready.json()["local_vision_stuck"]) == (200, True)
            assert "local" not in monitor.text
            gates[0].set()
            while (await state(edge))["stuck"]:
                pass
            assert (await edge.post(SPECIAL_POINTS)).status_code == 200
            gates[1].set()
            while (await state(edge))["hanging"]:
                pass
    stuck = [line["replaced"] for line in lines if line["event"] == "local_vision_stuck"]
    assert stuck == [True, False, True], "once each"
    assert len(hanging) == 2


async def test_a_slow_one_that_moves_does_not_hang(
    tmp_path: Path, engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five times longer than one may be still, step by step."""
    monkeypatch.setattr(local_thread, "STILL_MAX_S", 0.5)
    monkeypatch.setattr(local_thread, "LOOK_EVERY_S", 0.1)
    engine.gate = threading.Event()
    with capture_logs() as lines:
        async with local(tmp_path, engine) as edge:
            asyncio.get_running_loop().call_later(2.5, engine.gate.set)
            assert (await edge.post(SPECIAL_POINTS)).status_code == 200
    assert "local_vision_stuck" not in [line["event"] for line in lines]


async def test_no_photo_is_held_while_the_llm_takes_its_time(tmp_path: Path, engine: ScriptedEngine) -> None:
    class Small(ScriptedEngine):
        """Shows the LLM another picture, as the real one does."""

        def describe(self, data: bytes, max_pixels: int, ticket: Ticket, *, with_jpeg: bool) -> Described:
            return replace(super().describe(data, max_pixels, ticket, with_jpeg=with_jpeg), jpeg=picture())

    engine = Small()
    async with OpenAiServer(gate=asyncio.Event()) as server, local(tmp_path, engine, features=server.settings) as edge:
        running = asyncio.create_task(edge.post(FEATURES, picture("PNG", (500, 500))))
        async with asyncio.timeout(PATIENCE_S):
            await server.asked.wait()
        (photo,) = engine.seen
        engine.seen.clear()
        await eventually(lambda: sys.getrefcount(photo) == 2)  # this variable, and the argument
        running.cancel()


async def test_models_that_are_missing_are_named_and_nothing_else_suffers(tmp_path: Path) -> None:
    engine, lacks = ScriptedEngine(), True

    def load(settings: LocalVision) -> ScriptedEngine:
        if lacks:
            raise NotLoadedError(
                "LOCAL_MODELS_MISSING", f"{settings.models_dir}/face_landmarker.task is missing; fetch it"
            )
        return engine

    with capture_logs() as lines:
        async with serving(tmp_path, FakeMesh(), load_local=load, local_vision={"models_dir": "/models"}) as edge:
            for route in BOTH:
                response = await edge.post(route)
                assert (response.status_code, response.json()["code"]) == (503, 1007)
                assert response.json()["data"]["reason"] == "LOCAL_MODELS_MISSING"
                assert "/models" not in response.text
                assert response.headers["retry-after"]
            assert (await edge.client.get("/readyz")).status_code == 200
            assert (await edge.client.get("/monitor")).status_code == 200
            assert (await edge.measure()).status_code == 200
            lacks = False
            assert (await edge.post(FEATURES)).status_code == 200, "no restart is needed"
    said = [line for line in lines if line["event"] == "local_vision_not_loaded"]
    assert len(said) == 1, "once, not with every call"
    assert said[0]["problem"] == "/models/face_landmarker.task is missing; fetch it"


async def test_it_can_be_switched_off(tmp_path: Path, engine: ScriptedEngine) -> None:
    async with local(tmp_path, engine, local_vision={"enabled": False}) as edge:
        for route in BOTH:
            assert (await edge.post(route)).json()["data"]["reason"] == "LOCAL_VISION_MISSING"
    assert engine.seen == []


def test_an_edge_without_the_extra_says_so_by_name() -> None:
    code = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"mediapipe", "cv2", "numpy", "onnxruntime", "torch", "onnx", "PIL"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
import edge.app, edge.command
from edge.local.findings import NotLoadedError
from edge.local.thread import load_engine
from edge.settings import LocalVision
try:
    load_engine(LocalVision())
except NotLoadedError as error:
    print(error.reason, error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("LOCAL_VISION_MISSING ")
    assert "install hairmesh[edge-vision]" in result.stdout


async def test_models_are_freed_at_the_end(tmp_path: Path, engine: ScriptedEngine) -> None:
    async with local(tmp_path, engine) as edge:
        await edge.post(FEATURES)
        assert not engine.closed
    assert engine.closed


async def test_nothing_is_loaded_before_the_first_call(tmp_path: Path) -> None:
    def load(_settings: LocalVision) -> ScriptedEngine:
        raise AssertionError("nobody asked for it")

    async with serving(tmp_path, FakeMesh(), load_local=load) as edge:
        assert (await edge.measure()).status_code == 200
        assert (await edge.client.get("/openapi.json")).status_code == 200


# With a vision LLM behind it.


async def test_a_configured_llm_is_asked_with_the_photo_and_checked(tmp_path: Path, engine: ScriptedEngine) -> None:
    engine.description = described(eyes_shape=Feature("almond", 0.5, "round"))
    async with OpenAiServer() as server, local(tmp_path, engine, features=server.settings) as edge:
        server.answers = [
            completion(claims(jaw={"width": "wide"}, eyes={"shape": "round"}, remarks={"eyes": "双眼皮。"}))
        ]
        data = (await edge.post(FEATURES)).json()["data"]
        assert (data["source"], data["llm_reason"]) == ("vision_llm+geometry", None)
        assert data["remarks"]["eyes"] == "双眼皮。"
        assert [each["field"] for each in data["disagreements"]] == ["eyes.shape", "jaw.width"]
        assert data["features"]["eyes"]["shape"]["value"] == "round"
        assert data["features"]["jaw"]["width"]["value"] == "average"
        assert len(server.photos) == 1
        await edge.post(SPECIAL_POINTS)
        assert len(server.requests) == 1, "points need no LLM"


async def test_a_photo_without_a_face_never_leaves_the_house(tmp_path: Path, engine: ScriptedEngine) -> None:
    engine.failure = ApiError("NO_FACE")
    async with OpenAiServer() as server, local(tmp_path, engine, features=server.settings) as edge:
        assert (await edge.post(FEATURES)).json()["code"] == 1001
        assert server.requests == []


@pytest.mark.parametrize(
    ("answer", "reason"), [(error(400, "SENTINEL"), "LLM_REFUSED"), (completion("no"), "LLM_UNUSABLE")]
)
async def test_where_the_llm_fails_geometry_answers_alone(
    tmp_path: Path, engine: ScriptedEngine, answer: Any, reason: str
) -> None:
    engine.description = without_parser()
    async with OpenAiServer(answers=[answer]) as server:
        with capture_logs() as lines:
            async with local(tmp_path, engine, features=server.settings) as edge:
                response = await edge.post(FEATURES)
    assert response.status_code == 200
    data = response.json()["data"]
    assert (data["source"], data["llm_reason"], data["remarks"]) == ("geometry", reason, None)
    assert data["features"]["hair"]["colour"]["reason"] == NO_PARSER
    assert data["hair_present"] is None
    (said,) = [line for line in lines if line["event"] == "features_llm_failed"]
    assert said["reason"] == reason
    assert "SENTINEL" not in f"{lines}{response.text}"


async def test_a_late_llm_is_answered_without_in_time(tmp_path: Path, engine: ScriptedEngine) -> None:
    async with OpenAiServer(gate=asyncio.Event()) as server, local(tmp_path, engine, features=server.settings) as edge:
        response = await edge.post(FEATURES, headers={"x-request-timeout-ms": "1500"})
    assert (response.status_code, response.json()["data"]["llm_reason"]) == (200, "LLM_TIMEOUT")


async def test_a_client_that_leaves_ends_the_question(tmp_path: Path, engine: ScriptedEngine) -> None:
    async with OpenAiServer(gate=asyncio.Event()) as server, local(tmp_path, engine, features=server.settings) as edge:
        gone = asyncio.create_task(edge.post(FEATURES))
        async with asyncio.timeout(PATIENCE_S):
            await server.asked.wait()
            gone.cancel()
            await server.left.wait()


async def test_the_llm_is_switched_while_the_edge_runs(tmp_path: Path, engine: ScriptedEngine) -> None:
    async with OpenAiServer() as server, local(tmp_path, engine) as edge:
        assert (await edge.post(FEATURES)).json()["data"]["source"] == "geometry"
        for changes, source in (({"features": server.settings}, "vision_llm+geometry"), ({}, "geometry")):
            await edge.configure(**changes)
            assert (await edge.post(FEATURES)).json()["data"]["source"] == source


async def test_the_key_is_nowhere_to_be_seen(tmp_path: Path, engine: ScriptedEngine) -> None:
    async with OpenAiServer(answers=[error(401, f"bad key {KEY}")]) as server:
        with capture_logs() as lines:
            async with local(tmp_path, engine, features=server.settings, admin_tokens=["sixteen-characters"]) as edge:
                answers = [
                    await edge.post(FEATURES),
                    await edge.client.get("/openapi.json"),
                    await edge.client.get("/admin/pool", headers={"authorization": "Bearer sixteen-characters"}),
                ]
                await edge.stop()
                log = edge.settings.request_log.path.read_text()
                shown = repr(edge.settings)
    assert KEY not in "".join([*(each.text for each in answers), log, shown, str(lines)])


async def test_answers_are_as_documented(tmp_path: Path, engine: ScriptedEngine) -> None:
    async with OpenAiServer() as server, local(tmp_path, engine, features=server.settings) as edge:
        document = (await edge.client.get("/openapi.json")).json()

        def check(route: str, response: httpx.Response) -> None:
            content = document["paths"][route]["post"]["responses"][str(response.status_code)]["content"]
            schema = {**content["application/json"]["schema"], "components": document["components"]}
            OAS31Validator(schema).validate(response.json())

        for route in BOTH:
            check(route, await edge.post(route))
        engine.description = without_parser()
        check(FEATURES, await edge.post(FEATURES))
        server.answers = [error(500, "x")]
        check(FEATURES, await edge.post(FEATURES))
        engine.failure = ApiError("MULTIPLE_FACES", {"faces": 2, "max": 1})
        check(FEATURES, await edge.post(FEATURES))
