"""The pinned answer, and what it must notice."""

from __future__ import annotations

import numpy as np
import pytest

from vision.canary import SIDE_PX, check_landmarks, check_logits, drawn_face
from vision.errors import ModelError
from vision.landmarks import LandmarkDetector
from vision.models import ModelFiles
from vision.parsing import normalized
from vision.runtime import OnnxParser
from vision.types import LABEL_COUNT

pytestmark = pytest.mark.models

OWN_WEIGHTS = "f" * 64


def test_the_test_picture_is_always_the_same() -> None:
    assert drawn_face().shape == (SIDE_PX, SIDE_PX, 3)
    assert np.array_equal(drawn_face(), drawn_face())


def test_good_models_give_the_known_answers(
    detector: LandmarkDetector, parser: OnnxParser, model_files: ModelFiles
) -> None:
    check_landmarks(detector.detect(drawn_face()))
    check_logits(parser(normalized(drawn_face())), model_files.parser_weights_sha256, parser.canary_reference)


def test_own_weights_are_held_to_the_answer_they_gave_when_exported(parser: OnnxParser) -> None:
    logits = parser(normalized(drawn_face()))
    check_logits(logits, OWN_WEIGHTS, parser.canary_reference)
    with pytest.raises(ModelError, match="logits are off by"):
        check_logits(logits, OWN_WEIGHTS, parser.canary_reference + 1)


@pytest.mark.parametrize("broken", ["zeroed", "not a number", "one class dead", "scaled"])
def test_a_broken_parser_is_noticed(broken: str, parser: OnnxParser, model_files: ModelFiles) -> None:
    logits = parser(normalized(drawn_face())).copy()
    match broken:
        case "zeroed":
            logits[:] = 0
        case "not a number":
            logits[0, 3, 2, 2] = np.nan
        case "one class dead":
            logits[:, LABEL_COUNT - 1] = 0
        case _:
            logits *= 0.5
    with pytest.raises(ModelError, match="logits are off by"):
        check_logits(logits, model_files.parser_weights_sha256, parser.canary_reference)


def test_a_blind_landmark_model_is_noticed() -> None:
    with pytest.raises(ModelError, match="finds 0 faces"):
        check_landmarks(())


def test_landmarks_out_of_place_are_noticed(detector: LandmarkDetector) -> None:
    shifted = np.ascontiguousarray(np.roll(drawn_face(), 8, axis=1))
    with pytest.raises(ModelError, match="landmarks are off by"):
        check_landmarks(detector.detect(shifted))
