"""The face parser on a GPU: torch, half precision, channels last."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from vision.bisenet import INPUT_SIDE_PX
from vision.models import ModelFiles
from vision.onnx_export import load_network, reference_answer


def cuda_available() -> bool:
    """Whether torch can compute on a GPU here."""
    return torch.cuda.is_available()


def cuda_built() -> bool:
    """Whether this torch could, on another machine or with another driver."""
    return torch.version.cuda is not None


class TorchParser:
    """See `vision.runtime.ParserRuntime`. Made and used by one thread."""

    device = "cuda"
    version = f"torch {torch.__version__}"

    def __init__(self, files: ModelFiles) -> None:
        torch.backends.cudnn.benchmark = True
        network = load_network(files.parser_weights)
        self.canary_reference = reference_answer(network)
        self._network = network.to("cuda", torch.float16, memory_format=torch.channels_last)  # type: ignore[call-overload]
        blank = np.zeros((1, 3, INPUT_SIDE_PX, INPUT_SIDE_PX), dtype=np.float32)
        for _ in range(3):  # cuDNN picks its kernels during the first calls
            self(blank)

    def __call__(self, crops: NDArray[np.float32]) -> NDArray[np.float32]:
        """One forward; returns when the answer is in main memory."""
        with torch.inference_mode():
            batch = torch.from_numpy(crops).to("cuda", torch.float16, memory_format=torch.channels_last)
            logits: NDArray[np.float32] = self._network(batch).float().cpu().numpy()
        return logits
