"""A changed configuration file, while the edge runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.typing import EventDict

from edge import reload
from edge.pool.config import PoolConfig
from edge.reload import TAKES_EFFECT, ConfigFile, InForce, Reloader, content_hash, merge
from edge.settings import Settings, parse, read
from edge.upstream.channel import ChannelSecurity, ChannelSecurityError
from tests.edge.rest import PASSWORD, FakeMesh, Rest, eventually, picture

SMALL: dict[str, Any] = {"workers": ["127.0.0.1:1"], "shared_password": "SENTINEL-old"}
NEVER_S = 1e6


def text(**changes: Any) -> str:
    return json.dumps({**SMALL, **changes})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "POLL_S", 0.01)
    monkeypatch.setattr(reload, "SETTLE_S", 0.1)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every look at the file."""
    seen: list[Path] = []

    def look(path: Path) -> bytes:
        seen.append(path)
        return read(path)

    monkeypatch.setattr(reload, "read", look)
    return seen


class Watched:
    """A watched file, and what is in force."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = ConfigFile.of(path)
        self.in_force = InForce(parse(self.file.content), content_hash(self.file.content))
        self.mesh = FakeMesh()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[list[EventDict]]:
        """Inside, changes are looked for; what the log is told."""
        task = asyncio.create_task(Reloader(self.file, self.in_force, self.mesh.reconfigure).run())
        with structlog.testing.capture_logs() as logs:
            await asyncio.sleep(0)
            yield logs
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def applied(self, version: int = 2) -> None:
        await eventually(lambda: self.in_force.version >= version)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    path = tmp_path / "edge.json"
    path.write_text(text())
    path.chmod(0o600)
    return Watched(path)


def events(logs: list[EventDict]) -> list[str]:
    return [entry["event"] for entry in logs]


def test_every_key_says_when_it_takes_effect() -> None:
    assert set(TAKES_EFFECT) == set(Settings.model_fields)


async def test_written_in_place(watched: Watched) -> None:
    async with watched.watching() as logs:
        watched.path.write_text(text(limits={"max_pixels": 100_000}))
        await watched.applied()
    assert watched.in_force.settings.limits.max_pixels == 100_000
    assert events(logs) == ["configuration_applied"]
    assert logs[0]["changed"] == ["limits"]
    assert logs[0]["version"] == 2
    assert logs[0]["content_hash"] == content_hash(watched.path.read_bytes()) == watched.in_force.content_hash


async def test_renamed_over(watched: Watched) -> None:
    async with watched.watching():
        other = watched.path.with_name("other")
        other.write_text(text(limits={"max_pixels": 100_000}))
        other.replace(watched.path)
        await watched.applied()
    assert watched.in_force.settings.limits.max_pixels == 100_000


async def test_a_mounted_config_map(tmp_path: Path) -> None:
    """Kubernetes: `edge.json` → `..data/edge.json`, `..data` → a folder with a date, and `..data` moves."""
    for folder, pixels in (("..2026_1", 100_001), ("..2026_2", 100_002)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "edge.json").write_text(text(limits={"max_pixels": pixels}))
    (tmp_path / "..data").symlink_to("..2026_1")
    (tmp_path / "edge.json").symlink_to("..data/edge.json")
    mounted = Watched(tmp_path / "edge.json")
    async with mounted.watching():
        (tmp_path / "..data_tmp").symlink_to("..2026_2")
        (tmp_path / "..data_tmp").replace(tmp_path / "..data")
        await mounted.applied()
    assert mounted.in_force.settings.limits.max_pixels == 100_002


async def test_written_between_start_and_watching(watched: Watched) -> None:
    watched.path.write_text(text(limits={"max_pixels": 100_000}))
    async with watched.watching():
        await watched.applied()


async def test_an_untouched_file_is_taken_over_once(watched: Watched, looks: list[Path]) -> None:
    async with watched.watching() as logs:
        watched.path.write_text(text())
        await eventually(lambda: len(looks) > 5)
    assert watched.in_force.version == 1
    assert watched.mesh.configured == []
    assert logs == []


async def test_the_pool_hears_of_workers_password_and_tls(watched: Watched, tmp_path: Path) -> None:
    async with watched.watching():
        watched.path.write_text(
            text(
                workers=["127.0.0.1:2", "127.0.0.1:3"],
                primary_workers=["127.0.0.1:3"],
                shared_password="new",
                worker_tls={"ca": "ca.pem"},
                health_check={"cooldown_seconds": 0},
            )
        )
        await watched.applied()
    ((config, password, security),) = watched.mesh.configured
    assert config == PoolConfig(
        workers=("127.0.0.1:2", "127.0.0.1:3"), primary_workers=("127.0.0.1:3",), health=config.health
    )
    assert config.health.cooldown_seconds == 0
    assert (password, security) == ("new", ChannelSecurity(ca=Path("ca.pem")))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (text(limits={"max_pixel": 1}), "limits.max_pixel: there is no such key"),
        (text(shared_password="SENTINEL-é"), "shared_password: only printable ASCII"),
        (text(admin_tokens=["SENTINEL"]), "admin_tokens.0: must have at least 16 characters"),
        (text(workers=[]), "workers: at least one is needed"),
        (text()[:-30], "not JSON: line 1"),
        ("", "the file is empty"),
        ('{"accept_passwords": ["SENTINEL"]}', "this is a worker's configuration"),
        (None, "No such file"),
    ],
)
async def test_what_is_broken_changes_nothing_and_is_said_once(
    watched: Watched, looks: list[Path], content: str | None, words: str
) -> None:
    before = watched.in_force.settings
    async with watched.watching() as logs:
        if content is None:
            watched.path.unlink()
        else:
            watched.path.write_text(content)
        await eventually(lambda: bool(watched.in_force.problems))
        so_far = len(looks)
        await eventually(lambda: len(looks) > so_far + 5)
        assert (watched.in_force.version, watched.in_force.settings) == (1, before)
        assert watched.mesh.configured == []
        (said,) = logs
        assert (said["event"], said["log_level"]) == ("configuration_refused", "error")
        assert said["file"] == str(watched.path)
        (problem,) = said["problems"]
        assert words in problem
        assert list(watched.in_force.problems) == [problem]
        assert "SENTINEL" not in str(said)
        watched.path.write_text(text(limits={"max_pixels": 100_000}))
        await watched.applied()
    assert not watched.in_force.problems


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 43)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_sparse, "larger than"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (Path.mkdir, "Is a directory"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
    ids=["huge", "fifo", "endless", "folder", "circle"],
)
async def test_whatever_takes_the_files_place_the_watching_goes_on(
    watched: Watched, make: Callable[[Path], object], words: str
) -> None:
    async with watched.watching() as logs:
        watched.path.unlink()
        make(watched.path)
        await eventually(lambda: any(words in problem for problem in watched.in_force.problems))
        watched.path.rename(watched.path.with_name("away"))
        watched.path.write_text(text(limits={"max_pixels": 100_000}))
        await watched.applied()
    assert "configuration_applied" in events(logs)
    assert watched.in_force.problems == ()


async def test_no_exception_ends_the_watching(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_path: Path) -> bytes:
        raise MemoryError("SENTINEL")

    async with watched.watching() as logs:
        with monkeypatch.context() as patched:
            patched.setattr(reload, "read", broken)
            await eventually(lambda: watched.in_force.problems == ("cannot be read: MemoryError",))
        watched.path.write_text(text(limits={"max_pixels": 100_000}))
        await watched.applied()
        with monkeypatch.context() as patched:
            patched.setattr(Reloader, "_read", broken)
            await eventually(lambda: "configuration_look_failed" in events(logs))
        watched.path.write_text(text(limits={"max_pixels": 200_000}))
        await watched.applied(3)


async def test_a_file_system_that_hangs_is_said_and_waited_for(
    watched: Watched, looks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "ANSWER_S", 0.05)
    answers = threading.Event()

    def hanging(path: Path) -> bytes:
        looks.append(path)
        assert answers.wait(60)
        return read(path)

    monkeypatch.setattr(reload, "read", hanging)
    async with watched.watching() as logs:
        watched.path.write_text(text(limits={"max_pixels": 100_000}))
        await eventually(lambda: watched.in_force.problems != ())
        assert "its file system does not answer" in watched.in_force.problems[0]
        await eventually(lambda: looks != [])
        assert len(looks) == 1, "whoever hangs is not joined by others"
        answers.set()
        await watched.applied()
    assert events(logs) == ["configuration_refused", "configuration_applied"]


HANGS = """
import asyncio, sys, threading
from pathlib import Path
from edge import reload
from edge.settings import parse

async def main():
    hangs = threading.Event()
    file = reload.ConfigFile.of(Path(sys.argv[1]))

    def read(path):
        hangs.set()
        threading.Event().wait()

    reload.read, reload.POLL_S = read, 0.01
    task = asyncio.create_task(reload.Reloader(file, reload.InForce(parse(file.content)), None).run())
    while not hangs.is_set():
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait({task})

asyncio.run(main())
"""


async def test_a_file_system_that_hangs_does_not_keep_the_edge_from_ending(watched: Watched) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HANGS, str(watched.path))
    try:
        assert await asyncio.wait_for(process.wait(), 60) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_long_list_of_nonsense_is_judged_twice_and_told_briefly(
    watched: Watched, looks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []

    def judging(content: bytes) -> Settings:
        judged.append(threading.current_thread().name)
        return parse(content)

    monkeypatch.setattr(reload, "parse", judging)
    async with watched.watching() as logs:
        watched.path.write_text(text(workers=[1] * 100_000))
        await eventually(lambda: watched.in_force.problems != ())
        so_far = len(looks)
        await eventually(lambda: len(looks) > so_far + 3)
    assert len(judged) == 2
    assert threading.current_thread().name not in judged, "not on the loop, where it would hold up every call"
    assert len(watched.in_force.problems) == 21
    assert len(str(logs)) < 10_000


async def test_back_to_what_is_in_force_ends_the_complaint(watched: Watched) -> None:
    async with watched.watching() as logs:
        watched.path.write_text("{")
        await eventually(lambda: bool(watched.in_force.problems))
        watched.path.write_text(text())
        await eventually(lambda: not watched.in_force.problems)
    assert events(logs) == ["configuration_refused", "configuration_applied"]
    assert logs[-1]["changed"] == []


async def test_half_a_file_is_given_time(watched: Watched, looks: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "SETTLE_S", NEVER_S)
    whole = text(limits={"max_pixels": 100_000})
    async with watched.watching() as logs:
        for part in (whole[:10], whole[:40], "", whole[:50]):
            watched.path.write_text(part)
            so_far = len(looks)
            await eventually(lambda: len(looks) > so_far + 2)  # noqa: B023  (awaited at once)
        watched.path.write_text(whole)
        await watched.applied()
    assert events(logs) == ["configuration_applied"]


async def test_a_refusal_of_the_pool_changes_nothing(watched: Watched) -> None:
    watched.mesh.unacceptable = ChannelSecurityError("worker_tls: /x/ca.pem: No such file or directory")
    async with watched.watching() as logs:
        watched.path.write_text(text(shared_password="SENTINEL-new", limits={"max_pixels": 100_000}))
        await eventually(lambda: bool(watched.in_force.problems))
    assert watched.in_force.problems == ("worker_tls: /x/ca.pem: No such file or directory",)
    assert watched.in_force.settings == parse(text().encode())
    assert "SENTINEL" not in str(logs)


async def test_a_fault_of_ours_does_not_end_the_watching(watched: Watched) -> None:
    watched.mesh.unacceptable = RuntimeError("a bug")
    async with watched.watching() as logs:
        watched.path.write_text(text(limits={"max_pixels": 100_001}))
        await eventually(lambda: bool(watched.in_force.problems))
        assert "configuration_failed_inside" in events(logs)
        watched.mesh.unacceptable = None
        watched.path.write_text(text(limits={"max_pixels": 100_002}))
        await watched.applied()
    assert watched.in_force.settings.limits.max_pixels == 100_002


async def test_what_needs_a_restart_waits_and_the_rest_does_not(watched: Watched) -> None:
    async with watched.watching() as logs:
        watched.path.write_text(text(listen="127.0.0.1:9", docs={"enabled": False}, limits={"max_pixels": 100_000}))
        await watched.applied()
        assert list(watched.in_force.awaiting_restart) == ["listen", "docs"]
        assert watched.in_force.settings.listen == "127.0.0.1:8080"
        assert watched.in_force.settings.docs.enabled
        assert watched.in_force.settings.limits.max_pixels == 100_000
        watched.path.write_text(text(limits={"max_pixels": 100_000}))
        await watched.applied(3)
    assert not watched.in_force.awaiting_restart
    applied, waits, back = logs
    assert (applied["event"], applied["changed"]) == ("configuration_applied", ["limits"])
    assert (waits["event"], waits["log_level"]) == ("configuration_waits_for_restart", "warning")
    assert waits["keys"] == ["listen", "docs"]
    assert back["event"] == "configuration_applied"


def test_nothing_waits_for_a_restart_but_what_the_table_says() -> None:
    running = parse(text().encode())
    wanted = parse(
        text(
            listen="[::1]:9",
            public_base_url="https://a.example",
            static={"dir": "x"},
            request_log={"keep": 9},
            log_level="debug",
            docs={"enabled": False},
            tls={"insecure": True},
            trusted_proxies=["10.0.0.0/8"],
            admin_tokens=["sixteen-characters"],
            dispatch={"max_in_flight": 1},
            features={"base_url": "https://llm.example/v1", "model": "eyes"},
            local_vision={"enabled": False},
            metrics={"listen": "127.0.0.1:9108"},
            tracing={"otlp_endpoint": "http://127.0.0.1:4318"},
        ).encode()
    )
    merged, waiting = merge(running, wanted)
    assert set(waiting) == {key for key, when in TAKES_EFFECT.items() if when == "restart"}
    for key, when in TAKES_EFFECT.items():
        assert getattr(merged, key) == getattr(wanted if when == "live" else running, key)


async def test_sighup_looks_at_once(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "POLL_S", NEVER_S)
    monkeypatch.setattr(reload, "SETTLE_S", NEVER_S)
    async with watched.watching() as logs:
        watched.path.write_text("{")
        os.kill(os.getpid(), signal.SIGHUP)
        await eventually(lambda: bool(watched.in_force.problems))
        watched.path.write_text(text(limits={"max_pixels": 100_000}))
        os.kill(os.getpid(), signal.SIGHUP)
        await watched.applied()
        os.kill(os.getpid(), signal.SIGHUP)  # the same again: certificates behind the same names may be new
        await watched.applied(3)
    assert events(logs) == ["configuration_refused", "configuration_applied", "configuration_applied"]
    assert len(watched.mesh.configured) == 2
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


async def test_a_file_open_to_others_is_warned_of(watched: Watched) -> None:
    watched.path.chmod(0o644)
    async with watched.watching() as logs:
        await eventually(lambda: logs != [])
    assert (logs[0]["event"], logs[0]["log_level"], logs[0]["mode"]) == (
        "configuration_open_to_others",
        "warning",
        "0644",
    )


# Through the served application


async def test_limits_and_proxies_count_from_the_next_request(rest: Rest, mesh: FakeMesh) -> None:
    photo = picture(size=(400, 400))
    assert (await rest.measure(photo)).status_code == 200
    assert mesh.request.options.max_output_side_px == 2048
    assert mesh.calls[-1].client == "127.0.0.1"
    await rest.configure(limits={"max_output_side": 512}, trusted_proxies=["127.0.0.0/8"])
    assert (await rest.measure(photo, headers={"X-Forwarded-For": "203.0.113.9"})).status_code == 200
    assert mesh.request.options.max_output_side_px == 512
    assert mesh.calls[-1].client == "203.0.113.9"
    await rest.configure(limits={"max_pixels": 90_000})
    assert (await rest.measure(photo)).json()["data"]["reason"] == "IMAGE_TOO_MANY_PIXELS"
    await rest.configure(limits={"max_body_bytes": 65_536})
    assert (await rest.measure(photo + bytes(66_000))).json()["data"]["reason"] == "BODY_TOO_LARGE"


async def test_the_drill_takes_the_new_password_and_stays_on(rest: Rest, mesh: FakeMesh) -> None:
    async def drill(password: str, *, enabled: bool) -> int:
        response = await rest.client.post(
            "/monitor/fault", json={"enabled": enabled}, headers={"X-Internal-Token": password}
        )
        return response.status_code

    assert await drill(PASSWORD, enabled=True) == 200
    await rest.configure(shared_password="another")
    assert (await rest.client.get("/monitor")).json()["simulated"] is True
    assert await drill(PASSWORD, enabled=False) == 401
    assert await drill("another", enabled=False) == 200
