"""docs/hard-pictures.md and its thumbnails, out of tests/vision/hard/pictures.py; `--check` says whether it is current.

The page says what the table promises, and `tests/vision/hard` holds the promises. Thumbnails need the model files (the
edits follow the face) and the shared portraits; `--check` needs neither.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "hard-pictures.md"
THUMBNAILS = ROOT / "docs" / "img" / "hard"
SIDE_PX = 120
sys.path.insert(0, str(ROOT))

from edge.errors import ApiError  # noqa: E402  (the tree first)
from tests.vision.hard.pictures import HARD, Answered, HardPicture  # noqa: E402
from tests.vision.hard.studio import Studio  # noqa: E402
from vision.decode import decode  # noqa: E402
from vision.errors import PhotoError, Reason  # noqa: E402
from vision.growth.backend import GrowthReason  # noqa: E402
from vision.growth.run import HIDDEN  # noqa: E402
from vision.landmarks import LandmarkDetector  # noqa: E402
from vision.models import default_cache_dir, locate  # noqa: E402
from vision.runtime import OnnxParser  # noqa: E402
from vision.types import HairlineState  # noqa: E402

HEAD = """# Hard pictures, and what each of them gets

Made by `scripts/hard_pictures.py` from the table that `tests/vision/hard` tests with the real models. People are
synthetic (openpeople, MIT; SFHQ samples, MIT), the rest is CC0. P001 to P010 are openpeople's people; edits
are made when the tests run.

What is refused is refused by every call alike, with its code, its reason and advice. What is answered:

- **measure (1)** gives what can be seen; everything else is null with its reason, such as `HAIRLINE_OCCLUDED`.
- **hairlines (5)** design from the glabella where the hairline is hidden; then there is no area and no graft count.
  Without a scale there are no millimetres, and rules in millimetres are not judged. On a child (`CHILD`) a line is
  drawn after the face's proportions, and nothing that holds for adults is told: no rules, no area, no grafts.
- **styles (2)** are always designed. To grow them it must be known where the hair begins, or that there is none:
  under bangs, hats and hands `grown_reason` is `HAIRLINE_HIDDEN`. Else hair is grown where that convinces; the column
  says what is certain not to grow.
- **masks (6)** are drawn whatever is missing: a part that is not there has an empty mask and area 0.
- **features (4)** and **special points (99)** need the face alone; what is hidden is null with its reason.
"""

HAIRLINES = {
    HairlineState.OBSERVED: "hairline observed",
    HairlineState.OCCLUDED: "hairline occluded: upper court null",
    HairlineState.HAT: "hairline under a hat: upper court null",
    HairlineState.NONE: "no hairline: upper court null",
}


def render() -> str:
    """The page."""
    parts = [HEAD]
    for group, rows in groupby(HARD, key=lambda row: row.group):
        parts.append(f"\n## {group}\n\n| | picture | measure | designs | grown |\n|---|---|---|---|---|\n")
        parts += [_row(row) for row in rows]
    return "".join(parts)


def _row(row: HardPicture) -> str:
    thumbnail = f"![{row.name}](img/hard/{row.slug}.jpg)" if _has_picture(row) else ""
    what = f"**{row.name}**<br>{row.made}"
    note = f"<br>*{row.note}*" if row.note else ""
    if isinstance(row.promise, Reason):
        return f"| {thumbnail} | {what} | {_refusal(row.promise)}{note} | refused | refused |\n"
    cells = (thumbnail, what, f"{_answer(row.promise)}{note}", _designs(row.promise), _grown(row.promise))
    return f"| {' | '.join(cells)} |\n"


def _refusal(reason: Reason) -> str:
    error = ApiError(reason)
    advice = f"<br>{error.advice.en}" if error.advice else ""
    return f"{error.row.code} `{reason}`{advice}"


def _answer(promise: Answered) -> str:
    if promise.same_as_reference:
        return "as the plain portrait"
    warnings = "".join(f", `{warning}`" for warning in sorted(promise.warnings))
    return HAIRLINES[promise.hairline] + warnings


def _designs(promise: Answered) -> str:
    if promise.of_child:
        return "drawn, without rules, area and grafts"
    if promise.hairline is HairlineState.OBSERVED:
        return "with area and grafts" if promise.has_area else "without area"
    return "from the glabella" if promise.hairline is HairlineState.NONE else "from the glabella, without area"


def _grown(promise: Answered) -> str:
    if promise.hairline in HIDDEN:
        return f"`{GrowthReason.HAIRLINE_HIDDEN}`"
    return f"`{promise.grown}`" if promise.grown else "tried"


def _has_picture(row: HardPicture) -> bool:
    return row.promise not in {Reason.DAMAGED_IMAGE, Reason.IMAGE_TOO_MANY_PIXELS}


def problems() -> Iterator[str]:
    """What `--check` complains of."""
    if not PAGE.exists() or PAGE.read_text() != render():
        yield f"{PAGE.relative_to(ROOT)} is stale: run scripts/hard_pictures.py"
    wanted = {f"{row.slug}.jpg" for row in HARD if _has_picture(row)}
    there = {path.name for path in THUMBNAILS.glob("*")}
    for name in sorted(wanted ^ there):
        yield f"{THUMBNAILS.relative_to(ROOT) / name} is {'missing' if name in wanted else 'of no row'}"


def write() -> None:
    """The page, and a thumbnail for each row that can be shown."""
    models = locate(default_cache_dir())
    detector = LandmarkDetector(models.face_landmarker)
    THUMBNAILS.mkdir(parents=True, exist_ok=True)
    for path in THUMBNAILS.glob("*"):
        path.unlink()
    try:
        studio = Studio(detector, OnnxParser(models))
        for row in filter(_has_picture, HARD):
            print(f"{row.name} …", flush=True)  # noqa: T201
            picture = _shown(row.make(studio))
            picture.thumbnail((SIDE_PX, SIDE_PX), Image.Resampling.LANCZOS)
            picture.save(THUMBNAILS / f"{row.slug}.jpg", quality=80)
    finally:
        detector.close()
    PAGE.write_text(render())


def _shown(data: bytes) -> Image.Image:
    """The picture as a viewer shows it; as stored where we do not read it."""
    try:
        return Image.fromarray(decode(data).rgb)
    except PhotoError:
        return Image.open(io.BytesIO(data)).convert("RGB")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit status 1 when the page is not current")
    if not parser.parse_args().check:
        write()
        return
    found = list(problems())
    for problem in found:
        print(problem, file=sys.stderr)  # noqa: T201
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
