"""Every refusal outside `/api/` in words, in both languages. One table; the reasons under `/api/` are in `edge.errors`.

What `/monitor` and the drill say when they do as they are told is fixed by the contract and is not here.
"""

from __future__ import annotations

from starlette.requests import Request

from edge.messages import Text, preferred_language

DRILL_TOKEN_WRONG = Text("X-Internal-Token 缺失或错误", "X-Internal-Token is missing or wrong.")
DRILL_TOKENS_TOO_MANY = Text(
    "错误的 X-Internal-Token 过多，请稍后重试", "Too many wrong X-Internal-Token: wait as long as Retry-After says."
)
DRILL_BODY_LARGE = Text("请求体过大或未完整到达", "The body is too large, or did not arrive whole.")
DRILL_BODY_WRONG = Text(
    '请求体必须是 {"enabled": true} 或 {"enabled": false}', 'The body must be {"enabled": true} or {"enabled": false}.'
)
ADMIN_OFF = Text(
    "admin_tokens 为空：请在其中设置至少 16 个字符的令牌后再访问",
    "admin_tokens is empty: name a token of at least 16 characters there to read this",
)
ADMIN_TOKEN_MISSING = Text(
    "请发送一个管理令牌：Authorization: Bearer <token>，或 X-Admin-Token",
    "send one admin token: Authorization: Bearer <token>, or X-Admin-Token",
)
ADMIN_TOKEN_WRONG = Text(
    "管理令牌不正确：它不在 admin_tokens 中",
    "the admin token that was sent is not accepted: it is none of admin_tokens",
)
ADMIN_TOKENS_TOO_MANY = Text(
    "您的地址发来的错误令牌过多：请按 Retry-After 等待后重试",
    "too many wrong tokens came from your address: wait as long as Retry-After says",
)
CONSOLE_NOT_THE_PAGE = Text(
    "只有控制台页面自身可以这样做：它会发送 {asks}: 1", "only the console's own page may do this: it sends {asks}: 1"
)
CONSOLE_SESSION_OVER = Text("会话已结束：请重新进入控制台", "the session is over: enter the console again")
CONSOLE_NO_TOKEN = Text(
    '请求体必须是 {"token": "<admin_tokens 之一>"}', 'the body must be {"token": "<one of admin_tokens>"}'
)
CONSOLE_WINDOW = Text("window 必须是以下之一：{windows}", "window: one of {windows}")


def said(text: Text, request: Request) -> str:
    """`text` in the language that the request asks for."""
    return text.of(preferred_language(request.headers.get("accept-language", "")))
