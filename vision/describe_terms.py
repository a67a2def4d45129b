"""What a description of a face is made of: the features, their classes in stable names and in words, and the types.

Imports nothing but the standard library: whoever passes descriptions on needs no more of this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Words(NamedTuple):
    """The same in Chinese and in English."""

    zh: str
    en: str

    def of(self, lang: str) -> str:
        """In `lang`, `zh` or `en`."""
        return self.en if lang == "en" else self.zh


CLASSES: Mapping[str, Mapping[str, Words]] = {
    "face.shape": {
        "oval": Words("椭圆形脸", "oval face"),
        "round": Words("圆形脸", "round face"),
        "square": Words("方形脸", "square face"),
        "oblong": Words("长形脸", "oblong face"),
        "heart": Words("心形脸", "heart-shaped face"),
        "diamond": Words("菱形脸", "diamond-shaped face"),
        "triangle": Words("正三角形脸", "triangular face"),
    },
    "face.thirds": {
        "balanced": Words("三庭均衡", "balanced thirds"),
        "long_upper": Words("上庭偏长", "long upper third"),
        "long_middle": Words("中庭偏长", "long middle third"),
        "long_lower": Words("下庭偏长", "long lower third"),
        "short_upper": Words("上庭偏短", "short upper third"),
        "short_middle": Words("中庭偏短", "short middle third"),
        "short_lower": Words("下庭偏短", "short lower third"),
    },
    "brows.shape": {
        "straight": Words("平直眉", "straight brows"),
        "soft_arch": Words("柔和弧形眉", "softly arched brows"),
        "arched": Words("高挑眉", "arched brows"),
    },
    "brows.thickness": {
        "thin": Words("眉毛偏细", "thin brows"),
        "average": Words("眉毛粗细适中", "brows of average thickness"),
        "thick": Words("眉毛偏粗", "thick brows"),
    },
    "brows.tilt": {
        "drooping": Words("眉尾偏低", "brows that fall outwards"),
        "level": Words("眉尾高度适中", "level brows"),
        "rising": Words("眉尾上扬", "brows that rise outwards"),
    },
    "eyes.shape": {
        "slender": Words("细长眼", "slender eyes"),
        "almond": Words("杏仁眼", "almond eyes"),
        "round": Words("圆眼", "round eyes"),
    },
    "eyes.tilt": {
        "downturned": Words("眼尾偏低", "downturned eyes"),
        "neutral": Words("眼尾高度适中", "eyes of average tilt"),
        "upturned": Words("眼尾上扬", "upturned eyes"),
    },
    "eyes.spacing": {
        "close_set": Words("眼距偏近", "close-set eyes"),
        "average": Words("眼距适中", "eyes of average spacing"),
        "wide_set": Words("眼距偏宽", "wide-set eyes"),
    },
    "eyes.opening": {
        "narrow": Words("睁眼幅度偏小", "narrowly open eyes"),
        "average": Words("睁眼幅度适中", "eyes of average opening"),
        "wide": Words("睁眼幅度偏大", "wide-open eyes"),
    },
    "nose.width": {
        "narrow": Words("鼻翼偏窄", "narrow nose"),
        "average": Words("鼻翼宽度适中", "nose of average width"),
        "wide": Words("鼻翼偏宽", "wide nose"),
    },
    "nose.length": {
        "short": Words("鼻子偏短", "short nose"),
        "average": Words("鼻子长度适中", "nose of average length"),
        "long": Words("鼻子偏长", "long nose"),
    },
    "lips.thickness": {
        "thin": Words("嘴唇偏薄", "thin lips"),
        "average": Words("嘴唇厚度适中", "lips of average thickness"),
        "full": Words("嘴唇丰满", "full lips"),
    },
    "lips.width": {
        "narrow": Words("嘴偏小", "narrow mouth"),
        "average": Words("嘴宽适中", "mouth of average width"),
        "wide": Words("嘴偏宽", "wide mouth"),
    },
    "jaw.width": {
        "narrow": Words("下颌偏窄", "narrow jaw"),
        "average": Words("下颌宽度适中", "jaw of average width"),
        "wide": Words("下颌偏宽", "wide jaw"),
    },
    "jaw.angle": {
        "square": Words("下颌角明显", "square jaw angle"),
        "soft": Words("下颌角柔和", "soft jaw angle"),
        "tapered": Words("下颌线条收尖", "tapered jaw"),
    },
    "hair.length": {
        "short": Words("短发（从正面看）", "short hair, as seen from the front"),
        "medium": Words("中长发", "hair of medium length"),
        "long": Words("长发", "long hair"),
    },
    "hair.bangs": {
        "none": Words("无刘海", "no bangs"),
        "partial": Words("部分刘海", "partial bangs"),
        "full": Words("齐刘海", "full bangs"),
    },
    "hair.colour": {
        "black": Words("黑色", "black hair"),
        "dark_brown": Words("深棕色", "dark brown hair"),
        "brown": Words("棕色", "brown hair"),
        "light_brown": Words("浅棕色", "light brown hair"),
        "blonde": Words("金色", "blonde hair"),
        "red": Words("红色", "red hair"),
        "grey": Words("灰色", "grey hair"),
        "white": Words("白色", "white hair"),
        "dyed": Words("染成非天然色", "hair dyed in no natural colour"),
    },
}
"""Classes of each feature, by its dotted name. `average`, and the middle of three, is what most of the test pictures
show; see `vision.describe_ratios`."""

BETWEEN = Words("介于{}与{}之间", "between {} and {}")
"""Two classes of a feature on the border between them, in the order of the table."""

NO_PARSER = "NO_PARSER"
"""What only a parser can see, and there is none."""
GLASSES = "GLASSES"
EYES_NOT_SEEN = "EYES_NOT_SEEN"
"""No iris is found where the mesh has the eyes: closed, covered, or painted."""
NO_HAIR = "NO_HAIR"
HAT = "HAT"
HAIR_TOO_LITTLE = "HAIR_TOO_LITTLE"
"""Too little of the hair is seen to tell its colour."""

HIDDEN = frozenset({GLASSES, EYES_NOT_SEEN, NO_HAIR, HAT})
"""Reasons that say of the photo that the feature is not there to be seen, by anybody."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of a face: its class, and what it was decided by."""

    value: str | None
    """A name of `CLASSES`; None where it is not known."""
    confidence: float = 0.0
    """0 to 1: how far the measured is from the nearest other class."""
    borderline_with: str | None = None
    """That other class where the measured is so near to it that another photo of the same face, or the same in another
    size, may well fall into it; None where it is far enough."""
    ratios: Mapping[str, float] = field(default_factory=dict)
    """What was measured, by name; degrees where the name ends in `_deg`."""
    reason: str = ""
    """Why there is no class; empty where there is one."""

    @property
    def sure(self) -> bool:
        """Whether there is a class, and far enough from any other to be held against another opinion."""
        return self.value is not None and self.borderline_with is None


def in_words(name: str, value: str, borderline_with: str | None, lang: str) -> str:
    """The class of a feature; on a border both, the same on either side of it."""
    classes = CLASSES[name]
    if borderline_with is None:
        return classes[value].of(lang)
    first, second = sorted((value, borderline_with), key=list(classes).index)
    return BETWEEN.of(lang).format(classes[first].of(lang), classes[second].of(lang))


@dataclass(frozen=True, slots=True)
class FaceDescription:
    """All features of one face."""

    features: Mapping[str, Feature]
    """By every name of `CLASSES`."""
    hair_present: bool | None
    """None: not known without a parser."""
