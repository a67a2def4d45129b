"""Certificates that are replaced on disk while a process uses them: when to read them anew, and when to warn.

Edge and workers look at the files now and then and judge them by their content: written in place, renamed over, or
behind a symbolic link that moved. Certificate and key are two files, and somebody may be between the two: what is not
acceptable gets some time to become whole before it is called wrong, once; until it is good nothing changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path

from hairmesh.pem import Validity

SETTLE_S = 2.0
"""How long unacceptable files must have stayed the same before they are called wrong."""
TELL_EVERY = timedelta(days=1)
"""Between two warnings of one certificate."""


class Look(Enum):
    """What to do about the files now."""

    LEAVE = "leave"
    """They are as they were, or somebody is writing."""
    TRY = "try"
    """Take them over; if they are not acceptable, say nothing yet."""
    JUDGE = "judge"
    """Take them over, or say what is wrong with them."""


class Renewal:
    """When to read one set of files, by a digest of their content. `judged`: what was taken over at the start."""

    def __init__(self, judged: bytes) -> None:
        self._judged = judged
        self._doubted: tuple[bytes, float] | None = None
        """Content that was not acceptable, and since when it has been the same."""

    def look(self, digest: bytes, now_s: float, *, asked: bool = False) -> Look:
        """What to do about this content; who asked hears the verdict at once."""
        if digest == self._judged:
            self._doubted = None
            return Look.JUDGE if asked else Look.LEAVE
        if self._doubted is None or self._doubted[0] != digest:
            self._doubted = digest, now_s
            return Look.JUDGE if asked else Look.TRY
        return Look.JUDGE if asked or now_s - self._doubted[1] >= SETTLE_S else Look.LEAVE

    def judge(self, digest: bytes) -> bool:
        """It was taken over, or called wrong. Whether that is news."""
        is_news = digest != self._judged
        self._judged, self._doubted = digest, None
        return is_news


class Notice:
    """Whether to warn of a certificate now: once a day, from when it should have been replaced."""

    def __init__(self) -> None:
        self._told_at: datetime | None = None

    def is_due(self, validity: Validity, now: datetime) -> bool:
        """Asked as often as one likes."""
        if now < validity.replace_by or (self._told_at is not None and now - self._told_at < TELL_EVERY):
            return False
        self._told_at = now
        return True


def digest(paths: Iterable[Path]) -> bytes:
    """Of what the files hold now; one that cannot be read counts as such."""
    whole = hashlib.sha256()
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError as error:
            content = f"errno {error.errno}".encode()
        whole.update(hashlib.sha256(content).digest())
    return whole.digest()
