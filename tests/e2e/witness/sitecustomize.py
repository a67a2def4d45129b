"""Writes down which files a process opens for writing; Python imports it at the start of every process that has this
folder in PYTHONPATH, children included.

One line of JSON per file, appended to the file `WITNESS`: the name as it was given, and the process. Files in memory
(memfd) and descriptors that are open already are none.
"""

import json
import os
import sys

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TMPFILE & ~os.O_DIRECTORY
_notes = os.open(os.environ["WITNESS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event != "open":
        return
    path, _mode, flags = arguments
    if isinstance(flags, int) and flags & _WRITES and isinstance(path, (str, bytes, os.PathLike)):
        line = {"path": os.fsdecode(path), "process": sys.argv[0] if hasattr(sys, "argv") else ""}
        os.write(_notes, json.dumps(line).encode() + b"\n")


sys.addaudithook(_note)
