"""An engine that sees what it is told to see, for all that is not vision."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from edge.local.findings import Described, GivenUpError, Place, Points, Ticket
from edge.settings import LocalVision
from vision.describe_terms import CLASSES, NO_PARSER, FaceDescription, Feature

PLACE = Place(
    photo={"width_px": 240, "height_px": 320, "format": "JPEG", "exif_orientation": 1},
    face={
        "box": {"x_px": 60.0, "y_px": 80.0, "width_px": 120.0, "height_px": 160.0},
        "yaw_deg": 1.0,
        "pitch_deg": 7.0,
        "roll_deg": -2.0,
        "faces_found": 1,
    },
)
PATIENCE_S = 30.0


def described(**features: Feature) -> FaceDescription:
    """The second class of everything, surely; `jaw_width=` and so on replace one feature."""
    found = {name: Feature(list(classes)[1], 0.9) for name, classes in CLASSES.items()}
    for name, feature in features.items():
        found[name.replace("_", ".", 1)] = feature
    return FaceDescription(found, hair_present=True)


def without_parser() -> FaceDescription:
    """What an edge without a parser tells."""
    found = dict(described().features)
    for name in ("brows.thickness", "face.thirds", "hair.length", "hair.bangs", "hair.colour"):
        found[name] = Feature(None, reason=NO_PARSER)
    return FaceDescription(found, hair_present=None)


@dataclass
class ScriptedEngine:
    """Answers at once, or once `gate` is open; remembers what it was given."""

    description: FaceDescription = field(default_factory=described)
    failure: Exception | None = None
    gate: threading.Event | None = None
    sees_hair: bool = True
    seen: list[bytes] = field(default_factory=list)
    busy: threading.Event = field(default_factory=threading.Event)
    """It has begun with a photo."""
    gave_up: threading.Event = field(default_factory=threading.Event)
    """It noticed that nobody waits."""
    broken: Exception | None = None
    """What its check raises."""
    closed: bool = False

    def load(self, _settings: LocalVision) -> ScriptedEngine:
        """Itself, loaded."""
        return self

    def special_points(self, data: bytes, max_pixels: int, ticket: Ticket) -> Points:
        """One point."""
        self._look(data, ticket)
        return Points(PLACE, {"glabella": (120.123, 150.0)})

    def describe(self, data: bytes, max_pixels: int, ticket: Ticket, *, with_jpeg: bool) -> Described:
        """As scripted, with the photo itself for a JPEG."""
        self._look(data, ticket)
        return Described(PLACE, self.description, (), data if with_jpeg else None)

    def check(self) -> None:
        """As scripted."""
        if self.broken is not None:
            raise self.broken

    def close(self) -> None:
        """Remember it."""
        self.closed = True

    def _look(self, data: bytes, ticket: Ticket) -> None:
        self.seen.append(data)
        self.busy.set()
        while self.gate is not None and not self.gate.wait(0.005):
            try:
                ticket.step()
            except GivenUpError:
                self.gave_up.set()
                raise
        if self.failure is not None:
            raise self.failure
