"""The test pictures: ten synthetic people of `openpeople`, and the shared portraits."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from bench.harness import ROOT
from bench.mark_crop import resolve
from vision.decode import decode
from vision.types import Photo

SHARED = ROOT.parent / "shared" / "data"
STUDIO = tuple(f"openpeople/P{number:03}" for number in range(1, 11))
ADULTS = tuple(f"portraits/synthetic_{number:02}.jpg" for number in (1, 2, 3, 5, 6, 8, 9, 10))
"""Shared portraits of grown-ups whose hairline is seen."""
HIDDEN = ("portraits/synthetic_07.jpg", "portraits/synthetic_11.jpg", "portraits/synthetic_12.jpg")
"""Shared portraits without a hairline to be seen: swept bangs, shaved (one marking doubts it), and full bangs."""


def path_of(picture: str) -> Path:
    """File of a picture by the name it has in the marks; `openpeople/P001/amateur_selfie` is another than the studio
    portrait `openpeople/P001`.
    """
    if picture.startswith("portraits/"):
        return SHARED / picture
    collection, *rest = picture.split("/")
    if collection == "openpeople" and len(rest) > 1:
        person, name = rest
        return Path(str(files("openpeople") / "data" / "curated" / person / "assets" / f"{name}.jpg"))
    return resolve(picture)


def read_photo(picture: str) -> Photo:
    """The decoded picture."""
    return decode(path_of(picture).read_bytes())
