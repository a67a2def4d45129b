"""Jobs for the diffusion backend, and what to look at afterwards."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tests.fakes.comfyui_server import ComfyUiServer
from vision.errors import CancelledCallError
from vision.growth.backend import GrowthJob, GrowthReason, GrowthScene, GrowthUnavailableError
from vision.growth.comfyui import ComfyUiGrowth
from vision.growth.comfyui_vigil import Patience
from vision.growth.comfyui_workflow import Workflow
from vision.types import LABEL_COUNT, Label, NoProgress, ParsingMap, Progress, RgbImage, Stage

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "deploy" / "comfyui" / "inpaint_sdxl.json"
SIDE_PX = 128
QUICK = Patience(
    poll_s=0.05,
    look_s=0.02,
    quiet_s=60.0,
    ping_s=30.0,
    tidy_s=30.0,
    connect_s=30.0,
    answer_s=30.0,
    unreachable_s=30.0,
)
"""Asks often, gives up on nothing: each test shortens the patience it is about."""

_HAIR_TO_ROW = 40


class Recorder:
    """A `Progress` that writes down what it is told; `cancel` may come from another thread."""

    def __init__(self) -> None:
        self.stages: list[tuple[Stage, int]] = []
        self.steps: list[int] = []
        """Of each stage."""
        self.signs = 0
        """Signs of life that were no steps."""
        self.looks = 0
        self._cancelled = threading.Event()

    def enter(self, stage: Stage, total: int = 0) -> None:
        self.look()
        self.stages.append((stage, total))
        self.steps.append(0)

    def step(self) -> None:
        self.look()
        self.steps[-1] += 1

    def moved(self) -> None:
        self.look()
        self.signs += 1

    def look(self) -> None:
        self.looks += 1
        if self._cancelled.is_set():
            raise CancelledCallError

    def cancel(self) -> None:
        self._cancelled.set()


def photo(colour: tuple[int, int, int] = (200, 160, 140)) -> RgbImage:
    """(150, 120, 3), skin with dark hair above row 40."""
    rgb = np.empty((150, 120, 3), dtype=np.uint8)
    rgb[:] = colour
    rgb[:_HAIR_TO_ROW] = (40, 30, 25)
    return rgb


def parsing() -> ParsingMap:
    """Of `photo`."""
    probabilities = np.zeros((LABEL_COUNT, 150, 120), dtype=np.float32)
    probabilities[Label.HAIR, :_HAIR_TO_ROW] = 1.0
    probabilities[Label.SKIN, _HAIR_TO_ROW:] = 1.0
    return ParsingMap(probabilities, np.eye(2, 3))


def region() -> NDArray[np.float32]:
    """(150, 120), a band below the hair."""
    mask = np.zeros((150, 120), dtype=np.float32)
    mask[40:60, 30:90] = 1.0
    return mask


def job(
    rgb: RgbImage | None = None,
    *,
    where: NDArray[np.float32] | None = None,
    timeout_s: float | None = None,
    seed: int = 7,
) -> GrowthJob:
    """One region to fill."""
    scene = GrowthScene(
        rgb=photo() if rgb is None else rgb,
        scale=1.0,
        landmarks=np.zeros((478, 2)),
        parsing=parsing(),
        hairline=None,
        mm_per_px=1.0,
        roll_deg=0.0,
    )
    return GrowthJob(scene, region() if where is None else where, None, seed, timeout_s)


class Told:
    """`News`, written down."""

    def __init__(self) -> None:
        self.news: list[tuple[Any, ...]] = []

    def tried_again(self, problem: str) -> None:
        self.news.append(("tried again", problem))

    def socket_shut(self) -> None:
        self.news.append(("socket shut",))

    def leftovers_wait(self, jobs: int, problem: str) -> None:
        self.news.append(("wait", jobs, problem))

    def leftovers_removed(self, jobs: int) -> None:
        self.news.append(("removed", jobs))

    def journal_missing(self, problem: str) -> None:
        self.news.append(("journal missing", problem))


def growth(
    url: str,
    patience: Patience = QUICK,
    *,
    workflow: dict[str, Any] | None = None,
    journal_dir: Path | None = None,
    told: Told | None = None,
) -> ComfyUiGrowth:
    """The backend, with the example workflow or another one."""
    made = Workflow.load(EXAMPLE) if workflow is None else Workflow.parse(json.dumps(workflow))
    return ComfyUiGrowth(url, made, journal_dir=journal_dir, side_px=SIDE_PX, patience=patience, news=told or Told())


def advanced() -> dict[str, Any]:
    """The example with a sampler that has no input for its steps, as Flux and its kin are run."""
    nodes: dict[str, Any] = json.loads(EXAMPLE.read_text())
    latent = nodes["sampler"]["inputs"]["latent_image"]
    nodes["noise"] = {"class_type": "RandomNoise", "inputs": {"noise_seed": "%seed%"}}
    nodes["sigmas"] = {
        "class_type": "BasicScheduler",
        "inputs": {"model": ["checkpoint", 0], "scheduler": "simple", "steps": 20, "denoise": 1.0},
    }
    nodes["sampler"] = {
        "class_type": "SamplerCustomAdvanced",
        "inputs": {"noise": ["noise", 0], "sigmas": ["sigmas", 0], "latent_image": latent},
    }
    return nodes


def grown(
    url: str, patience: Patience = QUICK, *, what: GrowthJob | None = None, progress: Progress | None = None
) -> RgbImage:
    """The canvas that one job brings."""
    backend = growth(url, patience)
    try:
        return backend.grow(what or job(), progress or NoProgress())
    finally:
        backend.close()


def failure(url: str, patience: Patience = QUICK, *, what: GrowthJob | None = None) -> GrowthUnavailableError:
    """Why one job brings nothing."""
    try:
        grown(url, patience, what=what)
    except GrowthUnavailableError as error:
        return error
    raise AssertionError("it has grown")


def reason(url: str, patience: Patience = QUICK, *, what: GrowthJob | None = None) -> GrowthReason:
    """The reason alone."""
    return failure(url, patience, what=what).reason


class Background:
    """A job in a thread of its own; of a backend of its own, which is closed behind it, or of a given one."""

    def __init__(
        self,
        url: str,
        patience: Patience = QUICK,
        *,
        what: GrowthJob | None = None,
        backend: ComfyUiGrowth | None = None,
    ) -> None:
        self.progress = Recorder()
        self.canvas: RgbImage | None = None
        self.error: BaseException | None = None
        self._arguments = (url, patience, what, backend)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def until_taken(self) -> None:
        """Wait until it has heard that the server has its prompt: what breaks before that is another mishap."""
        until(lambda: Stage.DIFFUSION_QUEUE in dict(self.progress.stages))

    def result(self) -> RgbImage:
        """What it brought; raises what it raised."""
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        assert self.canvas is not None
        return self.canvas

    def _run(self) -> None:
        url, patience, what, backend = self._arguments
        try:
            if backend is not None:
                self.canvas = backend.grow(what or job(), self.progress)
            else:
                self.canvas = grown(url, patience, what=what, progress=self.progress)
        except BaseException as error:  # noqa: BLE001  (raised in `result`)
            self.error = error


def until(true: Callable[[], object], timeout_s: float = 60.0) -> None:
    """Wait until something is so."""
    pause = threading.Event()
    for _ in range(int(timeout_s / 0.01)):
        if true():
            return
        pause.wait(0.01)
    raise AssertionError("never came")


def hair_share(canvas: RgbImage) -> float:
    """Share of the region that is dark."""
    return float((canvas[region() > 0.5].sum(axis=1) < 250).mean())


def sizes(server: ComfyUiServer) -> set[tuple[int, int]]:
    """Of every picture that lies on the server."""
    return {Image.open(io.BytesIO(data)).size for data in server.engine.files.values()}


def nothing_left(server: ComfyUiServer) -> bool:
    """Whether no picture, history entry or prompt of anybody is on the server."""
    engine = server.engine
    return sizes(server) <= {(1, 1)} and not engine.history and not engine.running and not engine.pending


def others_prompt(server: ComfyUiServer, *, kind: str = "output", client_id: str = "somebody") -> str:
    """Somebody else's prompt, with a picture of theirs; returns its id once the server is at work, on it or another."""
    rgb = np.full((32, 32, 3), 90, dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(rgb).save(buffer, "PNG")
    server.engine.upload(buffer.getvalue(), ("input", "", f"{client_id}.png"), overwrite=True)
    prompt: dict[str, Any] = {
        "1": {"class_type": "LoadImage", "inputs": {"image": f"{client_id}.png"}},
        "2": {"class_type": "ImageBlur", "inputs": {"image": ["1", 0], "blur_radius": 3, "sigma": 1.0}},
        "3": {"class_type": "SaveImage", "inputs": {"images": ["2", 0], "filename_prefix": f"{kind}-{client_id}"}},
    }
    status, answer = server.engine.submit({"prompt": prompt, "client_id": client_id})
    assert status == 200
    prompt_id = str(answer["prompt_id"])
    until(lambda: server.engine.running or prompt_id in server.engine.history)
    return prompt_id
