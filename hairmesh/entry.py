"""What a program does before anything else, since importing the rest takes seconds."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

NOT_INSTALLED_STATUS = 2
"""The same start would end the same way: nothing restarts a server with it."""
_OURS = ("edge.", "hair.", "hairmesh.", "vision.", "worker.")
"""What begins so is not missing for want of an extra: a fault of the build, told as it is."""


def end_in_order_when_told() -> None:
    """From now on SIGTERM and Ctrl-C end the process with status 0: whoever stops it while it starts has nothing to
    clean up, and no failure to see. Servers take the signals over when they run.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: sys.exit(0))


def leave_no_core() -> None:
    """From now on neither this process nor its children leave a core dump, in which photos and passwords would lie."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def keep_grpc_quiet() -> None:
    """Keep what gRPC's C core says off standard error, unless `GRPC_VERBOSITY` is set: it is no JSON, and comes with
    every handshake that fails, four times a second. To be called before gRPC is imported.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


@contextmanager
def naming_what_is_missing(program: str, extra: str) -> Iterator[None]:
    """End the program with one line and `NOT_INSTALLED_STATUS` where a package is not installed. `extra`: the smallest
    one with all that is wanted inside.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not error.name or error.name.startswith(_OURS):
            raise
        takes = f"this takes the package {error.name}, which is not installed: install hairmesh[{extra}]"
        sys.stderr.write(f"{program}: {takes}\n")
        sys.exit(NOT_INSTALLED_STATUS)
