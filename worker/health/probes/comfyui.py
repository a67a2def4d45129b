"""`/queue`, `/history` and `/system_stats` of a ComfyUI server, read into a look.

Over HTTP it counts nothing. What only work changes is which prompt runs, which one ended last, and how much memory
torch holds on an accelerator, which breathes with every node and step. A growing queue is no movement. Inside one
prompt a diffusion node may be still for two minutes and a model load for five; which of the two runs cannot be seen
from outside, so the longer patience holds.

`vision.growth.comfyui_answers` reads the same routes for jobs of its own, and leaves out what it cannot read: a job is
lost at worst. Here a wrong reading restarts somebody's server, so what is not wholly understood is not judged at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from worker.health.verdict import Reading
from worker.health.watchdog.looks import Answer, Look

NODE_STALL_AFTER_S = 120.0
MODEL_LOAD_STALL_AFTER_S = 300.0
GRACE_S = max(NODE_STALL_AFTER_S, MODEL_LOAD_STALL_AFTER_S)
"""How long a running prompt may be still."""


def read_answers(queue: Any, history: Any, stats: Any, *, at_s: float, grace_s: float) -> Look:
    """The look that three decoded JSON answers amount to: of `/queue`, `/history?max_items=1`, `/system_stats`.

    `at_s` is the reader's monotonic clock, `grace_s` how long a running prompt may be still.
    """
    try:
        running = _ids(queue["queue_running"])
        waiting = _ids(queue["queue_pending"])
        ended = sorted(str(prompt_id) for prompt_id in history)
        memory = _accelerator_memory(stats["devices"])
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError):
        return Look(at_s, Answer.UNREADABLE, problem="queue, history or system_stats: not as ComfyUI answers")
    reading = Reading(
        at_s=at_s,
        boot_id="",
        start_time_s=None,
        counter=0,
        in_flight=len(running),
        waiting=len(waiting),
        stage="prompt",
        stall_after_s=grace_s,
        signs=(*running, "ended", *ended, "memory", *memory),
    )
    return Look(at_s, Answer.READ, {"": reading}, counts=False)


def _ids(items: Sequence[Sequence[Any]]) -> list[str]:
    """Prompt ids of queue entries `[number, prompt_id, prompt, extra, outputs]`."""
    return [str(item[1]) for item in items]


def _accelerator_memory(devices: Sequence[Mapping[str, Any]]) -> list[float]:
    """What torch holds and has free within it, bytes. The memory of a machine without accelerator is everybody's."""
    memory = [
        float(device[key])
        for device in devices
        if device["type"] != "cpu"
        for key in ("torch_vram_total", "torch_vram_free")
    ]
    if not all(map(math.isfinite, memory)):
        raise ValueError("no number")  # and not equal to itself: it would be taken for movement
    return memory
