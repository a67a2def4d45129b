"""ComfyUI's queue over real sockets, in the shapes that a real 0.8.0 answered with (shared/data/comfyui).

Nothing runs by itself: `start`, `finish` and `submit` say what happens to prompts, so that a test decides what moves.
"""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import parse_qs

from tests.fakes.http import HttpServer, Request, Response

CREATED_MS = 1_795_974_799_807
WORKFLOW = {
    "1": {"class_type": "LoadImage", "inputs": {"image": "photo.png"}},
    "4": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "run1"}},
}
OUTPUT = {"4": {"images": [{"filename": "run1_00001_.png", "subfolder": "", "type": "output"}]}}


class FakeComfyUi:
    """One server. `device` is `cpu` or `cuda`."""

    def __init__(self, *, device: str = "cuda") -> None:
        self.http = HttpServer(self._handle)
        self.running: list[list[Any]] = []
        self.pending: list[list[Any]] = []
        self.history: dict[str, Any] = {}
        self.torch_free_bytes = 1_000_000
        """Breathes with every node that really computes."""
        self.replaced: dict[str, Response] = {}
        """Answers by path instead of the true ones."""
        self.posts: list[str] = []
        self._device = device
        self._number = 0

    async def __aenter__(self) -> FakeComfyUi:
        """Listening."""
        await self.http.open()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close everything."""
        await self.http.close()

    def submit(self) -> str:
        """A prompt joins the queue; it runs at once when none does."""
        prompt_id = str(uuid.uuid4())
        extra = {"client_id": "8cdd6636c0574fd4a5c67c571006351e", "create_time": CREATED_MS}
        self.pending.append([self._number, prompt_id, WORKFLOW, extra, ["4"]])
        self._number += 1
        self._start()
        return prompt_id

    def finish(self) -> None:
        """The running prompt ends well; the next begins."""
        entry = self.running.pop()
        messages = [
            ["execution_start", {"prompt_id": entry[1], "timestamp": CREATED_MS}],
            ["execution_success", {"prompt_id": entry[1], "timestamp": CREATED_MS + 7_729}],
        ]
        status = {"status_str": "success", "completed": True, "messages": messages}
        self.history[entry[1]] = {"prompt": entry, "outputs": OUTPUT, "status": status, "meta": {}}
        self._start()

    def _start(self) -> None:
        if not self.running and self.pending:
            self.running.append(self.pending.pop(0))

    async def _handle(self, request: Request) -> Response:
        if request.method == "POST":
            self.posts.append(request.path)
        if request.path in self.replaced:
            return self.replaced[request.path]
        match request.method, request.path:
            case "GET", "/queue":
                return Response.json({"queue_running": self.running, "queue_pending": self.pending})
            case "GET", "/history":
                return Response.json(self._last(parse_qs(request.query).get("max_items")))
            case "GET", "/prompt":
                remaining = len(self.running) + len(self.pending)
                return Response.json({"exec_info": {"queue_remaining": remaining}})
            case "GET", "/system_stats":
                return Response.json(self.stats())
        return Response.json({}, 404)

    def _last(self, max_items: list[str] | None) -> dict[str, Any]:
        count = int(max_items[0]) if max_items else len(self.history)
        return dict(list(self.history.items())[-count:]) if count else {}

    def stats(self) -> dict[str, Any]:
        """What `/system_stats` says."""
        return {
            "system": {
                "os": "linux",
                "ram_total": 25_276_063_744,
                "ram_free": 23_227_809_792,
                "comfyui_version": "0.8.0",
                "pytorch_version": "2.14.1+cu130",
                "embedded_python": False,
            },
            "devices": [
                {
                    "name": "cpu" if self._device == "cpu" else "cuda:0 NVIDIA H200 : native",
                    "type": self._device,
                    "index": None if self._device == "cpu" else 0,
                    "vram_total": 25_276_063_744,
                    "vram_free": 23_227_809_792,
                    "torch_vram_total": 4_000_000,
                    "torch_vram_free": self.torch_free_bytes,
                }
            ],
        }
