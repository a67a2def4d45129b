"""The whole configuration of a worker."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from worker.settings.computing import GrowthSettings, ModelsSettings
from worker.settings.health import HealthSettings
from worker.settings.network import MetricsSettings, TlsSettings, TracingSettings
from worker.settings.values import LONGEST_S, Address, Passwords, Section


class Settings(Section):
    """All of `worker_config.json`."""

    listen: Address = "0.0.0.0:28187"
    """Host and port; port 0 takes a free one and logs it."""
    accept_passwords: Passwords
    """Any of these is accepted. Read again while the worker runs, so that old and new hold during a rotation."""
    tls: TlsSettings = TlsSettings()
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the models run; `auto` takes a GPU when there is one, and waits for one that the driver has lost."""
    models: ModelsSettings = ModelsSettings()
    growth: GrowthSettings = GrowthSettings()
    health: HealthSettings = HealthSettings()
    metrics: MetricsSettings = MetricsSettings()
    tracing: TracingSettings = TracingSettings()
    drain_delay_seconds: float = Field(default=3.0, ge=0, le=600)
    """After SIGTERM: go on serving so long, so that every edge has heard of it, s."""
    drain_grace_seconds: float = Field(default=30.0, ge=0, le=LONGEST_S)
    """Then: time for the running call to finish, s."""

    @property
    def host(self) -> str:
        """Host part of `listen`, brackets included."""
        return self.listen.rpartition(":")[0]
