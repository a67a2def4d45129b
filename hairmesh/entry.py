"""What a server does before anything else, since importing the rest takes seconds."""

from __future__ import annotations

import os
import resource
import signal
import sys


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
