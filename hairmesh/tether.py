"""`python -m hairmesh.tether PARENT_PID PROGRAM ARG…`: becomes PROGRAM, which dies with the parent.

The kernel kills the program when the process PARENT_PID ends, however that ends: nothing is left running behind a
killed terminal. Linux only; elsewhere it just becomes the program.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Never returns."""
    parent_pid, *program = arguments
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
        if os.getppid() != int(parent_pid):  # it died before the line above took effect
            sys.exit(1)
    os.execv(program[0], program)  # noqa: S606  (no shell is meant)


if __name__ == "__main__":
    main(sys.argv[1:])
