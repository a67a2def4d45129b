"""Configuration: file, environment, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr

from vision.types import Stage
from worker.health.deps import DependencyKind
from worker.settings import DependencySettings, Settings, SettingsError, load, parse, permissions_warning

ROOT = Path(__file__).parents[2]
MINIMAL = '{"accept_passwords": ["SENTINEL"]}'


DEP = {"name": "comfyui", "kind": "comfyui", "target": "127.0.0.1:8188"}


def dep(**changes: object) -> dict[str, object]:
    return {"health": {"deps": [{**DEP, **changes}]}}


def parsed(text: str = MINIMAL, **environ: str) -> Settings:
    return parse(text, environ, origin="w.json")


def test_example_is_valid_and_states_the_defaults() -> None:
    example = load(ROOT / "worker_config.example.json", {"ACCEPT_PASSWORDS": '["own"]'})
    assert example == Settings(accept_passwords=example.accept_passwords)


def test_example_names_every_key() -> None:
    example = json.loads((ROOT / "worker_config.example.json").read_text())
    assert set(example) == set(Settings.model_fields)
    defaults = Settings.model_validate_json(MINIMAL)
    for section in ("tls", "models", "growth", "health"):
        assert set(example[section]) == set(type(getattr(defaults, section)).model_fields)


OVERRIDES: dict[str, tuple[str, object]] = {
    "LISTEN": ("127.0.0.1:1", "127.0.0.1:1"),
    "ACCEPT_PASSWORDS": ('["new", "old"]', (SecretStr("new"), SecretStr("old"))),
    "TLS_CERT": ("~/c.pem", Path.home() / "c.pem"),
    "TLS_KEY": ("k.pem", Path("k.pem")),
    "TLS_CLIENT_CA": ("null", None),
    "DEVICE": ("cpu", "cpu"),
    "MODELS_DIR": ("~/models", Path.home() / "models"),
    "MODELS_PARSER_WEIGHTS": ("w.pth", Path("w.pth")),
    "MODELS_PARSER_WEIGHTS_SHA256": ("ab" * 32, "ab" * 32),
    "GROWTH_BACKEND": ("comfyui", "comfyui"),
    "GROWTH_COMFYUI_URL": ("https://diffusion:8188/", "https://diffusion:8188"),
    "GROWTH_WORKFLOW": ("~/inpaint.json", Path.home() / "inpaint.json"),
    "GROWTH_STATE_DIR": ("~/state", Path.home() / "state"),
    "HEALTH_MIN_FREE_GB": ("0.5", 0.5),
    "HEALTH_RESUME_FREE_GB": ("7", 7.0),
    "HEALTH_DISK_PATHS": ('["/", "/tmp"]', (Path("/"), Path("/tmp"))),
    "HEALTH_CHECK_DEPS": ("false", False),
    "HEALTH_DEPS_CACHE_SECONDS": ("2.5", 2.5),
    "HEALTH_DEPS": (
        '[{"name": "llm", "kind": "vllm", "target": "http://127.0.0.1:8000", "required": false}]',
        (DependencySettings(name="llm", kind=DependencyKind.VLLM, target="http://127.0.0.1:8000", required=False),),
    ),
    "HEALTH_CANARY_MAX_AGE_SECONDS": ("9", 9.0),
    "HEALTH_STALL_AFTER_SECONDS": ('{"parsing": 5, "model_load": 600}', {Stage.PARSING: 5.0, Stage.MODEL_LOAD: 600.0}),
    "METRICS_LISTEN": ("127.0.0.1:9109", "127.0.0.1:9109"),
    "TRACING_OTLP_ENDPOINT": ("http://127.0.0.1:4318/", "http://127.0.0.1:4318"),
    "DRAIN_DELAY_SECONDS": ("0", 0.0),
    "DRAIN_GRACE_SECONDS": ("180", 180.0),
}


def test_environment_overrides_every_key_by_its_name() -> None:
    settings = parsed(**{name: text for name, (text, _value) in OVERRIDES.items()}, HEALTH_UNRELATED="x", UNRELATED="y")
    seen: dict[str, object] = {}
    for key in Settings.model_fields:
        value = getattr(settings, key)
        if isinstance(value, BaseModel):
            seen |= {f"{key}_{inner}".upper(): getattr(value, inner) for inner in type(value).model_fields}
        else:
            seen[key.upper()] = value
    assert seen == {name: value for name, (_text, value) in OVERRIDES.items()}


def test_one_override_leaves_its_neighbours_as_the_file_has_them() -> None:
    text = json.dumps({"accept_passwords": ["a"], "health": {"min_free_gb": 1, "resume_free_gb": 2}})
    health = parsed(text, HEALTH_MIN_FREE_GB="1.5").health
    assert (health.min_free_gb, health.resume_free_gb) == (1.5, 2.0)


def test_a_watermark_raised_alone_is_refused_with_both_variables_named() -> None:
    with pytest.raises(SettingsError, match="HEALTH_MIN_FREE_GB and HEALTH_RESUME_FREE_GB"):
        parsed(HEALTH_MIN_FREE_GB="100")


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
        ({"accept_password": ["a"]}, "accept_password: there is no such key"),
        ({"health": {"deps": [{"name": "comfyui"}]}}, "health.deps.0.kind: must be given"),
        (dep(kind="udp"), "health.deps.0.kind"),
        (dep(name="a,b"), "health.deps.0.name"),
        (dep(name=""), "health.deps.0.name"),
        (dep(target="127.0.0.1"), "health.deps.0: target is host:port"),
        (dep(target="127.0.0.1:0"), "health.deps.0: target is host:port"),
        (dep(target="127.0.0.1:99999"), "health.deps.0: target is host:port"),
        (dep(target="http://user:SENTINEL@127.0.0.1:1"), "health.deps.0: target is host:port"),
        (dep(target="http://127.0.0.1:1/?key=SENTINEL"), "health.deps.0: target is host:port"),
        (dep(kind="tcp", target="http://127.0.0.1:1"), "health.deps.0: target of kind tcp is host:port"),
        (dep(kind="tcp", target="127.0.0.1:1/path"), "health.deps.0: target of kind tcp is host:port"),
        ({"health": {"deps": [DEP, DEP]}}, "health: deps: two of them have the same name"),
        ({"growth": {"backend": "magic"}}, "growth.backend: must be one of local, comfyui, none"),
        ({"growth": {"backend": "comfyui"}}, "growth: backend comfyui needs comfyui_url and workflow"),
        (
            {"growth": {"backend": "comfyui", "workflow": "w.json", "comfyui_url": None}},
            "growth: backend comfyui needs comfyui_url and workflow",
        ),
        ({"growth": {"comfyui_url": "127.0.0.1:8188"}}, "growth.comfyui_url: is http://host:port"),
        ({"growth": {"comfyui_url": "http://me:SENTINEL@h:8188"}}, "growth.comfyui_url: is http://host:port"),
        ({"growth": {"comfyui_url": "http://h:99999"}}, "growth.comfyui_url: is http://host:port"),
        ({"drain_grace_seconds": float("inf")}, "drain_grace_seconds: must be a number of seconds, at least 0"),
        ({"drain_delay_seconds": 3000}, "drain_delay_seconds: must be a number of seconds, at least 0, at most 600"),
        ({"drain_grace_seconds": 30_000}, "drain_grace_seconds: must be a number of seconds, at least 0, at most 3600"),
        ({"health": {"min_free_gb": 5_000_000_000}}, "health.min_free_gb: must be a number of GiB, at least 0"),
        ({"health": {"min_free_gb": 7}}, "resume_free_gb is below"),
        ({"accept_passwords": ["replace-me-SENTINEL"]}, "accept_passwords.0: is still the example's placeholder"),
        ({"health": {"stall_after_seconds": {"thinking": 3}}}, "health.stall_after_seconds.thinking"),
        ({"health": {"stall_after_seconds": {"parsing": 0}}}, "must be a number of seconds, above 0"),
        ({"health": {"stall_after_seconds": {"diffusion_queue": 60}}}, "who waits in a queue never counts as stalled"),
        ({"health": {"stall_after_seconds": {"diffusion": 29}}}, "diffusion is at least 30 s"),
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
    with pytest.raises(SettingsError, match=r"^w\.json: (not|must be a) JSON|the file is empty"):
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


def test_permissions_that_open_it_to_others_are_warned_about(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_text(MINIMAL)
    for mode, warned in ((0o600, False), (0o400, False), (0o440, False), (0o644, True), (0o660, True)):
        path.chmod(mode)
        assert bool(permissions_warning(path)) is warned
