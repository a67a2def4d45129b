"""Runs the face parser: onnxruntime on a CPU, torch in half precision on a GPU.

The official builds of onnxruntime (1.29 and later) report to their maker, and note an id of the machine in the user's
cache folder, unless the environment says otherwise before they are loaded: programs that handle patients' faces have no
such conversations.
"""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from vision import parser_form
from vision.errors import ModelError
from vision.models import ModelFiles

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime

Device = Literal["auto", "cpu", "cuda"]

INPUT_NAME = "crops"
OUTPUT_NAME = "logits"
WEIGHTS_KEY = "weights_sha256"
"""Metadata entry that ties an ONNX file to the weights it was made from."""
CANARY_KEY = "canary_reference"
"""Metadata entry with the answer of those weights to the canary's picture, as JSON."""
_NVIDIA_NODE = Path("/dev/nvidiactl")
"""There while NVIDIA's driver is loaded, whatever it can still do."""
_DIRECTX_NODE = Path("/dev/dxg")
"""There on every Windows with Linux inside, for GPUs of any make or none."""


class ParserRuntime(Protocol):
    """Normalized crops (N, 3, H, W), H and W multiples of 32, to logits (N, 19, H/8, W/8), both float32."""

    @property
    def device(self) -> str:
        """`cpu` or `cuda`."""

    @property
    def version(self) -> str:
        """Name and version of the library that computes."""

    @property
    def canary_reference(self) -> NDArray[np.float64]:
        """(19,), see `vision.onnx_export.reference_answer`."""

    def __call__(self, crops: NDArray[np.float32]) -> NDArray[np.float32]:
        """One forward."""


def load_parser(files: ModelFiles, device: Device) -> ParserRuntime:
    """The parser on `device`; `auto` takes a GPU where there is one. Raises `ModelError`.

    A GPU that the system has lost is an error for `auto` too, where torch was built for GPUs: a worker would else come
    back as a slow one, and nobody would hear of it.
    """
    if device == "cpu" or (device == "auto" and not (_NVIDIA_NODE.exists() or _DIRECTX_NODE.exists())):
        return OnnxParser(files)
    # torch takes two seconds and 300 MB: a worker on a CPU never loads it.
    from vision.torch_parser import TorchParser, cuda_available, cuda_built  # noqa: PLC0415

    if cuda_available():
        return TorchParser(files)
    if device == "cuda":
        raise ModelError("the configuration asks for device cuda, and torch sees no usable GPU")
    if cuda_built() and _NVIDIA_NODE.exists():
        raise ModelError(
            "NVIDIA's driver is loaded, torch is built for its GPUs and sees none that it can use: ask nvidia-smi, or "
            "configure device cpu (DEVICE=cpu) to go without"
        )
    return OnnxParser(files)


class OnnxParser:
    """onnxruntime on the CPUs this process may use."""

    device = "cpu"
    version = f"onnxruntime {version('onnxruntime')}"

    def __init__(self, files: ModelFiles) -> None:
        model = parser_form.load(files)
        try:
            self._session = _session(model)
        except Exception as error:  # onnxruntime's error types are not public
            raise ModelError(
                f"{files.parser_onnx} is whole, and onnxruntime cannot load it ({error}); delete it, and "
                f"{parser_form.remedy(files)}"
            ) from error
        metadata = self._session.get_modelmeta().custom_metadata_map
        if (made_from := metadata.get(WEIGHTS_KEY)) != files.parser_weights_sha256:
            raise ModelError(
                f"{files.parser_onnx} was made from other weights ({made_from}); delete it, and "
                f"{parser_form.remedy(files)}"
            )
        self.weights_sha256 = files.parser_weights_sha256
        self.canary_reference: NDArray[np.float64] = np.array(json.loads(metadata[CANARY_KEY]))

    def __call__(self, crops: NDArray[np.float32]) -> NDArray[np.float32]:
        """See `ParserRuntime`."""
        logits: NDArray[np.float32] = self._session.run(None, {INPUT_NAME: crops})[0]
        return logits


def _session(model: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    # Threads that spin between forwards starve the thread that answers health checks, and gain nothing measurable.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
