"""What goes wrong, as exceptions: one table from reason to class, and whether asking again may help.

HairMeshError
├── TransportError            no answer: the connection broke
│   ├── UnreachableError          no connection
│   │   └── GatewayError              of a proxy in front to an edge
│   ├── UntrustedError, TooLateError
├── PictureError              a picture is gone
├── NotAnEnvelopeError        something else answers at this address
├── UnexpectedAnswerError     an answer that breaks the contract
└── RefusedError              the service says no, with `code`, `reason`, `message`, `advice`, `details`, …
    ├── PhotoError            another photo is needed
    │   ├── NoFaceError           1001
    │   ├── ResolutionError       1002
    │   ├── NotFrontalError       1003
    │   ├── TooLargeError         1004
    │   ├── NotAPictureError      1005
    │   └── UnclearPhotoError     1006
    ├── UnavailableError      1007: the same request may work later
    │   ├── BusyError, DeadlineError, PictureStoreError, OutOfOrderError
    └── RequestError          1008: the request is wrong
        ├── ParameterError, RegionError, ProtocolError, UnauthorizedError, RateLimitedError
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from hairmesh.client.envelope import Envelope, HairMeshError


class TransportError(HairMeshError):
    """No answer came: the service is not reachable, the connection broke, or it took too long.

    `retry_after_s`: when to ask again at the earliest, where a proxy in front has said so.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UnreachableError(TransportError):
    """There was no connection, and the request was not sent."""


class GatewayError(UnreachableError):
    """A proxy answered 502 or 503 by itself: it reached no edge, or its edge ended during the call."""


class UntrustedError(TransportError):
    """The service's certificate is not to be trusted: by a wrong name, an unknown authority, or its age."""


class TooLateError(TransportError):
    """No answer came within the time given, or within that of a proxy in front."""


class PictureError(HairMeshError):
    """A picture of an answer could not be had; 404: it was removed, by age or on purpose."""

    def __init__(self, http_status: int, retry_after_s: float | None = None) -> None:
        # Without the URL: whoever knows it may see the picture.
        super().__init__(f"a picture of an answer: HTTP {http_status}")
        self.http_status = http_status
        self.retry_after_s = retry_after_s


class RefusedError(HairMeshError):
    """The service refuses the request. Its text is for people; programs look at the class, or at `reason`."""

    def __init__(self, answer: Envelope) -> None:
        # With the details: in a traceback, too, people see which parameter is wrong, or which limit was broken.
        details = answer.data.get("details")
        end = f" {json.dumps(details, ensure_ascii=False)}" if details else ""
        super().__init__(f"{answer.message} ({answer.reason or answer.code}, request {answer.request_id}){end}")
        self.answer = answer

    @property
    def code(self) -> int:
        """1001 to 1008."""
        return self.answer.code

    @property
    def reason(self) -> str:
        """UPPER_SNAKE, never translated."""
        return self.answer.reason

    @property
    def message(self) -> str:
        """What happened, for people."""
        return self.answer.message

    @property
    def advice(self) -> str | None:
        """What to do before the next try, for people; None where there is nothing to say."""
        advice = self.answer.data.get("advice")
        return None if advice is None else str(advice)

    @property
    def details(self) -> Mapping[str, Any]:
        """What was measured, and the limit it broke."""
        details: Mapping[str, Any] = self.answer.data.get("details") or {}
        return details

    @property
    def request_id(self) -> str:
        """The request's id in the service's logs."""
        return self.answer.request_id

    @property
    def http_status(self) -> int:
        """HTTP status of the answer."""
        return self.answer.http_status

    @property
    def retry_after_s(self) -> float | None:
        """When to ask again at the earliest, in s; None: not said."""
        return self.answer.retry_after_s


class PhotoError(RefusedError):
    """Another photo is needed."""


class NoFaceError(PhotoError):
    """1001: there is no face in it."""


class ResolutionError(PhotoError):
    """1002: too small, too many pixels, the face too small or cut off."""


class NotFrontalError(PhotoError):
    """1003: the face does not look into the camera."""


class TooLargeError(PhotoError):
    """1004: too many bytes."""


class NotAPictureError(PhotoError):
    """1005: not a picture that can be read."""


class UnclearPhotoError(PhotoError):
    """1006: several faces, or a part of the face that the call needs is hidden."""


class UnavailableError(RefusedError):
    """1007: the service cannot answer this call at present."""


class BusyError(UnavailableError):
    """No worker is free, or no worker or edge is there: the call is sent again soon."""


class DeadlineError(UnavailableError):
    """The call took longer than it was given."""


class PictureStoreError(UnavailableError):
    """The answer's pictures could not be stored."""


class OutOfOrderError(UnavailableError):
    """This edge cannot answer this call until its operator does something."""


class RequestError(RefusedError):
    """1008: the request is wrong; sent again it is refused again."""


class ParameterError(RequestError):
    """A parameter is missing or invalid; `details` names it."""


class RegionError(ParameterError):
    """The marked region, or its mask, cannot be used."""


class ProtocolError(RequestError):
    """The request could not be read, or there is no such route: something on the way, or an older service."""


class UnauthorizedError(RequestError):
    """The key is missing or wrong."""


class RateLimitedError(RequestError):
    """Too many requests for this key or address."""


class Again(Enum):
    """Whether the same request is sent once more after a failure; `patience` has how often and when."""

    NEVER = auto()
    AS_TOLD = auto()
    """Nothing is wrong with the request, and nobody works on it: after the time that `Retry-After` says."""
    UNKEPT = auto()
    """The request was computed, and its pictures could not be stored: after the time that `Retry-After` says."""
    NO_EDGE = auto()
    """No edge could be reached, so no edge has begun the request."""
    PERHAPS_NO_EDGE = auto()
    """A proxy seems to have reached no edge, but does not say whether one has begun the request."""
    LOST = auto()
    """The request was sent, and its edge ended: perhaps because of the request."""


@dataclass(frozen=True, slots=True)
class Row:
    """The exception for one reason, and whether the request is sent again."""

    error: type[RefusedError]
    again: Again = Again.NEVER


_SOON = Row(BusyError, Again.AS_TOLD)

TABLE: Mapping[str, Row] = {
    "NO_FACE": Row(NoFaceError),
    "IMAGE_TOO_SMALL": Row(ResolutionError),
    "IMAGE_TOO_MANY_PIXELS": Row(ResolutionError),
    "FACE_TOO_SMALL": Row(ResolutionError),
    "FACE_CUT_OFF": Row(ResolutionError),
    "YAW": Row(NotFrontalError),
    "PITCH": Row(NotFrontalError),
    "ROLL": Row(NotFrontalError),
    "UPSIDE_DOWN": Row(NotFrontalError),
    "BODY_TOO_LARGE": Row(TooLargeError),
    "UNSUPPORTED_FORMAT": Row(NotAPictureError),
    "DAMAGED_IMAGE": Row(NotAPictureError),
    "BAD_BASE64": Row(NotAPictureError),
    "INPUT_FAILED": Row(NotAPictureError),
    "POISON_INPUT": Row(NotAPictureError),
    "MULTIPLE_FACES": Row(UnclearPhotoError),
    "HAIRLINE_HIDDEN": Row(UnclearPhotoError),
    "NO_WORKER": _SOON,
    "BUSY": _SOON,
    "SHUTTING_DOWN": _SOON,
    "NO_EDGE": Row(BusyError, Again.NO_EDGE),  # said by nginx: of every edge it tried, none took a byte of the call
    "WORKER_FAILED": Row(UnavailableError),  # two workers have tried: a third may be the photo's next victim
    "EDGE_FAILED": Row(UnavailableError, Again.LOST),  # said by nginx: the edge ended with the call inside
    "DEADLINE": Row(DeadlineError),  # more of the same patience ends in the same way
    "STORE_FULL": Row(PictureStoreError, Again.UNKEPT),
    "STORE_FAILED": Row(PictureStoreError, Again.UNKEPT),
    "LOCAL_VISION_MISSING": Row(OutOfOrderError),
    "LOCAL_MODELS_MISSING": Row(OutOfOrderError),
    "LOCAL_VISION_STUCK": Row(OutOfOrderError),
    "MISSING_PARAMETER": Row(ParameterError),
    "INVALID_PARAMETER": Row(ParameterError),
    "REGION_SELF_CROSSING": Row(RegionError),
    "REGION_OUTSIDE_IMAGE": Row(RegionError),
    "REGION_EMPTY": Row(RegionError),
    "REGION_OFF_SCALP": Row(RegionError),
    "REGION_TOO_LARGE": Row(RegionError),
    "REGION_TOO_FINE": Row(RegionError),
    "MASK_SIZE_DIFFERS": Row(RegionError),
    "MASK_UNREADABLE": Row(RegionError),
    "BAD_JSON": Row(ProtocolError),
    "BAD_MULTIPART": Row(ProtocolError),
    "BODY_INCOMPLETE": Row(ProtocolError),
    "HEAD_TOO_LARGE": Row(ProtocolError),
    "HEAD_LATE": Row(ProtocolError),
    "BAD_REQUEST": Row(ProtocolError),
    "UNAUTHORIZED": Row(UnauthorizedError),
    "PICTURES_REMOVED": Row(RequestError),
    "NOT_FOUND": Row(ProtocolError),
    "METHOD_NOT_ALLOWED": Row(ProtocolError),
    "UNSUPPORTED_MEDIA_TYPE": Row(ProtocolError),
    "TOO_MANY_REQUESTS": Row(RateLimitedError, Again.AS_TOLD),
    "TOO_MANY_WRONG_TOKENS": Row(UnauthorizedError),
}
"""Every reason of the contract; a test holds it against the edge's own table."""

BY_CODE: Mapping[int, type[RefusedError]] = {
    1001: NoFaceError,
    1002: ResolutionError,
    1003: NotFrontalError,
    1004: TooLargeError,
    1005: NotAPictureError,
    1006: UnclearPhotoError,
    1007: UnavailableError,
    1008: RequestError,
}
"""The exception for a reason that this client does not know, from a newer service."""


OF_A_PROXY: Mapping[int, type[TransportError]] = {
    502: GatewayError,
    503: GatewayError,
    504: TooLateError,
}
"""The exception for an HTTP status without our envelope: a proxy answered by itself, its edge restarts or is gone."""
NO_ANSWER: Mapping[type[HairMeshError], Again] = {
    TransportError: Again.LOST,
    UnreachableError: Again.NO_EDGE,
    GatewayError: Again.PERHAPS_NO_EDGE,
}
"""Whether a request without an answer is sent again; after any other kind of error it is not."""


def refusal(answer: Envelope) -> RefusedError:
    """The exception for an envelope that is not good."""
    row = TABLE.get(answer.reason)
    kind = row.error if row else BY_CODE.get(answer.code, RefusedError)
    return kind(answer)


def again(error: HairMeshError) -> Again:
    """Whether to send the request again, by the tables; never after a reason that this client does not know."""
    match error:
        case RefusedError():
            row = TABLE.get(error.reason)
            return row.again if row else Again.NEVER
        case PictureError():
            return NO_ANSWER.get(OF_A_PROXY.get(error.http_status, PictureError), Again.NEVER)
        case _:
            return NO_ANSWER.get(type(error), Again.NEVER)
