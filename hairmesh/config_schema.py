"""The two configuration files as JSON Schema: what `hairmesh config` and docs/configuration.md tell is all in there.

What stands below each field in the settings of edge and worker becomes its description. Added to what JSON Schema
knows, since people ask for it first: `x-unit` of every number, `x-takes-effect` of every key (`live` or `restart`), and
`x-environment`, the variable that overrides a key of a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, get_args

from edge.reload import TAKES_EFFECT
from edge.settings import Settings
from hairmesh.config_nodes import Schema, leaves, plain

SideName = Literal["edge", "worker"]
SIDES: tuple[SideName, ...] = get_args(SideName)
Effect = Literal["live", "restart"]

FILES: Mapping[SideName, str] = {"edge": "edge_config.json", "worker": "worker_config.json"}
"""What the file of each is called in examples and documents."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class SideMissingError(Exception):
    """What reads this side's file is not installed here."""


@cache
def of(side: SideName) -> Schema:
    """All of one file, without references. Raises `SideMissingError`."""
    schema, effects, variables = _worker() if side == "worker" else _edge()
    whole = plain(schema)
    for key, value in whole["properties"].items():
        value["x-takes-effect"] = effects[key]
    for name, node in leaves(whole):
        if name in variables:
            node["x-environment"] = variables[name]
    return {"$schema": DIALECT, "title": FILES[side], **whole}


def _edge() -> tuple[Schema, Mapping[str, Effect], Mapping[str, str]]:
    return Settings.model_json_schema(), TAKES_EFFECT, {}


def _worker() -> tuple[Schema, Mapping[str, Effect], Mapping[str, str]]:
    try:
        from worker import reload, settings  # noqa: PLC0415  (need numpy, which is not where only an edge runs)
    except ModuleNotFoundError as error:
        raise SideMissingError(f"{FILES['worker']}: install hairmesh[worker]: {error.name} is missing") from None
    fields = settings.Settings.model_fields
    effects: Mapping[str, Effect] = {key: "live" if key in reload.LIVE else "restart" for key in fields}
    variables = {".".join(keys): name for keys, name in settings.variables()}
    return settings.Settings.model_json_schema(), effects, variables
