"""JSON into the dataclasses of `answers`. Tolerant of a newer service, strict about what is promised."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from hairmesh.client.envelope import HairMeshError

T = TypeVar("T")
Decoder = Callable[[Any], Any]


class UnexpectedAnswerError(HairMeshError):
    """An answer that lacks what the contract promises, holds it in another type, or cannot be read."""


def decode(kind: type[T], data: object) -> T:
    """`data` as an instance of `kind`; fields that `kind` does not have are passed over.

    Raises `UnexpectedAnswerError` with the name of the field, never its value.
    """
    try:
        decoded: T = _decoder(cast("Any", kind))(data)
    except _WrongError as error:
        raise UnexpectedAnswerError(f"{kind.__name__}{error.where}: {error.problem}") from None
    return decoded


class _WrongError(Exception):
    """A value of the wrong type. `where` is the path of its field, which each enclosing object puts its name before."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = ""

    def inside(self, name: str) -> _WrongError:
        self.where = f".{name}{self.where}"
        return self


@cache
def _decoder(kind: Any) -> Decoder:
    """The function that decodes one type. No type of `answers` contains itself."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (inside,) = (_decoder(each) for each in arguments if each is not type(None))
        return lambda data: None if data is None else inside(data)
    if origin is Sequence:
        return _list_of(_decoder(arguments[0]))
    if origin is Mapping:
        return _mapping_of(_decoder(arguments[1]))
    if is_dataclass(kind):
        return _object_of(kind)
    raise TypeError(f"no decoder for {kind}")


def _instance_of(kind: type, *also: type) -> Decoder:
    def decoder(data: object) -> object:
        if type(data) not in (kind, *also):  # `true` is an int for Python
            raise _WrongError(f"{kind.__name__} expected, {type(data).__name__} found")
        try:
            return kind(data)
        except OverflowError:  # an integer that no float can hold
            raise _WrongError(f"{kind.__name__} expected, a larger number found") from None

    return decoder


_PLAIN: dict[type, Decoder] = {
    str: _instance_of(str),
    bool: _instance_of(bool),
    int: _instance_of(int),
    float: _instance_of(float, int),
}


def _list_of(inside: Decoder) -> Decoder:
    def decoder(data: object) -> object:
        if not isinstance(data, list):
            raise _WrongError("a list expected")
        return tuple(_inside(inside, each, str(number)) for number, each in enumerate(data))

    return decoder


def _mapping_of(inside: Decoder) -> Decoder:
    def decoder(data: object) -> object:
        if not isinstance(data, dict):
            raise _WrongError("an object expected")
        return {name: _inside(inside, each, name) for name, each in data.items()}

    return decoder


def _object_of(kind: Any) -> Decoder:
    fields = {name: _decoder(hint) for name, hint in get_type_hints(kind).items()}

    def decoder(data: object) -> object:
        if not isinstance(data, dict):
            raise _WrongError("an object expected")
        return kind(**{name: _inside(inside, data.get(name), name) for name, inside in fields.items()})

    return decoder


def _inside(decoder: Decoder, data: object, name: str) -> object:
    try:
        return decoder(data)
    except _WrongError as error:
        raise error.inside(name) from None
