"""Configuration: `worker_config.json`, overridden by the environment by section and key (`HEALTH_MIN_FREE_GB`).

Unknown keys are refused, and so is whatever this worker would not act on. No error message repeats a value: it could be
a password.

`whole` is the file, with a section each in `network`, `computing` and `health`, of the kinds of values in `values`;
`file` reads it. Everybody else imports from here.
"""

from worker.settings.computing import GrowthSettings, ModelsSettings
from worker.settings.file import (
    DEFAULT_CONFIG,
    NotUsableError,
    SettingsError,
    load,
    parse,
    permissions_warning,
    read,
    variables,
)
from worker.settings.health import DependencySettings, HealthSettings
from worker.settings.network import MetricsSettings, TlsSettings, TracingSettings
from worker.settings.whole import Settings

__all__ = [
    "DEFAULT_CONFIG",
    "DependencySettings",
    "GrowthSettings",
    "HealthSettings",
    "MetricsSettings",
    "ModelsSettings",
    "NotUsableError",
    "Settings",
    "SettingsError",
    "TlsSettings",
    "TracingSettings",
    "load",
    "parse",
    "permissions_warning",
    "read",
    "variables",
]
