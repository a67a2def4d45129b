"""Which backend grows hair, and what is checked and tidied when a worker starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.fakes.comfyui_server import ComfyUiServer
from tests.vision.growth.comfyui_jobs import EXAMPLE, job, others_prompt
from tests.worker.harness import settings
from vision.errors import CancelledCallError
from vision.growth import comfyui
from vision.growth.backend import GrowthJob, GrowthReason, GrowthUnavailableError
from vision.growth.comfyui_journal import Journal
from vision.growth.comfyui_news import News
from vision.growth.comfyui_tidy import client_id_of
from vision.growth.comfyui_vigil import Patience
from vision.types import STALL_AFTER_S, NoProgress, Progress, RgbImage, Stage
from worker.backends import DiffusionNews, ToldGrowth, configured_backend, state_dir
from worker.settings import Settings, SettingsError
from worker.thresholds import Thresholds

GONE = "http://127.0.0.1:9"


def diffusion(url: str, workflow: Path = EXAMPLE, state_dir: Path | None = None) -> Settings:
    growth = {"backend": "comfyui", "comfyui_url": url, "workflow": str(workflow), "state_dir": state_dir}
    return settings(growth=growth)


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


def test_a_worker_that_starts_removes_what_an_earlier_one_left_and_nobody_elses(tmp_path: Path) -> None:
    with ComfyUiServer() as server, capture_logs() as lines:
        server.engine.hold = "ImageBlur"
        others_prompt(server, client_id="somebody")
        left, stays = client_id_of("0123456789abcdef" * 2), client_id_of("fedcba9876543210" * 2)
        for client_id in (left, stays):
            others_prompt(server, client_id=client_id)
        journal, neighbours = Journal(tmp_path, server.url), Journal(tmp_path, server.url)
        journal.begin(left)
        journal.close()
        neighbours.begin(stays)  # whose process lives
        configured_backend(diffusion(server.url, state_dir=tmp_path))().close()
        assert [item[3]["client_id"] for item in server.engine.pending] == [stays]
        server.engine.release.set()
        neighbours.close()
    assert [line["jobs"] for line in lines if line["event"] == "leftovers_removed"] == [1]


def test_a_diffusion_server_that_is_not_there_keeps_no_worker_from_starting(tmp_path: Path) -> None:
    with capture_logs() as lines:
        backend = configured_backend(diffusion(GONE, state_dir=tmp_path))()
        with pytest.raises(GrowthUnavailableError):
            backend.grow(job(), NoProgress())
        backend.close()
    assert [(line["event"], line["reason"]) for line in lines] == [("not_grown", GrowthReason.DIFFUSION_UNAVAILABLE)]
    assert GONE not in str(lines), "no address in the log"


def test_what_the_diffusion_backend_has_to_say_are_events_with_fields() -> None:
    news: News = DiffusionNews()
    with capture_logs() as lines:
        news.tried_again("forgotten")
        news.socket_shut()
        news.leftovers_wait(2, "unreachable")
        news.leftovers_removed(2)
        news.journal_missing("Permission denied")
    assert lines == [
        {"event": "diffusion_again", "log_level": "warning", "problem": "forgotten"},
        {"event": "diffusion_socket_shut", "log_level": "warning"},
        {"event": "leftovers_wait", "log_level": "warning", "jobs": 2, "problem": "unreachable"},
        {"event": "leftovers_removed", "log_level": "info", "jobs": 2},
        {"event": "journal_missing", "log_level": "warning", "problem": "Permission denied"},
    ]


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        ("/given", {"STATE_DIRECTORY": "/var/lib/a"}, "/given"),
        (None, {"STATE_DIRECTORY": "/var/lib/a:/var/lib/b", "XDG_STATE_HOME": "/x"}, "/var/lib/a"),
        (None, {"STATE_DIRECTORY": "", "XDG_STATE_HOME": "/x"}, "/x/hairmesh"),
        (None, {}, str(Path.home() / ".local" / "state" / "hairmesh")),
    ],
)
def test_where_open_jobs_are_noted(given: str | None, environ: dict[str, str], expected: str) -> None:
    configured = settings(growth={"backend": "none", "state_dir": given})
    assert state_dir(configured, environ) == Path(expected)


def test_a_user_without_a_home_is_told_to_name_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(SettingsError, match=r"growth\.state_dir"):
        state_dir(settings(), {})
