"""The demonstration's pictures and tables; the whole of it runs in tests/e2e."""

from __future__ import annotations

import io

from hair.analysis.v1.measure_pb2 import Measurement
from PIL import Image
from rich.console import Console

from hairmesh.demo import measurement_table, quantities
from hairmesh.demo_inputs import bad_inputs, studio_portrait

LENGTH = {
    "px": 500.0,
    "mm": 61.25,
    "interval_mm": {"low": 57.0, "high": 65.5},
    "interval_same_person_mm": {"low": 60.0, "high": 62.5},
    "causes_mm": {"population_mm": 3.9, "fit_mm": 0.8, "pose_mm": 0.6, "segmentation_mm": 0.7},
    "ratio": 0.333,
    "ratio_perspective_corrected": 0.331,
    "ratio_of": "face_height",
    "angle_deg": None,
    "norms": [{"low": 55.4, "high": 61.4, "unit": "mm", "population": "adults", "source": "a paper"}],
    "unavailable_reason": None,
}
ANGLE = {
    **LENGTH,
    "px": None,
    "mm": None,
    "interval_mm": None,
    "causes_mm": None,
    "ratio": None,
    "ratio_perspective_corrected": None,
    "angle_deg": 71.3,
    "norms": [],
}
HIDDEN = {**ANGLE, "angle_deg": None, "unavailable_reason": "HAIRLINE_OCCLUDED"}


def test_table_shows_value_interval_ratio_and_norm() -> None:
    table = measurement_table({"thirds": {"upper": LENGTH}, "angle": ANGLE, "face_height": HIDDEN})
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(table)
    text = console.export_text()
    for part in (
        "thirds.upper",
        "61.2",
        "57.0–65.5",
        "0.33 of face_height",
        "55.4–61.4",
        "71.3°",
        "HAIRLINE_OCCLUDED",
    ):
        assert part in text


def test_quantities_are_named_as_in_the_answer() -> None:
    measurements = {"palpebral_width": {"left": LENGTH, "right": LENGTH}, "face_width": LENGTH}
    assert [name for name, _ in quantities(measurements)] == [
        "palpebral_width.left",
        "palpebral_width.right",
        "face_width",
    ]


def test_quantities_here_have_the_fields_of_the_proto() -> None:
    assert set(LENGTH) == {field.name for field in Measurement.DESCRIPTOR.fields}


def test_bad_inputs_are_what_they_say() -> None:
    portrait = studio_portrait()
    inputs = {bad.reason: bad for bad in bad_inputs(portrait)}
    assert len(inputs) == len(bad_inputs(portrait))

    def photo(reason: str) -> bytes:
        content = inputs[reason].request["files"]["image"][1]
        assert isinstance(content, bytes)
        return content

    assert min(Image.open(io.BytesIO(photo("IMAGE_TOO_SMALL"))).size) < 200
    width, height = Image.open(io.BytesIO(photo("IMAGE_TOO_MANY_PIXELS"))).size
    assert width * height > 40_000_000
    assert len(photo("BODY_TOO_LARGE")) > 2 * 1024 * 1024
    assert all(len(photo(bad.reason)) < 2 * 1024 * 1024 for bad in inputs.values() if bad.code in {1001, 1002, 1003})
    assert portrait.startswith(photo("DAMAGED_IMAGE"))
