"""`hairmesh config`, and the page made of the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel

import edge.settings
import worker.settings
from edge.reload import TAKES_EFFECT
from hairmesh import config_command, config_schema
from hairmesh.config_nodes import leaves, number_in
from hairmesh.config_schema import FILES, SIDES, SideMissingError, SideName, of
from hairmesh.config_words import keys
from scripts import config_docs

ROOT = Path(__file__).parents[2]
EXAMPLES: dict[SideName, Path] = {side: ROOT / f"{side}_config.example.json" for side in SIDES}
OWN: dict[SideName, dict[str, Any]] = {
    "edge": {"shared_password": "SENTINEL-of-the-mesh", "admin_tokens": ["SENTINEL-sixteen"]},
    "worker": {"accept_passwords": ["SENTINEL-of-the-mesh"]},
}
OF_ONES_OWN = {"public_base_url", "primary_workers", "admin_tokens", "worker_tls.ca"}
"""Keys whose defaults the example does not show."""
SECRET = {"shared_password", "admin_tokens", "features.api_key", "accept_passwords"}

Said = tuple[int, str, str]


def example(side: SideName) -> dict[str, Any]:
    """The example with secrets of one's own."""
    content: dict[str, Any] = json.loads(EXAMPLES[side].read_text()) | OWN[side]
    return content


def parsed(side: SideName, content: dict[str, Any]) -> Any:
    """By the server's own reader."""
    text = json.dumps(content)
    return edge.settings.parse(text.encode()) if side == "edge" else worker.settings.parse(text, {}, origin="")


def names_of(section: Any) -> Iterator[str]:
    """Every key of the settings themselves, as far as a value is there."""
    for name in getattr(type(section), "model_fields", None) or section.__dataclass_fields__:
        value = getattr(section, name)
        if isinstance(value, BaseModel) or hasattr(value, "__dataclass_fields__"):
            yield from (f"{name}.{inner}" for inner in names_of(value))
        else:
            yield name


# What is known of each key


@pytest.mark.parametrize("side", SIDES)
def test_every_key_has_a_meaning_and_every_number_a_unit(side: SideName) -> None:
    for name, node in leaves(of(side)):
        assert node.get("description"), f"{name}: say below the field what it means"
        assert not number_in(node) or node.get("x-unit"), f"{name}: give hairmesh.config_nodes.UNITS its unit"


@pytest.mark.parametrize("side", SIDES)
def test_every_key_of_the_settings_is_known_and_no_other(side: SideName) -> None:
    known = {name for name, _node in leaves(of(side)) if "[]" not in name}
    assert known == set(names_of(parsed(side, example(side))))


@pytest.mark.parametrize("side", SIDES)
def test_the_example_is_what_the_schema_says_to_the_last_default(side: SideName) -> None:
    whole = of(side)
    jsonschema.Draft202012Validator.check_schema(whole)
    jsonschema.Draft202012Validator(whole).validate(example(side))
    for name, node in leaves(whole):
        if "default" in node and "[]" not in name and name not in OF_ONES_OWN:
            value: Any = example(side)
            for part in name.split("."):
                value = value[part]
            assert (sorted(value) if node.get("uniqueItems") else value) == node["default"], name


@pytest.mark.parametrize(
    ("side", "changes"),
    [
        ("edge", {"limits": {"max_pixel": 1}}),
        ("edge", {"workers": "127.0.0.1:1"}),
        ("edge", {"health_check": {"colldown": 0}}),
        ("edge", {"log_level": "loud"}),
        ("edge", {"api_keys": [{"name": "x"}]}),
        ("worker", {"accept_passwords": []}),
        ("worker", {"health": {"min_free_gb": -1}}),
        ("worker", {"health": {"deps": [{"name": "x", "kind": "ftp", "target": "a:1"}]}}),
    ],
)
def test_the_schema_refuses_what_the_servers_refuse(side: SideName, changes: dict[str, Any]) -> None:
    content = example(side) | changes
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(of(side)).validate(content)
    with pytest.raises((edge.settings.ConfigError, worker.settings.SettingsError)):
        parsed(side, content)


def test_secrets_are_marked_and_nothing_else_is() -> None:
    def marked(node: dict[str, Any]) -> bool:
        inner = [node, *node.get("anyOf", ()), node.get("items", {})]
        return any(each.get("writeOnly") for each in inner)

    assert {name for side in SIDES for name, node in leaves(of(side)) if marked(node)} == SECRET


def test_what_a_change_becomes_is_what_the_reloaders_do() -> None:
    assert {key.name.split(".")[0].removesuffix("[]"): key.effect for key in keys("edge")} == TAKES_EFFECT
    assert {key.name for key in keys("worker") if key.effect == "live"} == {"accept_passwords"}


def test_variables_are_those_that_override() -> None:
    variables = {key.name: key.variable for key in keys("worker") if "[]" not in key.name}
    assert variables["health.min_free_gb"] == "HEALTH_MIN_FREE_GB"
    assert set(variables.values()) == {name for _keys, name in worker.settings.variables()}
    assert not any(key.variable for key in keys("edge"))


# The commands


def run(*arguments: str) -> Said:
    """A real process: exit status, standard output, standard error."""
    program = Path(sys.executable).with_name("hairmesh")
    done = subprocess.run([program, "config", *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def checked(capsys: pytest.CaptureFixture[str], *files: Path) -> Said:
    status = config_command.check(list(files))
    said = capsys.readouterr()
    assert "SENTINEL" not in said.out + said.err
    return status, said.out, said.err


def explained(capsys: pytest.CaptureFixture[str], key: str | None) -> Said:
    status = config_command.explain(key)
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.fixture
def files(tmp_path: Path) -> dict[SideName, Path]:
    """A good file of each."""
    made: dict[SideName, Path] = {side: tmp_path / f"{side}.json" for side in SIDES}
    for side, path in made.items():
        path.write_text(json.dumps(example(side)))
    return made


def test_check_tells_whose_file_it_is(files: dict[SideName, Path], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = checked(capsys, files["worker"], files["edge"])
    assert (status, err) == (0, "")
    assert out.splitlines() == [f"{files['worker']}: good, for the worker", f"{files['edge']}: good, for the edge"]


def test_check_from_a_shell_names_every_complaint_of_every_file(files: dict[SideName, Path]) -> None:
    files["edge"].write_text(
        json.dumps(example("edge") | {"limits": {"max_pixel": 1}, "log_levle": "info", "workers": ["http://a:1"]})
    )
    status, out, err = run("check", str(files["edge"]), str(files["worker"]), str(EXAMPLES["worker"]))
    assert status == 2
    assert out == f"{files['worker']}: good, for the worker\n"
    for line in (
        f"{files['edge']}: limits.max_pixel: there is no such key; did you mean limits.max_pixels?",
        f"{files['edge']}: log_levle: there is no such key; did you mean log_level?",
        f"{files['edge']}: workers: http://a:1: gRPC targets have no http:// in front; write a:1",
        f"{EXAMPLES['worker']}: accept_passwords.0: is still the example's placeholder: write one of your own",
    ):
        assert line in err.splitlines()
    assert "SENTINEL" not in out + err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ('{"shared_password": "SENTINEL', "not JSON"),
        ("[]", "must be a JSON object"),
        ("{}", "neither a configuration of the edge nor of a worker"),
        ('{"listen": "127.0.0.1:1"}', "neither a configuration of the edge nor of a worker"),
        ('{"accept_passwords": ["SENTINEL"], "workers": ["SENTINEL"]}', "neither"),
        ('{"accept_password": ["SENTINEL"], "device": "cpu"}', "did you mean accept_passwords?"),
        ('{"share_password": "SENTINEL", "worker": [], "limits": {}}', "did you mean shared_password"),
        ('{"accept_passwords": ["a"], "accept_passwords": ["b"]}', "stands there twice"),
    ],
)
def test_check_of_what_is_no_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    status, out, err = checked(capsys, path)
    assert (status, out) == (2, "")
    assert err.startswith(f"{path}: ")
    assert words in err


def test_check_warns_of_short_passwords(files: dict[SideName, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """On both sides, without the password; the files are good all the same."""
    long = "SENTINEL-of-16-or-more"
    files["edge"].write_text(json.dumps(example("edge") | {"shared_password": "SENTINEL"}))
    files["worker"].write_text(json.dumps(example("worker") | {"accept_passwords": [long, "SENTINEL"]}))
    status, out, err = checked(capsys, *files.values())
    said = "has fewer than 16 characters, and can be guessed by trying"
    assert (status, out.count("good, for the")) == (0, 2)
    assert err.splitlines() == [
        f"{files['edge']}: warning: shared_password: {said}",
        f"{files['worker']}: warning: accept_passwords.1: {said}",
    ]
    files["edge"].write_text(json.dumps(example("edge") | {"shared_password": long}))
    assert checked(capsys, files["edge"]) == (0, f"{files['edge']}: good, for the edge\n", "")


def test_check_of_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys, tmp_path / "gone") == (2, "", f"{tmp_path / 'gone'}: No such file or directory\n")


def test_check_looks_at_nothing_but_the_file(
    files: dict[SideName, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALTH_MIN_FREE_GB", "99")
    for side in SIDES:
        pair = {"cert": "/gone/c.pem", "key": "/gone/k.pem"}
        files[side].write_text(json.dumps(example(side) | {"tls": pair}))
    assert checked(capsys, *files.values())[0] == 0


def test_schema_prints_what_an_editor_takes() -> None:
    status, out, _err = run("schema", "edge")
    assert status == 0
    assert json.loads(out) == of("edge")
    assert run("schema", "proxy")[0] == 64


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (
            "health_check.cooldown_seconds",
            ["edge_config.json", "number (s)", "default 60", "in force at once", "0 is the emergency switch"],
        ),
        ("static.max_bytes", ["whole number (bytes), at least 1048576", "default 10737418240", "after a restart"]),
        ("shared_password", ["secret text; must be given"]),
        ("listen", ["listen in edge_config.json", "listen in worker_config.json", "In the environment: LISTEN"]),
        ("HEALTH_MIN_FREE_GB", ["health.min_free_gb in worker_config.json", "GiB"]),
        ("api_keys.3.sha256", ["api_keys[].sha256", "must be given"]),
        ("dispatch", ["Queue, attempts, retries.", "  dispatch.max_retries"]),
    ],
)
def test_explain_a_key(capsys: pytest.CaptureFixture[str], key: str, words: list[str]) -> None:
    status, out, err = explained(capsys, key)
    assert (status, err) == (0, "")
    for each in words:
        assert each in out


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("cooldown_seconds", "health_check.cooldown_seconds"),
        ("health_check.cooldown", "health_check.cooldown_seconds"),
        ("health.cooldown_seconds", "health_check.cooldown_seconds"),
        ("max_pixel", "limits.max_pixels"),
        ("admin_token", "admin_tokens"),
        ("statics", "static"),
        ("min_free_gib", "health.min_free_gb"),
    ],
)
def test_explain_a_near_miss(capsys: pytest.CaptureFixture[str], key: str, meant: str) -> None:
    status, out, err = explained(capsys, key)
    assert (status, out) == (2, "")
    assert err.startswith(f"hairmesh config: {key}: there is no such key; did you mean {meant}")


def test_explain_what_is_like_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(capsys, "xyzzy\x1b[2J") == (2, "", "hairmesh config: xyzzy\\x1b[2J: there is no such key\n")


def test_explain_everything() -> None:
    status, out, _err = run("explain")
    assert status == 0
    first_words = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert first_words == [key.name for side in SIDES for key in keys(side)]


def test_an_edges_host_knows_the_edge(
    files: dict[SideName, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only hairmesh[edge] is installed, what reads a worker's file lacks its packages."""

    def only_edge(side: SideName) -> dict[str, Any]:
        if side == "worker":
            raise SideMissingError("install hairmesh[worker]")
        return of(side)

    monkeypatch.setattr(config_command, "of", only_edge)
    assert checked(capsys, files["edge"])[0] == 0
    assert checked(capsys, files["worker"]) == (2, "", f"{files['worker']}: install hairmesh[worker]\n")
    assert explained(capsys, "limits.max_pixels")[0] == 0
    assert FILES["worker"] not in explained(capsys, "listen")[1]


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "worker.settings", None)
    monkeypatch.delattr("worker.settings", raising=False)
    with pytest.raises(SideMissingError, match=r"install hairmesh\[worker\]"):
        config_schema.of.__wrapped__("worker")


# The page


def test_the_page_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["config_docs.py", "--check"])
    config_docs.main()


def test_a_stale_page_is_told_and_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = config_docs.PAGE.read_text()
    page = tmp_path / "configuration.md"
    page.write_text(fresh.replace("| `max_pixels` | whole number", "| `max_pixels` | number"))
    assert page.read_text() != fresh
    monkeypatch.setattr(config_docs, "PAGE", page)
    monkeypatch.setattr(sys, "argv", ["config_docs.py", "--check"])
    with pytest.raises(SystemExit, match="run scripts/config_docs"):
        config_docs.main()
    monkeypatch.setattr(sys, "argv", ["config_docs.py"])
    config_docs.main()
    assert page.read_text() == fresh


def test_the_page_has_every_key() -> None:
    page = config_docs.PAGE.read_text()
    for side in SIDES:
        for key in keys(side):
            assert f"| `{key.name}` |" in page or f"| `{key.name.partition('.')[2]}` |" in page
