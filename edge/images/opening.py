"""Which store the configuration means."""

from __future__ import annotations

from edge.images.local import LocalStore
from edge.images.retention import Retention
from edge.images.store import ImageStore, StoreError
from edge.settings import ConfigError, Static


def open_store(static: Static) -> ImageStore:
    """The store of an edge, which asks nothing of it yet; raises `ConfigError`."""
    retention = Retention(static.max_bytes, static.max_age_hours * 3600, static.min_age_minutes * 60)
    if static.store_url is None:
        return LocalStore(static.dir, retention, shared=static.shared)
    try:
        from edge.images import objects  # noqa: PLC0415  (an extra: not everybody has it)
    except ImportError:
        raise ConfigError("static.store_url: takes the extra: pip install 'hairmesh[edge-objects]'") from None
    try:
        return objects.ObjectStore(objects.connect(static.store_url), retention)
    except StoreError as error:
        raise ConfigError(f"static.store_url: {error}") from None
