"""A server that speaks the OpenAI-compatible chat API as vision servers do, and misbehaves on demand.

It looks at what it is sent as a strict one does: a photo that is no JPEG of its stated type is refused with 400.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import io
import json
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from tests.fakes.http import HttpServer, Request, Response

KEY = "SENTINEL-api-key"
MODEL = "eyes-1"
PATH = "/v1/chat/completions"
_PREFIX = "data:image/jpeg;base64,"


def completion(content: Any, finish_reason: str = "stop") -> Response:
    """A chat completion that says this."""
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": None}
    usage = {"prompt_tokens": 1207, "completion_tokens": 184, "total_tokens": 1391}
    return Response.json(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": MODEL,
            "choices": [choice],
            "usage": usage,
        }
    )


def error(status: int, message: str, kind: str = "invalid_request_error") -> Response:
    """An error as the API words it."""
    return Response.json({"error": {"message": message, "type": kind, "param": None, "code": None}}, status)


def claims(**groups: Any) -> str:
    """An answer by the schema that claims this, and nothing else."""
    return json.dumps(groups)


@dataclass
class OpenAiServer:
    """Answers with `answers` in turn, the last one for ever; remembers every question."""

    answers: list[Response] = field(default_factory=lambda: [completion(claims(jaw={"width": "wide"}))])
    knows_schemas: bool = True
    gate: asyncio.Event | None = None
    """Answers wait for it."""
    questions: list[dict[str, Any]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    photos: list[Image.Image] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """A client went away before its answer."""

    def __post_init__(self) -> None:
        self._http = HttpServer(self._answer)

    async def __aenter__(self) -> OpenAiServer:
        await self._http.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    @property
    def base_url(self) -> str:
        """What a client is configured with."""
        return f"{self._http.url}/v1"

    @property
    def settings(self) -> dict[str, Any]:
        """The section `features` for it."""
        return {"base_url": self.base_url, "model": MODEL, "api_key": KEY}

    async def _answer(self, request: Request) -> Response:
        self.requests.append(request)
        if (request.method, request.path) != ("POST", PATH):
            return error(404, f"Invalid URL ({request.method} {request.path})")
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return error(401, "Incorrect API key provided: SENTINEL-echoed-key", "authentication_error")
        question = json.loads(request.body)
        self.questions.append(question)
        self.asked.set()
        if question["response_format"]["type"] == "json_schema" and not self.knows_schemas:
            return error(400, "response_format of type json_schema is not supported by this model")
        if (problem := self._look(question)) is not None:
            return problem
        if self.gate is not None:
            request.gone.add_done_callback(self._gone)
            await self.gate.wait()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def _gone(self, read: asyncio.Future[bytes]) -> None:
        if not read.cancelled():
            self.left.set()

    def _look(self, question: dict[str, Any]) -> Response | None:
        """What is wrong with a question, as a strict server words it."""
        if question["model"] != MODEL or question.get("stream"):
            return error(404, "The model does not exist")
        url = question["messages"][-1]["content"][-1]["image_url"]["url"]
        if not url.startswith(_PREFIX):
            return error(400, "Failed to load image: unsupported media type")
        try:
            photo = Image.open(io.BytesIO(base64.b64decode(url.removeprefix(_PREFIX), validate=True)))
            photo.load()
        except (binascii.Error, OSError):
            return error(400, "Failed to load image: cannot identify image file")
        if photo.format != "JPEG":
            return error(400, f"Failed to load image: image/jpeg expected, found {photo.format}")
        self.photos.append(photo)
        return None
