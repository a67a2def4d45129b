"""The parameters of each call, as `hairmesh.client` takes them; what is left out is the service's choice."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import index
from typing import Literal, ParamSpec, SupportsFloat, SupportsIndex, TypedDict, cast

from hairmesh.client.envelope import HairMeshError, Progress, Queued
from hairmesh.client.photo import Photo

P = ParamSpec("P")
OnProgress = Callable[[Queued | Progress], None]
"""Is told how far a slow call is, in the thread or on the loop that waits for it. What it raises ends the call, and
reaches the caller as it is."""
Sex = Literal["female", "male"]
Height = Literal["low", "natural", "high"]
LANGUAGES: tuple[str, ...] = ("zh", "en")


OnWait = Callable[[HairMeshError, float], None]
"""Is told why a call is to be sent once more, and after how many seconds."""


class CommonOptions(TypedDict, total=False):
    """Parameters of every call."""

    lang: str
    """`zh` or `en`, of messages and of words in answers and pictures; default: Chinese."""


class MeasureOptions(CommonOptions, total=False):
    """Parameters of the measure call."""

    pupillary_distance_mm: float
    """As measured on the person, 40 to 80: replaces the iris as the scale and narrows the intervals."""
    annotate: bool
    """Whether to draw the annotated picture; default: yes."""


class HairlineOptions(CommonOptions, total=False):
    """Parameters of the design call."""

    styles: Sequence[str]
    """Designs to draw, in this order; default: the whole catalogue."""
    sex: Sex
    """Whose design rules apply; default: rules that hold for both."""
    height: Height
    density_per_cm2: float
    """Planned grafts per cm², 10 to 80."""


class StyleOptions(CommonOptions, total=False):
    """Parameters of growing hair to styles."""

    styles: Sequence[str]
    sex: Sex
    seed: int
    """The same seed gives the same picture."""


class GrowOptions(CommonOptions, total=False):
    """Parameters of growing hair in a region: exactly one of `region` and `mask`."""

    region: Iterable[Iterable[float]]
    """Corners `x, y` in pixels of the upright photo; an array of NumPy's will do."""
    mask: Photo
    """A picture of the size of the upright photo, bright inside the region."""
    seed: int


class MaskOptions(CommonOptions, total=False):
    """Parameters of the mask call."""

    parts: Sequence[str]
    """Parts to mask, in this order; default: all."""


class Handling(TypedDict, total=False):
    """How the client makes one call; the service is sent none of these as parameters."""

    timeout_s: float
    """The whole patience for this call, its waiting and its further tries included."""
    request_id: str
    """By which the service's logs know it, 1 to 64 characters of `[A-Za-z0-9._-]`; default: the service makes one."""
    on_wait: OnWait


class SlowHandling(Handling, total=False):
    """`Handling` of a slow call."""

    on_progress: OnProgress


class AnyCall(CommonOptions, Handling, total=False):
    """What a call without parameters of its own takes beside the photo."""


class MeasureCall(MeasureOptions, Handling, total=False):
    """What `measure` takes beside the photo."""


class HairlinesCall(HairlineOptions, Handling, total=False):
    """What `hairlines` takes beside the photo."""


class StylesCall(StyleOptions, SlowHandling, total=False):
    """What `styles` takes beside the photo."""


class GrowCall(GrowOptions, SlowHandling, total=False):
    """What `grow` takes beside the photo."""


class MasksCall(MaskOptions, Handling, total=False):
    """What `masks` takes beside the photo."""


HANDLING = frozenset(SlowHandling.__annotations__)


def ordinary(name: str, callback: Callable[P, None] | None) -> Callable[P, None] | None:
    """The caller's function, which is called and not awaited. What it gives back is nobody's, but a coroutine would be
    lost in silence: raises `TypeError` at once where that can be seen, else when it comes.
    """
    if callback is None:
        return None
    problem = f"{name} is an ordinary function: a coroutine would not be awaited"
    if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):
        raise TypeError(problem)

    def called(*args: P.args, **kwargs: P.kwargs) -> None:
        said: object = cast("Callable[P, object]", callback)(*args, **kwargs)
        if inspect.iscoroutine(said):
            said.close()
            raise TypeError(problem)

    return called


def form_fields(wanted: Mapping[str, object]) -> tuple[dict[str, str], dict[str, bytes]]:
    """Form fields and files of a call; None is left out. Names are joined by commas, other lists are JSON.

    Numbers may be those of NumPy, Decimal and the like. Raises, with the parameter's name, `TypeError` for what is
    neither a value, a list, nor bytes, and `ValueError` for text that is none.
    """
    fields: dict[str, str] = {}
    files: dict[str, bytes] = {}
    for name, given in wanted.items():
        if given is None:
            continue
        if isinstance(given, bytes | bytearray | memoryview):
            files[name] = bytes(given)
            continue
        match value := _ours(given):
            case bool():
                fields[name] = "true" if value else "false"
            case str() | int() | float():
                fields[name] = str(value)
            case Iterable():
                listed = list(value)
                names = all(isinstance(each, str) for each in listed)
                fields[name] = ",".join(listed) if names else json.dumps(listed, default=partial(_plain, name))
            case _:
                fields[name] = str(_plain(name, value))
    for name, text in fields.items():
        if not _is_unicode(text):
            raise ValueError(f"{name}: bytes of a file's name or a command line that are no text")
    return fields, files


def _is_unicode(text: str) -> bool:
    """Not where half of a character stands in for a byte, as Python has it from the system."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _ours(value: object) -> object:
    """Arrays and scalars of NumPy, and of those that are like it, as Python's own; anything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


def _plain(name: str, value: object) -> object:
    """A value that JSON does not know, as one that it knows: something with items, or a number of another kind."""
    match value := _ours(value):
        case Iterable():
            return list(value)
        case SupportsIndex():
            return index(value)
        case SupportsFloat():
            return float(value)
        case _:
            raise TypeError(f"{name}: nothing that can be sent: {type(value).__name__}")


def language_header(fields: Mapping[str, str]) -> dict[str, str]:
    """The header for `lang`, which alone decides the language of messages.

    None for a language that the service does not have: it refuses the parameter.
    """
    return {"accept-language": fields["lang"]} if fields.get("lang") in LANGUAGES else {}
