"""Words and numbers inside pictures, in Chinese and English: one table for every name that may be drawn.

The font in `fonts/` holds exactly the characters of these tables and of ASCII; after a change run
`scripts/subset_font.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vision.calls import DesignRule, Style
from vision.types import HairlineState, Interval, Lang, Scale, ScaleSource


class Words(NamedTuple):
    """One text in both languages."""

    zh: str
    en: str

    def __call__(self, lang: Lang) -> str:
        """The text in `lang`."""
        return self.zh if lang is Lang.ZH else self.en


MEASUREMENT: Mapping[str, Words] = {
    "thirds.upper": Words("上庭", "Upper third"),
    "thirds.middle": Words("中庭", "Middle third"),
    "thirds.lower": Words("下庭", "Lower third"),
    "thirds_nose_tip.upper": Words("上庭（鼻尖分界）", "Upper third (cut at nose tip)"),
    "thirds_nose_tip.middle": Words("中庭（鼻尖分界）", "Middle third (cut at nose tip)"),
    "thirds_nose_tip.lower": Words("下庭（鼻尖分界）", "Lower third (cut at nose tip)"),
    "fifths.right_outer": Words("右眼外侧", "Outside right eye"),
    "fifths.right_eye": Words("右眼", "Right eye"),
    "fifths.middle": Words("两眼之间", "Between the eyes"),
    "fifths.left_eye": Words("左眼", "Left eye"),
    "fifths.left_outer": Words("左眼外侧", "Outside left eye"),
    "face_height": Words("面高", "Face height"),
    "face_width": Words("面宽", "Face width"),
    "jaw_width": Words("下颌宽", "Jaw width"),
    "temple_width": Words("颞部宽", "Temple width"),
    "intercanthal_width": Words("内眦间距", "Intercanthal width"),
    "palpebral_width.left": Words("左睑裂宽", "Left palpebral width"),
    "palpebral_width.right": Words("右睑裂宽", "Right palpebral width"),
    "pupillary_distance": Words("瞳距", "Pupillary distance"),
    "nose_width": Words("鼻宽", "Nose width"),
    "mouth_width": Words("口宽", "Mouth width"),
    "brow_to_hairline.left": Words("左眉至发际线", "Left brow to hairline"),
    "brow_to_hairline.right": Words("右眉至发际线", "Right brow to hairline"),
    "mid_frontal_height": Words("额正中高", "Mid-frontal height"),
    "temple_recession.left": Words("左额角退缩", "Left temple recession"),
    "temple_recession.right": Words("右额角退缩", "Right temple recession"),
    "golden_triangle_angle": Words("黄金三角角度", "Golden triangle angle"),
}
"""By the dotted names of `vision.types.Facts.measurements`: all of them. Left and right are the subject's."""

RIGHT = Words("右", "R")
LEFT = Words("左", "L")
FIFTHS = Words("五眼", "Fifths")
EYE_UNIT = Words("眼宽 = 1", "eye = 1")
"""What the ratios of the fifths divide by: the mean palpebral width."""
BROW_TO_HAIRLINE = Words("眉至发际线", "Brow to hairline")
TEMPLE_RECESSION = Words("额角退缩", "Temple recession")
HAIRLINE = Words("发际线", "Hairline")
SIDES = Words("左右以本人为准", "Sides: the subject's own")
INTERVAL = Words("±{:.1f}%（95%）", "±{:.1f}% (95%)")
LESS_CERTAIN = Words("各数值误差更大", "Single values are less certain")
"""Beside the interval of the scale: to each value what is uncertain about its ends is added."""
SCALE: Mapping[ScaleSource | None, Words] = {
    ScaleSource.IRIS: Words("比例尺：虹膜", "Scale: iris"),
    ScaleSource.PUPILLARY_DISTANCE: Words("比例尺：瞳距", "Scale: pupillary distance"),
    None: Words("无比例尺，仅显示比例", "No scale: proportions only"),
}

HAIRLINE_NOTE: Mapping[HairlineState, Words] = {
    HairlineState.OCCLUDED: Words("发际线被遮挡，未测量上庭", "Hairline hidden: upper third not measured"),
    HairlineState.HAT: Words("帽子遮住发际线，未测量上庭", "Hat over the hairline: upper third not measured"),
    HairlineState.NONE: Words("照片中未见发际线，未测量上庭", "No hairline in the photo: upper third not measured"),
}
"""What a picture without a trichion says."""

WARNING: Mapping[str, Words] = {
    "CHILD": Words("儿童：成人标准不适用", "Child: adult norms do not hold"),
    "PERSPECTIVE": Words("拍摄距离过近，比例有透视误差", "Taken too close: perspective distorts proportions"),
    "NOT_A_PHOTO": Words("可能不是真人照片，数值不可靠", "May not be a photo of a person: values unreliable"),
    "SCALE_UNCERTAIN": Words("虹膜不够清楚，未给出毫米数", "The irises are not clear enough: no millimetres are given"),
    "PUPILLARY_DISTANCE_DOUBTFUL": Words(
        "所给瞳距与虹膜不符，请核对", "The pupillary distance given contradicts the irises: check it"
    ),
    "HEAD_TILTED": Words("仰头或低头，高度不准，请平视重拍", "Head tilted up or down: heights uncertain, retake level"),
    "GLASSES": Words("佩戴眼镜，区间较宽", "Glasses: wider interval"),
}
"""Warnings that belong on the picture, by `PhotoWarning.reason`; others stand in the answer alone."""

STYLE: Mapping[Style, Words] = {
    Style.ROUND: Words("圆形", "Round"),
    Style.M: Words("M 形", "M-shaped"),
    Style.WIDOWS_PEAK: Words("美人尖", "Widow's peak"),
    Style.RECTANGULAR: Words("方形", "Rectangular"),
    Style.BELL: Words("钟形", "Bell"),
    Style.TRIANGULAR: Words("三角形", "Triangular"),
    Style.STRAIGHT: Words("一字形", "Straight"),
}
DESIGN = Words("设计发际线", "Designed hairline")
DESIGN_ON_HAIR = Words("位于现有头发内", "Inside the present hair")
PRESENT_HAIRLINE = Words("现有发际线", "Present hairline")
AREA = Words("待种植 {} cm²（{}–{}）", "To fill {} cm² ({}–{})")
"""An area with its 95 % interval."""
GRAFTS = Words("约 {} 单位（{}/cm²）", "about {} grafts ({} per cm²)")
MARKED = Words("标记区域 {}", "Marked region {}")
"""A region that a user marked, and its area."""
NOTHING_TO_FILL = Words("现有头发已达到此设计", "The present hair reaches the design")
NO_AREA: Mapping[HairlineState, Words] = {
    HairlineState.OBSERVED: Words("部分发际线不可见，未估算面积", "Hairline seen in part: no area estimated"),
    HairlineState.OCCLUDED: Words("发际线被遮挡，未估算面积", "Hairline hidden: no area estimated"),
    HairlineState.HAT: Words("帽子遮住发际线，未估算面积", "Hat over the hairline: no area estimated"),
    HairlineState.NONE: Words("照片中未见发际线，未估算面积", "No hairline in the photo: no area estimated"),
}
"""Why a picture of a design tells no area, by the state of the trichion."""
NO_AREA_CHILD = Words("儿童：不估算面积和移植量", "Child: neither area nor grafts are estimated")
RULES_BROKEN = Words("未满足：{}", "Not kept: {}")
RULES_UNCERTAIN = Words("误差范围内：{}", "Within the error: {}")
"""Rules of which the error of millimetres leaves open whether they are kept."""
RULE: Mapping[str, Words] = {
    "glabella_distance": Words("距眉间高度", "height above glabella"),
    "upper_court": Words("上庭比例", "upper third"),
    "temporal_angle_on_canthus": Words("颞角位置", "place of temporal angle"),
    "temporal_angle": Words("颞角角度", "temporal angle"),
    "temple_rise": Words("颞角高度", "height of temporal angle"),
    "no_hair_removed": Words("保留现有头发", "no hair removed"),
}
"""By `vision.calls.DesignRule.name`: all that `vision.designs.rules` judges."""
LIST_SEPARATOR = Words("、", ", ")


def mm(value: float) -> str:
    """A length in millimetres with its unit."""
    return f"{value:.1f} mm"


def bare_mm(value: float) -> str:
    """A length in millimetres where the unit stands elsewhere."""
    return f"{value:.1f}"


def area(cm2: float, interval: Interval, lang: Lang) -> str:
    """An area to fill with its interval."""
    return AREA(lang).format(f"{cm2:.1f}", f"{interval.low:.1f}", f"{interval.high:.1f}")


def marked(px2: float, cm2: float | None, lang: Lang) -> str:
    """A marked region's area: in cm² where there is a scale, else in the photo's pixels."""
    return MARKED(lang).format(f"{px2:.0f} px²" if cm2 is None else f"{cm2:.1f} cm²")


def grafts(count: int, density_per_cm2: float, lang: Lang) -> str:
    """A graft estimate and the density it is for; more digits would claim to be known."""
    rounded = round(count, -1) if count >= 100 else count
    return GRAFTS(lang).format(rounded, f"{density_per_cm2:g}")


def broken(rules: Sequence[DesignRule], lang: Lang) -> str:
    """The rules that a design does not keep; empty when it keeps all."""
    return _rules(RULES_BROKEN, [rule for rule in rules if rule.certain and not rule.kept], lang)


def uncertain(rules: Sequence[DesignRule], lang: Lang) -> str:
    """The rules that a design may keep or not; empty when none is near its limit."""
    return _rules(RULES_UNCERTAIN, [rule for rule in rules if not rule.certain], lang)


def _rules(words: Words, rules: Sequence[DesignRule], lang: Lang) -> str:
    names = [RULE[rule.name](lang) for rule in rules]
    return words(lang).format(LIST_SEPARATOR(lang).join(names)) if names else ""


def share(ratio: float) -> str:
    """A ratio as a whole percentage."""
    return f"{100 * ratio:.0f}%"


def times(ratio: float) -> str:
    """A ratio to a unit that stands elsewhere."""
    return f"{ratio:.2f}"


def scale(found: Scale, lang: Lang) -> str:
    """Where the millimetres come from, and the 95 % interval of the scale alone."""
    source = SCALE[found.source](lang)
    return source if found.mm_per_px is None else f"{source} {INTERVAL(lang).format(found.causes.total_pct)}"


def characters() -> set[str]:
    """Every character that a picture may hold: printable ASCII, that of the numbers, and that of all tables."""
    tables: list[Words] = [value for value in globals().values() if isinstance(value, Words)]
    for table in (MEASUREMENT, SCALE, HAIRLINE_NOTE, WARNING, STYLE, NO_AREA, RULE):
        tables.extend(table.values())
    return (
        {chr(code) for code in range(0x20, 0x7F)}
        | set("±·×°–—²")
        | {c for words in tables for c in words.zh + words.en}
    )
