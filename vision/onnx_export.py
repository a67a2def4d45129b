"""The parser's weights as an ONNX model, made once on this machine, for the faster CPU runtime."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray

from vision.bisenet import INPUT_SIDE_PX, TRAINING_ONLY, BiSeNet
from vision.canary import drawn_face, mean_logits
from vision.errors import ModelError
from vision.parser_form import SEAL_KEY, sealed
from vision.parsing import normalized
from vision.runtime import CANARY_KEY, INPUT_NAME, OUTPUT_NAME, WEIGHTS_KEY

_OPSET = 17


def load_network(weights: Path) -> BiSeNet:
    """The network with `weights`, on the CPU, in evaluation mode. Raises `ModelError` when they do not fit."""
    try:
        state: dict[str, Any] = torch.load(weights, map_location="cpu", weights_only=True)
        network = BiSeNet()
        network.load_state_dict({name: value for name, value in state.items() if not name.startswith(TRAINING_ONLY)})
    except Exception as error:
        raise ModelError(f"{weights} does not hold this parser's weights: {error}") from error
    return network.eval()


def reference_answer(network: BiSeNet) -> NDArray[np.float64]:
    """(19,): the network's mean logits for the canary's picture, in single precision on the CPU."""
    with torch.inference_mode():
        return mean_logits(network(torch.from_numpy(normalized(drawn_face()))).numpy())


def export(weights: Path, weights_sha256: str) -> bytes:
    """The ONNX form of `weights`, sealed. Input height and width stay free."""
    network = load_network(weights)
    example = torch.zeros(1, 3, INPUT_SIDE_PX, INPUT_SIDE_PX)
    out = io.BytesIO()
    with warnings.catch_warnings():
        # The exporter that replaces this one needs three more packages; torch is pinned, so this one stays.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            network,
            (example,),
            out,  # type: ignore[arg-type]  # a path, says the signature; this exporter takes files
            dynamo=False,
            opset_version=_OPSET,
            input_names=[INPUT_NAME],
            output_names=[OUTPUT_NAME],
            dynamic_axes={name: {0: "n", 2: "h", 3: "w"} for name in (INPUT_NAME, OUTPUT_NAME)},
        )
    model = onnx.load_from_string(out.getvalue())
    reference = json.dumps(reference_answer(network).tolist())
    onnx.helper.set_model_props(model, {WEIGHTS_KEY: weights_sha256, CANARY_KEY: reference})
    seal = onnx.ModelProto()
    onnx.helper.set_model_props(seal, {SEAL_KEY: "0" * 64})
    return sealed(model.SerializeToString(), seal.SerializeToString())
