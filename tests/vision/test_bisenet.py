"""The parser's network, its weights, and its ONNX form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.vision.conftest import resized
from vision.bisenet import BiSeNet
from vision.errors import ModelError
from vision.models import ModelFiles
from vision.onnx_export import load_network
from vision.parsing import normalized
from vision.runtime import OnnxParser, load_parser
from vision.types import RgbImage


def test_shape_of_the_answer() -> None:
    with torch.inference_mode():
        assert BiSeNet().eval()(torch.zeros(2, 3, 128, 96)).shape == (2, 19, 16, 12)


@pytest.mark.parametrize("content", [b"nothing", b""])
def test_weights_that_are_none_are_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "own.pth"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"own\.pth does not hold"):
        load_network(path)


def test_weights_of_another_network_are_named(tmp_path: Path) -> None:
    path = tmp_path / "own.pth"
    torch.save({"conv.weight": torch.zeros(1)}, path)
    with pytest.raises(ModelError, match=r"own\.pth does not hold"):
        load_network(path)


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.pth"
    torch.save({"conv.weight": Trap(tmp_path / "sprung")}, path)
    with pytest.raises(ModelError):
        load_network(path)
    assert not (tmp_path / "sprung").exists()


class Trap:
    """Makes a file when unpickled."""

    def __init__(self, sprung: Path) -> None:
        self._sprung = sprung

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return (Path.touch, (self._sprung,))


@pytest.mark.models
def test_onnx_gives_what_torch_gives(model_files: ModelFiles, parser: OnnxParser, studio_rgb: RgbImage) -> None:
    crop = normalized(resized(studio_rgb, 512))
    with torch.inference_mode():
        reference = load_network(model_files.parser_weights)(torch.from_numpy(crop)).numpy()
    found = parser(crop)
    assert found.shape == (1, 19, 64, 64)
    assert np.abs(found - reference).max() < 0.02 * reference.std()
    assert (found.argmax(axis=1) == reference.argmax(axis=1)).mean() > 0.999


@pytest.mark.models
@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_device_without_a_gpu(model_files: ModelFiles) -> None:
    assert load_parser(model_files, "auto").device == "cpu"
    with pytest.raises(ModelError, match="device cuda"):
        load_parser(model_files, "cuda")
