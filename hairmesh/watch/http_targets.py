"""vLLM, a proxy before several of them, and ComfyUI over HTTP."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from typing import Any

import httpx

from hairmesh.trust import authorities
from hairmesh.watch.target import LOOK_TIMEOUT_S, TargetError, failed_to_connect, place
from worker.health.probes.comfyui import read_answers
from worker.health.probes.vllm import read_metrics
from worker.health.watchdog.looks import Answer, CanaryResult, Look

MODELS_ROUTE = "/v1/models"
METRICS_ROUTE = "/metrics"
COMPLETIONS_ROUTE = "/v1/completions"
RANK_HEADER = "X-data-parallel-rank"
"""Which engine is to answer. Newer versions heed it, and refuse a rank that they do not have with 400."""
MAX_BODY_BYTES = 16 * 1024 * 1024
"""More than any such server sends: whatever answers so much is none."""


class _HttpTarget:
    """A server behind one base URL; `secret` goes into the Authorization header, nowhere else."""

    def __init__(self, kind: str, url: str, *, secret: str, tls: ssl.SSLContext | None) -> None:
        base = _checked(url)
        self.name = f"{kind} {base}"
        self.place = place(kind, base.host, base.port or (443 if base.scheme == "https" else 80))
        self._http = httpx.AsyncClient(
            base_url=base,
            timeout=LOOK_TIMEOUT_S,
            trust_env=False,  # no proxies from the environment: the address given is the one that is asked
            headers={"authorization": f"Bearer {secret}"} if secret else {},
            verify=tls if tls is not None else authorities(),
        )

    async def close(self) -> None:
        """See `Target`."""
        await self._http.aclose()

    async def look(self, at_s: float) -> Look:
        """See `Target`."""
        try:
            async with asyncio.timeout(LOOK_TIMEOUT_S):
                return await self._look(at_s)
        except (TimeoutError, httpx.TimeoutException):
            return Look(at_s, Answer.SLOW, problem=f"no answer within {LOOK_TIMEOUT_S:.0f} s")
        except httpx.ConnectError:
            return await failed_to_connect(self.place.host, self.place.port, at_s)
        except _NoGoodError as error:
            return Look(at_s, Answer.UNREADABLE, problem=str(error))
        except httpx.HTTPError as error:
            return Look(at_s, Answer.UNREACHABLE, problem=f"connection broke: {type(error).__name__}")

    async def _look(self, at_s: float) -> Look:
        raise NotImplementedError

    async def _get(self, route: str) -> str:
        async with self._http.stream("GET", route) as response:
            if response.status_code != httpx.codes.OK:
                raise _NoGoodError(f"{route.strip('/')}: HTTP {response.status_code}")
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    raise _NoGoodError(f"{route.strip('/')}: more than {MAX_BODY_BYTES} bytes")
        return body.decode(errors="replace")

    async def _get_json(self, route: str) -> Any:
        try:
            return json.loads(await self._get(route))
        except (ValueError, RecursionError):  # no JSON, or thousands of digits or brackets
            raise _NoGoodError(f"{route.strip('/')}: no JSON") from None

    async def _model(self) -> tuple[str, int]:
        """Name of the first model and how many there are."""
        listed = await self._get_json(MODELS_ROUTE)
        try:
            return str(listed["data"][0]["id"]), len(listed["data"])
        except (KeyError, IndexError, TypeError):
            raise _NoGoodError("models: no model in the list") from None


class VllmTarget(_HttpTarget):
    """One vLLM server; nothing between it and us that chooses among several."""

    def __init__(self, url: str, *, grace_s: float, secret: str, tls: ssl.SSLContext | None) -> None:
        super().__init__("vllm", url, secret=secret, tls=tls)
        self._grace_s = grace_s

    async def _look(self, at_s: float) -> Look:
        text = await self._get(METRICS_ROUTE)
        return read_metrics(text, at_s=at_s, now_epoch_s=time.time(), grace_s=self._grace_s)

    async def canary(self, engine: str, timeout_s: float) -> CanaryResult:
        """One token, of `engine` where that is a number and the server heeds it."""
        try:
            async with asyncio.timeout(timeout_s):
                model, _models = await self._model()
                question = {"model": model, "prompt": "1", "max_tokens": 1, "temperature": 0}
                rank = {RANK_HEADER: engine} if engine.isdecimal() else {}
                response = await self._http.post(COMPLETIONS_ROUTE, json=question, headers=rank, timeout=None)
        except TimeoutError:
            return CanaryResult.TIMED_OUT
        except (_NoGoodError, httpx.HTTPError):
            return CanaryResult.ERROR
        match response.status_code:
            case httpx.codes.OK:
                return CanaryResult.PASSED
            case httpx.codes.BAD_REQUEST:
                return CanaryResult.REFUSED
            case _:
                return CanaryResult.ERROR


class ProxyTarget(_HttpTarget):
    """A proxy that spreads requests over several servers: whose counters would answer, nobody knows."""

    canary = None

    def __init__(self, url: str, *, secret: str, tls: ssl.SSLContext | None) -> None:
        super().__init__("proxy", url, secret=secret, tls=tls)

    async def _look(self, at_s: float) -> Look:
        _model, count = await self._model()
        words = f"a proxy: its model list answers, {count} listed; the backends are to be watched one by one"
        return Look(at_s, Answer.LISTED, problem=words)


class ComfyTarget(_HttpTarget):
    """One ComfyUI server. It works on one prompt at a time: a canary would only wait behind it."""

    canary = None

    def __init__(self, url: str, *, grace_s: float, secret: str, tls: ssl.SSLContext | None) -> None:
        super().__init__("comfyui", url, secret=secret, tls=tls)
        self._grace_s = grace_s

    async def _look(self, at_s: float) -> Look:
        queue = await self._get_json("/queue")
        history = await self._get_json("/history?max_items=1")
        stats = await self._get_json("/system_stats")
        return read_answers(queue, history, stats, at_s=at_s, grace_s=self._grace_s)


class _NoGoodError(Exception):
    """It answered with something that is not what was asked for. The message holds nothing of it."""


def _checked(url: str) -> httpx.URL:
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL:
        raise TargetError("the target is no URL") from None
    if base.scheme not in {"http", "https"} or not base.host:
        raise TargetError("the target is no URL of a server: http://host:port")
    if base.userinfo:
        raise TargetError("no password in the URL: process lists show it; use --secret-file")
    if base.path.strip("/") or base.query or base.fragment:
        raise TargetError("the target is the server's base URL, without a path: http://host:port")
    host = "127.0.0.1" if base.host == "localhost" else base.host
    return httpx.URL(scheme=base.scheme, host=host, port=base.port)
