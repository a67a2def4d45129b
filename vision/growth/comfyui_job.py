"""One attempt on a ComfyUI server: give it away, watch it, fetch the picture.

Requests run in threads of their own, so that the compute thread looks at every quarter of a second whether anybody
still waits.
"""

from __future__ import annotations

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
from vision.growth.comfyui_mishaps import Mishap, MishapError, NotSentError
from vision.growth.comfyui_news import News
from vision.growth.comfyui_socket import Listener
from vision.growth.comfyui_tidy import Traces, upload_name
from vision.growth.comfyui_vigil import Patience, State, Stillness, Vigil
from vision.growth.comfyui_window import MULTIPLE_PX
from vision.growth.comfyui_workflow import Workflow
from vision.png import encode_png
from vision.types import Progress, RgbImage, Stage

PICTURE_LIMITS = raster.Limits(max_pixels=36_000_000, min_side_px=8)
_READ = frozenset({raster.Format.PNG, raster.Format.JPEG, raster.Format.WEBP})
"""What ComfyUI's nodes write."""

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
        news: News,
        traces: Traces,
        ends_s: float | None,
        before: Stillness | None,
    ) -> None:
        """`traces` says at any moment what may be left on the server; `before` is how the last job saw it."""
        self._server = server
        self._listener = listener
        self._threads = threads
        self._patience = patience
        self._progress = progress
        self._news = news
        self._traces = traces
        self._ends_s = ends_s
        self._before = before
        self._vigil: Vigil | None = None
        """From the moment in which the server has the prompt."""

    @property
    def stillness(self) -> Stillness | None:
        """How it saw the server last."""
        return self._vigil.stillness if self._vigil else self._before

    def run(
        self,
        pictures: Pictures,
        workflow: Workflow,
        fill: Callable[[StoredFile, StoredFile], dict[str, Any]],
    ) -> RgbImage:
        """The picture that the server made. Raises `MishapError`, and whatever `progress` raises.

        `fill` makes the prompt from where image and mask lie.
        """
        self._progress.enter(Stage.DIFFUSION)
        image = self._upload(encode_png(pictures.image).data, "image")
        mask = self._upload(mask_file(pictures.mask), "mask")
        prompt = fill(image, mask)
        # Before the prompt: what is told to nobody is not told again.
        if not self._until(lambda: self._listener.wait_open(self._patience.look_s), self._patience.connect_s):
            self._news.socket_shut()
        prompt_id = self._submit(prompt)
        self._progress.enter(Stage.DIFFUSION_QUEUE)
        vigil = Vigil(prompt_id, workflow.steps(), self._patience, time.monotonic(), self._before)
        self._vigil = vigil
        ended = self._watch(vigil)
        if ended.mishap is not None:
            raise ended.mishap
        files = ended.by_node.get(workflow.result_node, ())
        if not files:
            raise MishapError(Mishap.NO_OUTPUT, f"node {workflow.result_node} has no picture in the history")
        return checked(decoded(self._answer(self._threads.submit(self._server.view, files[0]))), like=pictures.image)

    def _upload(self, data: bytes, kind: str) -> StoredFile:
        traces, wanted = self._traces, upload_name(self._traces.client_id, kind)

        def send() -> StoredFile:
            try:
                stored = self._server.upload(data, wanted)
            except NotSentError:
                traces.uploads.discard(wanted)
                raise
            if traces.client_id not in stored.name:
                raise MishapError(Mishap.NOT_COMFYUI, "the answer to an upload names another file")
            traces.uploads.add(stored)
            return stored

        traces.uploads.add(wanted)
        stored = self._sent(send)
        self._progress.moved()
        return stored

    def _submit(self, prompt: dict[str, Any]) -> str:
        traces = self._traces

        def send() -> str:
            try:
                traces.prompt_id = self._server.submit(prompt, traces.client_id)
            except NotSentError:
                traces.submitted = False
                raise
            return traces.prompt_id

        traces.submitted = True
        return self._sent(send)

    def _sent(self, send: Callable[[], T]) -> T:
        """The answer to what leaves something there."""
        sending = self._threads.submit(send)
        self._traces.sending.append(sending)
        return self._answer(sending)

    def _look(self) -> None:
        now_s = time.monotonic()
        # Before `progress`, which may raise for the same time, and knows nothing of the server.
        if self._ends_s is not None and now_s >= self._ends_s:
            raise self._vigil.late(now_s) if self._vigil else MishapError(Mishap.OUT_OF_TIME)
        self._progress.look()

    def _until(self, true: Callable[[], bool], timeout_s: float) -> bool:
        ends_s = time.monotonic() + timeout_s
        while time.monotonic() < ends_s:
            self._look()
            if true():
                return True
        return False

    def _answer(self, asked: Future[T]) -> T:
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
                asked = self._threads.submit(self._state, vigil.prompt_id)
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
    """What was told to `progress` about a vigil: every movement, so that both judge by the same."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stage: tuple[Stage, int] = (Stage.DIFFUSION_QUEUE, 0)
        self._done = 0
        self._movements = 0

    def tell(self, vigil: Vigil) -> None:
        if vigil.movements == self._movements:
            return
        self._movements = vigil.movements
        stage, done = self._position(vigil)
        if stage != self._stage:
            self._progress.enter(*stage)
            self._stage, self._done = stage, 0
        elif done <= self._done:
            self._progress.moved()
        for _ in range(self._done, done):
            self._progress.step()
        self._done = max(self._done, done)

    def _position(self, vigil: Vigil) -> tuple[tuple[Stage, int], int]:
        """The stage with its total, and how much of it is done."""
        if vigil.runs:
            return (Stage.DIFFUSION, vigil.steps.total), vigil.steps.done
        most, ahead = self._stage[1], vigil.ahead or 0
        return (Stage.DIFFUSION_QUEUE, max(most, ahead)), max(0, most - ahead)


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
