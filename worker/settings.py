"""Configuration: `worker_config.json`, overridden by the environment by section and key (`HEALTH_MIN_FREE_GB`).

Unknown keys are refused, and so is whatever this worker would not act on. No error message repeats a value: it could be
a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from hairmesh import config_file
from hairmesh.wire import password_problem
from vision.types import STALL_AFTER_S, Stage
from worker.health.deps import DependencyKind

DEFAULT_CONFIG = Path("worker_config.json")
_TARGET = re.compile(
    r"(?P<scheme>https?://)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:(?P<port>\d{1,5}))?(?P<path>/[\w./-]*)?"
)
_LISTEN = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):(?P<port>\d{1,5})")


LEAST_DIFFUSION_STALL_S = 30.0


class SettingsError(Exception):
    """The configuration cannot be used; the message says which key and why, never its value."""

    def __init__(self, *complaints: str, origin: str = "") -> None:
        """`complaints`: each with its key; `origin`: the file that holds it."""
        super().__init__((f"{origin}: " if origin else "") + "; ".join(complaints))
        self.complaints = complaints


def _for_metadata(password: SecretStr) -> SecretStr:
    if problem := password_problem(password.get_secret_value()):
        raise ValueError(problem)
    return password


def _expanded(path: Path) -> Path:
    return path.expanduser()


def _checked_url(url: str) -> str:
    match = _TARGET.fullmatch(url)
    if not match or not match["scheme"] or int(match["port"] or 1) not in range(1, 65536):
        raise ValueError("is http://host:port or https://host:port, without user name and query")
    return url.rstrip("/")


def _checked_address(listen: str) -> str:
    match = _LISTEN.fullmatch(listen)
    if not match or int(match["port"]) > 65535:
        raise ValueError("listen is host:port, such as 127.0.0.1:28187 or [::1]:28187")
    return listen


def _at_least_one(passwords: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    if not passwords:
        raise ValueError("at least one is needed")
    return passwords


Password = Annotated[SecretStr, AfterValidator(_for_metadata)]
Passwords = Annotated[
    tuple[Password, ...], AfterValidator(_at_least_one), Field(json_schema_extra={"minItems": 1})
]  # a minimal length would count the good ones alone, and complain beside each bad one
FilePath = Annotated[Path, AfterValidator(_expanded)]


class _Section(BaseModel):
    """What stands below a key says what it means (`hairmesh config explain`)."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


class TlsSettings(_Section):
    """TLS of the gRPC port; plain text without `cert`."""

    cert: FilePath | None = None
    """Certificate chain, PEM."""
    key: FilePath | None = None
    """Its private key, PEM."""
    client_ca: FilePath | None = None
    """Mutual TLS: only clients with a certificate of this authority, PEM."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key belong together")
        if self.client_ca and not self.cert:
            raise ValueError("client_ca needs cert and key")
        return self


class ModelsSettings(_Section):
    """Where the model files lie."""

    dir: FilePath | None = None
    """Folder of the fetched models; null: the cache folder of `hairmesh models fetch`."""
    parser_weights: FilePath | None = None
    """The operator's own face parser instead of the pinned one."""
    parser_weights_sha256: str | None = Field(default=None, pattern="^[0-9a-fA-F]{64}$")
    """Its hash; required with it."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.parser_weights is None) != (self.parser_weights_sha256 is None):
            raise ValueError("parser_weights and parser_weights_sha256 belong together")
        return self


class GrowthSettings(_Section):
    """What grows hair."""

    backend: Literal["local", "comfyui", "none"] = "local"
    """`local`: this machine, from the person's own hair. `comfyui`: a diffusion server. `none`: growth calls answer
    without grown pictures."""
    comfyui_url: str | None = "http://127.0.0.1:8188"
    """Address of the diffusion server, without a user name or a password; used by `comfyui` alone, as is `workflow`."""
    workflow: FilePath | None = None
    """What that server is to do: a workflow in its API format with placeholders, read at start."""
    state_dir: FilePath | None = None
    """Folder in which `comfyui` notes its open jobs, by random names: what a worker that was killed has left on the
    server is removed by the next one that uses it. Any number of workers may share it. null: `$STATE_DIRECTORY`, which
    systemd sets, else `$XDG_STATE_HOME/hairmesh`, else `~/.local/state/hairmesh`."""

    @field_validator("comfyui_url")
    @classmethod
    def _plain(cls, url: str | None) -> str | None:
        return None if url is None else _checked_url(url)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.backend == "comfyui" and (self.comfyui_url is None or self.workflow is None):
            raise ValueError("backend comfyui needs comfyui_url and workflow")
        return self

    @property
    def configured(self) -> bool:
        """Whether anything grows hair at all."""
        return self.backend != "none"


class DependencySettings(_Section):
    """A server this worker relies on."""

    name: str = Field(pattern="^[A-Za-z0-9._-]{1,64}$")
    """Its health name is `dep/<name>`."""
    kind: DependencyKind
    """How it is asked."""
    target: str
    """`host:port`; for all kinds but tcp also a URL, without a user name or a password."""
    required: bool = True
    """Whether the worker takes itself out while it is down; false: that costs `capability/growth` alone."""

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        match = _TARGET.fullmatch(self.target)
        if not match or int(match["port"] or 1) not in range(1, 65536) or not (match["scheme"] or match["port"]):
            raise ValueError("target is host:port, or for kinds other than tcp a URL without user name and query")
        if self.kind is DependencyKind.TCP and (match["scheme"] or match["path"]):
            raise ValueError("target of kind tcp is host:port")
        return self


class HealthSettings(_Section):
    """When this worker takes itself out."""

    min_free_gb: float = Field(default=5.0, ge=0)
    """Out of rotation below so much free space, GiB; 0 switches the disk check off."""
    resume_free_gb: float = Field(default=6.0, ge=0)
    """Back above so much, GiB; not below `min_free_gb`."""
    disk_paths: tuple[FilePath, ...] = Field(default=(Path(),), min_length=1)
    """Folders on the watched file systems, writable by the worker."""
    check_deps: bool = True
    """Whether `deps` are checked; false: all of them count as good."""
    deps_cache_seconds: PositiveFloat = 5.0
    """How long a good answer of one of `deps` counts before it is asked again, s."""
    deps: tuple[DependencySettings, ...] = ()
    """Servers this worker relies on."""
    canary_max_age_seconds: PositiveFloat = 30.0
    """The canary runs when its last good answer is older, s."""
    stall_after_seconds: Mapping[Stage, PositiveFloat] = {}
    """How long a stage may be still, s, by name of the stage, instead of the built-in limits. Not of `diffusion_queue`:
    who waits in a queue never counts as stalled."""

    def stall_after_s(self, stage: Stage) -> float:
        """How long `stage` may be still."""
        return self.stall_after_seconds.get(stage, STALL_AFTER_S[stage])

    @field_validator("stall_after_seconds")
    @classmethod
    def _acted_on(cls, limits: Mapping[Stage, float]) -> Mapping[Stage, float]:
        if Stage.DIFFUSION_QUEUE in limits:
            raise ValueError("diffusion_queue has no limit: who waits in a queue never counts as stalled")
        if limits.get(Stage.DIFFUSION, LEAST_DIFFUSION_STALL_S) < LEAST_DIFFUSION_STALL_S:
            raise ValueError(
                f"diffusion is at least {LEAST_DIFFUSION_STALL_S:.0f} s: a node may load a model before its first step"
            )
        return limits

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_free_gb and self.resume_free_gb < self.min_free_gb:
            raise ValueError(
                "resume_free_gb is below min_free_gb: set both, in the environment HEALTH_MIN_FREE_GB and"
                " HEALTH_RESUME_FREE_GB"
            )
        if len({dependency.name for dependency in self.deps}) < len(self.deps):
            raise ValueError("deps: two of them have the same name")
        return self


class MetricsSettings(_Section):
    """A port of its own for Prometheus."""

    listen: str | None = None
    """Host and port, plain HTTP for whoever reaches it: loopback, or a network of your own. null: no such port."""

    @field_validator("listen")
    @classmethod
    def _host_and_port(cls, listen: str | None) -> str | None:
        return None if listen is None else _checked_address(listen)


class TracingSettings(_Section):
    """Spans of calls and their stages, for an OpenTelemetry collector. Takes the extra `tracing`."""

    otlp_endpoint: str | None = None
    """Where it takes OTLP over HTTP, without `/v1/traces`, such as `http://127.0.0.1:4318`. null: no traces."""

    @field_validator("otlp_endpoint")
    @classmethod
    def _plain(cls, url: str | None) -> str | None:
        return None if url is None else _checked_url(url)


class Settings(_Section):
    """All of `worker_config.json`."""

    listen: str = "0.0.0.0:28187"
    """Host and port; port 0 takes a free one and logs it."""
    accept_passwords: Passwords
    """Any of these is accepted. Read again while the worker runs, so that old and new hold during a rotation."""
    tls: TlsSettings = TlsSettings()
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the models run; `auto` takes a GPU when there is one."""
    models: ModelsSettings = ModelsSettings()
    growth: GrowthSettings = GrowthSettings()
    health: HealthSettings = HealthSettings()
    metrics: MetricsSettings = MetricsSettings()
    tracing: TracingSettings = TracingSettings()
    drain_delay_seconds: float = Field(default=3.0, ge=0)
    """After SIGTERM: go on serving so long, so that every edge has heard of it, s."""
    drain_grace_seconds: float = Field(default=30.0, ge=0)
    """Then: time for the running call to finish, s."""

    @field_validator("listen")
    @classmethod
    def _host_and_port(cls, listen: str) -> str:
        return _checked_address(listen)

    @property
    def host(self) -> str:
        """Host part of `listen`, brackets included."""
        return self.listen.rpartition(":")[0]


def load(path: Path | None, environ: Mapping[str, str], *, listen: str | None = None) -> Settings:
    """Read `path` (None: only defaults and environment), then the environment, then `listen`.

    Raises `SettingsError`.
    """
    return parse(read(path) if path else "{}", environ, listen=listen, origin=str(path or "environment"))


def parse(text: str, environ: Mapping[str, str], *, listen: str | None = None, origin: str) -> Settings:
    """`load` for a text that was read already; `origin` names it in errors."""
    values = _decoded(text, origin)
    if not isinstance(values, dict):
        raise SettingsError("must be a JSON object", origin=origin)
    for keys, name in variables():
        if name in environ:
            _put(values, keys, _from_environment(name, environ[name]))
    if listen is not None:
        values["listen"] = listen
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        complaints = config_file.complaints(_in_words(**problem) for problem in found)
        raise SettingsError(*complaints, origin=origin) from None


def permissions_warning(path: Path) -> str:
    """Empty when only the owner can read the file that carries the passwords, else what to do."""
    mode = path.stat().st_mode & 0o777
    return f"{path} is readable by others (mode {mode:03o}); chmod 600 it" if mode & 0o077 else ""


def read(path: Path) -> str:
    """The text of a configuration file; raises `SettingsError`."""
    try:
        return config_file.read(path).decode()
    except (config_file.ConfigFileError, UnicodeDecodeError) as error:
        problem = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise SettingsError(problem, origin=str(path)) from None


def _decoded(text: str, origin: str) -> object:
    try:
        return config_file.decode(text)
    except config_file.ConfigFileError as error:
        raise SettingsError(str(error), origin=origin) from None


def variables() -> Iterator[tuple[tuple[str, ...], str]]:
    """Every key of the configuration with its environment variable."""
    for key, field in Settings.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, _Section):
            for inner in section.model_fields:
                yield (key, inner), f"{key}_{inner}".upper()
        else:
            yield (key,), key.upper()


def _from_environment(name: str, text: str) -> object:
    """Lists, objects and null as JSON, everything else as it stands."""
    if not text.startswith(("[", "{")) and text != "null":
        return text
    return _decoded(text, f"environment {name}")


def _put(values: dict[str, object], keys: tuple[str, ...], value: object) -> None:
    target: object = values
    for key in keys[:-1]:
        target = target.setdefault(key, {}) if isinstance(target, dict) else None
    if isinstance(target, dict):  # else validation says what is wrong with that section
        target[keys[-1]] = value


def _in_words(*, type: str, loc: tuple[int | str, ...], msg: str, **_: object) -> str:  # noqa: A002  (pydantic's name)
    place = ".".join(str(part) for part in loc) or "configuration"
    return f"{place}: {config_file.WORDS.get(type, msg.removeprefix('Value error, '))}"
