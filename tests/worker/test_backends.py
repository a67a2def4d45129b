"""Which backend grows hair, and what is checked and tidied when a worker starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.fakes.comfyui_server import ComfyUiServer
from tests.vision.growth.comfyui_jobs import EXAMPLE, job, others_prompt, until
from tests.worker.harness import settings
from vision.errors import CancelledCallError
from vision.growth import comfyui
from vision.growth.backend import GrowthJob, GrowthReason, GrowthUnavailableError
from vision.growth.comfyui_tidy import client_id_of
from vision.growth.comfyui_vigil import Patience
from vision.types import STALL_AFTER_S, NoProgress, Progress, RgbImage, Stage
from worker.backends import ToldGrowth, configured_backend, owner_of
from worker.settings import Settings, SettingsError
from worker.thresholds import Thresholds

GONE = "http://127.0.0.1:9"


def diffusion(url: str, workflow: Path = EXAMPLE, listen: str = "127.0.0.1:28187") -> Settings:
    growth = {"backend": "comfyui", "comfyui_url": url, "workflow": str(workflow)}
    return settings(growth=growth, listen=listen)


@pytest.mark.parametrize("name", ["local", "none"])
def test_the_configured_backend_is_made(name: str) -> None:
    backend = configured_backend(settings(growth={"backend": name}))()
    assert backend.name == name
    backend.close()


class Scripted:
    """Raises what it is given; without anything, grows nothing."""

    name = "scripted"

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    def grow(self, job: GrowthJob, progress: Progress) -> RgbImage:
        if self.error:
            raise self.error
        return job.scene.rgb

    def close(self) -> None:
        """Holds nothing."""


@pytest.mark.parametrize(
    "error",
    [
        ValueError("cannot convert float NaN to integer"),
        OverflowError("int too large"),
        UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
        MemoryError(),
        ConnectionResetError(104, "reset"),
        KeyError("node"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_backend_breaks_with_is_a_reason_of_its_own(error: Exception) -> None:
    """And never the photo's fault: it says why there is no picture, and stands in the log with its trace."""
    with capture_logs() as lines, pytest.raises(GrowthUnavailableError) as raised:
        ToldGrowth(Scripted(error)).grow(job(), NoProgress())
    assert raised.value.reason is GrowthReason.GROWTH_FAILED
    assert raised.value.reason.is_servers_fault
    assert raised.value.__cause__ is error
    (line,) = lines
    assert (line["event"], line["backend"], line["error"]) == ("growth_raised", "scripted", type(error).__name__)
    assert line["exc_info"]


@pytest.mark.parametrize(
    "error", [CancelledCallError(), GrowthUnavailableError(GrowthReason.NO_OWN_HAIR), KeyboardInterrupt()]
)
def test_what_is_no_fault_passes(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        ToldGrowth(Scripted(error)).grow(job(), NoProgress())
    assert raised.value is error


def test_a_picture_passes() -> None:
    wanted = job()
    assert ToldGrowth(Scripted()).grow(wanted, NoProgress()) is wanted.scene.rgb


@pytest.mark.parametrize("limit_s", [None, 30.0, 60.0, 600.0])
def test_a_diffusion_server_is_given_up_before_the_worker_counts_as_stalled(
    limit_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Patience] = []

    def growth(*_: object, patience: Patience, **__: object) -> Scripted:
        made.append(patience)
        return Scripted()

    monkeypatch.setattr(comfyui, "ComfyUiGrowth", growth)
    monkeypatch.setattr(comfyui, "remove_leftovers", lambda *_: 0)
    health = {"min_free_gb": 0, "stall_after_seconds": {"diffusion": limit_s} if limit_s else {}}
    configured = settings(growth={"backend": "comfyui", "workflow": str(EXAMPLE)}, health=health)
    configured_backend(configured)()
    (patience,) = made
    stalled_s = limit_s or STALL_AFTER_S[Stage.DIFFUSION]
    assert 0 < patience.stall_s < stalled_s - 2 * Thresholds().progress_period_s
    assert patience.queue_stall_s == stalled_s


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
