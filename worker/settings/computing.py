"""Sections about what a worker computes with: models, growth."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from worker.settings.values import FilePath, Section, Url


class ModelsSettings(Section):
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


class GrowthSettings(Section):
    """What grows hair."""

    backend: Literal["local", "comfyui", "none"] = "local"
    """`local`: this machine, from the person's own hair. `comfyui`: a diffusion server. `none`: growth calls answer
    without grown pictures."""
    comfyui_url: Url | None = "http://127.0.0.1:8188"
    """Address of the diffusion server, without a user name or a password; used by `comfyui` alone, as is `workflow`."""
    workflow: FilePath | None = None
    """What that server is to do: a workflow in its API format with placeholders, read at start."""
    state_dir: FilePath | None = None
    """Folder in which `comfyui` notes its open jobs, by random names: what a worker that was killed has left on the
    server is removed by the next one that uses it. Any number of workers may share it. null: `$STATE_DIRECTORY`, which
    systemd sets, else `$XDG_STATE_HOME/hairmesh`, else `~/.local/state/hairmesh`."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.backend == "comfyui" and (self.comfyui_url is None or self.workflow is None):
            raise ValueError("backend comfyui needs comfyui_url and workflow")
        return self

    @property
    def configured(self) -> bool:
        """Whether anything grows hair at all."""
        return self.backend != "none"
