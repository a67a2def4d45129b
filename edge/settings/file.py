"""From the text of a configuration file to settings, or to every complaint about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from edge.settings.access import Tls
from edge.settings.whole import Settings
from hairmesh import config_complaints, config_file, config_nodes, pem


class ConfigError(Exception):
    """The configuration cannot be used. The message names file, key and reason."""


_UNOBJECTIONABLE: Mapping[str, object] = {
    "tls": {"insecure": True},
    "public_base_url": "https://host.invalid",
    "workers": ["127.0.0.1:1"],
    "primary_workers": [],
    "shared_password": "-",
    "worker_tls": {"insecure": True},
}
"""Put in the place of what is wrong by itself, so that contradictions between all the other keys are found too. The
defaults do for keys that are not here."""
_GO_TOGETHER = {"workers": "primary_workers"}
"""The second means nothing without the first."""


def parse(text: bytes) -> Settings:
    """Settings from the text of a configuration file; raises `ConfigError`, one line for each and every complaint."""
    try:
        content = config_file.decode(text)
    except config_file.ConfigFileError as error:
        raise ConfigError(str(error)) from None
    if not isinstance(content, dict):
        raise ConfigError("must be a JSON object")
    if mistaken := config_complaints.wrong_side("edge", content):
        raise ConfigError(mistaken)
    try:
        return Settings.model_validate_json(text, strict=True)
    except ValidationError as error:
        complaints, wrong = _complaints(error)
    if wrong:
        wrong |= {_GO_TOGETHER[key] for key in wrong & _GO_TOGETHER.keys()}
        others = {key: value for key, value in content.items() if key not in wrong}
        stand_ins = {key: value for key, value in _UNOBJECTIONABLE.items() if key in wrong}
        try:
            Settings.model_validate_json(json.dumps(others | stand_ins), strict=True)
        except ValidationError as error:
            complaints += _complaints(error)[0]
    raise ConfigError("\n".join(config_file.complaints(line for told in complaints for line in told.split("\n"))))


def _complaints(error: ValidationError) -> tuple[list[str], set[str]]:
    """What is wrong, and the keys of the file that are so by themselves."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    schema = config_nodes.plain(Settings.model_json_schema())
    told = [_complaint(schema, item["type"], item["loc"], item["msg"]) for item in found]
    return told, {str(item["loc"][0]) for item in found if item["loc"]}


def _complaint(schema: config_nodes.Schema, kind: str, loc: tuple[int | str, ...], said: str) -> str:
    message = config_complaints.in_words(schema, kind, loc, said)
    place = ".".join(map(str, loc))
    # The pool and channel sections name their setting themselves.
    return message if not place or message.startswith(f"{place.partition('.')[0]}") else f"{place}: {message}"


def read(path: Path) -> bytes:
    """What the file holds; raises `ConfigError`."""
    try:
        return config_file.read(path)
    except config_file.ConfigFileError as error:
        raise ConfigError(str(error)) from None


def check_tls_files(tls: Tls) -> None:
    """Raise `ConfigError` unless the certificate and the key that are named are there and belong together."""
    if tls.key is None or tls.cert is None:
        return
    try:
        pem.key_and_certificate(tls.key, tls.cert)
    except pem.PemError as error:
        raise ConfigError(f"tls: {error}") from None
