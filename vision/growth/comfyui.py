"""The growth backend `comfyui`: hair painted by a diffusion server, by the operator's workflow.

A job sees one window of the canvas, never the whole portrait, and leaves nothing behind that can be removed
(`comfyui_tidier`). What can happen to it, and what the caller is told, stands in one table (`comfyui_mishaps`).
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vision.growth.backend import GrowthJob, GrowthReason, GrowthUnavailableError
from vision.growth.comfyui_answers import StoredFile
from vision.growth.comfyui_client import Server, base_url
from vision.growth.comfyui_job import Job, Pictures
from vision.growth.comfyui_mishaps import CONSEQUENCES, MishapError
from vision.growth.comfyui_news import News, NoNews
from vision.growth.comfyui_socket import Listener
from vision.growth.comfyui_tidier import Tidier
from vision.growth.comfyui_tidy import SUBFOLDER
from vision.growth.comfyui_vigil import Patience, Stillness
from vision.growth.comfyui_window import Window
from vision.growth.comfyui_workflow import Placeholder, Workflow, seed_of
from vision.growth.composite import reach
from vision.types import Progress, RgbImage

SIDE_PX = 1024
"""What models of the SDXL family are trained on, in other proportions too; 512 for those of the 1.5 family."""
THREADS = 8
"""A request, a socket that opens, one that closes; and as many that were given up, while they run out."""


@dataclass(frozen=True, slots=True)
class Words:
    """The prompts. A workflow may have its own in place of the placeholders."""

    prompt: str = (
        "close-up photograph of a natural hairline on a forehead, dense healthy scalp hair, fine single hairs at the"
        " edge, same hair colour and texture as the surrounding hair, realistic, sharp focus, even light"
    )
    negative_prompt: str = (
        "bald spot, bare skin, wig, hat, hairband, painted hair, blur, smooth plastic texture, hard edge, seam,"
        " deformed face, text, watermark"
    )


class ComfyUiGrowth:
    """A `vision.growth.backend.GrowthBackend` on a ComfyUI server. Used by one thread.

    `journal_dir` is a folder in which open jobs are noted, which may be shared by any number of workers: what a process
    that was killed has left on the server is removed by the next one that uses the folder. None: by nobody.
    `side_px` is the side of the square that has as many pixels as the model gets to see. Raises `ServerUrlError`; the
    server itself is first asked by the first job, or by what is to be removed.
    """

    name = "comfyui"

    def __init__(
        self,
        url: str,
        workflow: Workflow,
        *,
        journal_dir: Path | None,
        side_px: int = SIDE_PX,
        words: Words = Words(),
        patience: Patience = Patience(),  # noqa: B008  (frozen)
        news: News = NoNews(),  # noqa: B008  (holds nothing)
    ) -> None:
        self._url = base_url(url)
        self._workflow = workflow
        self._side_px = side_px
        self._words = words
        self._patience = patience
        self._news = news
        self._server = Server(url, connect_s=patience.connect_s, answer_s=patience.answer_s)
        # Another client, whose requests end soon enough for `Patience.tidy_s`.
        tidying = Server(
            url, connect_s=min(1.0, patience.connect_s), answer_s=min(patience.tidy_s / 2, patience.answer_s)
        )
        self._tidier = Tidier(tidying, journal_dir, self._url, news)
        self._threads = ThreadPoolExecutor(THREADS, "comfyui")
        self._stillness: Stillness | None = None
        """How the last job saw the server."""

    def grow(self, job: GrowthJob, progress: Progress) -> RgbImage:
        """As `GrowthBackend.grow`. What the job leaves on the server is removed by a thread that outlives the call."""
        weights = reach(job)  # what compositing will take of the picture is what has to be painted
        window = Window.around(weights, self._side_px)
        if window is None:
            raise GrowthUnavailableError(GrowthReason.NOTHING_TO_GROW)
        # A moment before `progress` says so, which knows nothing of the server.
        ends_s = None if job.timeout_s is None else time.monotonic() + job.timeout_s - 4 * self._patience.look_s
        pictures = Pictures(window.cut(job.scene.rgb), window.cut_mask(weights))
        try:
            picture = self._first_or_second(pictures, job.seed, progress, ends_s)
        except MishapError as error:
            raise GrowthUnavailableError(CONSEQUENCES[error.mishap].reason, str(error)) from error
        return window.pasted(job.scene.rgb, picture)

    def close(self) -> None:
        """Remove what is left on the server, for at most `Patience.tidy_s`, and close all connections."""
        self._tidier.close(self._patience.tidy_s)
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._server.close()

    def _first_or_second(self, pictures: Pictures, seed: int, progress: Progress, ends_s: float | None) -> RgbImage:
        try:
            return self._attempt(pictures, seed, progress, ends_s)
        except MishapError as error:
            if not CONSEQUENCES[error.mishap].again:
                raise
            self._news.tried_again(str(error))
        return self._attempt(pictures, seed, progress, ends_s)

    def _attempt(self, pictures: Pictures, seed: int, progress: Progress, ends_s: float | None) -> RgbImage:
        patience, traces = self._patience, self._tidier.begin()

        def fill(image: StoredFile, mask: StoredFile) -> dict[str, Any]:
            return self._workflow.filled(
                {
                    Placeholder.IMAGE: image.annotated,
                    Placeholder.MASK: mask.annotated,
                    Placeholder.PROMPT: self._words.prompt,
                    Placeholder.NEGATIVE_PROMPT: self._words.negative_prompt,
                    Placeholder.SEED: seed_of(seed),
                    Placeholder.OUTPUT_PREFIX: f"{SUBFOLDER}/{traces.client_id}",
                }
            )

        listener = Listener(
            self._url, traces.client_id, self._threads, connect_s=patience.connect_s, ping_s=patience.ping_s
        )
        job = Job(
            self._server,
            listener,
            self._threads,
            patience=patience,
            progress=progress,
            news=self._news,
            traces=traces,
            ends_s=ends_s,
            before=self._stillness,
        )
        try:
            return job.run(pictures, self._workflow, fill)
        finally:
            # Whatever happened, CancelledCallError too: a patient's face does not stay there.
            self._stillness = job.stillness
            listener.close()
            self._tidier.take(traces)
