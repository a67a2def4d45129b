"""The exceptions as objects: what a program does with them beside catching them."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import hairmesh.client
from hairmesh.client import Client, HairMeshError, NoFaceError, PictureError, RefusedError, TransportError
from hairmesh.client.envelope import Envelope
from tests.hairmesh.client.scripted import Reply, envelope, refused, scripted

REFUSAL = Envelope(400, 1001, "words", "r-1", {"reason": "NO_FACE", "details": {"faces": 0}}, 2.5)


def kinds() -> list[type[HairMeshError]]:
    """Every exception that the client's modules define."""
    for module in pkgutil.iter_modules(hairmesh.client.__path__, "hairmesh.client."):
        importlib.import_module(module.name)
    return list(_below(HairMeshError))


def _below(kind: type[HairMeshError]) -> Iterator[type[HairMeshError]]:
    if kind.__module__.startswith("hairmesh.client"):
        yield kind
        for each in kind.__subclasses__():
            yield from _below(each)


def made(kind: type[HairMeshError]) -> HairMeshError:
    """One of them, as the client makes it."""
    if issubclass(kind, RefusedError):
        return kind(REFUSAL)
    if issubclass(kind, TransportError):
        return kind("no answer", 3.0)
    return PictureError(404, 1.5) if kind is PictureError else kind("words")


def shown(error: HairMeshError) -> dict[str, object]:
    """Everything that can be read from it."""
    names = [name for name, _ in inspect.getmembers(type(error), lambda member: isinstance(member, property))]
    return {"str": str(error), "args": error.args, **vars(error), **{name: getattr(error, name) for name in names}}


def through_pickle(protocol: int) -> Callable[[HairMeshError], HairMeshError]:
    def passed(error: HairMeshError) -> HairMeshError:
        again: HairMeshError = pickle.loads(pickle.dumps(error, protocol))
        return again

    return passed


WAYS: list[Callable[[HairMeshError], HairMeshError]] = [copy.copy, copy.deepcopy]
WAYS += [through_pickle(protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_an_exception_is_the_same_in_another_process(kind: type[HairMeshError]) -> None:
    error = made(kind)
    error.add_note("of a caller")
    for way in WAYS:
        again = way(error)
        assert type(again) is kind
        assert shown(again) == shown(error)


def test_all_of_them_are_there() -> None:
    assert len(kinds()) > 25


def ask(url: str) -> str:
    """In another process."""
    with Client(url) as client:
        return client.special_points(b"photo").request_id


def test_a_refusal_in_a_pool_of_processes_is_that_photos_alone() -> None:
    """An exception that cannot be read ends the whole pool."""
    with scripted() as server, ProcessPoolExecutor(1, get_context("spawn")) as pool:
        server.replies = [refused(1001, "NO_FACE", 400), Reply(200, {}, envelope(0))]
        first, second = pool.submit(ask, server.url), pool.submit(ask, server.url)
        with pytest.raises(NoFaceError) as caught:
            first.result(60)
        assert (caught.value.reason, caught.value.request_id, caught.value.advice) == ("NO_FACE", "r-1", "Later.")
        with pytest.raises(HairMeshError, match="photo"):  # an empty answer, in the same process
            second.result(60)
