"""Configuration: file, environment, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vision.types import Stage
from worker.settings import Settings, SettingsError, load, parse, permissions_warning

ROOT = Path(__file__).parents[2]
MINIMAL = '{"accept_passwords": ["SENTINEL"]}'


def parsed(text: str = MINIMAL, **environ: str) -> Settings:
    return parse(text, environ, origin="w.json")


def test_example_is_valid_and_states_the_defaults() -> None:
    example = load(ROOT / "worker_config.example.json", {})
    assert example == Settings(accept_passwords=example.accept_passwords)


def test_example_names_every_key() -> None:
    example = json.loads((ROOT / "worker_config.example.json").read_text())
    assert set(example) == set(Settings.model_fields)
    defaults = Settings.model_validate_json(MINIMAL)
    for section in ("tls", "models", "growth", "health"):
        assert set(example[section]) == set(type(getattr(defaults, section)).model_fields)


def test_environment_overrides_by_section_and_key() -> None:
    settings = parsed(
        HEALTH_MIN_FREE_GB="0.5",
        HEALTH_STALL_AFTER_SECONDS='{"parsing": 5}',
        HEALTH_DISK_PATHS='["/", "/tmp"]',
        ACCEPT_PASSWORDS='["new", "old"]',
        LISTEN="127.0.0.1:1",
        DEVICE="cpu",
        MODELS_DIR="~/models",
        TLS_CERT="null",
        HEALTH_UNRELATED="x",
        UNRELATED="y",
    )
    assert (settings.health.min_free_gb, settings.listen, settings.device) == (0.5, "127.0.0.1:1", "cpu")
    assert settings.health.stall_after_seconds == {Stage.PARSING: 5.0}
    assert settings.health.disk_paths == (Path("/"), Path("/tmp"))
    assert [password.get_secret_value() for password in settings.accept_passwords] == ["new", "old"]
    assert settings.models.dir == Path.home() / "models"
    assert settings.tls.cert is None


def test_command_line_outranks_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_text(MINIMAL)
    assert load(path, {"LISTEN": "127.0.0.1:1"}, listen="127.0.0.1:2").listen == "127.0.0.1:2"
    assert load(None, {"ACCEPT_PASSWORDS": '["a"]'}).listen == "0.0.0.0:28187"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"accept_passwords": []}, "accept_passwords"),
        ({"accept_passwords": ["a", ""]}, "accept_passwords.1"),
        ({"accept_passwords": ["密码"]}, "printable ASCII"),
        ({"accept_passwords": [" padded"]}, "no space at either end"),
        ({"accept_password": ["a"]}, "accept_password: Extra inputs"),
        ({"health": {"deps": [{"name": "comfyui"}]}}, "health.deps: is not built yet and must be empty"),
        ({"growth": {"backend": "local"}}, "growth.backend: only none is built yet"),
        ({"growth": {"comfyui_url": "http://h"}}, "growth.comfyui_url: is not built yet and must be null"),
        ({"drain_grace_seconds": float("inf")}, "drain_grace_seconds: Input should be a finite number"),
        ({"health": {"min_free_gb": 7}}, "resume_free_gb is below"),
        ({"health": {"stall_after_seconds": {"thinking": 3}}}, "health.stall_after_seconds.thinking"),
        ({"health": {"stall_after_seconds": {"parsing": 0}}}, "greater than 0"),
        ({"health": {"disk_paths": []}}, "health.disk_paths"),
        ({"listen": "28187"}, "host:port"),
        ({"listen": "127.0.0.1:99999"}, "host:port"),
        ({"device": "tpu"}, "device"),
        ({"tls": {"cert": "c.pem"}}, "cert and key"),
        ({"tls": {"client_ca": "c.pem"}}, "client_ca needs"),
        ({"models": {"parser_weights": "w.pth"}}, "belong together"),
        ({"models": {"parser_weights": "w.pth", "parser_weights_sha256": "12"}}, "parser_weights_sha256"),
        ({"health": 3}, "health"),
    ],
)
def test_bad_values_are_refused_by_key_without_repeating_them(change: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parsed(json.dumps({"accept_passwords": ["SENTINEL"], **change}), HEALTH_CANARY_MAX_AGE_SECONDS="30")
    assert said in str(caught.value)
    assert "SENTINEL" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"accept_passwords": ["SENTINEL"', "[" * 100_000, '{"drain_grace_seconds": ' + "1" * 5_000 + "}"],
    ids=lambda text: text[:20],
)
def test_half_a_file_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^w\.json: not (a )?JSON"):
        parsed(text)


def test_bad_environment_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="environment ACCEPT_PASSWORDS: not JSON"):
        parsed(ACCEPT_PASSWORDS="[SENTINEL")


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        load(tmp_path / "gone.json", {})


def test_passwords_show_nowhere() -> None:
    settings = parsed()
    assert "SENTINEL" not in repr(settings)
    assert "SENTINEL" not in str(settings.model_dump())


def test_permissions_that_let_others_read_are_warned_about(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_text(MINIMAL)
    for mode, warned in ((0o600, False), (0o400, False), (0o640, True), (0o644, True)):
        path.chmod(mode)
        assert bool(permissions_warning(path)) is warned
