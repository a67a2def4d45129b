"""Growing hair on a diffusion server, over real HTTP and a real socket."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

from tests.fakes.comfyui_server import ComfyUiServer
from tests.vision.growth.comfyui_jobs import (
    EXAMPLE,
    ROOT,
    Background,
    Recorder,
    Told,
    advanced,
    grown,
    growth,
    hair_share,
    job,
    nothing_left,
    others_prompt,
    photo,
    reason,
    region,
    sizes,
    until,
)
from vision.errors import CancelledCallError
from vision.growth.backend import GrowthReason, GrowthUnavailableError
from vision.growth.comfyui import Words
from vision.types import NoProgress, Stage


@pytest.fixture
def server() -> Iterator[ComfyUiServer]:
    with ComfyUiServer() as fake:
        yield fake


def test_hair_grows_in_the_region_and_the_canvas_keeps_its_size(server: ComfyUiServer) -> None:
    canvas = grown(server.url)
    assert canvas.shape == photo().shape
    assert hair_share(photo()) == 0.0
    assert hair_share(canvas) > 0.9
    below = canvas[70:]
    assert np.abs(below.astype(int) - photo()[70:]).max() <= 2  # resized and back, where nothing was painted


def test_the_same_job_brings_the_same_picture_and_another_seed_another(server: ComfyUiServer) -> None:
    first, second = grown(server.url), grown(server.url)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, grown(server.url, what=job(seed=8)))


def test_progress_is_told_in_the_steps_of_the_workflow(server: ComfyUiServer) -> None:
    progress = Recorder()
    grown(server.url, progress=progress)
    # 25 of the sampler, 8 other nodes
    assert progress.stages == [(Stage.DIFFUSION, 0), (Stage.DIFFUSION_QUEUE, 0), (Stage.DIFFUSION, 33)]
    assert progress.steps == [0, 0, 33]


def test_a_sampler_without_an_input_for_its_steps_is_counted_by_what_it_says(server: ComfyUiServer) -> None:
    backend, progress = growth(server.url, workflow=advanced()), Recorder()
    assert hair_share(backend.grow(job(), progress)) > 0.9
    backend.close()
    assert progress.stages[-1] == (Stage.DIFFUSION, 30 + 19)  # 10 nodes, 20 steps of the scheduler's, 20 of the sampler
    assert progress.steps[-1] == 49


def test_while_others_are_served_the_job_waits_in_their_queue(server: ComfyUiServer) -> None:
    server.engine.hold = "ImageBlur"
    theirs = [others_prompt(server, client_id="first"), others_prompt(server, client_id="second")]
    server.engine.reached.wait(60)
    ours = Background(server.url)
    until(lambda: len(ours.progress.stages) == 3)
    assert ours.progress.stages[1:] == [(Stage.DIFFUSION_QUEUE, 0), (Stage.DIFFUSION_QUEUE, 2)]
    server.engine.release.set()
    ours.result()
    assert ours.progress.stages[-1] == (Stage.DIFFUSION, 33)
    assert list(server.engine.history) == theirs  # what is somebody else's stays


def test_nothing_of_the_job_is_left(server: ComfyUiServer) -> None:
    grown(server.url)
    assert len(server.engine.files) == 3  # photo, mask, result
    assert nothing_left(server)
    assert {key[0] for key in server.engine.files} == {"temp"}


def test_a_picture_in_the_folder_of_results_is_overwritten_too(server: ComfyUiServer) -> None:
    nodes = json.loads(EXAMPLE.read_text())
    nodes["result"]["class_type"] = "SaveImage"
    nodes["result"]["inputs"]["filename_prefix"] = "%output_prefix%"
    backend = growth(server.url, workflow=nodes)
    assert hair_share(backend.grow(job(), NoProgress())) > 0.9
    backend.close()
    (output,) = [key for key in server.engine.files if key[0] == "output"]
    assert output[1] == "hairmesh"
    assert nothing_left(server)


def test_what_a_failed_job_has_uploaded_is_removed(server: ComfyUiServer) -> None:
    server.faults.breaks = "VAEDecode"
    assert reason(server.url) is GrowthReason.DIFFUSION_FAILED
    assert nothing_left(server)


def test_an_empty_region_is_nothing_to_grow(server: ComfyUiServer) -> None:
    empty = job(where=np.zeros_like(region()))
    assert reason(server.url, what=empty) is GrowthReason.NOTHING_TO_GROW
    assert not server.uploaded


def test_only_the_surroundings_of_the_region_leave_the_house(server: ComfyUiServer) -> None:
    """A pixel far from the region is nowhere on the server, at no time."""
    rgb = photo()
    rgb[-20:] = (0, 255, 0)
    server.engine.hold = "KSampler"
    ours = Background(server.url, what=job(rgb))
    server.engine.reached.wait(60)
    assert server.uploaded
    for key in server.uploaded:
        picture = np.asarray(Image.open(io.BytesIO(server.engine.files[key])).convert("RGB"))
        assert not (picture == (0, 255, 0)).all(axis=-1).any()
    server.engine.release.set()
    ours.result()


# Cancelling and time


def test_a_cancelled_job_is_interrupted_by_its_id_and_removed(server: ComfyUiServer) -> None:
    server.engine.hold = "KSampler"
    ours = Background(server.url)
    server.engine.reached.wait(60)
    own_id = server.engine.running[0][1]
    waiting = others_prompt(server)
    ours.progress.cancel()
    with pytest.raises(CancelledCallError):
        ours.result()
    interrupts = [body for path, body in server.asked if path == "/interrupt"]
    assert interrupts
    assert all(body == {"prompt_id": own_id} for body in interrupts)
    until(lambda: waiting in server.engine.history)
    assert server.engine.history[waiting]["status"]["status_str"] == "success"
    assert list(server.engine.history) == [waiting]


def test_a_cancelled_job_that_waits_leaves_the_queue_and_nobody_is_interrupted(server: ComfyUiServer) -> None:
    server.engine.hold = "ImageBlur"
    theirs = others_prompt(server)
    server.engine.reached.wait(60)
    ours = Background(server.url)
    until(lambda: server.engine.pending)
    ours.progress.cancel()
    with pytest.raises(CancelledCallError):
        ours.result()
    assert not server.engine.pending
    assert [item[1] for item in server.engine.running] == [theirs]
    assert not [body for path, body in server.asked if path == "/interrupt"]


def test_a_job_ends_when_the_callers_time_is_over(server: ComfyUiServer) -> None:
    server.engine.hold = "KSampler"
    assert reason(server.url, what=job(timeout_s=2.0)) is GrowthReason.OUT_OF_TIME
    until(lambda: nothing_left(server))


def test_waiting_is_interrupted_by_looks_at_the_call(server: ComfyUiServer) -> None:
    """Also when the socket says nothing at all."""
    server.faults.silent = True
    server.engine.hold = "KSampler"
    ours = Background(server.url)
    server.engine.reached.wait(60)
    looked = ours.progress.looks
    until(lambda: ours.progress.looks > looked + 20)
    assert ours.progress.steps[-1] == 0  # and none of them looks like progress
    server.engine.release.set()
    ours.result()


# Several jobs


def test_b78_two_jobs_at_once_get_their_own_pictures(server: ComfyUiServer) -> None:
    red, blue = photo((220, 60, 60)), photo((60, 60, 220))
    jobs = [Background(server.url, what=job(rgb)) for rgb in (red, blue)]
    for rgb, ours in zip((red, blue), jobs, strict=True):
        canvas = ours.result()
        assert np.abs(canvas[70:].astype(int) - rgb[70:]).max() <= 2
        assert hair_share(canvas) > 0.9


@pytest.mark.parametrize(
    "name", ["reference.png", "hairmesh-00112233445566778899aabbccddeeff-image.png", "half \ud800.png"]
)
def test_b78_a_name_that_somebody_else_has_is_not_mistaken_for_ours(server: ComfyUiServer, name: str) -> None:
    """Whatever a server or a proxy says about where our picture lies."""
    server.engine.upload(b"somebody else's", ("input", "", name), overwrite=True)
    answer = json.dumps({"name": name, "subfolder": "", "type": "input"}).encode()
    server.faults.replaced["/upload/image"] = (200, answer)
    backend = growth(server.url)
    with pytest.raises(GrowthUnavailableError) as refused:
        backend.grow(job(), NoProgress())
    assert refused.value.reason is GrowthReason.DIFFUSION_UNAVAILABLE
    server.faults.replaced.clear()
    assert hair_share(backend.grow(job(), NoProgress())) > 0.9
    backend.close()
    assert server.engine.files["input", "", name] == b"somebody else's"


def test_a_picture_that_lies_elsewhere_is_used_and_removed_there(server: ComfyUiServer) -> None:
    server.faults.renames = True
    assert hair_share(grown(server.url)) > 0.9
    assert nothing_left(server)


def test_a_prompt_is_never_sent_without_a_client_id(server: ComfyUiServer) -> None:
    """Without one a cached prompt has no output (B73)."""
    server.engine.hold = "KSampler"
    ours = Background(server.url)
    server.engine.reached.wait(60)
    client_id = server.engine.running[0][3]["client_id"]
    assert server.client_ids == [client_id]  # and its socket was there before
    server.engine.release.set()
    ours.result()


def test_prompts_and_addresses_are_no_news(server: ComfyUiServer) -> None:
    told = Told()
    backend = growth(server.url, told=told)
    server.faults.breaks = "KSampler"
    with pytest.raises(GrowthUnavailableError) as failed:
        backend.grow(job(), NoProgress())
    server.faults.breaks, server.faults.forgets = "", 1
    backend.grow(job(), NoProgress())
    backend.close()
    said = f"{failed.value} {told.news}"
    assert "tried again" in said
    assert Words().prompt not in said
    assert server.url not in said


def test_the_fake_server_runs_as_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "tests.fakes.comfyui_server", "--port", "0", "--node-s", "0", "--step-s", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        try:
            assert hair_share(grown(url)) > 0.9
        finally:
            process.terminate()


def test_no_thread_outlives_the_backend(server: ComfyUiServer) -> None:
    grown(server.url)
    until(lambda: not [each for each in threading.enumerate() if each.name.startswith("comfyui")])
    assert sizes(server) == {(1, 1)}
