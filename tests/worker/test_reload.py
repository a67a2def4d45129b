"""The configuration file of a running worker, whatever takes its place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from hairmesh.wire import TOKEN_KEY
from worker import reload
from worker.passwords import Credential, Passwords
from worker.reload import PasswordReload
from worker.settings import load


def config(*accepted: str, **changes: Any) -> str:
    return json.dumps({"accept_passwords": accepted, **changes})


class Watched:
    """A file of passwords, looked at by hand, and who gets in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text(config("SENTINEL-the-old-one"))
        self.book = Passwords([SecretStr("SENTINEL-the-old-one")])
        self.reload = PasswordReload(path, {}, self.book, load(path, {}), poll_s=0.01)
        self.reload.look()

    def look(self, times: int = 3) -> list[str]:
        """What the log hears."""
        with capture_logs() as logs:
            for _time in range(times):
                self.reload.look()
        assert "SENTINEL" not in str(logs)
        return [entry["event"] for entry in logs]

    def lets_in(self, password: str) -> bool:
        return self.book.judge([(TOKEN_KEY, password)]) is Credential.GOOD


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """Whatever takes its place is for its owner alone, until a test says otherwise."""
    before = os.umask(0o077)
    yield Watched(tmp_path / "w.json")
    os.umask(before)


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 43)


@pytest.mark.parametrize(
    "make",
    [
        _sparse,
        os.mkfifo,
        Path.mkdir,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path),
        lambda path: path.write_bytes(b"\xff"),
        lambda path: path.write_text("{"),
        lambda path: path.write_text(
            config("SENTINEL-the-old-one")[:-1] + ', "accept_passwords": ["SENTINEL-the-new-one"]}'
        ),
        lambda path: None,
    ],
    ids=["huge", "fifo", "folder", "endless", "circle", "bytes", "half", "twice", "gone"],
)
def test_whatever_takes_its_place_is_said_once_and_the_next_good_one_counts(
    watched: Watched, make: Callable[[Path], object]
) -> None:
    watched.path.unlink()
    make(watched.path)
    assert watched.look() == ["config_not_applied"]
    assert watched.lets_in("SENTINEL-the-old-one")
    if watched.path.is_symlink() or watched.path.exists():
        watched.path.rename(watched.path.with_name("away"))
    watched.path.write_text(config("SENTINEL-the-new-one"))
    assert watched.look() == ["passwords_changed"]
    assert watched.lets_in("SENTINEL-the-new-one")
    assert not watched.lets_in("SENTINEL-the-old-one")


@pytest.mark.parametrize("part", ["read", "parse"])
def test_no_exception_ends_the_watching(watched: Watched, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    def broken(*_: object, **__: object) -> str:
        raise MemoryError("SENTINEL")

    with monkeypatch.context() as patched:
        patched.setattr(reload, part, broken)
        watched.path.write_text(config("SENTINEL-lost"))
        assert watched.look()[-1] == "config_not_applied"
        assert watched.look() == []
    watched.path.write_text(config("SENTINEL-the-new-one"))
    assert watched.look() == ["passwords_changed"]
    assert watched.lets_in("SENTINEL-the-new-one")


def test_what_is_in_force_again_is_no_news(watched: Watched) -> None:
    watched.path.rename(watched.path.with_name("away"))
    assert watched.look() == ["config_not_applied"]
    watched.path.with_name("away").rename(watched.path)
    assert watched.look() == []
    watched.path.write_text(config("SENTINEL-the-old-one", device="cpu"))
    assert watched.look() == ["config_change_needs_restart"]


def test_one_that_is_open_to_others_is_warned_of_when_it_takes_its_place(watched: Watched) -> None:
    watched.path.write_text(config("SENTINEL-the-new-one"))
    watched.path.chmod(0o644)
    assert watched.look() == ["passwords_changed", "config_permissions"]


def test_the_one_that_was_read_at_the_start_is_not_warned_of_twice(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.touch(0o644)
    with capture_logs() as logs:
        Watched(path)
    assert [entry["event"] for entry in logs if entry["event"] == "config_permissions"] == []
