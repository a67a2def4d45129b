"""The walk through the calls: one photo, every call of the contract, every picture on one page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from hairmesh import client as api
from hairmesh.client import Progress, Queued
from hairmesh.client.envelope import Envelope, Told
from hairmesh.client.plain import Client
from hairmesh.contact_sheet import Figure, Points, Section, render

PAGE = "index.html"
PICTURES = "sheet"
"""Folder of the pictures, beside the page."""
PHOTO = f"{PICTURES}/photo.jpg"
STYLES = ("round", "m", "widows_peak")
SEX: api.Sex = "female"
"""Of the synthetic person; the service guesses nothing."""
SEED = 7
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
REGION_MM = 14.0
"""Height of the region that is marked, from a design's curve up into the hair."""
REGION_SHARE = (0.12, 0.5)
"""From where to where along that curve: the subject's right half of the forehead."""
CORNERS = 20


class DemoError(Exception):
    """Something did not go as the contract says."""


class Walk:
    """Calls 1 to 6 and 99 in turn, with their pictures in `folder`."""

    def __init__(self, client: Client, photo: bytes, folder: Path, console: Console, lang: str) -> None:
        self._client = client
        self._photo = photo
        self._folder = folder
        self._console = console
        self._lang = lang
        self._sections: list[Section] = []
        (folder / PICTURES).mkdir(parents=True, exist_ok=True)
        for old in (folder / PICTURES).glob("*"):
            old.unlink()
        (folder / PHOTO).write_bytes(photo)

    def take(self, measured: Envelope) -> Path:
        """Every call after `measured`, the answer of the first; the page. Raises `DemoError`."""
        self._measurement(measured)
        design = self._hairlines()
        self._styles()
        self._region(design, measured.data["scale"]["mm_per_px"])
        self._masks()
        self._features()
        self._points()
        page = self._folder / PAGE
        text = "One synthetic portrait (openpeople, MIT) through every call of the service, on this machine."
        page.write_text(render("HairMesh: one photo, every call", text, self._sections), encoding="utf-8")
        return page

    def _measurement(self, answer: Envelope) -> None:
        figure = self._picture("measure", answer.data["annotated_image_url"], "measured", "thirds, fifths, hairline")
        text = "The numbers stand in the terminal."
        self._section(Section("Facial measurement", _post(api.MEASURE_ROUTE), text, [figure], wide=True))

    def _hairlines(self) -> Mapping[str, Any]:
        """The first design."""
        answer, took_s = self._asked(lambda: self._client.hairlines(self._photo, sex=SEX, lang=self._lang))
        designs = answer.data["hairline_images"]
        figures = [self._picture(f"design_{each['style']}", each["image_url"], each["style"]) for each in designs]
        rows = [
            [
                each["style"],
                _number(each["height"]["mm"], " mm"),
                _number(each["area_cm2"], " cm²"),
                str(each["grafts"] if each["grafts"] is not None else "–"),
                ", ".join(rule["name"] for rule in each["rules"] if not rule["kept"]) or "none",
            ]
            for each in designs
        ]
        columns = ["style", "height above glabella", "area to fill", "grafts", "rules broken"]
        text = f"The whole catalogue, {took_s:.1f} s."
        self._section(Section("Hairline designs", _post(api.HAIRLINES_ROUTE), text, figures, columns, rows))
        first: Mapping[str, Any] = designs[0]
        return first

    def _styles(self) -> None:
        def ask() -> Envelope:
            return self._followed(
                self._client.follow_styles(self._photo, styles=STYLES, sex=SEX, seed=SEED, lang=self._lang)
            )

        answer, took_s = self._asked(ask)
        figures = [_BEFORE]
        for each in answer.data["results"]:
            figures += self._grown(f"style_{each['style']}", each, each["style"])
        text = f"Hair grown to {len(STYLES)} styles by backend {answer.data['backend']}, {took_s:.1f} s."
        rows = [[each["style"], *_proof(each["proof"])] for each in answer.data["results"]]
        self._section(
            Section("Hair grown to styles", _post(api.STYLES_ROUTE), text, figures, ("style", *_PROOF), rows, wide=True)
        )

    def _region(self, design: Mapping[str, Any], mm_per_px: float | None) -> None:
        if mm_per_px is None:
            raise DemoError("the portrait has no scale")
        region = _strip(design["curve"], mm_per_px)

        def ask() -> Envelope:
            return self._followed(self._client.follow_grow(self._photo, region=region, seed=SEED, lang=self._lang))

        answer, took_s = self._asked(ask)
        marked = self._picture("region_marked", answer.data["marked_image_url"], "marked")
        figures = [_BEFORE, marked, *self._grown("region", answer.data, "region", with_design=False)]
        text = f"A strip marked on her right side, {_number(answer.data['area_cm2'], ' cm²')}, {took_s:.1f} s."
        rows = [_proof(answer.data["proof"])]
        self._section(
            Section("Hair grown in a marked region", _post(api.GROW_ROUTE), text, figures, _PROOF, rows, wide=True)
        )

    def _masks(self) -> None:
        answer, took_s = self._asked(lambda: self._client.masks(self._photo))
        masks = answer.data["masks"]
        figures = [
            replace(
                self._picture(
                    f"mask_{each['part']}", each["image_url"], each["part"], _number(each["area_mm2"], " mm²", 0)
                ),
                under=PHOTO,
            )
            for each in masks
        ]
        text = f"All parts, {took_s:.1f} s. Each is laid over the photo; the link opens the mask itself."
        self._section(Section("Masks", _post(api.MASKS_ROUTE), text, figures))

    def _features(self) -> None:
        answer, took_s = self._asked(lambda: self._client.features(self._photo, lang=self._lang))
        rows = [
            [f"{part}.{name}", found["text"] or f"unknown: {found['reason']}", _ratios(found["ratios"])]
            for part, features in answer.data["features"].items()
            for name, found in features.items()
        ]
        text = f"Computed on the edge, {took_s:.1f} s with its models loaded; source: {answer.data['source']}."
        columns = ("feature", "found", "by")
        self._section(Section("Features", _post(api.FEATURES_ROUTE), text, columns=columns, rows=rows))

    def _points(self) -> None:
        answer, took_s = self._asked(lambda: self._client.special_points(self._photo))
        points = answer.data["points"]
        rows = [[name, f"{point['x_px']:.0f}", f"{point['y_px']:.0f}"] for name, point in sorted(points.items())]
        text = f"Computed on the edge, {took_s:.1f} s; left and right are the subject's."
        size = answer.data["photo"]
        places = {name: (point["x_px"], point["y_px"]) for name, point in points.items()}
        marked = Points(size["width_px"], size["height_px"], places)
        figures = [Figure(PHOTO, "points", "their names show when pointed at", points=marked)]
        columns = ("point", "x, px", "y, px")
        section = Section("Special points", _post(api.SPECIAL_POINTS_ROUTE), text, figures, columns, rows, wide=True)
        self._section(section)

    def _asked(self, ask: Callable[[], Envelope]) -> tuple[Envelope, float]:
        begun_s = time.monotonic()
        answer = ask()
        if not answer.ok:
            raise DemoError(f"refused: {answer.code} {answer.reason} {answer.message}")
        return answer, time.monotonic() - begun_s

    def _followed(self, told: Iterator[Told]) -> Envelope:
        """The answer at the end of a stream, its stages shown as they come."""
        stages: list[str] = []
        for each in told:
            match each:
                case Envelope():
                    if each.ok and not stages:
                        raise DemoError("a slow call told no progress")
                    return each
                case Queued() if each.position:
                    self._console.print(f"   queued, {each.position} before it")
                case Progress() if not stages or stages[-1] != each.stage:
                    stages.append(each.stage)
                    self._console.print(f"   {each.stage} …", style="dim")
        raise DemoError("a stream without a result")

    def _grown(self, name: str, result: Mapping[str, Any], title: str, *, with_design: bool = True) -> list[Figure]:
        figures = []
        if with_design:
            figures.append(self._picture(f"{name}_design", result["image_url"], title, "designed"))
        if result["grown_image_url"]:
            figures.append(self._picture(f"{name}_grown", result["grown_image_url"], title, "grown, a simulation"))
        else:
            self._console.print(
                f"   {title}: no grown picture, {result['grown_reason']}: {result['grown_message']}", soft_wrap=True
            )
        return figures

    def _picture(self, name: str, url: str, title: str, caption: str = "") -> Figure:
        picture = self._client.picture(url)
        if not picture.startswith(PNG_MAGIC):
            raise DemoError(f"the picture {name} is no PNG")
        file = f"{PICTURES}/{name}.png"
        (self._folder / file).write_bytes(picture)
        return Figure(file, title, caption)

    def _section(self, section: Section) -> None:
        self._sections.append(section)
        number, noun = (len(section.figures), "picture") if section.figures else (len(section.rows), "value")
        count = f"{number} {noun}{'s' * (number != 1)}"
        self._console.print(f"{section.title}: {section.text} {count}.", soft_wrap=True, markup=False)


def _post(route: str) -> str:
    return f"POST {route}"


_BEFORE = Figure(PHOTO, "the photo", "before")
_PROOF = ("parses as hair", "edge to design", "ΔE2000", "direction", "gradient", "changed outside")


def _proof(proof: Mapping[str, Any] | None) -> list[str]:
    if proof is None:
        return ["–"] * len(_PROOF)
    return [
        f"{100 * proof['hair_share']:.0f} %",
        _number(proof["edge_distance_mm"], " mm"),
        f"{proof['delta_e']:.1f}",
        f"{proof['orientation_distance']:.2f}",
        f"{proof['gradient_distance']:.2f}",
        str(proof["outside_changed_pixels"]),
    ]


def _strip(curve: Sequence[Mapping[str, float]], mm_per_px: float) -> list[tuple[float, float]]:
    """Corners of the region above a part of a curve, in pixels."""
    first, last = (round(share * (len(curve) - 1)) for share in REGION_SHARE)
    lower = [curve[first + round((last - first) * corner / (CORNERS - 1))] for corner in range(CORNERS)]
    up_px = REGION_MM / mm_per_px
    corners = [(point["x_px"], point["y_px"]) for point in lower]
    return corners + [(x_px, y_px - up_px) for x_px, y_px in reversed(corners)]


def _number(value: float | None, unit: str, decimals: int = 1) -> str:
    return "–" if value is None else f"{value:.{decimals}f}{unit}"


def _ratios(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in ratios.items())
