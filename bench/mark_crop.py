"""Cut an enlarged crop with a pixel ruler out of a test picture, for marking points by eye.

    python bench/mark_crop.py PICTURE OUT.png                      the whole picture, shrunk to fit, ruled
    python bench/mark_crop.py PICTURE OUT.png X Y W H [--zoom N]   that part, enlarged N times, ruled

The ruler gives pixels of the original picture (x to the right, y down, origin at the top left). PICTURE is a path, or
`openpeople/P001` for that person's studio portrait. Nothing here runs a model: a mark must not know what the
detector would say.
"""

from __future__ import annotations

import argparse
from importlib.resources import files
from pathlib import Path

from PIL import Image, ImageDraw, ImageOps

RULER_PX = 46
LONG_SIDE_PX = 1200


def resolve(picture: str) -> Path:
    """Path of a picture given as a file, or as `openpeople/P001`."""
    if picture.startswith("openpeople/"):
        person = picture.split("/")[1]
        return Path(str(files("openpeople") / "data" / "curated" / person / "assets" / "studio_portrait.jpg"))
    return Path(picture)


def tick_step(span_px: float) -> int:
    """A round step that puts 8 to 20 ticks on a ruler over `span_px` picture pixels."""
    for step in (1, 2, 5, 10, 20, 50, 100, 200, 500):
        if span_px / step <= 20:
            return step
    return 1000


def ruled(picture: Image.Image, box: tuple[int, int, int, int], zoom: float) -> Image.Image:
    """The part `box` (x, y, w, h) of `picture`, enlarged `zoom` times, with rulers and a faint grid."""
    x, y, w, h = box
    part = picture.crop((x, y, x + w, y + h)).resize((round(w * zoom), round(h * zoom)), Image.Resampling.LANCZOS)
    canvas = Image.new("RGB", (part.width + RULER_PX, part.height + RULER_PX), "white")
    canvas.paste(part, (RULER_PX, RULER_PX))
    draw = ImageDraw.Draw(canvas, "RGBA")
    step = tick_step(max(w, h))
    for value in range(-(-x // step) * step, x + w + 1, step):
        at = RULER_PX + (value - x) * zoom
        draw.line([(at, RULER_PX - 8), (at, canvas.height)], fill=(0, 255, 255, 70))
        draw.text((at + 2, 6 if (value // step) % 2 else 20), str(value), fill="black")
    for value in range(-(-y // step) * step, y + h + 1, step):
        at = RULER_PX + (value - y) * zoom
        draw.line([(RULER_PX - 8, at), (canvas.width, at)], fill=(0, 255, 255, 70))
        draw.text((2, at - 6), str(value), fill="black")
    return canvas


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture")
    parser.add_argument("out")
    parser.add_argument("box", nargs="*", type=int, metavar="X Y W H")
    parser.add_argument("--zoom", type=float)
    args = parser.parse_args()
    picture = ImageOps.exif_transpose(Image.open(resolve(args.picture))).convert("RGB")
    if len(args.box) not in (0, 4):
        parser.error("a part needs four numbers: X Y W H")
    box = (args.box[0], args.box[1], args.box[2], args.box[3]) if args.box else (0, 0, *picture.size)
    zoom = args.zoom or LONG_SIDE_PX / max(box[2], box[3])
    ruled(picture, box, zoom).save(args.out)


if __name__ == "__main__":
    main()
