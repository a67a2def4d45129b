"""The parser as the pipeline runs it on a CPU, against the network itself in torch, single precision.

    python bench/parsing.py [--rounds N]

The crops are those that the pipeline cuts from the test portraits, one to three from each. `label_agreement_pct` is the
share of cells of the logits with the same most probable class; `speed_vs_torch` the median over the rounds of torch's
time for a crop over that of the runtime, one right after the other on as many threads as the process may use. Shared
portraits that are not here are left out.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray

from bench.harness import BenchError, console, emit, median_ratio, seconds, table
from bench.portraits.pictures import ADULTS, HIDDEN, STUDIO, path_of, read_photo
from vision.bisenet import BiSeNet
from vision.landmarks import LandmarkDetector
from vision.models import default_cache_dir, locate
from vision.onnx_export import load_network
from vision.parsing import parse
from vision.runtime import OnnxParser

Floats = NDArray[np.float32]


def crops_of(picture: str, detector: LandmarkDetector, parser: OnnxParser) -> list[Floats]:
    """(1, 3, 512, 512) each, as the pipeline hands them to the parser."""
    seen: list[Floats] = []

    def forward(crop: Floats) -> Floats:
        seen.append(crop)
        return parser(crop)

    photo = read_photo(picture)
    parse(photo, detector.find(photo.rgb)[0], forward, lambda: None)
    return seen


def with_torch(network: BiSeNet, crop: Floats) -> Floats:
    """(1, 19, 64, 64) logits."""
    with torch.inference_mode():
        logits: Floats = network(torch.from_numpy(crop)).numpy()
    return logits


def main() -> None:
    """Compare on every crop, then time on the first ones."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=15)
    args = arguments.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    models = locate(default_cache_dir())
    parser, network = OnnxParser(models), load_network(models.parser_weights)
    detector = LandmarkDetector(models.face_landmarker)
    here = [picture for picture in (*STUDIO, *ADULTS, *HIDDEN) if path_of(picture).exists()]
    if not here:
        raise BenchError("none of the test portraits is here")
    rows: list[list[str]] = []
    equal: list[float] = []
    crops: list[Floats] = []
    for picture in here:
        of_picture = crops_of(picture, detector, parser)
        answers = [(parser(crop), with_torch(network, crop)) for crop in of_picture]
        same = [float((fast.argmax(axis=1) == slow.argmax(axis=1)).mean()) for fast, slow in answers]
        apart = [float(np.abs(fast - slow).max()) for fast, slow in answers]
        rows.append([picture, str(len(of_picture)), f"{100 * min(same):.3f}", f"{max(apart):.1e}"])
        equal += same
        crops += of_picture
    detector.close()
    table("Runtime against torch", ["picture", "crops", "equal labels, % (worst)", "logits off by"], rows)

    fast_s, slow_s = [], []
    for index in range(args.rounds):
        crop = crops[index % len(crops)]
        fast_s.append(seconds(partial(parser, crop)))
        slow_s.append(seconds(partial(with_torch, network, crop)))
    console.print(f"a crop: {1000 * median(fast_s):.0f} ms, torch {1000 * median(slow_s):.0f} ms")
    emit(
        {
            "crops": len(crops),
            "label_agreement_pct": 100 * float(np.mean(equal)),
            "label_agreement_min_pct": 100 * min(equal),
            "speed_vs_torch": median_ratio(slow_s, fast_s),
        }
    )


if __name__ == "__main__":
    main()
