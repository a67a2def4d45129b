"""What comes back, as files: one JSON record for each photo, its pictures beside it, and a list of what failed.

The record is written last. Where it is, everything it names is there too, and whole.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hairmesh.analyze.folder import in_use, make
from hairmesh.analyze.photos import Photo
from hairmesh.client.files import saved_whole

Record = Mapping[str, Any]


def sha256_of(path: Path) -> str:
    """SHA-256 of the photo's bytes. Raises `OSError`, also for a pipe, which could be read only once."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is no regular file")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Records:
    """The records of one call in one output folder."""

    def __init__(self, out: Path, call: str, asked: Mapping[str, str]) -> None:
        """`asked`: the parameters, as the record tells them."""
        self._out = out
        self._call = call
        self._asked = dict(asked)
        self.failures = out / f"failures.{call}.json"

    def done(self, photo: Photo, sha256: str) -> Record | None:
        """The record of these bytes and these parameters, with all of its pictures; None where there is none."""
        record = self._read(photo)
        if record is None or (record.get("photo_sha256"), record.get("asked")) != (sha256, self._asked):
            return None
        folder = self.path(photo).parent
        return record if all((folder / name).is_file() for name in record["pictures"].values()) else None

    def path(self, photo: Photo) -> Path:
        """Where the record lies."""
        return self._beside(photo, "json")

    def picture(self, photo: Photo, name: str) -> Path:
        """Where a picture lies."""
        return self._beside(photo, f"{name}.png")

    def prepare(self, photo: Photo) -> None:
        """Make the folder."""
        make(self.path(photo).parent)

    def in_use(self, photos: Iterable[Photo]) -> AbstractContextManager[None]:
        """While results are written: see `folder.in_use`."""
        return in_use(self._out, {self._out, *(self.path(photo).parent for photo in photos)})

    def write(
        self, photo: Photo, sha256: str, request_id: str, answer: Mapping[str, Any], pictures: Mapping[str, Path]
    ) -> tuple[Record, bool]:
        """Write the record; it, and whether it took the place of an earlier one, whose other pictures are removed."""
        former = self._read(photo)
        record: Record = {
            "photo": str(photo.path),
            "photo_sha256": sha256,
            "call": self._call,
            "asked": self._asked,
            "answered_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "request_id": request_id,
            "pictures": {name: path.name for name, path in pictures.items()},
            "answer": answer,
        }
        _write(self.path(photo), record)
        for name in former["pictures"] if former else ():
            if name not in pictures:
                self.picture(photo, name).unlink(missing_ok=True)
        return record, former is not None

    def asked_otherwise(self, photo: Photo) -> str | None:
        """How the parameters of the answer that lies there differ from these; None where they do not, or none lies."""
        record = self._read(photo)
        if record is None:
            return None
        former = record.get("asked")
        former = former if isinstance(former, dict) else {}
        names = [name for name in sorted({*former, *self._asked}) if former.get(name) != self._asked.get(name)]
        values = ((name, former.get(name, "not given"), self._asked.get(name, "not given")) for name in names)
        return "; ".join(f"{name}: {there} there, {here} here" for name, there, here in values) or None

    def write_failures(self, failures: Sequence[Mapping[str, Any]]) -> None:
        """What failed in this run; no file when nothing did."""
        if failures:
            make(self._out)
            _write(self.failures, failures)
        else:
            self.failures.unlink(missing_ok=True)

    def _beside(self, photo: Photo, end: str) -> Path:
        place = self._out / photo.place
        return place.with_name(f"{place.name}.{self._call}.{end}")

    def _read(self, photo: Photo) -> Record | None:
        """A record; None where there is none that this program has written."""
        try:
            record = json.loads(self.path(photo).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        ours = isinstance(record, dict) and isinstance(record.get("pictures"), dict)
        return record if ours else None


def as_json(content: object, indent: int | None = None) -> bytes:
    """JSON that people can read, whatever bytes the names of photos are made of."""
    return json.dumps(content, ensure_ascii=False, indent=indent).encode(errors="backslashreplace")


def _write(path: Path, content: object) -> None:
    with saved_whole(path) as file:
        file.write(as_json(content, indent=2) + b"\n")
