"""The parameters of each call, as `hairmesh.client` takes them; what is left out is the service's choice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypedDict

from hairmesh.client.envelope import HairMeshError, Progress, Queued
from hairmesh.client.photo import Photo

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

    region: Sequence[tuple[float, float]]
    """Corners in pixels of the upright photo."""
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


def form_fields(wanted: Mapping[str, object]) -> tuple[dict[str, str], dict[str, bytes]]:
    """Form fields and files of a call; None is left out. Names are joined by commas, other lists are JSON.

    Raises `TypeError` for what is neither a value, a list, nor bytes.
    """
    fields: dict[str, str] = {}
    files: dict[str, bytes] = {}
    for name, value in wanted.items():
        match value:
            case None:
                pass
            case bytes() | bytearray() | memoryview():
                files[name] = bytes(value)
            case bool():
                fields[name] = "true" if value else "false"
            case str() | int() | float():
                fields[name] = str(value)
            case Iterable():
                listed = list(value)
                names = all(isinstance(each, str) for each in listed)
                fields[name] = ",".join(listed) if names else json.dumps(listed)
            case _:
                raise TypeError(f"{name}: nothing that can be sent")
    return fields, files


def language_header(fields: Mapping[str, str]) -> dict[str, str]:
    """The header for `lang`, which alone decides the language of messages.

    None for a language that the service does not have: it refuses the parameter.
    """
    return {"accept-language": fields["lang"]} if fields.get("lang") in LANGUAGES else {}
