"""Published norms the measurements are compared with. Adults only; nothing here is used to compute anything.

Every figure was looked up: courts and widths in table 9 of the paper named, which was read without its text, so of whom
they are is not said here; the eyes in Jayaratne's table 2; the Japanese means in Kashiyama's abstract, the pupils in
Dodgson's. Studies differ: between the inner corners of the eyes the two have 32 and 40 mm, and both are told. Heights
are distances between two points there, and heights in a frontal view here (`vision.anthropometry`).
"""

from __future__ import annotations

from collections.abc import Mapping

from vision.types import Norm

COURTS = "Maxillofacial Plastic and Reconstructive Surgery (2019), doi:10.1186/s40902-019-0191-7, table 9, mean ± 1 SD"
HONG_KONG = "Jayaratne et al., BioMed Res Int (2013) 821428, stereophotogrammetry, mean ± 1 SD"
KASHIYAMA = "Kashiyama et al., Plast Reconstr Surg Glob Open 9 (2021) e3751, means"
DODGSON = "Dodgson, Proc SPIE 5291 (2004) 36, the vast majority of adults"
CANON = "neoclassical canon (a rule of drawing, not a statistic)"
CHINESE_API = "convention of Chinese face analysis services (a rule of proportion, not a statistic)"

CHINESE = ", Chinese of 18 to 35 years"


def _both(
    unit: str, source: str, *, men: tuple[float, float], women: tuple[float, float], who: str = ""
) -> tuple[Norm, ...]:
    """Mean and standard deviation per sex as ranges of one standard deviation to either side."""
    return tuple(
        Norm(round(mean - sd, 2), round(mean + sd, 2), unit, f"adults, {sex}{who}", source)
        for sex, (mean, sd) in (("men", men), ("women", women))
    )


def _ratio(value: float, source: str) -> Norm:
    return Norm(value, value, "ratio", "adults", source)


_HONG_KONG_EYE = {
    "left": ((27.07, 1.74), (25.37, 1.43)),
    "right": ((27.64, 1.67), (26.04, 1.83)),
}
_FIFTHS = {"right_outer": 0.8, "right_eye": 1.0, "middle": 1.2, "left_eye": 1.0, "left_outer": 0.8}

NORMS: Mapping[str, tuple[Norm, ...]] = {
    "thirds.upper": (_ratio(0.333, CANON), *_both("mm", COURTS, men=(61.4, 3.2), women=(55.4, 3.3))),
    "thirds.middle": (_ratio(0.333, CANON), *_both("mm", COURTS, men=(64.8, 6.5), women=(65.3, 5.7))),
    "thirds.lower": (_ratio(0.333, CANON), *_both("mm", COURTS, men=(76.4, 3.6), women=(69.5, 4.8))),
    **{
        f"fifths.{name}": (_ratio(1.0, CANON), *(() if ideal == 1.0 else (_ratio(ideal, CHINESE_API),)))
        for name, ideal in _FIFTHS.items()
    },
    "face_width": _both("mm", COURTS, men=(133.8, 4.6), women=(130.1, 3.5)),
    "jaw_width": _both("mm", COURTS, men=(106.6, 5.9), women=(96.8, 2.9)),
    "intercanthal_width": _both("mm", COURTS, men=(32.2, 1.9), women=(32.1, 1.4))
    + _both("mm", HONG_KONG, men=(40.61, 4.91), women=(38.27, 2.61), who=CHINESE),
    **{
        f"palpebral_width.{side}": _both("mm", HONG_KONG, men=men, women=women, who=CHINESE)
        for side, (men, women) in _HONG_KONG_EYE.items()
    },
    "pupillary_distance": (Norm(50.0, 75.0, "mm", "adults (mean 63)", DODGSON),),
    "nose_width": (_ratio(1.0, CANON), *_both("mm", COURTS, men=(43.2, 3.8), women=(40.7, 3.7))),
    "mouth_width": (_ratio(1.5, CANON), *_both("mm", COURTS, men=(55.9, 3.3), women=(52.0, 4.0))),
    "mid_frontal_height": (
        Norm(66.5, 66.5, "mm", "adults, men, Japanese", KASHIYAMA),
        Norm(62.0, 62.0, "mm", "adults, women, Japanese", KASHIYAMA),
    ),
}
"""By dotted name of the measurement. Ratios are to the quantity that the measurement's `ratio_of` names.

None for `temple_width`: the bitemporal width of `COURTS` (115.3 and 111.2 mm) is that between the frontotemporalia, on
the forehead; ours is that between the outlines of the face, some 12 mm more."""
