"""Exit status of wrong usage, the same for every command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperGroup

USAGE_STATUS = 64
"""Of `sysexits.h`: click's own 2 means something else in several commands."""
_CLICKS_OWN = 2


class ScriptGroup(TyperGroup):
    """Commands whose usage errors, an unknown command among them, have a status of their own."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """See click."""
        with _usage_status():
            return super().make_context(*arguments, **options)

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        """See click: here the arguments of commands are read."""
        with _usage_status():
            return super().invoke(*arguments, **options)


@contextmanager
def _usage_status() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if hasattr(error, "exit_code") and error.exit_code == _CLICKS_OWN:
            error.exit_code = USAGE_STATUS
        raise
