"""Every reason an answer can give: its code, HTTP status, words and advice. One table, read row by row.

A reason that is not in the table comes from a worker that is newer than this edge: it is answered like `INPUT_FAILED`,
under its own name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from edge.calls import CallFailedError, DetailValue
from edge.messages import Text

Details = Mapping[str, DetailValue]
Advice = Text | Callable[[Details], Text]

NO_FACE, RESOLUTION, NOT_FRONTAL, TOO_LARGE, NO_PICTURE, UNCLEAR, SYSTEM, PARAMETER = range(1001, 1009)
"""The contract's codes; 0 is good."""


@dataclass(frozen=True, slots=True)
class Row:
    """What the contract says about one reason."""

    code: int
    http_status: int
    message: Text
    advice: Advice | None = None
    """What to do before the next try; a function of the details where the direction counts."""
    retry_after_s: int | None = None
    """`Retry-After` where the one who raised it knows no better."""
    message_at_once: Text | None = None
    """Instead of `message` where nothing was tried, because the client's patience is shorter than `needed_ms`."""


def _by_sign(key: str, positive: Text, negative: Text, unknown: Text) -> Callable[[Details], Text]:
    """Advice that depends on the sign of `details[key]`."""

    def advice(details: Details) -> Text:
        value = details.get(key)
        if not isinstance(value, int | float) or value == 0:
            return unknown
        return positive if value > 0 else negative

    return advice


_YAW_ADVICE = _by_sign(  # positive: turned to the subject's own left
    "yaw_deg",
    Text("请把头稍微转向您的右侧，正对镜头", "Turn your head a little to your right until you face the camera."),
    Text("请把头稍微转向您的左侧，正对镜头", "Turn your head a little to your left until you face the camera."),
    Text("请把头转正一点，正对镜头", "Turn your head until you face the camera."),
)
_PITCH_ADVICE = _by_sign(  # positive: chin down
    "pitch_deg",
    Text("请把下巴抬高一点，平视镜头", "Raise your chin a little and look straight into the camera."),
    Text("请把下巴放低一点，平视镜头", "Lower your chin a little and look straight into the camera."),
    Text("请平视镜头，不要抬头或低头", "Look straight into the camera, chin neither up nor down."),
)
PHOTO_LIES_DEG = 60.0
"""Nobody tilts their head so far: from here on it is the photo that lies on its side."""
_TILT_ADVICE = _by_sign(  # positive: top of the head towards the viewer's right, the subject's left
    "roll_deg",
    Text("请把头稍微偏向您的右肩，摆正后再拍", "Tilt your head a little towards your right shoulder."),
    Text("请把头稍微偏向您的左肩，摆正后再拍", "Tilt your head a little towards your left shoulder."),
    Text("请把头摆正，不要歪头", "Hold your head upright."),
)
_TURN_ADVICE = _by_sign(
    "roll_deg",
    Text("请把照片逆时针旋转 90° 后再上传", "Turn the photo by 90° counter-clockwise and upload it again."),
    Text("请把照片顺时针旋转 90° 后再上传", "Turn the photo by 90° clockwise and upload it again."),
    Text("请把照片旋转 90° 后再上传", "Turn the photo by 90° and upload it again."),
)


def _roll_advice(details: Details) -> Text:
    roll_deg = details.get("roll_deg")
    lies = isinstance(roll_deg, int | float) and abs(roll_deg) > PHOTO_LIES_DEG
    return _TURN_ADVICE(details) if lies else _TILT_ADVICE(details)


_RETAKE = Text(
    "请正对镜头、光线均匀，让整张脸完整入镜后重拍",
    "Take the photo again: facing the camera, in even light, the whole face in the frame.",
)
_MORE_TIME = Text(
    "请给出更长的 X-Request-Timeout-Ms（至少 details 中的 needed_ms），或不发送该请求头",
    "Allow more time in X-Request-Timeout-Ms (at least needed_ms in details), or leave that header out.",
)
_LATER = Text("请稍后重试", "Please try again later.")
_MORE_ROOM = Text("请联系管理员扩大图片存储空间", "Have the operator give the picture store more room.")
_SEE_FIELD = Text("请检查 details 中指出的字段", "Check the field named in details.")
_SEND_ORIGINAL = Text("请重新选择原图并再次上传", "Choose the original picture and upload it again.")

TABLE: Mapping[str, Row] = {
    "NO_FACE": Row(NO_FACE, 400, Text("照片中未检测到人脸", "No face was found in the photo."), _RETAKE),
    "IMAGE_TOO_SMALL": Row(
        RESOLUTION,
        400,
        Text("图片尺寸过小", "The picture is too small."),
        Text("请使用短边不小于 200 像素的原图", "Use a picture whose short side has at least 200 pixels."),
    ),
    "IMAGE_TOO_MANY_PIXELS": Row(
        RESOLUTION,
        400,
        Text("图片像素过多", "The picture has too many pixels."),
        Text("请缩小图片后再上传", "Scale the picture down before uploading it."),
    ),
    "FACE_TOO_SMALL": Row(
        RESOLUTION,
        400,
        Text("照片中的人脸过小", "The face is too small in the photo."),
        Text("请靠近一点拍摄，让脸占画面的大部分", "Come closer, so that the face fills most of the frame."),
    ),
    "FACE_CUT_OFF": Row(
        RESOLUTION,
        400,
        Text("人脸超出画面", "The face is cut off at the edge of the photo."),
        Text(
            "请退后一点，让额头、下巴和两侧完整入镜", "Move back until forehead, chin and both sides are in the frame."
        ),
    ),
    "YAW": Row(NOT_FRONTAL, 400, Text("头部左右偏转角度过大", "The head is turned too far to the side."), _YAW_ADVICE),
    "PITCH": Row(NOT_FRONTAL, 400, Text("抬头或低头角度过大", "The head is nodded too far up or down."), _PITCH_ADVICE),
    "ROLL": Row(NOT_FRONTAL, 400, Text("头部歪斜角度过大", "The head is tilted too far."), _roll_advice),
    "UPSIDE_DOWN": Row(
        NOT_FRONTAL,
        400,
        Text("照片上下颠倒", "The photo is upside down."),
        Text("请把照片旋转 180° 后再上传", "Turn the photo by 180° and upload it again."),
    ),
    "BODY_TOO_LARGE": Row(
        TOO_LARGE,
        413,
        Text("请求体过大", "The request is too large."),
        Text("请压缩或缩小图片后再上传", "Compress the picture or scale it down before uploading it."),
    ),
    "UNSUPPORTED_FORMAT": Row(
        NO_PICTURE,
        400,
        Text("不支持的图片格式", "This picture format is not supported."),
        Text("请使用 JPEG、PNG 或 WebP 图片", "Use a JPEG, PNG or WebP picture."),
    ),
    "DAMAGED_IMAGE": Row(NO_PICTURE, 400, Text("图片已损坏", "The picture is damaged."), _SEND_ORIGINAL),
    "BAD_BASE64": Row(
        NO_PICTURE,
        400,
        Text("base64 数据已损坏", "The base64 text is damaged."),
        Text("请检查编码，注意 + 不能变成空格", "Check how it is encoded and sent: + must not become a blank."),
    ),
    "INPUT_FAILED": Row(NO_PICTURE, 400, Text("无法处理这张图片", "This picture cannot be processed."), _SEND_ORIGINAL),
    "POISON_INPUT": Row(
        NO_PICTURE,
        400,
        Text("这张图片多次导致处理失败，不再处理", "This picture broke processing repeatedly and is refused."),
        Text("请换一张照片", "Use another photo."),
    ),
    "MULTIPLE_FACES": Row(
        UNCLEAR,
        400,
        Text("照片中有多张人脸，无法确定测量对象", "Several faces are in the photo; it is unclear which one is meant."),
        Text("请使用只有一个人的照片", "Use a photo with one person only."),
    ),
    "HAIRLINE_HIDDEN": Row(
        UNCLEAR,
        400,
        Text("发际线被遮挡", "The hairline is hidden."),
        Text("请移开刘海、帽子或手，露出整个额头", "Move bangs, hat or hand away, so that the whole forehead shows."),
    ),
    "NO_WORKER": Row(
        SYSTEM,
        503,
        Text("后端服务暂不可用，请稍后重试", "The service is not available at present, please try again later."),
        _LATER,
        retry_after_s=10,
    ),
    "BUSY": Row(
        SYSTEM,
        503,
        Text("后端服务繁忙，请稍后重试", "The service is busy, please try again later."),
        _LATER,
        retry_after_s=5,
    ),
    "WORKER_FAILED": Row(
        SYSTEM, 503, Text("处理失败，请稍后重试", "Processing failed, please try again later."), _LATER, retry_after_s=5
    ),
    "DEADLINE": Row(
        SYSTEM,
        504,
        Text("处理超时，请稍后重试", "Processing took too long, please try again later."),
        lambda details: _MORE_TIME if "needed_ms" in details else _LATER,
        retry_after_s=5,
        message_at_once=Text(
            "给定的时间不足以完成处理", "The time allowed is shorter than processing takes at present."
        ),
    ),
    "STORE_FULL": Row(
        SYSTEM,
        503,
        Text("图片存储空间不足", "The picture store has no room for this answer."),
        lambda details: _MORE_ROOM if "max_bytes" in details else _LATER,  # not even if it were empty
        retry_after_s=60,
    ),
    "STORE_FAILED": Row(
        SYSTEM,
        503,
        Text("图片存储故障，请稍后重试", "The picture store does not work, please try again later."),
        _LATER,
        retry_after_s=30,
    ),
    "LOCAL_VISION_MISSING": Row(
        SYSTEM,
        503,
        Text(
            "本网关未启用本机人脸分析，暂不能处理此请求",
            "This edge has no vision of its own and cannot serve this call.",
        ),
        Text("请联系管理员安装 edge-vision 组件", "Have the operator install the extra edge-vision."),
        retry_after_s=60,
    ),
    "LOCAL_MODELS_MISSING": Row(
        SYSTEM,
        503,
        Text("本网关缺少模型文件，暂不能处理此请求", "This edge lacks a model file and cannot serve this call."),
        Text("请联系管理员放置模型文件", "Have the operator put the model files in place."),
        retry_after_s=60,
    ),
    "LOCAL_VISION_STUCK": Row(
        SYSTEM,
        503,
        Text(
            "本网关的本机人脸分析已停止响应，暂不能处理此请求",
            "This edge's own vision hangs and cannot serve this call.",
        ),
        Text("请联系管理员重启网关", "Have the operator restart the edge."),
        retry_after_s=60,
    ),
    "SHUTTING_DOWN": Row(
        SYSTEM,
        503,
        Text("服务正在重启，请稍后重试", "The service is restarting, please try again later."),
        _LATER,
        retry_after_s=5,
    ),
    "NO_EDGE": Row(  # said by the proxy in front (deploy/nginx), which reached no edge: nobody has begun the call
        SYSTEM,
        503,
        Text("服务暂时无法连接，请稍后重试", "The service cannot be reached at present, please try again later."),
        _LATER,
        retry_after_s=3,
    ),
    "EDGE_FAILED": Row(  # by that proxy, too: the edge went with the call, and another one is there at once
        SYSTEM, 503, Text("系统错误，请稍后重试", "System error, please try again later."), _LATER, retry_after_s=1
    ),
    "MISSING_PARAMETER": Row(PARAMETER, 400, Text("缺少参数", "A parameter is missing."), _SEE_FIELD),
    "INVALID_PARAMETER": Row(PARAMETER, 400, Text("参数无效", "A parameter is invalid."), _SEE_FIELD),
    "REGION_SELF_CROSSING": Row(
        PARAMETER,
        400,
        Text("区域边界自相交", "The region's border crosses itself."),
        Text(
            "请沿区域边缘依次给出各点，边线不要交叉",
            "Give the corners in order along the border; edges must not cross.",
        ),
    ),
    "REGION_OUTSIDE_IMAGE": Row(
        PARAMETER,
        400,
        Text("区域超出图片范围", "The region lies outside the picture."),
        Text(
            "坐标以摆正后照片的像素为单位，原点在左上角",
            "Coordinates are pixels of the upright photo, with the origin at its top left corner.",
        ),
    ),
    "REGION_EMPTY": Row(
        PARAMETER,
        400,
        Text("区域为空", "The region is empty."),
        Text("请圈出需要生发的部位", "Mark the part in which hair is to grow."),
    ),
    "REGION_OFF_SCALP": Row(
        PARAMETER,
        400,
        Text("区域不在头皮或额头上", "The region lies neither on the scalp nor on the forehead."),
        Text("请圈出头皮或额头上需要生发的部位", "Mark the part of scalp or forehead in which hair is to grow."),
    ),
    "REGION_TOO_LARGE": Row(
        PARAMETER,
        400,
        Text("区域过大", "The region is too large."),
        Text("请只圈出头皮上需要生发的部位", "Mark only the part of the scalp in which hair is to grow."),
    ),
    "REGION_TOO_FINE": Row(
        PARAMETER,
        400,
        Text("区域过于零碎", "The region is too fine."),
        Text(
            "请用连续的笔画涂出需要生发的部位，不要用散点或噪点",
            "Paint the part in which hair is to grow in whole strokes, not in dots or noise.",
        ),
    ),
    "MASK_SIZE_DIFFERS": Row(
        PARAMETER,
        400,
        Text("蒙版尺寸与照片不一致", "The mask does not have the size of the photo."),
        Text("蒙版的宽高须与摆正后的照片相同", "Width and height of the mask must be those of the upright photo."),
    ),
    "MASK_UNREADABLE": Row(
        PARAMETER,
        400,
        Text("无法读取蒙版图片", "The mask is not a picture we can read."),
        Text("请使用 PNG 灰度图作为蒙版", "Use a grey PNG as the mask."),
    ),
    "BAD_JSON": Row(PARAMETER, 400, Text("请求体不是有效的 JSON 对象", "The body is not a valid JSON object.")),
    "BAD_MULTIPART": Row(
        PARAMETER, 400, Text("multipart 请求体格式错误", "The body is not valid multipart/form-data.")
    ),
    "BODY_INCOMPLETE": Row(
        PARAMETER,
        408,
        Text("请求体接收超时", "The body did not arrive in time."),
        Text("请检查网络，或缩小图片后再试", "Check the connection, or make the picture smaller, and try again."),
    ),
    "HEAD_TOO_LARGE": Row(PARAMETER, 431, Text("请求头过大", "The request's headers are too large.")),
    "HEAD_LATE": Row(PARAMETER, 408, Text("请求头接收超时", "The request's headers did not arrive in time.")),
    "BAD_REQUEST": Row(PARAMETER, 400, Text("无效的 HTTP 请求", "This is not a valid HTTP request.")),
    "UNAUTHORIZED": Row(
        PARAMETER,
        401,
        Text("未授权", "Not authorized."),
        Text(
            "请在请求头 Authorization: Bearer 中提供有效的密钥或令牌",
            "Send a key or token that is in force, as Authorization: Bearer.",
        ),
    ),
    "PICTURES_REMOVED": Row(  # no `Retry-After`: what somebody wanted gone, no program brings back by itself
        PARAMETER,
        409,
        Text("该请求 ID 的图片刚刚被删除", "The pictures of this request id have just been removed."),
        Text(
            "如仍需要结果，请换一个 X-Request-ID 重新发送",
            "If you still want an answer, send it again under another X-Request-ID.",
        ),
    ),
    "NOT_FOUND": Row(PARAMETER, 404, Text("接口不存在", "There is no such route.")),
    "METHOD_NOT_ALLOWED": Row(PARAMETER, 405, Text("不支持该请求方法", "This route does not take that method.")),
    "UNSUPPORTED_MEDIA_TYPE": Row(
        PARAMETER,
        415,
        Text("不支持的请求体类型", "This body type is not supported."),
        Text("请使用 multipart/form-data 或 application/json", "Use multipart/form-data or application/json."),
    ),
    "TOO_MANY_REQUESTS": Row(PARAMETER, 429, Text("请求过于频繁", "Too many requests."), _LATER, retry_after_s=5),
    "TOO_MANY_WRONG_TOKENS": Row(
        PARAMETER,
        429,
        Text("错误的密钥过多", "Too many wrong keys came from your address."),
        Text("请检查所用的密钥，并稍后重试", "Check the key that you use, and try again later."),
        retry_after_s=6,
    ),
}

FRAMEWORK_REASONS: Mapping[int, str] = {
    401: "UNAUTHORIZED",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    415: "UNSUPPORTED_MEDIA_TYPE",
    429: "TOO_MANY_REQUESTS",
}
"""What the framework's own refusals are called; any other status of its is EDGE_FAILED."""

_REASON = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


class ApiError(Exception):
    """A refusal under `/api/`: a reason of the table with its details."""

    def __init__(
        self,
        reason: str,
        details: Details | None = None,
        *,
        retry_after_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = str(reason) if _REASON.fullmatch(reason) else "INPUT_FAILED"
        """Plain text, also where an enumeration's member was given: those are no keys in JSON."""
        self.row = TABLE.get(self.reason, TABLE["INPUT_FAILED"])
        self.details: Details = details or {}
        self._retry_after_s = retry_after_s
        self.headers: Mapping[str, str] = headers or {}

    @property
    def message(self) -> Text:
        """What happened, for people."""
        at_once = self.row.message_at_once
        return at_once if at_once and "needed_ms" in self.details else self.row.message

    @property
    def advice(self) -> Text | None:
        """What to do before the next try, None where there is nothing to say."""
        advice = self.row.advice
        return advice(self.details) if callable(advice) else advice

    @property
    def retry_after_s(self) -> int | None:
        """Whole seconds for `Retry-After`; None where a retry does not help."""
        if self.row.retry_after_s is None:
            return None
        if self._retry_after_s is None or not math.isfinite(self._retry_after_s):
            return self.row.retry_after_s
        return max(1, math.ceil(self._retry_after_s))

    @classmethod
    def of_call(cls, error: CallFailedError, timeout_ms: int | None) -> ApiError:
        """The refusal for a call that has no answer; `timeout_ms` is the client's own total patience, as stated."""
        details = {"field": error.field, **error.details} if error.field else error.details
        if timeout_ms is not None and (error.reason == "DEADLINE" or "needed_ms" in details):
            details = {"timeout_ms": timeout_ms, **details}
        return cls(error.reason, details, retry_after_s=error.retry_after_s)


def invalid(field: str, **details: DetailValue) -> ApiError:
    """A parameter is wrong: its name, and the limit it broke."""
    return ApiError("INVALID_PARAMETER", {"field": field, **details})
