"""What the command line asks for. Costs nothing to import."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

SECRET_VARIABLE = "HAIRMESH_WATCH_SECRET"  # noqa: S105  (the name of the variable, not a secret)


class Kind(StrEnum):
    """What is watched."""

    VLLM = "vllm"
    COMFYUI = "comfyui"
    WORKER = "worker"


@dataclass(frozen=True, slots=True)
class Options:
    """As in `hairmesh watch --help`; `_s` seconds, None where a default depends on the kind."""

    kind: Kind
    target: str
    restart_cmd: str | None = None
    act: bool = False
    once: bool = False
    as_json: bool = False
    interval_s: float = 10.0
    grace_s: float | None = None
    start_grace_s: float = 900.0
    dead_grace_s: float | None = None
    restart_timeout_s: float = 300.0
    proxy: bool = False
    secret_file: Path | None = None
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    insecure: bool = False
