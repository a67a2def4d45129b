"""A vision LLM behind the OpenAI-compatible chat API: one photo there, one description back.

One fixed address, no redirects, no proxies from the environment, an answer of bounded size in bounded time. Neither key
nor photo nor words of the other side get into a log or an error.
"""

from __future__ import annotations

import asyncio
import base64
import time
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx
import orjson

from edge.local.claims import Claims, UnusableAnswerError, instructions, read, schema
from edge.settings import Features
from hairmesh.trust import authorities

ANSWER_MAX_BYTES = 262_144
SENDS = 2
"""A photo leaves the house so often at most for one call, whatever is answered."""
PAUSE_S = 0.5
"""Before the second."""
AT_ONCE = 32
"""Questions that are asked at a time; others wait, their time included in what they may take."""
WITHOUT_SCHEMA_S = 3600.0
"""For so long a model that refused a schema is asked for any JSON object."""
TRIED_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""HTTP status codes after which the same question may fare better; 400 is not among them."""

LLM_TIMEOUT, LLM_UNAVAILABLE, LLM_REFUSED, LLM_UNUSABLE = (
    "LLM_TIMEOUT",
    "LLM_UNAVAILABLE",
    "LLM_REFUSED",
    "LLM_UNUSABLE",
)
REASONS = (LLM_TIMEOUT, LLM_UNAVAILABLE, LLM_REFUSED, LLM_UNUSABLE)


class LlmError(Exception):
    """No claims. `reason` is one of `REASONS`; the status is that of HTTP, 0 where there was none."""

    def __init__(self, reason: str, http_status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.http_status = http_status


class _NoSchemaError(Exception):
    """The server does not know `json_schema`."""


class VisionLlm:
    """Asks; one for the life of the edge."""

    def __init__(self) -> None:
        self._http: httpx.AsyncClient | None = None
        self._room = asyncio.Semaphore(AT_ONCE)
        self._without_schema: dict[tuple[str | None, str | None], float] = {}
        """Addresses and models that refused a schema and took the question without, and until when that is believed."""

    async def ask(self, settings: Features, jpeg: bytes, lang: str, timeout_s: float) -> Claims:
        """What the model that the settings name says of a JPEG; raises `LlmError`."""
        try:
            async with asyncio.timeout(timeout_s), self._room:
                return read(await self._answer(settings, jpeg, lang))
        except TimeoutError:
            raise LlmError(LLM_TIMEOUT) from None
        except UnusableAnswerError:
            raise LlmError(LLM_UNUSABLE, 200) from None

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    async def _answer(self, settings: Features, jpeg: bytes, lang: str) -> str:
        asked, refused = (settings.base_url, settings.model), False
        with_schema = self._without_schema.get(asked, 0.0) < time.monotonic()
        for sent in range(1, SENDS + 1):
            try:
                said = await self._once(settings, _question(settings, jpeg, lang, with_schema=with_schema))
            except _NoSchemaError:
                refused, with_schema = True, False
            except LlmError as error:
                if error.reason != LLM_UNAVAILABLE or sent == SENDS:
                    raise
                await asyncio.sleep(PAUSE_S)
            else:
                if refused:
                    self._without_schema[asked] = time.monotonic() + WITHOUT_SCHEMA_S
                return said
        raise LlmError(LLM_REFUSED, 400)

    async def _once(self, settings: Features, question: bytes) -> str:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if settings.api_key is not None:
            headers["Authorization"] = f"Bearer {settings.api_key.get_secret_value()}"
        try:
            async with self._client().stream(
                "POST", f"{settings.base_url}/chat/completions", content=question, headers=headers
            ) as response:
                body = await _bounded(response)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # the last for a host that cannot be one
            raise LlmError(LLM_UNAVAILABLE) from error
        if response.status_code == 200:
            return _content(body)
        if response.status_code == 400 and b"json_schema" in question and _speaks_of_schema(body):
            raise _NoSchemaError
        tried_again = response.status_code in TRIED_AGAIN
        raise LlmError(LLM_UNAVAILABLE if tried_again else LLM_REFUSED, response.status_code)

    def _client(self) -> httpx.AsyncClient:
        """Made when it is needed: reading the system's certificates takes a while."""
        if self._http is None:
            nothing = CookieJar(DefaultCookiePolicy(allowed_domains=[]))  # of one patient, told with another's photo
            self._http = httpx.AsyncClient(
                trust_env=False,
                verify=authorities(),
                follow_redirects=False,
                timeout=None,  # noqa: S113  (see `ask`)
                cookies=nothing,
            )
        return self._http


def _question(settings: Features, jpeg: bytes, lang: str, *, with_schema: bool) -> bytes:
    """The body of one request."""
    form: dict[str, Any] = {"type": "json_object"}
    if with_schema:
        form = {"type": "json_schema", "json_schema": {"name": "face", "strict": True, "schema": schema()}}
    picture = {"url": f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"}
    return orjson.dumps(
        {
            **settings.request,
            "model": settings.model,
            "messages": [
                {"role": "system", "content": instructions(lang)},
                {"role": "user", "content": [{"type": "image_url", "image_url": picture}]},
            ],
            "response_format": form,
            "stream": False,
        }
    )


async def _bounded(response: httpx.Response) -> bytes:
    """The body as sent; raises `LlmError` once it is too large, or where it is compressed although nobody asked."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise LlmError(LLM_UNUSABLE, response.status_code)
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > ANSWER_MAX_BYTES:
            raise LlmError(LLM_UNUSABLE, response.status_code)
    return bytes(body)


def _content(body: bytes) -> str:
    """What the model said; raises `UnusableAnswerError`."""
    try:
        said = orjson.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError):
        raise UnusableAnswerError from None
    if not isinstance(said, str):  # a refusal, or nothing
        raise UnusableAnswerError
    return said


def _speaks_of_schema(body: bytes) -> bool:
    """Whether a refusal is about the form of the answer that was asked for."""
    return b"response_format" in body or b"json_schema" in body
