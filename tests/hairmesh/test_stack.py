"""The local service: private configurations, free ports, waiting that says what it waits for."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest

from hairmesh.child import StackError
from hairmesh.stack import Stack, ends_on_signals, free_ports, write_private


def test_free_ports_differ_and_can_be_bound() -> None:
    ports = free_ports(3)
    assert len(set(ports)) == 3
    for port in ports:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))


def test_private_files_are_private_even_over_a_public_one(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_private_files_are_whole_when_they_appear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, appeared = tmp_path / "secret.json", []
    replace = Path.replace

    def look(part: Path, target: Path) -> Path:
        appeared.append((part.read_text(), target.exists()))
        return replace(part, target)

    monkeypatch.setattr(Path, "replace", look)
    write_private(path, "whole")
    assert appeared == [("whole", False)]
    assert [file.name for file in tmp_path.iterdir()] == ["secret.json"]


def test_terminated_like_interrupted() -> None:
    with pytest.raises(KeyboardInterrupt), ends_on_signals():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_passwords_are_new_each_time(tmp_path: Path) -> None:
    first, second = Stack(tmp_path, workers=1), Stack(tmp_path, workers=1)
    assert len({first.token, first.admin_token, second.token, second.admin_token}) == 4


def test_waiting_in_vain_says_for_what_and_who_complained(tmp_path: Path) -> None:
    stack = Stack(tmp_path, workers=1)
    records = [{"level": "error", "event": "models_not_loaded", "problem": "the file is wrong"}, {"level": "info"}]
    stack.workers[0].log_path.write_text("\n".join([*map(json.dumps, records), "no JSON", "[]"]))
    stack.edge.log_path.write_text("")
    with pytest.raises(StackError, match=r"until pigs fly\nworker1: models_not_loaded the file is wrong$"):
        stack.wait_until(lambda: False, "pigs fly", timeout_s=0.0)


def test_missing_models_are_told_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAIRMESH_MODELS_DIR", str(tmp_path / "empty"))
    with Stack(tmp_path, workers=1) as stack:
        with pytest.raises(StackError, match="hairmesh models fetch"):
            stack.start()
        assert stack.edge.process is None


def test_a_folder_serves_one_stack_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAIRMESH_MODELS_DIR", str(tmp_path / "empty"))  # so that nothing starts in this test
    with Stack(tmp_path, workers=1) as first:
        with pytest.raises(StackError, match="hairmesh models fetch"):
            first.start()
        with Stack(tmp_path, workers=1) as second, pytest.raises(StackError, match=r"another demo .* --out"):
            second.start()
    with Stack(tmp_path, workers=1) as third, pytest.raises(StackError, match="hairmesh models fetch"):
        third.start()


def test_a_folder_that_cannot_be_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with Stack(tmp_path / "file", workers=1) as stack, pytest.raises(StackError, match=r"cannot write in .* --out"):
        stack.start()
