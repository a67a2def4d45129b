"""Words beside the stable names in workers' answers: what a name means, in the language asked for. One table.

Names are never translated, and clients branch on them; what people read stands beside, under a key of its own. The edge
imports nothing of vision: a test holds that every name of its tables is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.descriptor import FieldDescriptor
from hair.analysis.v1 import common_pb2, growth_pb2, hairlines_pb2

from edge.messages import Lang, Text


@dataclass(frozen=True, slots=True)
class Words:
    """What the names in one field mean."""

    key: str
    """Under which the words stand, right behind the name."""
    description: str
    by_name: Mapping[str, Text]
    otherwise: Text | None = None
    """For names of a worker that is newer than this edge."""

    def of(self, name: str, lang: Lang) -> str | None:
        """A name in words; None where there are none."""
        text = self.by_name.get(name, self.otherwise)
        return None if text is None else text.of(lang)


_NO_PICTURE = Text("这次未能生成效果图，请稍后重试", "No picture could be made this time. Please try again later.")
GROWN_REASONS: Mapping[str, Text] = {
    "BACKEND_NONE": Text("本服务未启用生发功能", "This service is set up to grow no hair."),
    "NOTHING_TO_GROW": Text(
        "现有头发已达到此设计，或已覆盖该区域，无需生发",
        "The present hair reaches the design, or fills the region already: there is nothing to grow.",
    ),
    "CHILD": Text("照片中的人是儿童，不生成生发效果图", "No hair is grown on a child."),
    "HAIRLINE_HIDDEN": Text(
        "发际线被遮挡，请移开刘海、帽子或手，露出整个额头后重拍",
        "The hairline is hidden. Move bangs, hat or hand away, so that the whole forehead shows.",
    ),
    "NO_OWN_HAIR": Text(
        "要生发的区域附近本人的头发太少，无法取得发色和纹理；请换一张露出更多头发的照片，或选择离头发更近的区域",
        "Too little of the person's own hair is near the region to take colour and texture from. Use a photo that "
        "shows more of it, or a region nearer to it.",
    ),
    "NOT_CONVINCING": Text(
        "效果图不够真实，未予展示；请换一张照片、换一个 seed，或调整区域后再试",
        "A picture was made and is not shown, for it does not look real enough. Try another photo, seed or region.",
    ),
    "DIFFUSION_UNAVAILABLE": Text(
        "生发服务器暂不可用，请稍后重试", "The server that grows hair is not available. Please try again later."
    ),
    "DIFFUSION_FAILED": Text(
        "生发服务器未能生成图片，请稍后重试", "The server that grows hair made no picture. Please try again later."
    ),
    "DIFFUSION_STALLED": Text(
        "生发服务器停止响应，请稍后重试", "The server that grows hair stood still. Please try again later."
    ),
    "OUT_OF_TIME": Text(
        "给定的时间不足以完成生发，请给出更长的 X-Request-Timeout-Ms，或不发送该请求头",
        "The time allowed was too short to grow hair. Allow more in X-Request-Timeout-Ms, or leave that header out.",
    ),
    "GROWTH_FAILED": Text(
        "生发处理出错，请稍后重试", "Growing hair failed inside the service. Please try again later."
    ),
}
STYLES: Mapping[str, Text] = {
    "round": Text("圆形", "Round"),
    "m": Text("M 形", "M-shaped"),
    "widows_peak": Text("美人尖", "Widow's peak"),
    "rectangular": Text("方形", "Rectangular"),
    "bell": Text("钟形", "Bell"),
    "triangular": Text("三角形", "Triangular"),
    "straight": Text("一字形", "Straight"),
}
RULES: Mapping[str, Text] = {
    "glabella_distance": Text("距眉间高度", "height above glabella"),
    "upper_court": Text("上庭比例", "upper third"),
    "temporal_angle_on_canthus": Text("颞角位置", "place of temporal angle"),
    "temporal_angle": Text("颞角角度", "temporal angle"),
    "temple_rise": Text("颞角高度", "height of temporal angle"),
    "no_hair_removed": Text("保留现有头发", "no hair removed"),
}
WARNINGS: Mapping[str, Text] = {
    "CHILD": Text("儿童：成人标准不适用", "Child: adult norms do not hold"),
    "PERSPECTIVE": Text("拍摄距离过近，比例有透视误差", "Taken too close: perspective distorts proportions"),
    "NOT_A_PHOTO": Text("可能不是真人照片，数值不可靠", "May not be a photo of a person: values unreliable"),
    "SCALE_UNCERTAIN": Text("虹膜不够清楚，未给出毫米数", "The irises are not clear enough: no millimetres are given"),
    "PUPILLARY_DISTANCE_DOUBTFUL": Text(
        "所给瞳距与虹膜不符，请核对", "The pupillary distance given contradicts the irises: check it"
    ),
    "HEAD_TILTED": Text("仰头或低头，高度不准，请平视重拍", "Head tilted up or down: heights uncertain, retake level"),
    "GLASSES": Text("佩戴眼镜，区间较宽", "Glasses: wider interval"),
}

_STYLE = Words("style_text", "The style in words, in the language asked for.", STYLES)
_REASON = Words(
    "grown_message",
    "For people: why there is no grown picture, in the language asked for; null where there is one.",
    GROWN_REASONS,
    otherwise=_NO_PICTURE,
)
WARNING = Words("message", "The warning in words, in the language asked for.", WARNINGS)
_RULE = Words("text", "The rule in words, in the language asked for.", RULES)

WORDS: Mapping[FieldDescriptor, Words] = {
    message.DESCRIPTOR.fields_by_name[field]: words
    for message, field, words in (
        (common_pb2.Warning, "reason", WARNING),
        (growth_pb2.StyleResult, "style", _STYLE),
        (growth_pb2.StyleResult, "grown_reason", _REASON),
        (growth_pb2.RegionResult, "grown_reason", _REASON),
        (hairlines_pb2.HairlineDesign, "style", _STYLE),
        (hairlines_pb2.DesignRule, "name", _RULE),
    )
}
"""By the field that holds the names."""
