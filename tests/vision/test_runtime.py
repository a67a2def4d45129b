"""Where the parser runs: every machine that there is, without any GPU of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from vision import runtime, torch_parser
from vision.errors import ModelError
from vision.models import ModelFiles


class MadeError(Exception):
    """Who was asked to load the files."""


@pytest.mark.parametrize(
    ("device", "nvidia", "directx", "built", "sees", "made"),
    [
        ("cpu", True, False, True, True, "onnx"),
        ("auto", False, False, True, False, "onnx"),
        ("auto", True, False, True, True, "torch"),
        ("auto", False, True, True, True, "torch"),
        ("auto", False, True, True, False, "onnx"),  # a notebook's graphics in Windows
        ("auto", True, False, False, False, "onnx"),  # nobody meant to use it
        ("auto", True, False, True, False, "sees none that it can use"),  # one that fell off the bus
        ("cuda", False, False, True, True, "torch"),
        ("cuda", False, False, False, False, "torch sees no usable GPU"),
        ("cuda", True, False, True, False, "torch sees no usable GPU"),
    ],
)
def test_a_gpu_is_taken_where_there_is_one_and_missed_where_it_is_lost(
    tmp_path: Path,
    model_files: ModelFiles,
    monkeypatch: pytest.MonkeyPatch,
    device: runtime.Device,
    nvidia: bool,
    directx: bool,
    built: bool,
    sees: bool,
    made: str,
) -> None:
    def making(kind: str) -> object:
        def make(_files: ModelFiles) -> None:
            raise MadeError(kind)

        return make

    for name, there in (("_NVIDIA_NODE", nvidia), ("_DIRECTX_NODE", directx)):
        node = tmp_path / name
        if there:
            node.touch()
        monkeypatch.setattr(runtime, name, node)
    monkeypatch.setattr(torch_parser, "cuda_built", lambda: built)
    monkeypatch.setattr(torch_parser, "cuda_available", lambda: sees)
    monkeypatch.setattr(torch_parser, "TorchParser", making("torch"))
    monkeypatch.setattr(runtime, "OnnxParser", making("onnx"))
    with pytest.raises((MadeError, ModelError), match=made):
        runtime.load_parser(model_files, device)
