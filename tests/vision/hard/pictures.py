"""The hard pictures: how each is made, and what it is promised.

One row for each; `test_hard_pictures` holds the promises with the real models, and `scripts/hard_pictures.py` makes
`docs/hard-pictures.md` and its thumbnails out of this table.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from PIL import Image
from pillow_heif import register_heif_opener

from tests.vision.hard import edits
from tests.vision.hard.studio import Studio, stored
from vision.errors import Reason
from vision.growth.backend import GrowthReason
from vision.types import HairlineState

register_heif_opener()

Make = Callable[[Studio], bytes]

OBSERVED, OCCLUDED, HAT, NONE = HairlineState
NEAR, GLASSES, CHILD, NO_SCALE, TILTED = "PERSPECTIVE", "GLASSES", "CHILD", "SCALE_UNCERTAIN", "HEAD_TILTED"


@dataclass(frozen=True)
class Answered:
    """The photo is answered."""

    hairline: HairlineState
    warnings: frozenset[str] = frozenset()
    """Exactly these."""
    same_as_reference: bool = False
    """It is the reference portrait in another file: every millimetre agrees."""

    whole: bool = True
    """The hairline is seen from temple to temple, where it is seen at all: else there is no area."""
    grown: GrowthReason | None = None
    """Why nothing is grown to a style, where that is certain; None: it is tried, and its proof decides."""

    @property
    def of_child(self) -> bool:
        """Whether adults' rules and figures are left out."""
        return CHILD in self.warnings

    @property
    def has_area(self) -> bool:
        """Whether designs say how much is to be filled."""
        return self.hairline is OBSERVED and self.whole and self.has_scale and not self.of_child

    @property
    def has_scale(self) -> bool:
        """Whether there are millimetres without a given pupillary distance."""
        return NO_SCALE not in self.warnings


@dataclass(frozen=True)
class HardPicture:
    """One picture."""

    group: str
    name: str
    made: str
    """Where from and how."""
    make: Make
    promise: Answered | Reason
    """What every call does with it: answers, or refuses."""
    note: str = ""
    """What the reader should know; where the answer is not the best there could be, that."""

    @property
    def slug(self) -> str:
        """Name of its thumbnail."""
        return self.name.replace(",", "").replace(" ", "-").lower()

    @property
    def needs_shared(self) -> bool:
        """Whether it needs the shared portraits."""
        return self.made.startswith("shared portrait")


def warned(state: HairlineState, *warnings: str, grown: GrowthReason | None = None) -> Answered:
    return Answered(state, frozenset(warnings), grown=grown)


def shared(name: str) -> Make:
    return lambda studio: studio.shared(f"{name}.jpg")


def negative(name: str) -> Make:
    return lambda studio: stored(studio.edited(name))


def as_file(form: str, **options: object) -> Make:
    """The reference portrait in another format."""
    return lambda studio: stored(studio.portrait(), form, **options)


REFERENCE = 1
"""Person whose studio portrait, 1024 px wide, the formats are made of."""
TURNED: Mapping[int, Image.Transpose] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
"""How a camera that writes this EXIF orientation stores an upright picture."""


def with_orientation(orientation: int) -> Make:
    def make(studio: Studio) -> bytes:
        image = Image.fromarray(studio.portrait())
        if orientation in TURNED:
            image = image.transpose(TURNED[orientation])
        exif = Image.Exif()
        exif[0x0112] = orientation
        return _saved(image, "PNG", exif=exif)

    return make


def two_faces(studio: Studio) -> bytes:
    return stored(np.hstack([studio.portrait(1, 700), studio.portrait(4, 700)]))


def small_face_behind(studio: Studio) -> bytes:
    scene = np.hstack([np.full((1024, 400, 3), 128, np.uint8), studio.portrait()])
    scene[100:350, 50:300] = studio.portrait(4, 250)
    return stored(scene)


def upside_down(studio: Studio) -> bytes:
    return stored(np.ascontiguousarray(studio.portrait()[::-1, ::-1]))


def on_its_side(studio: Studio) -> bytes:
    return stored(np.ascontiguousarray(np.rot90(studio.portrait())))


def cmyk(studio: Studio) -> bytes:
    return _saved(Image.fromarray(studio.portrait()).convert("CMYK"), "JPEG", quality=95)


def sixteen_bit_grey(studio: Studio) -> bytes:
    grey = np.asarray(Image.fromarray(studio.portrait()).convert("L"), dtype=np.uint16)
    return _saved(Image.fromarray(grey * 257), "PNG")


def palette(studio: Studio) -> bytes:
    return _saved(Image.fromarray(studio.portrait()).quantize(256, dither=Image.Dither.FLOYDSTEINBERG), "PNG")


def second_face_hidden(studio: Studio) -> bytes:
    """The reference portrait; beside it another face whose pixels are wholly transparent."""
    both = np.hstack([studio.portrait(1, 700), studio.portrait(4, 700)])
    alpha = np.full(both.shape[:2], 255, np.uint8)
    alpha[:, 700:] = 0
    return _saved(Image.fromarray(np.dstack([both, alpha])), "PNG")


def animated(studio: Studio) -> bytes:
    frames = [Image.fromarray(studio.portrait(person, 512)) for person in (REFERENCE, 4)]
    return _saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], duration=100, quality=90)


def mpo(studio: Studio) -> bytes:
    frames = [Image.fromarray(studio.portrait(person, 1024)) for person in (REFERENCE, 4)]
    return _saved(frames[0], "MPO", save_all=True, append_images=frames[1:], quality=95)


def gif(studio: Studio) -> bytes:
    return _saved(Image.fromarray(studio.portrait(1, 512)), "GIF")


def cut_off(studio: Studio) -> bytes:
    whole = stored(studio.portrait())
    return whole[: len(whole) // 2]


def bomb(_studio: Studio) -> bytes:
    """20 kB that unfold to 169 million pixels."""
    return _saved(Image.new("1", (13_000, 13_000)), "PNG")


def _saved(image: Image.Image, form: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def framed(*, dark: bool) -> Make:
    return lambda studio: stored(edits.glasses(studio.face(3), dark=dark))


def lit_from_the_side(studio: Studio) -> bytes:
    return stored(edits.side_light(studio.portrait(), 0.15))


def before_a_window(studio: Studio) -> bytes:
    return stored(edits.backlight(studio.face(3), 0.3))


def before_black(studio: Studio) -> bytes:
    return stored(edits.on_black(studio.face(5)))


def out_of_focus(sigma_px: float) -> Make:
    return lambda studio: stored(edits.blur(studio.portrait(), sigma_px))


def grainy(studio: Studio) -> bytes:
    return stored(edits.grain(studio.portrait(), 25.0))


def from_the_side(studio: Studio) -> bytes:
    return stored(studio.profile(5))


def at_arms_length(studio: Studio) -> bytes:
    return stored(studio.selfie(9))


def reduced_to(side_px: int) -> Make:
    return lambda studio: stored(studio.portrait(side_px=side_px))


def face_alone(studio: Studio) -> bytes:
    """250 × 250, of which the head takes the most."""
    return stored(studio.portrait(side_px=400)[60:310, 75:325])


def in_a_long_strip(studio: Studio) -> bytes:
    """600 × 6600, a portrait in the middle of it."""
    strip = np.full((6600, 600, 3), 128, np.uint8)
    strip[3000:3600] = studio.portrait(side_px=600)
    return stored(strip)


SAME = Answered(OBSERVED, same_as_reference=True)
SMALLEST = (
    "A studio portrait has to be 300 px wide: of the face's height 120 px are needed, or there is no iris to measure."
)

HIDDEN, LIGHT, WHO, PLACE, FILES = (
    "What hides the hairline",
    "Light, focus, noise",
    "Who is in the picture",
    "Pose, distance, size",
    "Files",
)

HARD: tuple[HardPicture, ...] = (
    HardPicture(HIDDEN, "full bangs", "P009, bangs painted", negative("bangs to the brows"), warned(OCCLUDED)),
    HardPicture(HIDDEN, "blue bob", "shared portrait synthetic_12", shared("synthetic_12"), warned(OCCLUDED)),
    HardPicture(HIDDEN, "curly bangs", "P002, bangs painted", negative("curly bangs"), warned(OCCLUDED)),
    HardPicture(HIDDEN, "beanie", "P003, beanie painted", negative("beanie, red"), warned(HAT)),
    HardPicture(HIDDEN, "cap", "P008, cap painted", negative("cap, blue"), warned(HAT)),
    HardPicture(HIDDEN, "hand on forehead", "P003, hand painted", negative("hand, rising"), warned(OCCLUDED)),
    HardPicture(
        HIDDEN,
        "hand from the side",
        "P005, hand painted",
        negative("hand from the left"),
        warned(HAT),
        note="Hidden, rightly; the parser takes the hand for a hat.",
    ),
    HardPicture(
        HIDDEN,
        "bald, bearded",
        "P005, hair taken away",
        negative("bald, bearded"),
        warned(NONE, grown=GrowthReason.NO_OWN_HAIR),
    ),
    HardPicture(
        HIDDEN,
        "bald, fair",
        "P010, hair taken away",
        negative("bald, fair skin"),
        warned(OCCLUDED),
        note="None would be right; never observed.",
    ),
    HardPicture(HIDDEN, "shaved", "P006, stubble left", negative("shaved, dark skin"), warned(NONE)),
    HardPicture(HIDDEN, "glasses", "shared portrait synthetic_09", shared("synthetic_09"), warned(OBSERVED, GLASSES)),
    HardPicture(HIDDEN, "round frames", "P003, frames painted", framed(dark=False), warned(OBSERVED, GLASSES)),
    HardPicture(
        HIDDEN,
        "sunglasses",
        "P003, dark lenses painted",
        framed(dark=True),
        warned(OBSERVED, GLASSES, NO_SCALE),
        note="No iris, no millimetres: give `pupillary_distance_mm`.",
    ),
    HardPicture(LIGHT, "side light", "P001, one side left 15 % of its light", lit_from_the_side, warned(OBSERVED)),
    HardPicture(LIGHT, "backlight", "P003 before a window, left 30 % of the light", before_a_window, warned(OBSERVED)),
    HardPicture(LIGHT, "dark hair on black", "P005 before a black curtain", before_black, warned(OBSERVED)),
    HardPicture(LIGHT, "slight blur", "P001, Gaussian of 3 px", out_of_focus(3), warned(OBSERVED)),
    HardPicture(
        LIGHT,
        "heavy blur",
        "P001, Gaussian of 12 px",
        out_of_focus(12),
        warned(HAT, NO_SCALE),
        note="Nothing is made up where nothing is sharp: no hairline, no millimetres. It is no hat, though.",
    ),
    HardPicture(LIGHT, "grain", "P001, noise of 25 grey levels", grainy, warned(OBSERVED)),
    HardPicture(WHO, "two faces", "P001 and P004 side by side", two_faces, Reason.MULTIPLE_FACES),
    HardPicture(WHO, "small face behind", "P001, a small P004 behind", small_face_behind, warned(OBSERVED)),
    HardPicture(
        WHO,
        "infant",
        "shared portrait synthetic_04",
        shared("synthetic_04"),
        warned(OBSERVED, CHILD, grown=GrowthReason.CHILD),
        note="Designs are drawn, without adults' rules, area and grafts; nothing is grown.",
    ),
    HardPicture(
        WHO,
        "boy, shaved",
        "shared portrait synthetic_11",
        shared("synthetic_11"),
        warned(NONE, CHILD, grown=GrowthReason.CHILD),
    ),
    HardPicture(WHO, "statue", "shared portrait statue", shared("statue"), Reason.FACE_TOO_SMALL),
    HardPicture(WHO, "puppet", "shared portrait puppet", shared("puppet"), Reason.NO_FACE),
    HardPicture(WHO, "painting", "shared portrait painting_1", shared("painting_1"), Reason.FACE_TOO_SMALL),
    HardPicture(WHO, "painting, wig", "shared portrait painting_2", shared("painting_2"), Reason.FACE_TOO_SMALL),
    HardPicture(PLACE, "upside down", "P001 turned by 180°, no EXIF", upside_down, Reason.UPSIDE_DOWN),
    HardPicture(PLACE, "on its side", "P001 turned by 90°, no EXIF", on_its_side, Reason.ROLL),
    HardPicture(PLACE, "profile", "P005's character sheet", from_the_side, Reason.NO_FACE),
    HardPicture(PLACE, "close-up selfie", "P009's selfie", at_arms_length, warned(OBSERVED, NEAR)),
    HardPicture(
        PLACE,
        "from below",
        "shared portrait synthetic_10",
        shared("synthetic_10"),
        Answered(OBSERVED, frozenset({TILTED}), whole=False),
        note="Heights with a wider interval; the turned head hides a part of the hairline: no area.",
    ),
    HardPicture(PLACE, "200 px", "P001, 200 px wide", reduced_to(200), Reason.FACE_TOO_SMALL, note=SMALLEST),
    HardPicture(PLACE, "250 px", "P001, 250 px wide", reduced_to(250), Reason.FACE_TOO_SMALL, note=SMALLEST),
    HardPicture(PLACE, "250 px, head alone", "P001, cut to 250 × 250", face_alone, warned(OBSERVED)),
    HardPicture(PLACE, "300 px", "P001, 300 px wide", reduced_to(300), warned(OBSERVED)),
    HardPicture(
        PLACE,
        "long strip",
        "P001, 600 px wide, on a strip of 600 × 6600",
        in_a_long_strip,
        warned(OBSERVED),
    ),
    *(HardPicture(FILES, f"EXIF {at}", "P001, PNG stored turned", with_orientation(at), SAME) for at in range(1, 9)),
    HardPicture(FILES, "HEIC", "P001 as an iPhone stores it", as_file("HEIF", quality=90), SAME),
    HardPicture(FILES, "CMYK", "P001 in printing inks", cmyk, SAME),
    HardPicture(FILES, "16-bit grey", "P001 in 65,536 levels of grey", sixteen_bit_grey, SAME),
    HardPicture(FILES, "palette", "P001 in 256 colours", palette, SAME),
    HardPicture(FILES, "alpha", "P001; beside it P004, wholly transparent", second_face_hidden, warned(OBSERVED)),
    HardPicture(FILES, "animated", "WebP; its first frame is P001", animated, warned(OBSERVED)),
    HardPicture(FILES, "MPO", "what some phones store as .jpg; first P001", mpo, SAME),
    HardPicture(FILES, "GIF", "P001 in a format that is not read", gif, Reason.UNSUPPORTED_FORMAT),
    HardPicture(FILES, "truncated", "the first half of a JPEG's bytes", cut_off, Reason.DAMAGED_IMAGE),
    HardPicture(FILES, "bomb", "a PNG of 20 kB and 169 megapixels", bomb, Reason.IMAGE_TOO_MANY_PIXELS),
)
