"""Cut the font of the pictures down to the characters of `vision/labels.py`.

    python scripts/subset_font.py [NotoSansCJK-Regular.ttc]

Reads Noto Sans CJK (OFL 1.1; Debian package fonts-noto-cjk) and writes `vision/fonts/`. The same source gives the same
bytes. Needs fontTools (extra `dev`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTCollection

from vision import labels

SOURCE = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")
FAMILY = "Noto Sans CJK SC"
TARGET = Path(__file__).parents[1] / "vision" / "fonts" / "NotoSansCJKsc-Regular-subset.otf"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, nargs="?", default=SOURCE, help="the collection to cut from")
    source: Path = parser.parse_args().source

    collection = TTCollection(source, lazy=True)
    font = next(font for font in collection.fonts if font["name"].getDebugName(4) == FAMILY)
    options = subset.Options()
    options.layout_features = []  # drawn with Pillow's basic layout, which reads none
    options.name_IDs = ["*"]  # copyright and licence travel with the font
    options.name_languages = [0x409]
    options.drop_tables += ["vhea", "vmtx", "VORG", "BASE", "DSIG"]
    options.hinting = False
    options.recalc_timestamp = False
    cutter = subset.Subsetter(options)
    cutter.populate(text="".join(sorted(labels.characters())))
    cutter.subset(font)
    subset.save_font(font, TARGET, options)
    sys.stdout.write(f"{TARGET.name}: {TARGET.stat().st_size} bytes, {len(font.getBestCmap())} characters\n")


if __name__ == "__main__":
    main()
