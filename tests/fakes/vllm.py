"""vLLM's OpenAI-compatible server over real sockets, in its true wire formats, on the engines of `vllm_engine`.

`/health` answers 200 whatever the engine does, as the real one. In this process `FakeVllm` has knobs for what goes
wrong; as a process of its own (`python -m tests.fakes.vllm`) SIGUSR1 hangs the engine and SIGHUP restarts the server:
everything in flight is answered 500, the port refuses until the models are loaded. Each is one JSON line on standard
output.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import time
from contextlib import suppress

from tests.fakes.http import HttpServer, Request, Response
from tests.fakes.vllm_engine import VllmServer
from tests.fakes.vllm_metrics import MODEL, Flavour, render

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
BEAT_S = 0.005
TOKEN_S = 0.02
"""One token, seconds of its own time."""


class FakeVllm:
    """One server. `load_s` is how long a restart takes, real seconds."""

    def __init__(
        self, *, engines: int = 1, slots: int = 2, load_s: float = 0.5, api_key: str = "", heeds_ranks: bool = True
    ) -> None:
        self.engine = VllmServer(
            engines=engines, slots=slots, load_s=load_s, at_s=time.monotonic(), heeds_ranks=heeds_ranks
        )
        self.http = HttpServer(self._handle)
        self.flavour = Flavour.V1
        self.asked: list[str] = []
        """Method and path of every request but looks at metrics."""
        self.metrics: Response | None = None
        """Instead of the true ones, while set."""
        self.slow_s = 0.0
        """Before every answer but completions."""
        self._api_key = api_key
        self._start_epoch_s = time.time()
        self._loading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> FakeVllm:
        """Listening."""
        await self.http.open()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close everything."""
        if self._loading is not None:
            self._loading.cancel()
        await self.http.close()

    def work(self, work_s: float, count: int = 2) -> None:
        """`count` long requests of other clients."""
        for _ in range(count):
            self.engine.submit(work_s)

    def hang(self, engine: int = 0) -> None:
        """From now on this engine takes no step."""
        self.engine.advance(time.monotonic())
        self.engine.engines[engine].hung = True

    def restart(self) -> None:
        """Everything in flight is answered 500; the port opens again when the models are loaded."""
        self.engine.advance(time.monotonic())
        self.engine.restart()
        self.http.refuse()
        self._start_epoch_s = time.time()
        if self._loading is not None:
            self._loading.cancel()
        self._loading = asyncio.create_task(self._load())

    async def _load(self) -> None:
        await asyncio.sleep(self.engine.up_from_s - time.monotonic())
        await self.http.open()

    async def _handle(self, request: Request) -> Response:
        self.engine.advance(time.monotonic())
        if request.path != "/metrics":
            self.asked.append(f"{request.method} {request.path}")
        authorized = not self._api_key or request.headers.get("authorization") == f"Bearer {self._api_key}"
        if request.path.startswith("/v1/") and not authorized:
            return Response.json({"error": "Unauthorized"}, 401)
        if request.path in {"/v1/completions", "/v1/chat/completions"}:
            return await self._complete(request)
        await asyncio.sleep(self.slow_s)
        match request.path:
            case "/health":
                return Response()
            case "/metrics":
                written = render(self.engine.engines, self.flavour, self._start_epoch_s).encode()
                return self.metrics or Response(body=written, kind=PROMETHEUS)
            case "/v1/models":
                model = {
                    "id": MODEL,
                    "object": "model",
                    "created": 1_790_000_000,
                    "owned_by": "vllm",
                    "max_model_len": 40960,
                }
                return Response.json({"object": "list", "data": [model]})
        return Response.json({"detail": "Not Found"}, 404)

    async def _complete(self, request: Request) -> Response:
        asked = json.loads(request.body)
        if asked.get("model") != MODEL:
            return _error(404, f"The model `{asked.get('model')}` does not exist.", "NotFoundError")
        rank = request.headers.get("x-data-parallel-rank")
        try:
            number = self.engine.submit(TOKEN_S * asked.get("max_tokens", 16), rank=None if rank is None else int(rank))
        except IndexError:
            return _error(400, f"data_parallel_rank {rank} is out of range.", "BadRequestError")
        while number not in self.engine.finished | self.engine.failed:
            if request.gone.done():
                self.engine.abort(number)
                raise ConnectionError
            await asyncio.sleep(BEAT_S)
            self.engine.advance(time.monotonic())
        if number in self.engine.failed:
            return _error(
                500,
                "EngineCore encountered an issue. See stack trace (above) for the root cause.",
                "InternalServerError",
            )
        return Response.json(
            {
                "id": f"cmpl-{number}",
                "object": "text_completion",
                "created": int(time.time()),
                "model": MODEL,
                "choices": [{"index": 0, "text": " 2", "logprobs": None, "finish_reason": "length"}],
                "usage": {"prompt_tokens": 1, "total_tokens": 2, "completion_tokens": 1},
            }
        )


def _error(status: int, message: str, kind: str) -> Response:
    return Response.json({"error": {"message": message, "type": kind, "param": None, "code": status}}, status)


async def _serve(arguments: argparse.Namespace) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with FakeVllm(load_s=arguments.load_s) as server:

        def say(event: str) -> None:
            print(json.dumps({"event": event, "url": server.http.url, "asked": server.asked}), flush=True)

        def restart() -> None:
            server.restart()
            say("restart")

        def hang() -> None:
            server.hang()
            say("hang")

        loop.add_signal_handler(signal.SIGTERM, ended.set)
        loop.add_signal_handler(signal.SIGHUP, restart)
        loop.add_signal_handler(signal.SIGUSR1, hang)
        server.work(arguments.work_s)
        say("up")
        await ended.wait()
        say("end")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load-s", type=float, default=1.0)
    parser.add_argument("--work-s", type=float, default=1e6)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args()))
