"""One watchdog per server: locks, and what else keeps `hairmesh watch` from beginning."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hairmesh.watch import build, lock, main
from hairmesh.watch.loop import Exit
from hairmesh.watch.options import Kind
from hairmesh.watch.target import Place
from tests.hairmesh.watching import options

PROGRAM = Path(sys.executable).with_name("hairmesh")
HERE = Place("vllm", "127.0.0.1", 8000)


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lock, "lock_dir", lambda: tmp_path)
    return tmp_path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, "watch", *arguments], capture_output=True, text=True, check=False, timeout=200)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_second_watchdog_that_would_act_is_turned_away_and_one_that_looks_is_not() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with lock.only_one(Place("vllm", "127.0.0.1", int(url.rpartition(":")[2]))):
        second = run("vllm", url, "--once", "--restart-cmd", "true", "--act")
        assert second.returncode == Exit.LOCK_HELD
        assert "another watchdog acts on vllm" in second.stderr
        assert run("vllm", url, "--once", "--interval", "0.05").returncode == Exit.SICK
        localhost = url.replace("127.0.0.1", "localhost")
        assert run("vllm", localhost, "--once", "--restart-cmd", "true", "--act").returncode == Exit.LOCK_HELD
    third = run("vllm", url, "--once", "--restart-cmd", "true", "--act", "--interval", "0.05")
    assert third.returncode == Exit.SICK


def test_a_lock_ends_with_the_process_that_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "lock_dir", lambda: tmp_path)
    one, other = HERE, HERE._replace(kind="comfyui")
    with lock.only_one(one), pytest.raises(lock.LockHeldError), lock.only_one(one):
        pass
    with lock.only_one(one), lock.only_one(other), lock.only_one(one._replace(port=2)):
        pass
    with lock.only_one(one):
        pass


SPELLINGS = [
    "http://127.0.0.1:8000/",
    "http://127.0.0.1:8000//",
    "http://127.0.0.1:8000?",
    "HTTP://127.0.0.1:8000",
    "http://LOCALHOST:8000",
    "http://127.1:8000",
    "http://0.0.0.0:8000",
    "http://[::1]:8000",
    "http://[::]:8000",
    "http://[::ffff:127.0.0.1]:8000",
    "https://127.0.0.1:8000",
]


@pytest.mark.usefixtures("locks")
@pytest.mark.parametrize("url", SPELLINGS)
async def test_one_server_has_one_lock_however_it_is_written(url: str) -> None:
    server = build.target(options(url))
    await server.close()
    with lock.only_one(HERE), pytest.raises(lock.LockHeldError), lock.only_one(server.place):
        pass


@pytest.mark.usefixtures("locks")
@pytest.mark.parametrize("address", ["localhost:8000", "[::1]:8000", "0.0.0.0:8000", "127.1:8000"])
async def test_one_worker_has_one_lock_however_it_is_written(address: str) -> None:
    worker = build.target(options(address, Kind.WORKER))
    await worker.close()
    with (
        lock.only_one(HERE._replace(kind="worker")),
        pytest.raises(lock.LockHeldError),
        lock.only_one(worker.place),
    ):
        pass


def test_a_name_without_address_is_its_own_lock(locks: Path) -> None:
    with lock.only_one(HERE._replace(host="nowhere.invalid")):
        assert len(list(locks.iterdir())) == 1


def test_a_lock_left_by_one_user_can_be_taken_by_another(locks: Path) -> None:
    before = os.umask(0o077)
    try:
        with lock.only_one(HERE):
            pass
    finally:
        os.umask(before)
    (file,) = locks.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_where_there_can_be_no_lock_nothing_is_said_of_the_server(
    locks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock.lock_path("vllm 127.0.0.1:1").symlink_to(tmp_path / "elsewhere")
    assert locks.exists()
    asked = options("http://127.0.0.1:1", restart_cmd="true", act=True)
    assert main.run(asked) is Exit.BROKEN
    assert capsys.readouterr().err.startswith("hairmesh watch: no lock ")
    assert not (tmp_path / "elsewhere").exists()


def test_an_error_of_our_own_is_no_word_on_the_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(*_arguments: object, **_more: object) -> None:
        raise RecursionError("maximum depth")

    monkeypatch.setattr("hairmesh.watch.http_targets.read_metrics", breaks)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr("hairmesh.watch.http_targets.VllmTarget._get", _nothing)
        assert main.run(options(f"http://127.0.0.1:{server.getsockname()[1]}")) == 70
    assert "RecursionError" in capsys.readouterr().err


async def _nothing(*_arguments: object) -> str:
    return ""
