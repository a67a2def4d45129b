"""The REST client for other programs: typed, with and without an event loop; needs httpx and nothing else.

    from hairmesh.client import Client, PhotoError

    with Client("https://face.example", api_key=key) as client:
        try:
            answer = client.measure("portrait.jpg", lang="en")
        except PhotoError as error:
            print(error.message, error.advice)
        else:
            if scale := answer.data.scale:
                print(scale.mm_per_px)
            client.save_pictures(answer, "out")

`AsyncClient` is the same with `await`. The parameters of each call are in `options`, the answers in `answers`, the
exceptions in `errors`, and when a call is sent once more in `patience`. `docs/client.md` is the page to begin with.
"""

from hairmesh.client.aio import AsyncClient
from hairmesh.client.core import Answer
from hairmesh.client.decode import UnexpectedAnswerError
from hairmesh.client.envelope import HairMeshError, NotAnEnvelopeError, Progress, Queued
from hairmesh.client.errors import (
    BusyError,
    DeadlineError,
    GatewayError,
    NoFaceError,
    NotAPictureError,
    NotFrontalError,
    OutOfOrderError,
    ParameterError,
    PhotoError,
    PictureError,
    PictureStoreError,
    ProtocolError,
    RateLimitedError,
    RefusedError,
    RegionError,
    RequestError,
    ResolutionError,
    TooLargeError,
    TooLateError,
    TransportError,
    UnauthorizedError,
    UnavailableError,
    UnclearPhotoError,
    UnreachableError,
    UntrustedError,
)
from hairmesh.client.options import Sex
from hairmesh.client.photo import Photo
from hairmesh.client.routes import (
    FEATURES_ROUTE,
    GROW_ROUTE,
    HAIRLINES_ROUTE,
    MASKS_ROUTE,
    MEASURE_ROUTE,
    SLOW_ROUTES,
    SPECIAL_POINTS_ROUTE,
    STYLES_ROUTE,
)
from hairmesh.client.sync import Client

__all__ = [
    "FEATURES_ROUTE",
    "GROW_ROUTE",
    "HAIRLINES_ROUTE",
    "MASKS_ROUTE",
    "MEASURE_ROUTE",
    "SLOW_ROUTES",
    "SPECIAL_POINTS_ROUTE",
    "STYLES_ROUTE",
    "Answer",
    "AsyncClient",
    "BusyError",
    "Client",
    "DeadlineError",
    "GatewayError",
    "HairMeshError",
    "NoFaceError",
    "NotAPictureError",
    "NotAnEnvelopeError",
    "NotFrontalError",
    "OutOfOrderError",
    "ParameterError",
    "Photo",
    "PhotoError",
    "PictureError",
    "PictureStoreError",
    "Progress",
    "ProtocolError",
    "Queued",
    "RateLimitedError",
    "RefusedError",
    "RegionError",
    "RequestError",
    "ResolutionError",
    "Sex",
    "TooLargeError",
    "TooLateError",
    "TransportError",
    "UnauthorizedError",
    "UnavailableError",
    "UnclearPhotoError",
    "UnexpectedAnswerError",
    "UnreachableError",
    "UntrustedError",
]
