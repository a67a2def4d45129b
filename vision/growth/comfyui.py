"""The growth backend `comfyui`: hair painted by a diffusion server, by the operator's workflow.

A job sees one window of the canvas, never the whole portrait, and leaves nothing behind that can be removed
(`comfyui_tidy`). What can happen to it, and what the caller is told, stands in one table (`comfyui_mishaps`).
"""

from __future__ import annotations

import logging
import secrets
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from vision.growth.backend import GrowthJob, GrowthReason, GrowthUnavailableError
from vision.growth.comfyui_answers import StoredFile
from vision.growth.comfyui_client import Server, base_url
from vision.growth.comfyui_job import Job, Pictures
from vision.growth.comfyui_mishaps import CONSEQUENCES, MishapError
from vision.growth.comfyui_socket import Listener
from vision.growth.comfyui_tidy import SUBFOLDER, Traces, check_owner, client_id_of, remove, remove_of_owner
from vision.growth.comfyui_vigil import Patience
from vision.growth.comfyui_window import Window
from vision.growth.comfyui_workflow import Placeholder, Workflow, seed_of
from vision.growth.composite import reach
from vision.types import Progress, RgbImage

SIDE_PX = 1024
"""What models of the SDXL family are trained on, in other proportions too; 512 for those of the 1.5 family."""
THREADS = 4
"""A request, a socket that opens, one that closes, and one that was given up."""
LAST_ENDED = 1000
"""Ended jobs of anybody among which a worker looks for its own when it starts."""
MOST_LEFT = 50
"""Jobs whose traces are remembered while the server does not let us remove them."""

log = logging.getLogger(__name__)


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

    `owner` names the worker among all that use the server: jobs are known by it, so no two workers may share one.
    `side_px` is the side of the square that has as many pixels as the model gets to see. Raises `ServerUrlError`, and
    `ValueError` for an owner that cannot be part of a name; the server itself is first asked by the first job.
    """

    name = "comfyui"

    def __init__(
        self,
        url: str,
        workflow: Workflow,
        *,
        owner: str,
        side_px: int = SIDE_PX,
        words: Words = Words(),
        patience: Patience = Patience(),  # noqa: B008  (frozen)
    ) -> None:
        self._url = base_url(url)
        self._workflow = workflow
        self._owner = check_owner(owner)
        self._side_px = side_px
        self._words = words
        self._patience = patience
        self._server = Server(url, connect_s=patience.connect_s, answer_s=patience.answer_s)
        self._tidier = _tidier(url, patience)
        self._threads = ThreadPoolExecutor(THREADS, "comfyui")
        self._left: deque[Traces] = deque(maxlen=MOST_LEFT)

    def grow(self, job: GrowthJob, progress: Progress) -> RgbImage:
        """As `GrowthBackend.grow`. Tidying up may take `Patience.tidy_s` more than `job.timeout_s` allows only when the
        server hangs.
        """
        weights = reach(job)  # what compositing will take of the picture is what has to be painted
        window = Window.around(weights, self._side_px)
        if window is None:
            raise GrowthUnavailableError(GrowthReason.NOTHING_TO_GROW)
        ends_s = None if job.timeout_s is None else time.monotonic() + _working_time_s(job.timeout_s, self._patience)
        pictures = Pictures(window.cut(job.scene.rgb), window.cut_mask(weights))
        try:
            picture = self._first_or_second(pictures, job.seed, progress, ends_s)
        except MishapError as error:
            raise GrowthUnavailableError(CONSEQUENCES[error.mishap].reason, str(error)) from error
        return window.pasted(job.scene.rgb, picture)

    def close(self) -> None:
        """Remove what could not be removed before, and close all connections."""
        self._remove_left()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._server.close()
        self._tidier.close()

    def _first_or_second(self, pictures: Pictures, seed: int, progress: Progress, ends_s: float | None) -> RgbImage:
        try:
            return self._attempt(pictures, seed, progress, ends_s)
        except MishapError as error:
            if not CONSEQUENCES[error.mishap].again:
                raise
            log.warning("diffusion job tried once more: %s", error)
        return self._attempt(pictures, seed, progress, ends_s)

    def _attempt(self, pictures: Pictures, seed: int, progress: Progress, ends_s: float | None) -> RgbImage:
        patience = self._patience
        traces = Traces(client_id_of(self._owner, secrets.token_hex(8)), [])

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
        job = Job(self._server, listener, self._threads, patience=patience, progress=progress, ends_s=ends_s)
        try:
            return job.run(pictures, self._workflow, fill, traces)
        finally:
            # Whatever happened, CancelledCallError too: a patient's face does not stay there.
            listener.close()
            job.settle(patience.tidy_s)
            self._left.append(traces)
            self._remove_left()

    def _remove_left(self) -> None:
        """Remove what jobs have left, the last one first; at the first that does not go the others wait."""
        while self._left:
            try:
                remove(self._tidier, self._left[-1], self._patience.tidy_s)
            except (MishapError, TimeoutError) as error:
                log.warning("%d diffusion jobs not removed from their server: %s", len(self._left), error)
                return
            self._left.pop()


def remove_leftovers(url: str, owner: str, patience: Patience = Patience()) -> int:  # noqa: B008  (frozen)
    """Remove what jobs of an earlier process of this owner have left on a server; returns how many jobs there were.

    Raises `GrowthUnavailableError` when the server does not answer, or does not let a job of ours end.
    """
    check_owner(owner)
    try:
        with _tidier(url, patience) as server:
            return remove_of_owner(server, owner, patience.tidy_s, LAST_ENDED)
    except MishapError as error:
        raise GrowthUnavailableError(CONSEQUENCES[error.mishap].reason, str(error)) from error
    except TimeoutError as error:
        raise GrowthUnavailableError(GrowthReason.DIFFUSION_STALLED, str(error)) from error


def _tidier(url: str, patience: Patience) -> Server:
    """A client for removing: it has to come to an end within `Patience.tidy_s`, or nearly."""
    return Server(url, connect_s=min(1.0, patience.connect_s), answer_s=min(patience.tidy_s / 2, patience.answer_s))


def _working_time_s(timeout_s: float, patience: Patience) -> float:
    """What of the caller's time may go by before tidying begins."""
    return timeout_s - min(patience.tidy_s, timeout_s / 4)
