"""Sections about when a worker takes itself out, and what it relies on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from vision.types import STALL_AFTER_S, Stage
from worker.health.deps import DependencyKind
from worker.settings.values import TARGET, FilePath, Seconds, Section

LEAST_DIFFUSION_STALL_S = 30.0
MOST_FREE_GB = 1_000_000.0
"""Whoever asks for more means bytes."""


class DependencySettings(Section):
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
        match = TARGET.fullmatch(self.target)
        if not match or int(match["port"] or 1) not in range(1, 65536) or not (match["scheme"] or match["port"]):
            raise ValueError("target is host:port, or for kinds other than tcp a URL without user name and query")
        if self.kind is DependencyKind.TCP and (match["scheme"] or match["path"]):
            raise ValueError("target of kind tcp is host:port")
        return self


class HealthSettings(Section):
    """When this worker takes itself out."""

    min_free_gb: float = Field(default=5.0, ge=0, le=MOST_FREE_GB)
    """Out of rotation below so much free space, GiB; 0 switches the disk check off."""
    resume_free_gb: float = Field(default=6.0, ge=0, le=MOST_FREE_GB)
    """Back above so much, GiB; not below `min_free_gb`."""
    disk_paths: tuple[FilePath, ...] = Field(default=(Path(),), min_length=1)
    """Folders on the watched file systems, writable by the worker."""
    check_deps: bool = True
    """Whether `deps` are checked; false: all of them count as good."""
    deps_cache_seconds: Seconds = 5.0
    """How long a good answer of one of `deps` counts before it is asked again, s."""
    deps: tuple[DependencySettings, ...] = ()
    """Servers this worker relies on."""
    canary_max_age_seconds: Seconds = 30.0
    """The canary runs when its last good answer is older, s."""
    stall_after_seconds: Mapping[Stage, Seconds] = {}
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
