"""The REST contract as a file for programs, to be given out with a release: what `/openapi.json` says of an edge with
the defaults. `python -m scripts.openapi FILE`; the same bytes each time, a line for each value, so that two releases
can be compared.
"""

from __future__ import annotations

import sys
from pathlib import Path

import orjson

from scripts import reference


def text() -> bytes:
    """The file."""
    return orjson.dumps(reference.document(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(text())
