"""A sweep of a folder: of one that holds many pictures in a process of its own.

A sweep makes three system calls for every picture. In a thread it wants the interpreter back after each of them: on a
busy machine 100,000 pictures took 23 s, and calls felt it (p99 11 ms more); in a process 3.4 s, and they hardly do.
It is not niced: where all cores are busy one at 5 is starved, and the store fills up before a sweep is over. To start
one takes 0.2 s of a processor, so that a few pictures are swept in the thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from edge.images.folder import Folder
from edge.images.retention import Retention, Why
from edge.images.sweep import Order, Swept, sweep

MANY = 2000
"""Entries of a folder that are worth a process."""
_MODULE = (sys.executable, "-P", "-m")


def sweep_folder(folder: Path, order: Order) -> Swept:
    """Do it here or apart; raises `OSError` for what the system refuses."""
    with os.scandir(folder) as entries:
        is_large = next(islice(entries, MANY, None), None) is not None
    return sweep_apart(folder, order) if is_large else sweep(Folder(folder), order)


def sweep_apart(folder: Path, order: Order) -> Swept:
    """Have it done and wait for it; raises `OSError` for what the system refuses. It dies with this process."""
    program = [*_MODULE, "edge.images.apart", str(folder.absolute())]
    told = {**asdict(order), "written": list(order.written)}
    done = subprocess.run(  # noqa: S603  (our own interpreter and module)
        [*_MODULE, "hairmesh.tether", str(os.getpid()), *program],
        input=json.dumps(told).encode(),
        capture_output=True,
        check=False,
    )
    last_words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
    if done.returncode != 0:
        raise ChildProcessError(0, f"the sweeping process ended with status {done.returncode}: {last_words}")
    try:
        answer = json.loads(done.stdout)
        if "errno" in answer:
            raise OSError(answer["errno"], answer["problem"])
        return Swept(**{**answer, "removed": Counter({why: answer["removed"][why.name] for why in Why})})
    except (ValueError, TypeError, KeyError) as error:
        raise ChildProcessError(0, "the sweeping process is of another release: restart the edge") from error


def main(folder: str) -> None:
    """The process: an order comes in by standard input, what came of it goes out."""
    told = json.loads(sys.stdin.read())
    order = Order(Retention(**told["retention"]), told["now_s"], told["wanted_bytes"], frozenset(told["written"]))
    try:
        swept = sweep(Folder(Path(folder)), order)
    except OSError as error:
        answer: dict[str, object] = {"errno": error.errno or 0, "problem": error.strerror or type(error).__name__}
    else:
        answer = {**asdict(swept), "removed": {why.name: swept.removed[why] for why in Why}}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
