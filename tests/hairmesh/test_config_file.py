"""A configuration file that is anything at all."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import edge.settings
import worker.settings
from edge.settings import ConfigError
from edge.settings import parse as edge_parse
from edge.settings import read as edge_read
from hairmesh.config_complaints import PATTERNS, UNITS_IN_WORDS
from hairmesh.config_file import MAX_BYTES, ConfigFileError, complaints, decode
from hairmesh.config_nodes import UNITS
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
        ("", "the file is empty"),
        (" \n", "the file is empty"),
        ("\ufeff{}", "not JSON: begins with a byte order mark: save it as UTF-8 without one"),
        (b"\xff", "not JSON: not UTF-8"),
        ('{"a":\n1', "not JSON: line 2, column 2: cut off: what begins before is not closed"),
        ('{"a": "x', "not JSON: line 1, column 7: cut off: what begins before is not closed"),
        ("// words\n{}", "not JSON: line 1, column 1: comments are not allowed"),
        ('{"a": 1, # words\n"b": 2}', "not JSON: line 1, column 10: comments are not allowed"),
        ('{"a": 1 /* words */}', "not JSON: line 1, column 9: comments are not allowed"),
        ("listen: 127.0.0.1:1\nworkers:\n", "not JSON: line 1, column 1: this looks like YAML"),
        ("---\na: 1", "not JSON: line 1, column 1: this looks like YAML"),
        ('{"a": 1,}', "not JSON: line 1, column 9: a comma with nothing behind it"),
        ('{"a": [1,\n]}', "not JSON: line 2, column 1: a comma with nothing behind it"),
        ("{'a': 1}", "not JSON: line 1, column 2: single quotes, where JSON takes double ones"),
        ('{"a": 8s}', "not JSON: line 1, column 8: a unit, or text without quotes"),
        ('{"a": True}', "not JSON: line 1, column 7: JSON has true, false and null"),
        ('{"a": 1\n "b": 2}', "not JSON: line 2, column 2: a comma is missing before it"),
        ('{"a" 1}', "not JSON: line 1, column 6: a colon is missing before it"),
        ("{a: 1}", "not JSON: line 1, column 2: a key stands in double quotes"),
        ("{} {}", "not JSON: line 1, column 4: something follows behind its end"),
        ('{"a": "x\n"}', "not JSON: line 1, column 9: a line break, or the like, inside of text"),
        (r'{"a": "C:\x"}', "not JSON: line 1, column 10: a backslash inside of text is written twice"),
        (
            '{"a": SENTINEL}',
            "not JSON: line 1, column 7: neither text in double quotes nor a number, true, false, null, a list or an"
            " object",
        ),
        ("[" * 100_000, "not JSON that could be a configuration"),
        ("1" * 5_000, "not JSON that could be a configuration"),
    ],
)
def test_what_is_no_json(text: str | bytes, words: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        decode(text)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("parse", "text", "words"),
    [
        (
            at_edge,
            WORKER + ', "health": {}, "drain_delay_seconds": 3}',
            "this is a worker's configuration, and an edge's",
        ),
        (at_worker, EDGE + ', "dispatch": {}}', "this is an edge's configuration, and a worker's"),
    ],
)
def test_the_other_sides_file_is_named_and_nothing_else(parse: Parse, text: str, words: str) -> None:
    with pytest.raises((ConfigError, SettingsError)) as caught:
        parse(text)
    assert str(caught.value).removeprefix("w.json: ").startswith(words)
    assert "no such key" not in str(caught.value)


@pytest.mark.parametrize(
    ("parse", "text", "words"),
    [
        (at_edge, EDGE + ', "dispach": {}}', "dispach: there is no such key; did you mean dispatch?"),
        (at_worker, WORKER + ', "helth": {}}', "helth: there is no such key; did you mean health?"),
        (at_worker, WORKER + ', "zzz": {}}', "zzz: there is no such key"),
    ],
)
def test_the_key_that_was_meant(parse: Parse, text: str, words: str) -> None:
    with pytest.raises((ConfigError, SettingsError)) as caught:
        parse(text)
    assert str(caught.value).removeprefix("w.json: ") == words


S_NUMBER = "must be a number of seconds"


@pytest.mark.parametrize(
    ("parse", "value", "words"),
    [
        (at_edge, '"health_check": {"interval_seconds": "8s"}', "health_check.interval_seconds: " + S_NUMBER),
        (at_edge, '"limits": {"max_body_bytes": "2MiB"}', "limits.max_body_bytes: must be a whole number of bytes"),
        (at_edge, '"admin_tokens": "a"', 'admin_tokens: must be a list: ["...", "..."]'),
        (at_edge, '"api_keys": {}', 'api_keys: must be a list of objects: [{"...": ...}]'),
        (at_edge, '"docs": true', 'docs: must be an object: {"...": ...}'),
        (at_edge, '"docs": {"enabled": "SENTINEL"}', "docs.enabled: must be true or false, without quotes"),
        (
            at_edge,
            '"api_keys": [{"name": "a", "sha256": "SENTINEL"}]',
            "api_keys.0.sha256: must be the 64 hexadecimal digits of a SHA-256, small letters",
        ),
        (at_worker, '"device": "SENTINEL"', "device: must be one of auto, cpu, cuda"),
        (at_worker, '"health": {"min_free_gb": "0.5"}', "health.min_free_gb: must be a number of GiB, at least 0"),
        (at_worker, '"health": {"check_deps": "yes"}', "health.check_deps: must be true or false, without quotes"),
        (
            at_worker,
            '"health": {"stall_after_seconds": {"parsing": "3"}}',
            "health.stall_after_seconds.parsing: " + S_NUMBER,
        ),
        (at_worker, '"drain_delay_seconds": "3"', "drain_delay_seconds: " + S_NUMBER),
        (at_worker, r'"listen": "\ud800"', "configuration: not JSON that could be a configuration"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_in_words_with_its_unit(parse: Parse, value: str, words: str) -> None:
    """No word of the library that found it, and not the value."""
    start = EDGE if parse is at_edge else WORKER
    with pytest.raises((ConfigError, SettingsError)) as caught:
        parse(f"{start}, {value}}}")
    said = str(caught.value).removeprefix("w.json: ")
    assert said.startswith(words)
    assert not {"SENTINEL", "Input", "tuple", "array", "valid"} & set(said.split())


def test_what_is_out_of_bounds_is_told_the_bounds_and_not_how_numbers_are_written() -> None:
    with pytest.raises(ConfigError) as caught:
        at_edge(EDGE + ', "local_vision": {"max_waiting": -1}}')
    assert str(caught.value) == "local_vision.max_waiting: must be a whole number of calls, at least 0, at most 1000"


def test_every_pattern_and_unit_has_words() -> None:
    """What people are told of a key never is a regular expression, nor a unit by its sign alone."""
    schemas = (edge.settings.Settings.model_json_schema(), worker.settings.Settings.model_json_schema())
    found = {match for schema in schemas for match in re.findall(r'"pattern": "([^"]+)"', json.dumps(schema))}
    assert found == set(PATTERNS)
    assert {unit for unit in UNITS.values() if unit not in UNITS_IN_WORDS} == {
        *("bytes", "GiB", "pixels", "probes", "calls", "requests", "connections", "attempts", "files")
    }


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
