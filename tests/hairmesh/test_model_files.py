"""`hairmesh models` where an edge with vision is, without torch, and with parser weights of the operator's own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.hairmesh.extras import run_with
from vision.models import FACE_LANDMARKER, FACE_PARSER, ModelFiles, placed
from vision.parser_form import sealed

OWN_SHA256 = "ab" * 32
PINNED_FORM = "parser-468e13ca13a9b43c.onnx"

pytestmark = pytest.mark.models


@pytest.fixture
def folder(tmp_path: Path, model_files: ModelFiles) -> Path:
    """With the landmarker alone; nothing else can be had."""
    models = tmp_path / "models"
    models.mkdir()
    shutil.copy(model_files.face_landmarker, models / FACE_LANDMARKER.name)
    return models


def at_an_edge(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit status and what is said, where `hairmesh[edge-vision]` is installed and no index has anything."""
    (empty := folder.parent / "index").mkdir(exist_ok=True)
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(empty), "PIP_CONFIG_FILE": "/dev/null"}
    done = run_with("edge-vision", "hairmesh", "models", *arguments, "--dir", folder, folder=folder.parent, **offline)
    return done.returncode, done.stdout, done.stderr


def test_an_edge_is_told_which_file_to_copy_and_from_where(folder: Path) -> None:
    status, _, told = at_an_edge(folder, "fetch")
    assert status == 1
    assert (
        f"{folder / PINNED_FORM} is missing; `hairmesh models fetch` makes it on a machine with hairmesh[worker]"
        in told
    )
    assert "--without-parser" in told
    status, said, _ = at_an_edge(folder, "verify")
    assert status == 1
    assert f"{PINNED_FORM}: {folder / PINNED_FORM} is missing" in said


def test_an_edge_with_that_file_has_what_it_needs(folder: Path, model_files: ModelFiles) -> None:
    shutil.copy(model_files.parser_onnx, folder / PINNED_FORM)
    assert at_an_edge(folder, "fetch")[0] == 0
    status, said, _ = at_an_edge(folder, "verify")
    assert (status, said) == (0, f"{FACE_LANDMARKER.name}: good\n{PINNED_FORM}: good\n")
    (folder / PINNED_FORM).write_bytes(b"damaged")
    assert at_an_edge(folder, "verify")[0] == 1


def test_whoever_may_not_use_the_weights_does_without_them(folder: Path) -> None:
    assert at_an_edge(folder, "fetch", "--without-parser")[0] == 0
    status, said, _ = at_an_edge(folder, "verify", "--without-parser")
    assert (status, said) == (0, f"{FACE_LANDMARKER.name}: good\n")


def test_the_form_of_weights_of_ones_own_is_known_by_their_hash(folder: Path) -> None:
    form = placed(folder, OWN_SHA256).parser_onnx
    form.write_bytes(sealed(b"own", b"0" * 64))
    status, said, _ = at_an_edge(folder, "verify", "--parser-weights-sha256", OWN_SHA256.upper())
    assert (status, said) == (0, f"{FACE_LANDMARKER.name}: good\n{form.name}: good\n")
    form.unlink()
    status, said, _ = at_an_edge(folder, "verify", "--parser-weights-sha256", OWN_SHA256)
    assert status == 1
    assert "`hairmesh models fetch --parser-weights FILE` makes it on a machine with hairmesh[worker]" in said


def test_neither_and_ones_own_contradict_each_other(folder: Path) -> None:
    for own in (("verify", "--parser-weights-sha256", OWN_SHA256), ("fetch", "--parser-weights", __file__)):
        assert at_an_edge(folder, *own, "--without-parser")[0] == 64
    assert not (folder / FACE_PARSER.name).exists()
