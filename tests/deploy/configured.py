"""The example configurations of the Kubernetes manifests, read by the programs themselves."""

from __future__ import annotations

import json

import edge.settings
import worker.settings
from hairmesh.wire import PLACEHOLDERS
from tests.deploy.rendered import FOLDER, one


def example(file: str) -> str:
    """An example configuration with secrets of one's own; of what is no secret, what the example itself suggests."""
    text = (FOLDER / file).read_text()
    for number, secret in enumerate(value for value in _strings(json.loads(text)) if value.startswith(PLACEHOLDERS)):
        suggested = secret.partition(", such as ")[2]
        text = text.replace(secret, suggested or f"a-secret-of-the-tests-{number}")
    return text


def _strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in _strings(each)]
    return [value] if isinstance(value, str) else []


def edge_settings() -> edge.settings.Settings:
    return edge.settings.parse(example("edge_config.example.json").encode())


def worker_settings(name: str) -> worker.settings.Settings:
    environment: dict[str, str] = one(name, "ConfigMap", "hairmesh-worker")["data"]
    return worker.settings.parse(example("worker_config.example.json"), environment, origin="the example")
