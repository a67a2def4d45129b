"""Which backend grows hair, and what is checked and tidied when a worker starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.fakes.comfyui_server import ComfyUiServer
from tests.vision.growth.comfyui_jobs import EXAMPLE, job, others_prompt, until
from tests.worker.harness import settings
from vision.growth.backend import GrowthReason, GrowthUnavailableError
from vision.growth.comfyui_tidy import client_id_of
from vision.types import NoProgress
from worker.backends import configured_backend, owner_of
from worker.settings import Settings, SettingsError

GONE = "http://127.0.0.1:9"


def diffusion(url: str, workflow: Path = EXAMPLE, listen: str = "127.0.0.1:28187") -> Settings:
    growth = {"backend": "comfyui", "comfyui_url": url, "workflow": str(workflow)}
    return settings(growth=growth, listen=listen)


@pytest.mark.parametrize("name", ["local", "none"])
def test_the_configured_backend_is_made(name: str) -> None:
    backend = configured_backend(settings(growth={"backend": name}))()
    assert backend.name == name
    backend.close()


def test_a_workflow_that_is_not_there_is_said_at_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"growth\.workflow: the workflow file cannot be read"):
        configured_backend(diffusion(GONE, tmp_path / "gone.json"))


@pytest.mark.parametrize(
    ("content", "said"),
    [({"nodes": []}, "Export"), ({"1": {"class_type": "PreviewImage", "inputs": {}}}, "%image%")],
    ids=["the editor's own format", "without placeholders"],
)
def test_a_workflow_that_cannot_work_is_said_at_start(tmp_path: Path, content: object, said: str) -> None:
    workflow = tmp_path / "workflow.json"
    workflow.write_text(json.dumps(content))
    with pytest.raises(SettingsError, match=r"growth\.workflow: .*" + said):
        configured_backend(diffusion(GONE, workflow))


def test_a_worker_that_starts_removes_its_own_leftovers_and_nobody_elses() -> None:
    with ComfyUiServer() as server, capture_logs() as lines:
        config = diffusion(server.url)
        server.engine.hold = "ImageBlur"
        others_prompt(server, client_id="somebody")
        left = others_prompt(server, client_id=client_id_of(owner_of(config), "00112233aabbccdd"))
        neighbours = diffusion(server.url, listen="127.0.0.1:28188")
        waiting = others_prompt(server, client_id=client_id_of(owner_of(neighbours), "00112233aabbccdd"))
        until(lambda: [item[1] for item in server.engine.pending] == [left, waiting])
        configured_backend(config)().close()
        assert [item[1] for item in server.engine.pending] == [waiting]
        server.engine.release.set()
    assert [line["jobs"] for line in lines if line["event"] == "leftovers_removed"] == [1]


def test_a_diffusion_server_that_is_not_there_keeps_no_worker_from_starting() -> None:
    with capture_logs() as lines:
        backend = configured_backend(diffusion(GONE))()
        with pytest.raises(GrowthUnavailableError):
            backend.grow(job(), NoProgress())
        backend.close()
    assert [(line["event"], line["reason"]) for line in lines] == [
        ("leftovers_not_removed", GrowthReason.DIFFUSION_UNAVAILABLE),
        ("not_grown", GrowthReason.DIFFUSION_UNAVAILABLE),
    ]
    assert GONE not in str(lines), "no address in the log"


def test_a_worker_is_known_by_one_name_after_a_restart_and_shares_it_with_nobody() -> None:
    def named(listen: str) -> str:
        return owner_of(settings(listen=listen))

    assert named("0.0.0.0:28187") == named("0.0.0.0:28187") != named("0.0.0.0:28188")
    assert named("127.0.0.1:0") != named("127.0.0.1:0"), "whose port is any has no name to be known by"
