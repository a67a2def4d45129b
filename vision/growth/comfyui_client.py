"""HTTP with a ComfyUI server: each method is one request, answered in the words of `comfyui_answers` or by a
`MishapError`.

No proxies from the environment, no redirects, limits on what is read. Messages name routes and status codes; never an
address or a file.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import httpx

from vision.errors import VisionError
from vision.growth.comfyui_answers import Ended, Queue, StoredFile, prompt_id_of, read_history, read_queue, stored_file
from vision.growth.comfyui_mishaps import Mishap, MishapError, NotSentError

MAX_JSON_BYTES = 64 * 1024 * 1024
"""A queue holds every workflow in it, a history those of the last jobs."""
MAX_PICTURE_BYTES = 64 * 1024 * 1024
_HOST = re.compile(r"[^\s@?#]+")


class ServerUrlError(VisionError):
    """The address in the configuration is none of a ComfyUI server."""


def base_url(url: str) -> str:
    """`url` without a slash at its end; raises `ServerUrlError`."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not _HOST.fullmatch(parts.netloc):
        raise ServerUrlError("growth.comfyui_url is http://host:port or https://host:port, without a user name")
    if parts.query or parts.fragment:
        raise ServerUrlError("growth.comfyui_url has no query: http://host:port")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


class Server:
    """One ComfyUI server. Its methods may be called from several threads; each answers within about `answer_s`."""

    def __init__(self, url: str, *, connect_s: float, answer_s: float) -> None:
        self._answer_s = answer_s
        timeout = httpx.Timeout(answer_s, connect=connect_s)
        self._http = httpx.Client(base_url=base_url(url), trust_env=False, follow_redirects=False, timeout=timeout)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Close all connections; requests under way fail."""
        self._http.close()

    def upload(self, data: bytes, file: StoredFile) -> StoredFile:
        """Store a picture under the name that `file` has, whatever lies there; returns where it really lies.

        Without `overwrite` a server would choose another name for what comes late, and nobody would know of it.
        """
        fields = {"type": file.type, "subfolder": file.subfolder, "overwrite": "true"}
        files = {"image": (file.name, data, "image/png")}
        return stored_file(self._json("POST", "/upload/image", data=fields, files=files))

    def submit(self, prompt: dict[str, Any], client_id: str) -> str:
        """Put a prompt into the queue; returns its id. Raises REFUSED for one that this server cannot run."""
        status, body = self._ask("POST", "/prompt", json={"prompt": prompt, "client_id": client_id})
        # A refusal is a 400 with a JSON body; any other 400 is a proxy's.
        if status not in {200, 400}:
            raise _unexpected("POST", "/prompt", status)
        answer = _decoded(body, "/prompt")
        prompt_id = prompt_id_of(answer)
        if status != 200:
            raise _unexpected("POST", "/prompt", status)
        return prompt_id

    def queue(self) -> Queue:
        """What runs and what waits."""
        return read_queue(self._json("GET", "/queue"))

    def stats(self) -> Any:
        """Its machine's memory."""
        return self._json("GET", "/system_stats")

    def history(self, prompt_id: str) -> Ended | None:
        """How a prompt ended; None when it has not, or is not known."""
        return next(iter(read_history(self._json("GET", f"/history/{prompt_id}"))), None)

    def last_ended(self, count: int) -> tuple[Ended, ...]:
        """The last `count` prompts of anybody that have ended."""
        return read_history(self._json("GET", "/history", params={"max_items": count}))

    def view(self, file: StoredFile) -> bytes:
        """The bytes of a file."""
        params = {"filename": file.name, "subfolder": file.subfolder, "type": file.type}
        status, body = self._ask("GET", "/view", most=MAX_PICTURE_BYTES, params=params)
        if status != 200:
            raise MishapError(Mishap.BAD_PICTURE, f"GET /view answers {status}")
        return body

    def drop_pending(self, prompt_id: str) -> None:
        """Take a prompt out of the queue; nothing happens to one that runs."""
        self._done("/queue", {"delete": [prompt_id]})

    def interrupt(self, prompt_id: str) -> None:
        """Interrupt a prompt if it is the one that runs."""
        self._done("/interrupt", {"prompt_id": prompt_id})

    def forget(self, prompt_id: str) -> None:
        """Delete a history entry."""
        self._done("/history", {"delete": [prompt_id]})

    def _done(self, route: str, body: dict[str, Any]) -> None:
        status, _body = self._ask("POST", route, json=body)
        if status != 200:
            raise _unexpected("POST", route, status)

    def _json(self, method: str, route: str, **request: Any) -> Any:
        status, body = self._ask(method, route, **request)
        if status != 200:
            raise _unexpected(method, route, status)
        return _decoded(body, route)

    def _ask(self, method: str, route: str, *, most: int = MAX_JSON_BYTES, **request: Any) -> tuple[int, bytes]:
        """Status and body.

        Raises UNREACHABLE (`NotSentError` when nothing was sent), NOT_COMFYUI for a body of more than `most` bytes.
        """
        ends_s = time.monotonic() + self._answer_s
        body = bytearray()
        name = route.split("/", 2)[1]
        try:
            with self._http.stream(method, route, **request) as response:
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > most:
                        mishap = Mishap.BAD_PICTURE if name == "view" else Mishap.NOT_COMFYUI
                        raise MishapError(mishap, f"{method} /{name} answers more than {most} bytes")
                    if time.monotonic() > ends_s:
                        raise MishapError(Mishap.UNREACHABLE, f"{method} /{name}: its answer does not end")
                return response.status_code, bytes(body)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise NotSentError(f"{method} /{name}: {type(error).__name__}") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise MishapError(Mishap.UNREACHABLE, f"{method} /{name}: {type(error).__name__}") from None


def _decoded(body: bytes, route: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise MishapError(Mishap.NOT_COMFYUI, f"{route.split('/', 2)[1]}: the answer is not JSON") from None


def _unexpected(method: str, route: str, status: int) -> MishapError:
    return MishapError(Mishap.NOT_COMFYUI, f"{method} /{route.split('/', 2)[1]} answers {status}")
