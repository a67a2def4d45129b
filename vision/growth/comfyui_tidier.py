"""The thread that removes what jobs have left on a server: no call waits for it, and it does not give up while the
process lives.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vision.growth.comfyui_client import Server
from vision.growth.comfyui_journal import Journal
from vision.growth.comfyui_mishaps import Mishap, MishapError
from vision.growth.comfyui_news import News
from vision.growth.comfyui_tidy import Traces, client_id_of, remove

SOON_S = 0.2
"""Between two looks whether an interrupted job has ended: each time twice as long …"""
LATE_S = 30.0
"""… until it is this."""
TOLD_AFTER_S = 5.0
"""What is left for longer is told."""
RUNS_ON = "its job has not ended"


@dataclass(slots=True)
class _Left:
    """What waits to be removed."""

    traces: Traces
    since_s: float
    told: bool = False
    """Whether somebody was told, or wants to know: then its removal is news too."""


class Tidier:
    """Removes traces until nothing is left of them. Its methods belong to the thread that grows."""

    def __init__(self, server: Server, folder: Path | None, url: str, news: News) -> None:
        """`folder` keeps the journal of open jobs; None: what is left when the process is killed stays there."""
        self._server = server
        self._news = news
        self._problem = ""
        self._told: tuple[int, str] = (0, "")
        self._woken = threading.Condition()
        self._new: list[_Left] = []
        self._left: list[_Left] = []
        """The tidier's own."""
        self._ends_s: float | None = None
        """When to give up, once the process ends."""
        self._journal: Journal | None = None
        if folder is not None:
            self._note(lambda: self._open(folder, url))
        self._thread = threading.Thread(target=self._run, name="comfyui tidier", daemon=True)
        self._thread.start()

    def begin(self) -> Traces:
        """A job begins: a name for it, noted before anything of it is on the server."""
        traces = Traces(client_id_of(secrets.token_hex(16)))
        if journal := self._journal:
            self._note(lambda: journal.begin(traces.client_id))
        return traces

    def take(self, traces: Traces) -> None:
        """The job is over, however it ended."""
        with self._woken:
            self._new.append(_Left(traces, time.monotonic()))
            self._woken.notify()

    def close(self, timeout_s: float) -> None:
        """Remove what is left within `timeout_s`; what remains is the next process's."""
        with self._woken:
            self._ends_s = time.monotonic() + timeout_s
            self._woken.notify()
        self._thread.join(timeout_s)
        self._server.close()
        if journal := self._journal:
            self._note(journal.close)
        if left := len(self._left) + len(self._new):
            self._news.leftovers_wait(left, self._problem)

    def _open(self, folder: Path, url: str) -> None:
        self._journal = Journal(folder, url)
        now_s = time.monotonic()
        self._new += [_Left(Traces.of_unknown(name), now_s, told=True) for name in self._journal.adopt()]

    def _note(self, what: Callable[[], None]) -> None:
        try:
            what()
        except OSError as error:
            self._news.journal_missing(error.strerror or type(error).__name__)

    def _run(self) -> None:
        pause_s = SOON_S
        while self._goes_on():
            if self._waited(pause_s):
                pause_s = SOON_S
            self._round()
            pause_s = min(pause_s * 2, LATE_S)

    def _goes_on(self) -> bool:
        with self._woken:
            if self._ends_s is None:
                return True
            return bool(self._left or self._new) and time.monotonic() < self._ends_s

    def _waited(self, pause_s: float) -> bool:
        """Until there is something to do; whether there is something new."""
        with self._woken:
            if self._ends_s is not None:
                self._woken.wait(0.0 if self._new else SOON_S)
            else:
                self._woken.wait_for(lambda: self._new or self._ends_s is not None, pause_s if self._left else None)
            new, self._new = self._new, []
            self._left += new
        return bool(new)

    def _round(self) -> None:
        """One attempt at each, those that came last first; one that does not go keeps no other there."""
        gone: list[_Left] = []
        self._problem = RUNS_ON
        for each in reversed(self._left):
            try:
                if remove(self._server, each.traces):
                    gone.append(each)
            except Exception as error:  # noqa: BLE001  (whatever it is: the faces of others are not to stay for it)
                self._problem = str(error) if isinstance(error, MishapError) else type(error).__name__
                if isinstance(error, MishapError) and error.mishap is Mishap.UNREACHABLE:
                    break
        self._left = [each for each in self._left if each not in gone]
        if journal := self._journal:
            for each in gone:
                self._note(lambda each=each: journal.end(each.traces.client_id))  # type: ignore[misc]
        self._tell(sum(each.told for each in gone))

    def _tell(self, removed: int) -> None:
        if removed:
            self._news.leftovers_removed(removed)
        old_s = time.monotonic() - TOLD_AFTER_S
        waiting = [each for each in self._left if each.since_s <= old_s]
        told = (len(waiting), self._problem)
        if waiting and told != self._told:
            self._news.leftovers_wait(*told)
            for each in waiting:
                each.told = True
        self._told = told
