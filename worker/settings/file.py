"""From a file and the environment to settings, or to every complaint about them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hairmesh import config_complaints, config_file, config_nodes, pem
from worker.settings.values import Section
from worker.settings.whole import Settings

DEFAULT_CONFIG = Path("worker_config.json")
_SAID: Mapping[str, TypeAdapter[float] | TypeAdapter[bool]] = {
    "number": TypeAdapter(float),
    "boolean": TypeAdapter(bool),
}
"""By the type of a key in the schema: how the text of its variable is read."""


class SettingsError(Exception):
    """The configuration cannot be used; the message says which key and why, never its value."""

    def __init__(self, *complaints: str, origin: str = "") -> None:
        """`complaints`: each with its key; `origin`: the file that holds it."""
        super().__init__((f"{origin}: " if origin else "") + "; ".join(complaints))
        self.complaints = complaints


class NotUsableError(SettingsError):
    """A file that the configuration names cannot be used as it is now: the same configuration may do later."""


def load(path: Path | None, environ: Mapping[str, str], *, listen: str | None = None) -> Settings:
    """Read `path` (None: only defaults and environment), then the environment, then `listen`.

    Raises `SettingsError`.
    """
    return parse(read(path) if path else "{}", environ, listen=listen, origin=str(path or "environment"))


def parse(text: str, environ: Mapping[str, str], *, listen: str | None = None, origin: str) -> Settings:
    """`load` for a text that was read already; `origin` names it in errors.

    Kinds are strict, in the file and in what a variable holds as JSON. A variable that should be a number, or true or
    false, is text like all others, and taken for what it says.
    """
    values = _decoded(text, origin)
    if not isinstance(values, dict):
        raise SettingsError("must be a JSON object", origin=origin)
    if mistaken := config_complaints.wrong_side("worker", values):
        raise SettingsError(mistaken, origin=origin)
    given = {keys: (name, environ[name]) for keys, name in variables() if name in environ}
    schema = _schema() if given else {}
    for keys, (name, value) in given.items():
        _put(values, keys, _from_environment(name, value, config_nodes.at(schema, keys) or {}))
    if listen is not None:
        values["listen"] = listen
    try:
        return Settings.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False, include_context=False)
        schema = _schema()
        complaints = config_file.complaints(
            _complaint(schema, problem["type"], problem["loc"], problem["msg"]) for problem in found
        )
        raise SettingsError(*complaints, origin=origin) from None


def _schema() -> config_nodes.Schema:
    return config_nodes.plain(Settings.model_json_schema())


def permissions_warning(path: Path) -> str:
    """What to do where others can use a file with passwords or a key; empty where they cannot. Its group may read it,
    as at the edge: Kubernetes and Compose hand secrets over like that.
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


def _from_environment(name: str, text: str, node: config_nodes.Schema) -> object:
    """Lists, objects and null as JSON, numbers and true or false as they are said, everything else as it stands."""
    if text.startswith(("[", "{")) or text == "null":
        return _decoded(text, f"environment {name}")
    if said := _SAID.get(node.get("type", "")):
        with suppress(ValidationError):  # of another kind: told like any other wrong value
            return said.validate_python(text)
    return text


def _put(values: dict[str, object], keys: tuple[str, ...], value: object) -> None:
    target: object = values
    for key in keys[:-1]:
        target = target.setdefault(key, {}) if isinstance(target, dict) else None
    if isinstance(target, dict):  # else validation says what is wrong with that section
        target[keys[-1]] = value


def _complaint(schema: config_nodes.Schema, kind: str, loc: tuple[int | str, ...], said: str) -> str:
    place = ".".join(map(str, loc)) or "configuration"
    return f"{place}: {config_complaints.in_words(schema, kind, loc, said)}"
