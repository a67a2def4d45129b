"""Removing what a job leaves on the server: its place in the queue, its history entry, its pictures.

ComfyUI has no call that deletes a file. It has one that overwrites: an upload with `overwrite` replaces the bytes under
a name in any of its three folders, outputs included; what is left is one grey pixel.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vision.growth.comfyui_answers import Ended, StoredFile
from vision.growth.comfyui_client import Server
from vision.growth.comfyui_mishaps import Mishap, MishapError
from vision.png import encode_png

BLANK = encode_png(np.full((1, 1, 3), 128, dtype=np.uint8)).data
SUBFOLDER = "hairmesh"
AGAIN_AFTER_S = 0.2
"""Between two looks whether an interrupted job has ended."""

log = logging.getLogger(__name__)

_OWNER = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KINDS = ("image", "mask")


def check_owner(owner: str) -> str:
    """`owner` if it can be part of names; raises `ValueError`."""
    if not _OWNER.fullmatch(owner):
        raise ValueError("the owner of diffusion jobs is 1 to 64 characters of A-Z a-z 0-9 . _ -")
    return owner


def client_id_of(owner: str, random_hex: str) -> str:
    """The client id of one job; `random_hex` has 16 digits."""
    return f"hairmesh-{owner}-{random_hex}"


def is_of(owner: str) -> Callable[[str], bool]:
    """Tells the client ids of this owner's jobs from all others, those of an owner `<owner>-x` too."""
    pattern = re.compile(rf"hairmesh-{re.escape(owner)}-[0-9a-f]{{16}}")
    return lambda client_id: pattern.fullmatch(client_id) is not None


def upload_name(client_id: str, kind: str) -> StoredFile:
    """Where a job's `image` or `mask` is stored: among the temporary files, which a start of the server removes."""
    return StoredFile(f"{client_id}-{kind}.png", SUBFOLDER, "temp")


@dataclass(slots=True)
class Traces:
    """What one job may have left."""

    client_id: str
    uploads: list[StoredFile]
    """Also those whose upload was not answered."""
    submitted: bool = False
    """Whether a prompt was sent, answered or not."""
    prompt_id: str = ""


def remove(server: Server, traces: Traces, tidy_s: float) -> None:
    """Remove them; raises `MishapError` when the server does not let us, `TimeoutError` when its job does not end."""
    ended: Sequence[Ended] = ()
    if traces.submitted:
        found = _withdraw(server, lambda client_id: client_id == traces.client_id, tidy_s)
        ids = found | {traces.prompt_id} - {""}
        ended = [entry for prompt_id in sorted(ids) if (entry := server.history(prompt_id)) is not None]
    _remove_files(server, ended, traces.uploads)


def remove_of_owner(server: Server, owner: str, tidy_s: float, last: int) -> int:
    """Remove all jobs of an owner among the queue and the `last` ended ones; returns how many there were."""
    is_ours = is_of(owner)
    jobs = {item.client_id for item in server.queue().prompts() if is_ours(item.client_id)}
    if jobs:
        _withdraw(server, is_ours, tidy_s)
    ended = [entry for entry in server.last_ended(last) if is_ours(entry.client_id)]
    jobs |= {entry.client_id for entry in ended}
    _remove_files(server, ended, [upload_name(client_id, kind) for client_id in sorted(jobs) for kind in _KINDS])
    return len(jobs)


def _withdraw(server: Server, is_ours: Callable[[str], bool], tidy_s: float) -> set[str]:
    """Take jobs out of the queue and wait for the end of one that runs; returns the ids that were found there."""
    ends_s = time.monotonic() + tidy_s
    found: set[str] = set()
    while True:
        queue = server.queue()
        pending = [item.prompt_id for item in queue.pending if is_ours(item.client_id)]
        running = [item.prompt_id for item in queue.running if is_ours(item.client_id)]
        found |= {*pending, *running}
        for prompt_id in pending:
            server.drop_pending(prompt_id)
        for prompt_id in running:
            server.interrupt(prompt_id)  # by its id: what runs by now may be somebody else's
        if not pending and not running:
            return found
        if time.monotonic() > ends_s:
            raise TimeoutError("the interrupted job has not ended")
        if running:
            time.sleep(AGAIN_AFTER_S)


def _remove_files(server: Server, ended: Sequence[Ended], uploads: Sequence[StoredFile]) -> None:
    """Overwrite pictures, then forget the entries that name them."""
    refused: list[MishapError] = []
    for file in (*uploads, *(file for entry in ended for file in entry.files)):
        try:
            server.upload(BLANK, file, overwrite=True)
        except MishapError as error:
            if error.mishap is Mishap.UNREACHABLE:
                raise  # nor will it answer for the next one
            refused.append(error)
    for entry in ended:
        server.forget(entry.prompt_id)
    if refused:
        raise refused[0]
