"""The parser's ONNX form: whole, or made anew; in memory where the folder takes no files."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vision import models, parser_form
from vision.errors import ModelError
from vision.models import FileState, ModelFiles
from vision.onnx_export import export
from vision.parser_form import is_whole, sealed
from vision.runtime import OnnxParser

EMPTY_SEAL = b"an entry" + b"0" * 64


@given(st.binary(max_size=300), st.data())
def test_a_sealed_model_is_whole_and_any_change_breaks_it(model: bytes, data: st.DataObject) -> None:
    whole = sealed(model, EMPTY_SEAL)
    assert whole.startswith(model + b"an entry")
    assert is_whole(whole)
    at = data.draw(st.integers(0, len(whole) - 1))
    assert not is_whole(whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :])
    assert not is_whole(whole[:at])


@given(st.binary(max_size=200))
@example(b"")
@example(b"0" * 64)
def test_what_was_never_sealed_is_not_whole(data: bytes) -> None:
    assert not is_whole(data)


@pytest.fixture
def files(tmp_path: Path) -> ModelFiles:
    return ModelFiles(tmp_path / "task", tmp_path / "weights.pth", "ab" * 32, tmp_path)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Forms made so far, without the seconds of a real export."""
    forms: list[bytes] = []

    def make(_files: ModelFiles) -> bytes:
        forms.append(sealed(b"form %d" % len(forms), EMPTY_SEAL))
        return forms[-1]

    monkeypatch.setattr(parser_form, "_make", make)
    return forms


def test_a_form_is_made_once_and_kept(files: ModelFiles, made: list[bytes], caplog: pytest.LogCaptureFixture) -> None:
    assert parser_form.look(files)[0] is FileState.MISSING
    first = parser_form.load(files)
    assert parser_form.load(files) == first == files.parser_onnx.read_bytes()
    assert files.parser_onnx.stat().st_mode & 0o777 == 0o644, "whoever made it, every service reads it"
    parser_form.keep(files)
    assert parser_form.look(files) == (FileState.GOOD, "")
    assert len(made) == 1
    assert list(files.derived_dir.iterdir()) == [files.parser_onnx]
    assert not caplog.records


@pytest.mark.parametrize("act", [parser_form.load, parser_form.keep])
def test_a_damaged_form_is_named_and_made_anew(files: ModelFiles, made: list[bytes], act: object) -> None:
    assert callable(act)
    whole = parser_form.load(files)
    for damaged in (whole[:-1], b"\0" + whole[1:], b"", b"an unsealed one"):
        files.parser_onnx.write_bytes(damaged)
        state, detail = parser_form.look(files)
        assert state is FileState.WRONG
        assert str(files.parser_onnx) in detail
        assert "hairmesh models fetch" in detail
        act(files)
        assert files.parser_onnx.read_bytes() == made[-1]
    assert len(made) == 5


def test_a_folder_that_takes_no_files_costs_one_warning(
    tmp_path: Path, made: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "folder").write_bytes(b"a file, so that nothing can be written below it, by anyone")
    files = ModelFiles(tmp_path / "task", tmp_path / "weights.pth", "ab" * 32, tmp_path / "folder")
    with caplog.at_level(logging.WARNING):
        assert parser_form.load(files) == made[0]
    (record,) = caplog.records
    assert str(files.parser_onnx) in record.getMessage()
    assert "hairmesh models fetch" in record.getMessage()


@pytest.mark.models
def test_a_parser_loads_from_a_folder_of_the_pinned_files_alone(
    model_files: ModelFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "folder").write_bytes(b"nothing can be written below it")
    files = ModelFiles(
        model_files.face_landmarker, model_files.parser_weights, model_files.parser_weights_sha256, tmp_path / "folder"
    )
    assert OnnxParser(files).canary_reference.shape == (19,)
    assert len(caplog.records) == 1


@pytest.mark.models
def test_a_real_form_that_is_damaged_heals(model_files: ModelFiles, tmp_path: Path) -> None:
    files = ModelFiles(
        model_files.face_landmarker, model_files.parser_weights, model_files.parser_weights_sha256, tmp_path
    )
    parser_form.keep(files)
    made = bytearray(files.parser_onnx.read_bytes())
    middle = len(made) // 2  # among the weights: such a file loads, and computes nonsense
    made[middle : middle + 4000] = b"\x7f" * 4000
    files.parser_onnx.write_bytes(made)
    OnnxParser(files)
    assert parser_form.look(files)[0] is FileState.GOOD


@pytest.mark.models
def test_a_form_of_other_weights_is_refused(model_files: ModelFiles, tmp_path: Path) -> None:
    files = ModelFiles(
        model_files.face_landmarker, model_files.parser_weights, model_files.parser_weights_sha256, tmp_path
    )
    files.parser_onnx.write_bytes(export(model_files.parser_weights, "0" * 64))
    with pytest.raises(ModelError, match="made from other weights"):
        OnnxParser(files)


def test_verify_tells_of_the_form_too(tmp_path: Path) -> None:
    derived = models.verify_derived(tmp_path)
    assert derived.state is FileState.MISSING
    derived.path.write_bytes(b"damaged")
    assert models.verify_derived(tmp_path).state is FileState.WRONG


def test_without_torch_the_file_and_the_remedy_are_named(files: ModelFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vision.onnx_export", None)
    with pytest.raises(ModelError, match=r"parser-abab.*hairmesh\[worker\]"):
        parser_form.load(files)
