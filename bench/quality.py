"""How good the vision is: trichion, pictures without a hairline, hair masks, perspective, invariance, rendered irises.

    python -m bench.quality [--keep FOLDER]

*Trichion*: the real pipeline on every picture on which two blind markings by eye (`bench/portraits/trichion_*.tsv`,
made before any detector existed) both see the hairline; the error along the face axis in percent of the face height.
*Negatives*: pictures with no hairline to be seen, most of them made here (`bench/portraits/negatives.py`; `--keep`
leaves them to be looked at); a trichion reported on one of them is false. *Hair*: masks of the whole photo against
outlines drawn by eye (`bench/portraits/hair_outlines.json`, before any parser was run on these pictures for their hair;
half of them loosely framed), and those of one crop of twice the face's height, and of twice the mesh's; five of them
were outlined twice (`hair_outlines_second.json`), which says how far two outlines of one head of hair agree.
*Perspective*: faces rendered from known distances (`bench/portraits/rendered_face.py`): the warning on the near ones
alone, ratios corrected to what they are from 1.5 m. *Invariance*: the same face smaller, compressed, turned, cropped,
mirrored: how far every number of every call moves (`bench/portraits/numbers.py`), and whether a mm value leaves its
interval.
*Irises*: rendered eyes of known size.

`interval_max_pct` leaves out three quantities: the outer fifths, brow to hairline, and temple recession. They end where
the face bends away or the line of the hair is steep; at an honest width their intervals are wider than 9 %.
`interval_max_all_pct` is the widest with them, of values from 10 mm on (a recession may be nil). Ratios of the outer
fifths are told apart as well. Nothing is left out of the other figures.

What was set by these very pictures: in `vision.hair_edge` `EQUAL_SEPARATION`, how much the photo's looks count against
the parser (the table says what becomes of the error when it is chosen on one half of the pictures and used on the
other), how grain is weighed, how far out hair is full and over how many rays the median is taken; these were chosen on
all nineteen, with an eye on the outlines of hair on the selfies, whose error is printed beside, so that neither is
quite unseen; the limits of `vision.hairline`, which stand between these portraits and negatives; the standard
deviations of `vision.anthropometry` and `vision.iris`, which were made wide enough for these variants; and the tables
of `vision.perspective`, which rest on renderings of the ten studio portraits alone; its two proportions and their
weight were chosen on those of all eighteen, with the selfies. Its limit for a near camera lies between the portraits
and the selfies of the same ten people. In `vision.hair_mask` from which probability on the parser's hair is hair, how
wide its border is, and how sure it must be of skin, were chosen with an eye on the mean IoU and area over these
outlines, the rest on keys of the studio portraits' hair, which are half of the same people; how uncertain a hair mask's
area is (`vision.masks.BORDER_SD`) is what is left on all of them. All selfies ought to be observed, and their
millimetres to agree with the studio's but for what a smile and a near camera do, which the intervals do not all cover.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from bench.harness import console, emit
from bench.quality_figures.hair import hair
from bench.quality_figures.invariance import invariance
from bench.quality_figures.irises import irises
from bench.quality_figures.looker import looker
from bench.quality_figures.negatives import negatives
from bench.quality_figures.perspective import perspective
from bench.quality_figures.trichion import trichion


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the negatives there")
    args = parser.parse_args()
    begun_s = time.perf_counter()
    with looker() as look:
        figures = trichion(look) | negatives(look, args.keep) | hair(look) | perspective(look)
        figures |= invariance(look) | irises()
    console.print(f"{time.perf_counter() - begun_s:.0f} s")
    emit(figures)


if __name__ == "__main__":
    main()
