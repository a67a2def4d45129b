"""One attempt on a ComfyUI server: give it away, watch it, fetch the picture.

Requests run in threads of their own, so that the compute thread looks at every quarter of a second whether anybody
still waits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass
from typing import Any, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from vision import raster
from vision.errors import PhotoError
from vision.growth.comfyui_answers import Ended, StoredFile
from vision.growth.comfyui_client import Server
from vision.growth.comfyui_mishaps import Mishap, MishapError
from vision.growth.comfyui_socket import Listener
from vision.growth.comfyui_tidy import Traces, upload_name
from vision.growth.comfyui_vigil import Patience, State, Vigil
from vision.growth.comfyui_window import MULTIPLE_PX
from vision.growth.comfyui_workflow import Workflow
from vision.png import encode_png
from vision.types import Progress, RgbImage, Stage

PICTURE_LIMITS = raster.Limits(max_pixels=36_000_000, min_side_px=8)
_READ = frozenset({raster.Format.PNG, raster.Format.JPEG, raster.Format.WEBP})
"""What ComfyUI's nodes write."""

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pictures:
    """What is sent."""

    image: RgbImage
    """(h, w, 3)."""
    mask: NDArray[np.uint8]
    """(h, w), 255 where hair is to grow, falling to 0 around it."""


def mask_file(mask: NDArray[np.uint8]) -> bytes:
    """A PNG that gives this mask whichever node reads it: LoadImageMask by colour takes the colour, by alpha its
    reverse, as does LoadImage.
    """
    _done, data = cv2.imencode(".png", cv2.merge((mask, mask, mask, 255 - mask)))
    return bytes(data)


class Job:
    """One attempt."""

    def __init__(
        self,
        server: Server,
        listener: Listener,
        threads: Executor,
        *,
        patience: Patience,
        progress: Progress,
        ends_s: float | None,
    ) -> None:
        self._server = server
        self._listener = listener
        self._threads = threads
        self._patience = patience
        self._progress = progress
        self._ends_s = ends_s
        self._under_way: set[Future[Any]] = set()

    def run(
        self,
        pictures: Pictures,
        workflow: Workflow,
        fill: Callable[[StoredFile, StoredFile], dict[str, Any]],
        traces: Traces,
    ) -> RgbImage:
        """The picture that the server made. Raises `MishapError` and `CancelledCallError`.

        `fill` makes the prompt from where image and mask lie. `traces` says at any moment what may be left there.
        """
        self._progress.enter(Stage.DIFFUSION_QUEUE)
        image = self._upload(encode_png(pictures.image).data, "image", traces)
        mask = self._upload(mask_file(pictures.mask), "mask", traces)
        prompt = fill(image, mask)
        # Before the prompt: what is told to nobody is not told again.
        if not self._until(lambda: self._listener.wait_open(self._patience.look_s), self._patience.connect_s):
            log.warning("the diffusion server's socket does not open; its history has to do")
        traces.submitted = True
        traces.prompt_id = self._wait(self._server.submit, prompt, traces.client_id)
        ended = self._watch(Vigil(traces.prompt_id, workflow.weights(), self._patience, time.monotonic()))
        if ended.mishap is not None:
            raise ended.mishap
        files = ended.by_node.get(workflow.result_node, ())
        if not files:
            raise MishapError(Mishap.NO_OUTPUT, f"node {workflow.result_node} has no picture in the history")
        return checked(decoded(self._wait(self._server.view, files[0])), like=pictures.image)

    def settle(self, timeout_s: float) -> None:
        """Wait for requests that were given up: what they do must not come after what removes it."""
        wait(self._under_way, timeout_s)

    def _upload(self, data: bytes, kind: str, traces: Traces) -> StoredFile:
        wanted = upload_name(traces.client_id, kind)
        traces.uploads.append(wanted)
        stored = self._wait(self._server.upload, data, wanted)
        traces.uploads[-1] = stored  # under another name, where somebody else has the wanted one
        return stored

    def _look(self) -> None:
        self._progress.look()
        if self._ends_s is not None and time.monotonic() >= self._ends_s:
            raise MishapError(Mishap.OUT_OF_TIME)

    def _until(self, true: Callable[[], bool], timeout_s: float) -> bool:
        ends_s = time.monotonic() + timeout_s
        while time.monotonic() < ends_s:
            self._look()
            if true():
                return True
        return False

    def _start(self, ask: Callable[..., T], *arguments: Any) -> Future[T]:
        future = self._threads.submit(ask, *arguments)
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future

    def _wait(self, ask: Callable[..., T], *arguments: Any) -> T:
        """The answer to one request."""
        asked = self._start(ask, *arguments)
        while not asked.done():
            self._look()
            wait([asked], self._patience.look_s)
        return asked.result()

    def _watch(self, vigil: Vigil) -> Ended:
        told = _Told(self._progress)
        asked: Future[State] | None = None
        ask_at_s = time.monotonic() + self._patience.poll_s
        while True:
            self._look()
            for message in self._listener.receive(self._patience.look_s):
                vigil.hear(message, time.monotonic())
                told.tell(vigil)
            now_s = time.monotonic()
            if asked is None and (now_s >= ask_at_s or vigil.steps.ended):
                asked = self._start(self._state, vigil.prompt_id)
            if asked is not None and (asked.done() or vigil.steps.ended):
                ended = self._learn(vigil, asked)
                if ended is not None:
                    return ended
                if asked.done():
                    asked, ask_at_s = None, now_s + self._patience.poll_s
            told.tell(vigil)
            vigil.check(now_s)
            if vigil.is_quiet(now_s):
                self._listener.renew()
                vigil.renewed(now_s)

    def _learn(self, vigil: Vigil, asked: Future[State]) -> Ended | None:
        wait([asked], self._patience.look_s)
        if not asked.done():
            return None
        try:
            return vigil.learn(asked.result(), time.monotonic())
        except MishapError as error:
            if error.mishap not in {Mishap.UNREACHABLE, Mishap.NOT_COMFYUI}:
                raise
            vigil.miss(error, time.monotonic())
            return None

    def _state(self, prompt_id: str) -> State:
        """History and queue, asked so that a job which ends in between is not missed."""
        ended = self._server.history(prompt_id)
        if ended is not None:
            return State(ended)
        queue = self._server.queue()
        if queue.ahead_of(prompt_id) is None:
            return State(self._server.history(prompt_id), queue)
        return State(None, queue, self._server.stats())


class _Told:
    """What was told to `progress` about a vigil."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stage = Stage.DIFFUSION_QUEUE
        self._ahead: int | None = None
        self._done = 0
        self._counts = False
        """Whether the present stage was entered with its total."""
        self._unheard = 0

    def tell(self, vigil: Vigil) -> None:
        if vigil.runs:
            self._tell_running(vigil)
        elif vigil.ahead is not None:
            if self._ahead is None:
                self._progress.enter(Stage.DIFFUSION_QUEUE, vigil.ahead)
                self._ahead = vigil.ahead
            while self._ahead > vigil.ahead:
                self._progress.step()
                self._ahead -= 1

    def _tell_running(self, vigil: Vigil) -> None:
        if self._unheard < vigil.unheard_movements:
            # It moves, nobody knows how far it is: the stage begins again, without a total.
            self._progress.enter(Stage.DIFFUSION)
            self._stage, self._counts, self._unheard = Stage.DIFFUSION, False, vigil.unheard_movements
        if self._stage is not Stage.DIFFUSION or (not self._counts and vigil.steps.done > self._done):
            self._progress.enter(Stage.DIFFUSION, vigil.steps.total)
            self._stage, self._counts, self._done = Stage.DIFFUSION, True, 0
        while self._counts and self._done < vigil.steps.done:
            self._progress.step()
            self._done += 1


def checked(picture: RgbImage, like: RgbImage) -> RgbImage:
    """`picture` if its sides are in the proportion of `like`, to within a latent's cell; else `MishapError`."""
    (height, width), (like_height, like_width) = picture.shape[:2], like.shape[:2]
    zoom = width / like_width
    if abs(height - like_height * zoom) > MULTIPLE_PX * max(1.0, zoom):
        raise MishapError(Mishap.BAD_PICTURE, f"{width} × {height} px for {like_width} × {like_height} px")
    return picture


def decoded(data: bytes) -> RgbImage:
    """A picture from outside, (H, W, 3); of an animated one the first frame. Raises `MishapError`: BAD_PICTURE."""
    form = raster.sniff(data)
    if not isinstance(form, raster.Format) or form not in _READ:
        raise MishapError(Mishap.BAD_PICTURE, "not PNG, JPEG or WebP")
    try:
        return raster.read(data, form, PICTURE_LIMITS).rgb
    except PhotoError as error:
        raise MishapError(Mishap.BAD_PICTURE, error.reason.value) from error
