"""A whole ComfyUI over real HTTP and real sockets, speaking as a recorded 0.8.0 did (see `comfyui_engine`).

In this process `ComfyUiServer` has knobs for what goes wrong; as a process of its own
(`python -m tests.fakes.comfyui_server --port 8188`) it paints hair-like strokes and takes some seconds for it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
import time
from collections.abc import Coroutine
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from tests.fakes.comfyui import FakeComfyUi
from tests.fakes.comfyui_engine import Engine, Faults, FileKey

HOST = "127.0.0.1"
_TYPES = {"png": "image/png", "webp": "image/webp", "jpg": "image/jpeg"}
_GATE_S = 60.0


class ComfyUiServer:
    """One server in a thread of its own, on a port that it keeps."""

    def __init__(self, *, port: int = 0, node_s: float = 0.0, step_s: float = 0.0) -> None:
        self.asked: list[tuple[str, Any]] = []
        """`POST /interrupt` and the like: path and JSON body, in order."""
        self.uploaded: list[FileKey] = []
        self.uploaded_bytes: list[int] = []
        self.client_ids: list[str] = []
        """Of every socket that was opened, in order."""
        self.gates: dict[str, threading.Event] = {}
        """Requests for these paths are answered when the event is set …"""
        self.arrived: list[str] = []
        """… and stand here when they come: method and path of every request."""
        self.port = port
        self.engine = Engine(self._send, node_s=node_s, step_s=step_s)
        self._sockets: dict[str, WebSocket] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def faults(self) -> Faults:
        """What goes wrong."""
        return self.engine.faults

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        """Listening."""
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Gone."""
        self.stop()
        self.engine.close()

    def start(self) -> None:
        """Listen."""
        app = Starlette(
            routes=[
                Route("/upload/image", self._upload, methods=["POST"]),
                Route("/prompt", self._prompt, methods=["GET", "POST"]),
                Route("/queue", self._queue, methods=["GET", "POST"]),
                Route("/interrupt", self._interrupt, methods=["POST"]),
                Route("/history", self._history, methods=["GET", "POST"]),
                Route("/history/{prompt_id}", self._history_of, methods=["GET"]),
                Route("/view", self._view, methods=["GET"]),
                Route("/system_stats", self._stats, methods=["GET"]),
                WebSocketRoute("/ws", self._listen),
            ]
        )
        config = uvicorn.Config(
            app,
            host=HOST,
            port=self.port,
            log_level="critical",
            lifespan="off",
            ws="websockets-sansio",
            ws_ping_interval=None,
            timeout_graceful_shutdown=0,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="fake comfyui http", daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Stop listening and drop every connection."""
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()
        self._sockets.clear()

    def restart(self) -> None:
        """The process dies and comes back at once: it has forgotten everything but inputs and outputs."""
        self.stop()
        self.engine.forget_all()
        self.start()

    def drop_sockets(self) -> None:
        """Close every socket."""
        for socket in tuple(self._sockets.values()):
            self._soon(socket.close())

    def _soon(self, doing: Coroutine[Any, Any, None]) -> None:
        assert self._loop is not None
        try:
            asyncio.run_coroutine_threadsafe(doing, self._loop)
        except RuntimeError:  # it was stopped in this moment: nobody is there to hear it
            doing.close()

    def _send(self, event: str, data: dict[str, Any], client_id: str | None) -> None:
        if self._loop is None or self.engine.faults.silent:
            return
        message = json.dumps({"type": event, "data": data})
        sids = tuple(self._sockets) if client_id is None else (client_id,)
        for sid in sids:
            if (socket := self._sockets.get(sid)) is not None:
                self._soon(_send_text(socket, message))

    async def _listen(self, socket: WebSocket) -> None:
        self._loop = asyncio.get_running_loop()
        await socket.accept()
        sid = socket.query_params.get("clientId", "") or "8cdd6636c0574fd4a5c67c571006351e"
        self._sockets[sid] = socket
        self.client_ids.append(sid)  # only now: whoever has seen it may drop the socket
        status = {"status": self.engine.queue_info(), "sid": sid}
        await socket.send_text(json.dumps({"type": "status", "data": status}))
        if self.engine.executing == sid and self.engine.node is not None:
            await socket.send_text(json.dumps({"type": "executing", "data": {"node": self.engine.node}}))
        try:
            while True:
                await socket.receive_text()
        except (WebSocketDisconnect, RuntimeError):
            if self._sockets.get(sid) is socket:
                del self._sockets[sid]

    async def _replaced(self, request: Request, path: str = "") -> Response | None:
        path = path or request.url.path
        self.arrived.append(f"{request.method} {path}")
        if (gate := self.gates.get(path)) is not None:
            await asyncio.to_thread(gate.wait, _GATE_S)
        found = self.engine.faults.replaced.get(path)
        return None if found is None else Response(found[1], found[0])

    async def _upload(self, request: Request) -> Response:
        if (replaced := await self._replaced(request)) is not None:
            return replaced
        async with request.form() as form:
            image = form["image"]
            assert not isinstance(image, str)
            data, name = await image.read(), image.filename or ""
            key = (str(form.get("type", "input")), str(form.get("subfolder", "")), name)
            overwrite = form.get("overwrite") in {"true", "1"}
        if self.engine.faults.keeps and self.engine.faults.keeps in name and key in self.engine.files:
            return Response(status_code=400)
        self.uploaded.append(key)
        self.uploaded_bytes.append(len(data))
        kind, subfolder, name = self.engine.upload(data, key, overwrite=overwrite)
        return JSONResponse({"name": name, "subfolder": subfolder, "type": kind})

    async def _prompt(self, request: Request) -> Response:
        if (replaced := await self._replaced(request)) is not None:
            return replaced
        if request.method == "GET":
            return JSONResponse(self.engine.queue_info())
        status, answer = self.engine.submit(await request.json())
        return JSONResponse(answer, status)

    async def _queue(self, request: Request) -> Response:
        if (replaced := await self._replaced(request)) is not None:
            return replaced
        if request.method == "POST":
            for prompt_id in (await self._body(request)).get("delete", ()):
                self.engine.drop(prompt_id)
            return Response()
        with self.engine.lock:
            answer = {"queue_running": self.engine.running, "queue_pending": self.engine.pending}
            return JSONResponse(answer)

    async def _interrupt(self, request: Request) -> Response:
        if (replaced := await self._replaced(request)) is not None:
            return replaced
        self.engine.interrupt((await self._body(request)).get("prompt_id"))
        return Response()

    async def _history(self, request: Request) -> Response:
        if (replaced := await self._replaced(request)) is not None:
            return replaced
        if request.method == "POST":
            for prompt_id in (await self._body(request)).get("delete", ()):
                self.engine.history.pop(prompt_id, None)
            return Response()
        count = int(request.query_params.get("max_items", len(self.engine.history)))
        return JSONResponse(dict(list(self.engine.history.items())[-count:]) if count else {})

    async def _history_of(self, request: Request) -> Response:
        if (replaced := await self._replaced(request, "/history")) is not None:
            return replaced
        prompt_id = request.path_params["prompt_id"]
        entry = self.engine.history.get(prompt_id)
        # As the real one, which escapes what no text can hold.
        body = json.dumps({} if entry is None else {prompt_id: entry})
        return Response(body, media_type="application/json")

    async def _view(self, request: Request) -> Response:
        if (replaced := await self._replaced(request)) is not None:
            return replaced
        asked = request.query_params
        data = self.engine.files.get((asked.get("type", "output"), asked.get("subfolder", ""), asked["filename"]))
        if data is None:
            return Response(status_code=404)
        return Response(data, media_type=_TYPES.get(asked["filename"].rpartition(".")[2]))

    async def _stats(self, request: Request) -> Response:
        if (replaced := await self._replaced(request)) is not None:
            return replaced
        fake = FakeComfyUi()
        fake.torch_free_bytes = self.engine.memory
        return JSONResponse(fake.stats())

    async def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = await request.json()
        self.asked.append((request.url.path, body))
        return body


async def _send_text(socket: WebSocket, message: str) -> None:
    try:
        await socket.send_text(message)
    except (WebSocketDisconnect, RuntimeError):
        return  # gone


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8188)
    parser.add_argument("--node-s", type=float, default=0.2)
    parser.add_argument("--step-s", type=float, default=0.1)
    options = parser.parse_args()
    with ComfyUiServer(port=options.port, node_s=options.node_s, step_s=options.step_s) as server:
        print(json.dumps({"event": "serving", "url": server.url}), flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
