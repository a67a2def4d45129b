"""The parser's ONNX form, made from the weights on this machine: found whole, or made anew.

The file ends with the SHA-256 of all before: one damaged on the disk is told from a good one before it computes.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
from importlib.util import find_spec
from pathlib import Path

from vision.errors import ModelError
from vision.models import FACE_PARSER, FileState, ModelFiles, put_in_place

SEAL_KEY = "sha256"
"""Metadata entry whose value, the last bytes of the file, is the hash of all bytes before it."""
_DIGITS = 64

log = logging.getLogger(__name__)


def sealed(model: bytes, empty_seal: bytes) -> bytes:
    """A serialized model with its hash at the end.

    `empty_seal` is a serialized model that holds nothing but the entry `SEAL_KEY` with as many zeros as the hash has
    digits. Messages of protobuf, one after the other, are read as one.
    """
    body = model + empty_seal[:-_DIGITS]
    return body + _digest(body)


def is_whole(data: bytes) -> bool:
    """Whether `data` ends with the hash of what is before."""
    view = memoryview(data)
    return len(data) > _DIGITS and _digest(view[:-_DIGITS]) == view[-_DIGITS:]


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def can_be_made() -> bool:
    """Whether what makes it is installed here: torch and onnx, which take seconds to load."""
    return all(find_spec(name) is not None for name in ("torch", "onnx"))


def look(files: ModelFiles) -> tuple[FileState, str]:
    """What is at `files.parser_onnx`, and in words what is wrong with it and what to do."""
    found = _read(files.parser_onnx)
    if found is None:
        return FileState.MISSING, f"{files.parser_onnx} is missing; {remedy(files)}"
    if not is_whole(found):
        return FileState.WRONG, f"{files.parser_onnx} is damaged; {remedy(files)}"
    return FileState.GOOD, ""


def remedy(files: ModelFiles) -> str:
    """What to do where the form is missing or bad."""
    own = "" if files.parser_weights_sha256 == FACE_PARSER.sha256 else " --parser-weights FILE"
    elsewhere = "" if can_be_made() else " on a machine with hairmesh[worker]: copy it from there"
    return f"`hairmesh models fetch{own}` makes it{elsewhere}"


def keep(files: ModelFiles) -> None:
    """Have the form on the disk, made now (some seconds) unless a whole one is there.

    Raises `ModelError` when it cannot be made, `OSError` when it cannot be written.
    """
    if look(files)[0] is not FileState.GOOD:
        _write(files.parser_onnx, _make(files))


def load(files: ModelFiles) -> bytes:
    """The form, whole. One that is missing or damaged is made anew, and kept where the folder allows it.

    Raises `ModelError` when it cannot be made.
    """
    found = _read(files.parser_onnx)
    if found is not None and is_whole(found):
        return found
    made = _make(files)
    try:
        _write(files.parser_onnx, made)
    except OSError as error:
        log.warning(
            "%s cannot be written (%s): the parser's ONNX form is made at every start and kept in memory alone; "
            "`hairmesh models fetch`, run where the folder is writable, makes it once",
            files.parser_onnx,
            error.strerror,
        )
    return made


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        return b""  # there, and not readable: as good as damaged


def _make(files: ModelFiles) -> bytes:
    try:
        from vision.onnx_export import export  # noqa: PLC0415  (torch takes seconds to load, and only this needs it)
    except ImportError as error:
        raise ModelError(
            f"{files.parser_onnx} is missing or damaged, and making it takes torch and onnx, which are not installed "
            f"({error}); install hairmesh[worker]"
        ) from error
    return export(files.parser_weights, files.parser_weights_sha256)


def _write(path: Path, data: bytes) -> None:
    """It is there whole or not at all."""
    with tempfile.TemporaryDirectory(prefix=".export-", dir=path.parent) as scratch:
        part = Path(scratch) / path.name
        part.write_bytes(data)
        put_in_place(part, path)
