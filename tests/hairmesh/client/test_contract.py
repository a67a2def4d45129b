"""The client knows the contract as the edge has it: every call, parameter, answer, reason."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Callable
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from edge import errors as edge_errors
from edge.parameters import (
    GrowParameters,
    HairlinesParameters,
    MasksParameters,
    MeasureParameters,
    Parameters,
    StylesParameters,
)
from hairmesh.client import AsyncClient, Client, Progress, Queued, errors
from hairmesh.client.answers import MeasureResponse
from hairmesh.client.core import Answer
from hairmesh.client.decode import UnexpectedAnswerError, decode
from hairmesh.client.envelope import Envelope
from hairmesh.client.options import (
    CommonOptions,
    GrowOptions,
    HairlineOptions,
    MaskOptions,
    MeasureOptions,
    StyleOptions,
)
from scripts import client_answers
from tests.edge.documented import talkative_edge
from tests.edge.rest import ANNOTATED, PHOTO, FakeMesh, Rest, serving

REGION = [(10.0, 10.0), (90.0, 10.0), (50.0, 90.0)]
WANTED: dict[str, dict[str, Any]] = {
    "measure": {"pupillary_distance_mm": 63.5, "annotate": True},
    "styles": {"styles": ["round"], "sex": "male", "seed": 7},
    "grow": {"region": REGION, "seed": 7},
    "features": {},
    "hairlines": {"styles": ["round", "m"], "sex": "female", "height": "low", "density_per_cm2": 35.5},
    "masks": {"parts": ["hair"]},
    "special_points": {},
}
PICTURES = {
    "measure": {"annotated"},
    "styles": {"round", "round_grown"},
    "grow": {"marked", "grown"},
    "hairlines": {"round"},
    "masks": {"hair"},
}


@pytest.fixture
async def rest(tmp_path: Path) -> AsyncIterator[Rest]:
    async with talkative_edge(tmp_path) as rest:
        yield rest


def test_answers_are_those_of_the_document(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["client_answers.py", "--check"])
    client_answers.main()
    whole = client_answers.MODULE.read_text()
    stale = tmp_path / "answers.py"
    stale.write_text(whole.replace("mm_per_px", "mm"))
    monkeypatch.setattr(client_answers, "MODULE", stale)
    monkeypatch.setattr(client_answers, "ROOT", tmp_path)
    monkeypatch.setattr(client_answers, "render", lambda: whole)
    with pytest.raises(SystemExit, match="stale"):
        client_answers.main()


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (CommonOptions, Parameters),
        (MeasureOptions, MeasureParameters),
        (HairlineOptions, HairlinesParameters),
        (StyleOptions, StylesParameters),
        (GrowOptions, GrowParameters),
        (MaskOptions, MasksParameters),
    ],
)
def test_parameters_are_those_of_the_edge(options: Any, parameters: type[Parameters]) -> None:
    known = set(parameters.model_fields) | (set(parameters.shape.files) - {"image"})
    assert options.__optional_keys__ == known


def test_every_reason_has_its_exception() -> None:
    assert set(errors.TABLE) == set(edge_errors.TABLE)
    for reason, row in edge_errors.TABLE.items():
        ours = errors.TABLE[reason]
        assert issubclass(ours.error, errors.BY_CODE[row.code]) or issubclass(
            ours.error, errors.RequestError if row.code == edge_errors.PARAMETER else errors.UnavailableError
        ), reason
        if ours.again is not errors.Again.NEVER:
            assert row.retry_after_s is not None, reason


@pytest.mark.parametrize(("code", "kind"), [(1003, errors.NotFrontalError), (1009, errors.RefusedError)])
def test_a_reason_of_a_newer_service_goes_by_its_code(code: int, kind: type[errors.RefusedError]) -> None:
    error = errors.refusal(Envelope(400, code, "words", "r-1", {"reason": "LATER", "details": {"a": 1}}, 2.0))
    assert type(error) is kind
    assert (error.reason, error.details, error.advice, error.retry_after_s) == ("LATER", {"a": 1}, None, 2.0)
    assert errors.again(error) is errors.Again.NEVER


@pytest.mark.parametrize("name", WANTED)
async def test_every_call_with_every_parameter(rest: Rest, name: str) -> None:
    told: list[Queued | Progress] = []

    def ask(client: Any, **slow: Any) -> Any:
        return getattr(client, name)(PHOTO, lang="en", request_id=f"r-{name}", **WANTED[name], **slow)

    def in_a_thread() -> Answer[Any]:
        with Client(f"http://127.0.0.1:{rest.port}") as client:
            answer: Answer[Any] = ask(client)
            for url in answer.pictures.values():
                assert client.picture(url) == ANNOTATED
            return answer

    async with AsyncClient(f"http://127.0.0.1:{rest.port}") as client:
        slow = {"on_progress": told.append} if name in {"styles", "grow"} else {}
        answers = [await asyncio.to_thread(in_a_thread), await ask(client, **slow)]
        for url in answers[1].pictures.values():
            assert await client.picture(url) == ANNOTATED
    for answer in answers:
        assert answer.request_id == f"r-{name}"
        assert set(answer.pictures) == PICTURES.get(name, set())
        assert set(answer.raw) == set(type(answer.data).__dataclass_fields__)
    assert told == ([Queued(position=0, attempt=1)] if slow else [])


async def test_a_field_that_is_promised_and_not_there(rest: Rest) -> None:
    async with AsyncClient(f"http://127.0.0.1:{rest.port}") as client:
        raw = dict((await client.measure(PHOTO)).raw)
    assert decode(MeasureResponse, raw | {"of_a_newer_service": 5}) == decode(MeasureResponse, raw)
    assert decode(MeasureResponse, raw | {"scale": None}).scale is None
    for change, where in (
        ({"warnings": None}, r"warnings: a list"),
        ({"face": {**raw["face"], "yaw_deg": "SENTINEL"}}, r"face\.yaw_deg: float expected, str found"),
        ({"photo": {**raw["photo"], "width_px": True}}, r"photo\.width_px: int expected, bool found"),
    ):
        with pytest.raises(UnexpectedAnswerError, match=where) as caught:
            decode(MeasureResponse, raw | change)
        assert "SENTINEL" not in str(caught.value)


def as_path(folder: Path) -> Path:
    path = folder / "Patient Name.jpg"
    path.write_bytes(PHOTO)
    return path


class Pipe(io.BytesIO):
    """Cannot be read twice."""

    def seekable(self) -> bool:
        return False


@pytest.mark.parametrize(
    "photo",
    [
        lambda _folder: bytearray(PHOTO),
        as_path,
        lambda folder: str(as_path(folder)),
        lambda folder: as_path(folder).open("rb"),
        lambda _folder: Pipe(PHOTO),
    ],
)
async def test_photos_of_every_kind(tmp_path: Path, photo: Callable[[Path], Any]) -> None:
    given, mesh = photo(tmp_path), FakeMesh()
    async with serving(tmp_path, mesh) as rest, AsyncClient(f"http://127.0.0.1:{rest.port}") as client:
        for _ in range(1 if isinstance(given, Pipe) else 2):
            await client.measure(given)
            assert mesh.request.photo.data == PHOTO
    if hasattr(given, "close"):
        assert not given.closed
        given.close()


def test_other_programs_need_httpx_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); import httpx; with_httpx = set(sys.modules); import hairmesh.client;"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - with_httpx})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) - set(sys.stdlib_module_names) == {"hairmesh"}


def test_the_command_needs_no_more_than_is_always_installed() -> None:
    code = "import sys, hairmesh.cli, hairmesh.analyze.main; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    others = {Requirement(text).name for text in project["optional-dependencies"]["serving"]}
    by_module = packages_distributions()
    assert not {name for module in loaded for name in by_module.get(module, ())} & others
