"""Removing what a job leaves on the server: its place in the queue, its history entry, its pictures.

ComfyUI has no call that deletes a file. It has one that overwrites: an upload with `overwrite` replaces the bytes under
a name in any of its three folders, outputs included; what is left is one grey pixel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from vision.growth.comfyui_answers import Ended, StoredFile
from vision.growth.comfyui_client import Server
from vision.growth.comfyui_mishaps import Mishap, MishapError
from vision.png import encode_png

BLANK = encode_png(np.full((1, 1, 3), 128, dtype=np.uint8)).data
SUBFOLDER = "hairmesh"
LAST_ENDED = 1000
"""Ended jobs of anybody among which one is looked for whose prompt id is not known."""

_CLIENT_ID = re.compile(r"hairmesh-[0-9a-f]{32}")
_KINDS = ("image", "mask")


def client_id_of(random_hex: str) -> str:
    """The client id of one job; `random_hex` has 32 digits, so that nobody else's can be the same."""
    return f"hairmesh-{random_hex}"


def is_client_id(text: str) -> bool:
    """Whether it can be one of ours."""
    return _CLIENT_ID.fullmatch(text) is not None


def upload_name(client_id: str, kind: str) -> StoredFile:
    """Where a job's `image` or `mask` is stored: among the temporary files, which a start of the server removes."""
    return StoredFile(f"{client_id}-{kind}.png", SUBFOLDER, "temp")


@dataclass(slots=True)
class Traces:
    """What one job may have left. Filled by the threads that send, read by the one that removes."""

    client_id: str
    uploads: set[StoredFile] = field(default_factory=set)
    """Also those whose upload was not answered."""
    submitted: bool = False
    """Whether a prompt was sent, answered or not."""
    prompt_id: str = ""
    sending: list[Future[Any]] = field(default_factory=list)
    """Requests that may still reach the server."""

    @classmethod
    def of_unknown(cls, client_id: str) -> Self:
        """All that a job can have left of which nothing but its client id is known any more."""
        return cls(client_id, {upload_name(client_id, kind) for kind in _KINDS}, submitted=True)

    @property
    def under_way(self) -> bool:
        """Whether something may still come to what is there."""
        return not all(each.done() for each in self.sending)


def remove(server: Server, traces: Traces) -> bool:
    """Remove what can be removed now; whether nothing is left. Raises `MishapError` when the server does not let us.

    Pictures of the patient first: they are there at once, while a job may take its time to end.
    """
    under_way = traces.under_way  # before: what arrives after this look is for the next time
    refused = _overwrite(server, tuple(traces.uploads))
    if traces.submitted:
        if not _withdrawn(server, traces):
            return False
        for ended in _ended(server, traces):
            stays = _overwrite(server, [file for file in ended.files if _is_ours(file, traces.client_id)])
            if not stays:  # else the entry is needed once more, to know what to overwrite
                server.forget(ended.prompt_id)
            refused += stays
    if refused:
        raise refused[0]
    return not under_way


def _withdrawn(server: Server, traces: Traces) -> bool:
    """Take the job out of the queue, or interrupt it; whether it was not there any more."""
    queue = server.queue()
    running = [item.prompt_id for item in queue.running if item.client_id == traces.client_id]
    pending = [item.prompt_id for item in queue.pending if item.client_id == traces.client_id]
    for prompt_id in pending:
        server.drop_pending(prompt_id)
    for prompt_id in running:
        server.interrupt(prompt_id)  # by its id: what runs by now may be somebody else's
    traces.prompt_id = next(iter((*running, *pending)), traces.prompt_id)
    return not running and not pending


def _ended(server: Server, traces: Traces) -> list[Ended]:
    if traces.prompt_id:
        ended = server.history(traces.prompt_id)
        return [] if ended is None else [ended]
    return [entry for entry in server.last_ended(LAST_ENDED) if entry.client_id == traces.client_id]


def _is_ours(file: StoredFile, client_id: str) -> bool:
    """Whether a file that a node of ours names was made for this job: a node may also show what lay there before."""
    return file.type == "temp" or client_id in file.name


def _overwrite(server: Server, files: Iterable[StoredFile]) -> list[MishapError]:
    """All of them, whatever becomes of one; what the server did not let us."""
    refused: list[MishapError] = []
    for file in files:
        try:
            server.upload(BLANK, file)
        except MishapError as error:
            if error.mishap is Mishap.UNREACHABLE:
                raise  # nor will it answer for the next one
            refused.append(error)
    return refused
