"""A configuration file that is anything at all."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from edge.settings import ConfigError
from edge.settings import parse as edge_parse
from edge.settings import read as edge_read
from hairmesh.config_file import MAX_BYTES, ConfigFileError, complaints, decode
from worker.settings import SettingsError
from worker.settings import parse as worker_parse
from worker.settings import read as worker_read


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 43)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def _open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "huge": (_sparse, f"larger than {MAX_BYTES} bytes"),
    "fifo": (os.mkfifo, "not a regular file"),
    "endless": (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
    "folder": (Path.mkdir, "Is a directory"),
    "socket": (_socket, "No such device"),
    "circle": (lambda path: path.symlink_to(path), "Too many levels"),
    "gone": (lambda path: None, "No such file"),
}


@pytest.mark.parametrize("read", [edge_read, worker_read])
@pytest.mark.parametrize(("make", "words"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_is_refused_at_once(
    tmp_path: Path, read: Callable[[Path], object], make: Callable[[Path], object], words: str
) -> None:
    path = tmp_path / "config.json"
    make(path)
    before = _open_files()
    with pytest.raises((ConfigError, SettingsError), match=words):
        read(path)
    assert _open_files() == before


@pytest.mark.parametrize("read", [edge_read, worker_read])
def test_the_largest_file(tmp_path: Path, read: Callable[[Path], object]) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b" " * MAX_BYTES)
    read(path)
    path.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises((ConfigError, SettingsError), match="larger than"):
        read(path)


Parse = Callable[[str], object]


def at_edge(text: str) -> object:
    return edge_parse(text.encode())


def at_worker(text: str) -> object:
    return worker_parse(text, {}, origin="w.json")


EDGE = '{"workers": ["127.0.0.1:1"], "shared_password": "SENTINEL-1"'
WORKER = '{"accept_passwords": ["SENTINEL-1"]'


@pytest.mark.parametrize(
    ("parse", "text", "key"),
    [
        (at_edge, EDGE + ', "shared_password": "SENTINEL-2"}', "shared_password"),
        (at_edge, EDGE + r', "sh\u0061red_password": "SENTINEL-2"}', "shared_password"),
        (at_edge, EDGE + ', "workers": ["127.0.0.1:1"]}', "workers"),
        (at_edge, EDGE + ', "limits": {"max_pixels": 1, "max_pixels": 1}}', "max_pixels"),
        (at_worker, WORKER + ', "accept_passwords": ["SENTINEL-2"]}', "accept_passwords"),
        (at_worker, WORKER + ', "health": {"min_free_gb": 1, "min_free_gb": 0}}', "min_free_gb"),
        (at_worker, WORKER + ', "health": {"deps": [{"name": "a", "name": "b"}]}}', "name"),
    ],
)
def test_a_key_that_stands_twice_is_refused_by_name(parse: Parse, text: str, key: str) -> None:
    with pytest.raises((ConfigError, SettingsError)) as caught:
        parse(text)
    assert str(caught.value).removeprefix("w.json: ") == f"{key}: stands there twice"


def test_a_key_that_stands_twice_in_the_environment() -> None:
    deps = '[{"name": "SENTINEL", "name": "b"}]'
    with pytest.raises(SettingsError, match=r"^environment HEALTH_DEPS: name: stands there twice$"):
        worker_parse(WORKER + "}", {"HEALTH_DEPS": deps}, origin="w.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON: line 1, column 1"),
        ('{"a":\n1', "not JSON: line 2, column 2"),
        (b"\xff", "not JSON: not UTF-8"),
        ("\ufeff{}", "not JSON: line 1, column 1"),
        ("[" * 100_000, "not JSON that could be a configuration"),
        ("1" * 5_000, "not JSON that could be a configuration"),
    ],
)
def test_what_is_no_json(text: str | bytes, words: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        decode(text)
    assert str(caught.value) == words


def test_no_flood_of_complaints() -> None:
    assert complaints(["a", "b"]) == ["a", "b"]
    assert complaints(map(str, range(20))) == [str(number) for number in range(20)]
    assert complaints(map(str, range(23)))[-2:] == ["19", "and 3 more"]
    (line,) = complaints(["x\n" * 10_000])
    assert len(line) == 500
    assert "\n" not in line


@pytest.mark.parametrize(
    ("parse", "text"),
    [(at_edge, '{"workers": [%s], "shared_password": "SENTINEL"}'), (at_worker, '{"accept_passwords": [%s]}')],
)
def test_a_list_of_nonsense_is_told_in_a_few_lines(parse: Parse, text: str) -> None:
    with pytest.raises((ConfigError, SettingsError), match=r"and 99\d\d more$") as caught:
        parse(text % ",".join(["1"] * 10_000))
    assert len(str(caught.value)) < 2_000
