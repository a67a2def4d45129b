"""Everything that goes wrong with a diffusion server: group g of the field reports, and its relatives."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.fakes.comfyui_engine import Faults
from tests.fakes.comfyui_relay import Relay
from tests.fakes.comfyui_server import ComfyUiServer
from tests.vision.growth.comfyui_jobs import (
    QUICK,
    Background,
    failure,
    grown,
    growth,
    hair_share,
    job,
    nothing_left,
    others_prompt,
    reason,
    until,
)
from vision.errors import CancelledCallError
from vision.growth.backend import GrowthReason, GrowthUnavailableError
from vision.growth.comfyui_client import ServerUrlError
from vision.growth.comfyui_vigil import Patience
from vision.growth.run import Growth
from vision.types import NoProgress, ParsingMap, Stage

R = GrowthReason


@pytest.fixture
def server() -> Iterator[ComfyUiServer]:
    with ComfyUiServer() as fake:
        yield fake


@pytest.fixture
def relay(server: ComfyUiServer) -> Iterator[Relay]:
    with Relay(server.port) as stretch:
        yield stretch


# The socket


def test_b72_a_silent_socket_is_renewed_and_the_history_brings_the_picture(server: ComfyUiServer) -> None:
    server.faults.silent = True
    server.engine.hold = "KSampler"
    ours = Background(server.url, replace(QUICK, quiet_s=0.3))
    until(lambda: len(server.client_ids) >= 3)
    server.engine.release.set()
    assert hair_share(ours.result()) > 0.9
    assert len(set(server.client_ids)) == 1


def test_b72_what_only_the_history_knows_is_there_with_the_next_look_at_it(server: ComfyUiServer) -> None:
    """By the patience that workers have; how long it is from look to look stands in `test_comfyui_vigil`."""
    server.faults.silent = True
    server.engine.hold = "KSampler"
    ours = Background(server.url, Patience())
    server.engine.reached.wait(60)
    server.engine.release.set()
    until(lambda: server.engine.history)
    looks = server.arrived.count("GET /history")
    assert hair_share(ours.result()) > 0.9
    assert server.arrived.count("GET /history") - looks <= 3  # one that came too early, the next, and one for tidying


def test_b72_movement_that_only_the_memory_shows_is_a_sign_of_life(server: ComfyUiServer) -> None:
    server.faults.silent = True
    server.engine.hold = "KSampler"
    ours = Background(server.url)
    server.engine.reached.wait(60)
    until(lambda: ours.progress.stages[-1] == (Stage.DIFFUSION, 33))
    told = ours.progress.signs

    def breathed() -> bool:
        server.engine.memory += 1
        return ours.progress.signs > told

    until(breathed)
    assert ours.progress.steps[-1] == 0
    server.engine.release.set()
    ours.result()


def test_b79_a_half_dead_socket_is_noticed_and_replaced(server: ComfyUiServer, relay: Relay) -> None:
    server.engine.hold = "KSampler"
    ours = Background(relay.url, replace(QUICK, ping_s=0.5, answer_s=5.0))
    server.engine.reached.wait(60)
    ours.until_taken()
    relay.freeze()
    until(lambda: len(server.client_ids) >= 2)
    server.engine.release.set()
    assert hair_share(ours.result()) > 0.9
    assert len(set(server.client_ids)) == 1


def test_a_socket_that_breaks_again_and_again_costs_nothing_but_news(server: ComfyUiServer) -> None:
    server.engine.hold = "KSampler"
    ours = Background(server.url)
    server.engine.reached.wait(60)
    for count in (1, 2):
        until(lambda count=count: len(server.client_ids) >= count)  # type: ignore[misc]
        server.drop_sockets()
    server.engine.release.set()
    assert hair_share(ours.result()) > 0.9


def test_a_server_whose_sockets_do_not_open_is_polled(server: ComfyUiServer, relay: Relay) -> None:
    relay.cut_on = b"GET /ws"
    assert hair_share(grown(relay.url, replace(QUICK, connect_s=0.5))) > 0.9
    assert not server.client_ids


# Jobs that vanish, stand still, end without a picture


def test_b73_a_success_without_output_is_tried_once_more_under_new_names(server: ComfyUiServer) -> None:
    server.faults.empty = 1
    assert hair_share(grown(server.url)) > 0.9
    assert len({name for _kind, _folder, name in server.uploaded if name.endswith("-image.png")}) == 2
    assert nothing_left(server)


def test_b73_and_then_given_up(server: ComfyUiServer) -> None:
    server.faults.empty = 9
    assert reason(server.url) is R.DIFFUSION_FAILED
    assert server.faults.empty == 7


def test_b74_a_prompt_that_is_nowhere_is_tried_once_more(server: ComfyUiServer) -> None:
    server.faults.forgets = 1
    assert hair_share(grown(server.url)) > 0.9


def test_b74_and_then_given_up(server: ComfyUiServer) -> None:
    server.faults.forgets = 9
    error = failure(server.url)
    assert error.reason is R.DIFFUSION_FAILED
    assert "forgotten" in str(error)
    assert server.faults.forgets == 7
    assert nothing_left(server)


def test_a_server_that_restarts_during_the_job_gets_it_once_more(server: ComfyUiServer) -> None:
    server.engine.hold = "KSampler"
    ours = Background(server.url)
    server.engine.reached.wait(60)
    ours.until_taken()
    server.engine.hold = ""
    server.restart()
    assert hair_share(ours.result()) > 0.9
    assert len(set(server.client_ids)) == 2


def test_a_server_that_stays_away_is_given_up(server: ComfyUiServer) -> None:
    server.engine.hold = "KSampler"
    ours = Background(server.url, replace(QUICK, unreachable_s=0.5, tidy_s=1.0))
    server.engine.reached.wait(60)
    ours.until_taken()
    server.stop()
    with pytest.raises(GrowthUnavailableError) as gone:
        ours.result()
    assert gone.value.reason is R.DIFFUSION_UNAVAILABLE
    server.start()


def test_b75_a_queue_that_stands_still_is_stalled_and_our_job_leaves_it(server: ComfyUiServer) -> None:
    server.faults.hangs = True
    theirs = [others_prompt(server, client_id="first"), others_prompt(server, client_id="second")]
    assert reason(server.url, replace(QUICK, queue_stall_s=0.7)) is R.DIFFUSION_STALLED
    assert [item[1] for item in server.engine.pending] == theirs[1:]
    assert not [body for path, body in server.asked if path == "/interrupt"]


def test_b75_our_own_job_that_stands_still_is_stalled(server: ComfyUiServer) -> None:
    server.engine.hold = "KSampler"
    assert reason(server.url, replace(QUICK, stall_s=0.7)) is R.DIFFUSION_STALLED
    assert {path for path, _body in server.asked} >= {"/interrupt"}
    assert nothing_left(server)


@pytest.mark.parametrize("where", ["our job hangs", "the queue hangs"])
def test_b75_the_default_call_finds_a_server_that_stands_and_does_not_wait_for_it_again(
    server: ComfyUiServer, where: str
) -> None:
    """Four styles in the time of one attempt, both ten times as quick as a worker's."""
    quick = 10.0
    patience = Patience(**{each.name: getattr(Patience(), each.name) / quick for each in fields(Patience)})
    if where == "our job hangs":
        server.engine.hold = "KSampler"
        server.faults.deaf = True
    else:
        server.faults.hangs = True
        others_prompt(server)
    backend = growth(server.url, patience)
    calls = Growth(backend, no_proof, NoProgress(), timeout_s=180.0, clock=lambda: quick * time.monotonic())
    reasons = [
        calls.grow(lambda timeout_s: job(timeout_s=None if timeout_s is None else timeout_s / quick), left).reason
        for left in (4, 3, 2, 1)
    ]
    assert R(reasons[-1]) is R.DIFFUSION_STALLED
    assert R(reasons[-1]).is_servers_fault
    assert len(set(server.client_ids)) <= 2, "a busy machine may need a second style to see it; nobody waits four times"
    assert reasons.count(R.DIFFUSION_STALLED) >= 3
    server.faults.hangs = False
    server.engine.release.set()
    backend.close()


def no_proof(*_: object) -> ParsingMap:
    raise AssertionError("nothing has grown")


def test_a_job_that_somebody_interrupts_is_tried_once_more(server: ComfyUiServer) -> None:
    server.faults.interrupted = 1
    assert hair_share(grown(server.url)) > 0.9
    server.faults.interrupted = 9
    assert reason(server.url) is R.DIFFUSION_FAILED
    assert server.faults.interrupted == 7


@pytest.mark.parametrize(
    ("exception", "named"),
    [("torch.OutOfMemoryError", "out_of_memory"), ("builtins.RuntimeError", "node_failed")],
)
def test_a_node_that_fails_is_named_and_not_tried_again(server: ComfyUiServer, exception: str, named: str) -> None:
    server.faults.breaks, server.faults.exception = "KSampler", exception
    error = failure(server.url)
    assert error.reason is R.DIFFUSION_FAILED
    assert str(error) == f"{named}: node sampler KSampler: {exception}"
    assert len(server.uploaded) == 2 + 2  # and each overwritten once
    assert nothing_left(server)


ODD_ANSWERS: dict[str, Callable[[Faults], None]] = {
    "a step that is no number": lambda faults: setattr(faults, "progress", float("nan")),
    "a step without end": lambda faults: setattr(faults, "progress", 10**400),
    "an upload under half a character": lambda faults: faults.replaced.update(
        {"/upload/image": (200, b'{"name": "half \\ud800.png", "subfolder": "", "type": "temp"}')}
    ),
    "a prompt with the id of a path": lambda faults: faults.replaced.update(
        {"/prompt": (200, b'{"prompt_id": "../x"}')}
    ),
    "a place in the queue without end": lambda faults: faults.replaced.update(
        {"/queue": (200, b'{"queue_running": [[1' + b"0" * 400 + b', "x", {}, {}, []]], "queue_pending": []}')}
    ),
    "a memory that is no number": lambda faults: faults.replaced.update(
        {"/system_stats": (200, b'{"devices": [{"type": "cuda", "torch_vram_free": NaN, "torch_vram_total": 1e999}]}')}
    ),
    "an output under half a character": lambda faults: faults.more_output.update(
        {"more": [{"filename": "half \ud800.png", "subfolder": "", "type": "temp"}]}
    ),
}


@pytest.mark.parametrize("odd", ODD_ANSWERS)
def test_an_odd_answer_is_named_or_does_not_matter_and_the_backend_goes_on(server: ComfyUiServer, odd: str) -> None:
    backend = growth(server.url)
    ODD_ANSWERS[odd](server.faults)
    with suppress(GrowthUnavailableError):
        assert hair_share(backend.grow(job(), NoProgress())) > 0.9
    server.engine.faults = Faults()
    for seed in (1, 2):
        assert hair_share(backend.grow(job(seed=seed), NoProgress())) > 0.9
    backend.close()
    assert nothing_left(server)


# Refusals


def test_b76_a_workflow_that_the_server_does_not_know_is_refused_once(server: ComfyUiServer) -> None:
    body = {
        "error": {
            "type": "prompt_outputs_failed_validation",
            "message": "…",
            "details": "/srv/models",
            "extra_info": {},
        },
        "node_errors": {
            "checkpoint": {
                "class_type": "CheckpointLoaderSimple",
                "dependent_outputs": ["result"],
                "errors": [{"type": "value_not_in_list", "details": "ckpt_name: 'x' not in ['/srv/models/a']"}],
            }
        },
    }
    server.faults.replaced["/prompt"] = (400, json.dumps(body).encode())
    error = failure(server.url)
    assert error.reason is R.DIFFUSION_UNAVAILABLE
    assert "node checkpoint CheckpointLoaderSimple value_not_in_list" in str(error)
    assert "/srv" not in str(error)
    assert len(server.uploaded) == 2 + 2
    assert nothing_left(server)


def test_b76_a_prompt_that_is_taken_with_errors_is_refused_and_removed(server: ComfyUiServer) -> None:
    server.engine.hold = "ImageBlur"
    others_prompt(server)
    server.faults.errors_in_200 = True
    inside = server.engine._node_errors
    server.engine._node_errors = lambda *_: {"region": {"class_type": "LoadImageMask", "errors": []}}  # type: ignore[method-assign]
    assert reason(server.url) is R.DIFFUSION_UNAVAILABLE
    assert not server.engine.pending
    server.engine._node_errors = inside  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/upload/image", 200, b"<html>"),
        ("/upload/image", 200, b'{"ok": true}'),
        ("/upload/image", 401, b""),
        ("/upload/image", 413, b""),
        ("/upload/image", 302, b""),
        ("/prompt", 500, b"Traceback"),
        ("/prompt", 400, b"<html>"),
        ("/prompt", 200, b"[]"),
        ("/prompt", 200, b'{"prompt_id": 3}'),
    ],
)
def test_whatever_is_no_comfyui_is_unavailable(server: ComfyUiServer, path: str, status: int, body: bytes) -> None:
    server.faults.replaced[path] = (status, body)
    assert reason(server.url, replace(QUICK, tidy_s=0.2)) is R.DIFFUSION_UNAVAILABLE


@pytest.mark.parametrize("path", ["/queue", "/history"])
def test_answers_that_make_no_sense_for_a_while_are_forgiven(server: ComfyUiServer, path: str) -> None:
    server.engine.hold = "KSampler"
    ours = Background(server.url)
    server.engine.reached.wait(60)
    server.faults.replaced[path] = (502, b"<html>")
    looked = ours.progress.looks
    until(lambda: ours.progress.looks > looked + 20)
    server.faults.replaced.clear()
    server.engine.release.set()
    assert hair_share(ours.result()) > 0.9


def test_a_redirect_is_not_followed(server: ComfyUiServer) -> None:
    class Redirects(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(307)
            self.send_header("location", server.url + self.path)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            pass

    web = HTTPServer(("127.0.0.1", 0), Redirects)
    thread = Thread(target=web.serve_forever)
    thread.start()
    try:
        assert reason(f"http://127.0.0.1:{web.server_port}", replace(QUICK, tidy_s=1.0)) is R.DIFFUSION_UNAVAILABLE
    finally:
        web.shutdown()
        thread.join()
        web.server_close()
    assert not server.uploaded


def test_nobody_there_is_unavailable_at_once() -> None:
    assert reason("http://127.0.0.1:9") is R.DIFFUSION_UNAVAILABLE


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8188",
        "ftp://a:1",
        "http://",
        "http://user:secret@a:1",
        "http://a:1/?x=1",
        "http://a:1/#x",
        "http://a b",
    ],
)
def test_an_address_that_cannot_be_one_is_refused_before_any_job(url: str) -> None:
    with pytest.raises(ServerUrlError) as refused:
        growth(url)
    assert "secret" not in str(refused.value)


# The network


def test_a_connection_that_breaks_while_uploading_is_unavailable(server: ComfyUiServer, relay: Relay) -> None:
    relay.cut_on = b"IDAT"
    assert reason(relay.url, replace(QUICK, tidy_s=0.2)) is R.DIFFUSION_UNAVAILABLE
    assert not server.engine.running


def test_a_job_whose_receipt_is_lost_is_found_and_removed(server: ComfyUiServer, relay: Relay) -> None:
    server.engine.hold = "KSampler"
    relay.swallow_answer_to = b"POST /prompt"
    assert reason(relay.url) is R.DIFFUSION_UNAVAILABLE
    assert nothing_left(server)


def test_a_server_that_answers_nothing_does_not_hold_a_cancelled_call(server: ComfyUiServer, relay: Relay) -> None:
    server.engine.hold = "KSampler"
    patience = replace(QUICK, answer_s=120.0, tidy_s=0.5)
    ours = Background(relay.url, patience)
    server.engine.reached.wait(60)
    relay.freeze()
    server.stop()
    ours.progress.cancel()
    with pytest.raises(CancelledCallError):
        ours.result()
    server.start()


def test_the_backend_goes_on_after_a_failure(server: ComfyUiServer) -> None:
    backend = growth(server.url)
    server.faults.breaks = "VAEDecode"
    with pytest.raises(GrowthUnavailableError):
        backend.grow(job(), NoProgress())
    server.faults.breaks = ""
    assert hair_share(backend.grow(job(), NoProgress())) > 0.9
    backend.close()
