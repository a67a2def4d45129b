"""What a job leaves on the server is removed: behind the call, whatever happened, and nobody else's."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.comfyui_server import ComfyUiServer
from tests.vision.growth.comfyui_jobs import (
    EXAMPLE,
    QUICK,
    ROOT,
    Background,
    Told,
    growth,
    hair_share,
    job,
    nothing_left,
    others_prompt,
    sizes,
    until,
)
from vision.errors import CancelledCallError
from vision.growth.backend import GrowthUnavailableError
from vision.growth.comfyui_journal import Journal
from vision.growth.comfyui_tidy import client_id_of
from vision.types import NoProgress

ID = client_id_of("0123456789abcdef" * 2)
OTHER = client_id_of("fedcba9876543210" * 2)
GONE = "http://127.0.0.1:9"


@pytest.fixture
def server() -> Iterator[ComfyUiServer]:
    with ComfyUiServer() as fake:
        try:
            yield fake
        finally:
            for gate in fake.gates.values():
                gate.set()
            fake.engine.release.set()


def close_gate(server: ComfyUiServer, path: str) -> threading.Event:
    """From now on nobody is answered there, until it is set."""
    gate = server.gates[path] = threading.Event()
    return gate


def of_patients(server: ComfyUiServer) -> list[str]:
    """Names of the pictures on the server that are more than a grey pixel."""
    return sorted(key[2] for key, data in server.engine.files.items() if len(data) > 100)


# Behind the call


@pytest.mark.parametrize("ending", ["finished", "cancelled", "late"])
def test_no_call_waits_for_what_is_to_be_removed(server: ComfyUiServer, ending: str) -> None:
    backend = growth(server.url)
    server.engine.hold = "KSampler"
    ours = Background(server.url, what=job(timeout_s=2.0 if ending == "late" else None), backend=backend)
    server.engine.reached.wait(60)
    gate = close_gate(server, "/upload/image")  # by which pictures are overwritten
    if ending == "cancelled":
        ours.progress.cancel()
    elif ending == "finished":
        server.engine.release.set()
    with suppress(CancelledCallError, GrowthUnavailableError):
        assert hair_share(ours.result()) > 0.9
    assert of_patients(server)
    gate.set()
    until(lambda: nothing_left(server))
    backend.close()


def test_an_upload_that_arrives_after_its_call_was_given_up_is_removed_too(server: ComfyUiServer) -> None:
    backend = growth(server.url)
    gate = close_gate(server, "/upload/image")
    ours = Background(server.url, backend=backend)
    until(lambda: "POST /upload/image" in server.arrived)
    del server.gates["/upload/image"]  # only this one is slow
    ours.progress.cancel()
    with pytest.raises(CancelledCallError):
        ours.result()
    until(lambda: server.uploaded)
    assert not of_patients(server)  # what overwrites it was quicker
    gate.set()
    until(lambda: max(server.uploaded_bytes) > 100)
    backend.close()
    assert not of_patients(server)


def test_a_prompt_that_arrives_after_its_call_was_given_up_is_removed_too(server: ComfyUiServer) -> None:
    backend = growth(server.url)
    server.engine.hold = "KSampler"
    gate = close_gate(server, "/prompt")
    ours = Background(server.url, backend=backend)
    until(lambda: "POST /prompt" in server.arrived)
    ours.progress.cancel()
    with pytest.raises(CancelledCallError):
        ours.result()
    until(lambda: sizes(server) == {(1, 1)})
    gate.set()
    backend.close()
    assert nothing_left(server)


def test_pictures_of_a_job_that_cannot_be_interrupted_go_at_once_and_its_result_when_it_ends(
    server: ComfyUiServer,
) -> None:
    server.faults.deaf = True
    server.engine.hold = "PreviewImage"
    backend = growth(server.url)
    ours = Background(server.url, backend=backend)
    server.engine.reached.wait(60)
    ours.progress.cancel()
    with pytest.raises(CancelledCallError):
        ours.result()
    until(lambda: not of_patients(server))
    assert server.engine.running
    server.engine._look = lambda: None  # type: ignore[method-assign]  # it ends as if nothing had been said
    server.engine.release.set()
    until(lambda: nothing_left(server))
    assert len([key for key in server.engine.written if key[2].startswith("ComfyUI_temp")]) == 2  # and overwritten
    backend.close()


def test_one_picture_that_stays_keeps_no_other_there(server: ComfyUiServer) -> None:
    backend = growth(server.url)
    server.faults.keeps = "-image.png"
    backend.grow(job(), NoProgress())
    until(lambda: len(of_patients(server)) == 1 and not server.engine.history)
    (stays,) = of_patients(server)
    server.faults.keeps = stays
    backend.grow(job(), NoProgress())
    until(lambda: not server.engine.history and of_patients(server) == [stays])
    server.faults.keeps = ""
    until(lambda: nothing_left(server))
    backend.close()


def test_what_is_left_on_a_server_that_went_is_removed_when_it_is_back(server: ComfyUiServer) -> None:
    server.engine.hold = "KSampler"
    backend = growth(server.url, replace(QUICK, unreachable_s=0.5))
    ours = Background(server.url, backend=backend)
    server.engine.reached.wait(60)
    server.stop()
    with pytest.raises(GrowthUnavailableError):
        ours.result()
    server.start()
    until(lambda: nothing_left(server))
    backend.close()


def test_a_job_whose_receipt_was_lost_and_that_has_ended_is_found_by_its_client_id(
    server: ComfyUiServer, tmp_path: Path
) -> None:
    others = others_prompt(server)
    left_behind(tmp_path, server.url, ID)
    ours = others_prompt(server, client_id=ID)
    until(lambda: {others, ours} <= server.engine.history.keys())
    growth(server.url, journal_dir=tmp_path).close()
    assert list(server.engine.history) == [others]
    assert [name for name in of_patients(server) if ID in name and name.startswith("output")] == []


# Nobody else's


@pytest.mark.parametrize("kind", ["input", "output"])
def test_a_file_that_a_node_of_ours_shows_and_did_not_make_stays_as_it_is(server: ComfyUiServer, kind: str) -> None:
    reference = b"the clinic's own picture"
    server.engine.upload(reference, (kind, "", "reference.png"), overwrite=True)
    server.faults.more_output = {"shown": [{"filename": "reference.png", "subfolder": "", "type": kind}]}
    backend = growth(server.url)
    assert hair_share(backend.grow(job(), NoProgress())) > 0.9
    backend.close()
    assert server.engine.files[kind, "", "reference.png"] == reference
    assert not server.engine.history


def test_a_preview_that_came_from_the_cache_is_an_earlier_jobs(server: ComfyUiServer) -> None:
    show: dict[str, Any] = {
        "shown": {"class_type": "LoadImage", "inputs": {"image": "somebody.png"}},
        "look": {"class_type": "PreviewImage", "inputs": {"images": ["shown", 0]}},
    }
    others_prompt(server)
    server.engine.submit({"prompt": show, "client_id": "somebody"})
    until(lambda: len(server.engine.history) == 2)
    (preview,) = [key for key in server.engine.files if key[0] == "temp"]
    before = server.engine.files[preview]
    backend = growth(server.url, workflow=show | json.loads(EXAMPLE.read_text()))
    assert hair_share(backend.grow(job(), NoProgress())) > 0.9
    backend.close()
    assert server.engine.files[preview] == before


def test_workers_that_share_a_folder_never_take_each_others_jobs_while_they_live(
    server: ComfyUiServer, tmp_path: Path
) -> None:
    """Whatever they are called and listen on: clones of one machine, or neighbours on it."""
    first = growth(server.url, journal_dir=tmp_path)
    server.engine.hold = "KSampler"
    ours = Background(server.url, backend=first)
    server.engine.reached.wait(60)
    second = growth(server.url, journal_dir=tmp_path)
    second.close()
    assert server.engine.running
    assert "POST /interrupt" not in server.arrived
    server.engine.release.set()
    assert hair_share(ours.result()) > 0.9
    assert len(server.client_ids) == 1
    first.close()
    assert not list(tmp_path.iterdir())


# A process that was killed, and the next one


def left_behind(folder: Path, url: str, *client_ids: str) -> None:
    """As a process that was killed leaves its journal."""
    journal = Journal(folder, url)
    for client_id in client_ids:
        journal.begin(client_id)
    journal.close()


@pytest.mark.parametrize("moment", ["before its prompt", "while its job waits", "while its job runs"])
def test_what_a_killed_process_has_left_the_next_one_removes(
    server: ComfyUiServer, tmp_path: Path, moment: str
) -> None:
    if moment == "before its prompt":
        close_gate(server, "/prompt")
    else:
        server.engine.hold = "ImageBlur" if "waits" in moment else "KSampler"
    if "waits" in moment:
        others_prompt(server)
    code = (
        "import sys, pathlib; from tests.vision.growth.comfyui_jobs import growth, job; from vision.types import *;"
        " growth(sys.argv[1], journal_dir=pathlib.Path(sys.argv[2])).grow(job(), NoProgress())"
    )
    with subprocess.Popen([sys.executable, "-c", code, server.url, tmp_path], cwd=ROOT) as process:
        until(
            {
                "before its prompt": lambda: "POST /prompt" in server.arrived,
                "while its job waits": lambda: server.engine.pending,
                "while its job runs": lambda: server.engine.running and server.engine.reached.is_set(),
            }[moment]
        )
        process.send_signal(signal.SIGKILL)
    sent = [key for key in server.engine.files if key[1] == "hairmesh"]
    assert len(sent) == 2
    told = Told()
    growth(server.url, journal_dir=tmp_path, told=told).close()
    assert told.news == [("removed", 1)]
    assert all(len(server.engine.files[key]) < 100 for key in sent)
    assert not any(item[3]["client_id"].startswith("hairmesh-") for item in server.engine.pending)
    assert not list(tmp_path.iterdir())


def test_a_server_that_is_away_when_a_worker_starts_is_tidied_when_it_is_back(
    server: ComfyUiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vision.growth.comfyui_tidier.TOLD_AFTER_S", 0.0)
    left = others_prompt(server, client_id=ID)
    until(lambda: left in server.engine.history)
    left_behind(tmp_path, server.url, ID)
    server.stop()
    told = Told()
    backend = growth(server.url, journal_dir=tmp_path, told=told)
    until(lambda: told.news)
    server.start()
    until(lambda: len(told.news) == 2)
    assert told.news == [("wait", 1, "unreachable: POST /upload: ConnectError"), ("removed", 1)]
    assert not server.engine.history
    backend.close()


def test_what_a_process_cannot_remove_before_it_ends_the_next_one_does(server: ComfyUiServer, tmp_path: Path) -> None:
    server.faults.deaf = True
    server.engine.hold = "KSampler"
    told = Told()
    backend = growth(server.url, replace(QUICK, tidy_s=0.5), journal_dir=tmp_path, told=told)
    ours = Background(server.url, backend=backend)
    server.engine.reached.wait(60)
    ours.progress.cancel()
    with pytest.raises(CancelledCallError):
        ours.result()
    backend.close()
    assert told.news == [("wait", 1, "its job has not ended")]
    assert not of_patients(server)  # the faces are gone even so
    server.engine.release.set()
    growth(server.url, journal_dir=tmp_path).close()
    assert nothing_left(server)
    assert not list(tmp_path.iterdir())


def test_jobs_of_another_server_wait_for_a_worker_that_uses_it(server: ComfyUiServer, tmp_path: Path) -> None:
    left_behind(tmp_path, GONE, ID)
    told = Told()
    growth(server.url, journal_dir=tmp_path, told=told).close()
    assert not told.news
    assert not server.arrived
    assert len(list(tmp_path.iterdir())) == 1


def test_without_a_folder_to_note_them_in_jobs_are_grown_and_it_is_told(server: ComfyUiServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    told = Told()
    backend = growth(server.url, journal_dir=tmp_path / "file", told=told)
    assert hair_share(backend.grow(job(), NoProgress())) > 0.9
    backend.close()
    assert [each[0] for each in told.news] == ["journal missing"]
    assert nothing_left(server)


def test_a_server_that_was_never_reached_has_nothing_that_waits(tmp_path: Path) -> None:
    told = Told()
    backend = growth(GONE, journal_dir=tmp_path, told=told)
    with pytest.raises(GrowthUnavailableError):
        backend.grow(job(), NoProgress())
    backend.close()
    assert not told.news
    assert not list(tmp_path.iterdir())


def test_what_waits_is_told_once_with_the_number_of_jobs_and_the_cause(
    server: ComfyUiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vision.growth.comfyui_tidier.TOLD_AFTER_S", 0.0)
    told = Told()
    backend = growth(server.url, told=told)
    server.faults.replaced["/queue"] = (500, b"")
    backend.grow(job(), NoProgress())
    until(lambda: server.arrived.count("GET /queue") > 2)
    server.faults.replaced.clear()
    until(lambda: nothing_left(server))
    backend.close()
    assert told.news == [("wait", 1, "not_comfyui: GET /queue answers 500"), ("removed", 1)]


# The journal


def test_a_journal_holds_names_of_open_jobs_and_nothing_else(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state", "http://patients.example:8188")
    journal.begin(ID)
    journal.begin(OTHER)
    journal.end(ID)
    said = f"{journal.path.name} {journal.path.read_text()}"
    assert "patients" not in said
    assert journal.path.stat().st_mode & 0o077 == 0
    journal.close()
    journal.end(OTHER)  # too late: harmless
    next_one = Journal(tmp_path / "state", "http://patients.example:8188")
    assert next_one.adopt() == [OTHER]
    assert next_one.adopt() == []
    next_one.end(OTHER)
    assert next_one.path.read_bytes() == b""
    next_one.close()
    assert not list((tmp_path / "state").iterdir())


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\0", b"+\n-\n", b"+../../etc/passwd\n", f"+{ID[:-1]}\n".encode()])
def test_a_journal_that_somebody_has_written_in_names_no_strange_jobs(tmp_path: Path, content: bytes) -> None:
    left_behind(tmp_path, GONE, ID)
    (path,) = tmp_path.iterdir()
    path.write_bytes(content)
    journal = Journal(tmp_path, GONE)
    assert journal.adopt() == []
    journal.close()
