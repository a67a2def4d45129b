"""From a file and the environment to settings, or to every complaint about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from hairmesh import config_file, pem
from worker.settings.values import Section
from worker.settings.whole import Settings

DEFAULT_CONFIG = Path("worker_config.json")


class SettingsError(Exception):
    """The configuration cannot be used; the message says which key and why, never its value."""

    def __init__(self, *complaints: str, origin: str = "") -> None:
        """`complaints`: each with its key; `origin`: the file that holds it."""
        super().__init__((f"{origin}: " if origin else "") + "; ".join(complaints))
        self.complaints = complaints


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
    """What to do where others can use the file that carries the passwords; empty where they cannot. Its group may read
    it, as at the edge: Kubernetes and Compose hand secrets over like that.
    """
    mode = pem.loose_permissions(path)
    return f"{path} is open to others (mode {mode}); chmod 600 it" if mode else ""


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
        if isinstance(section, type) and issubclass(section, Section):
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
