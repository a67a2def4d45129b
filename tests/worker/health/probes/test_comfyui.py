"""ComfyUI's answers, as the fake and the recorded real server give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.comfyui import FakeComfyUi
from worker.health.probes.comfyui import read_answers
from worker.health.verdict import Memory, Verdict, judge
from worker.health.watchdog.limits import Limits
from worker.health.watchdog.looks import Answer, Look
from worker.health.watchdog.policy import Action, Decision, Watchdog

TRANSCRIPT = Path(__file__).parents[5] / "shared" / "data" / "comfyui" / "transcript.json"
GRACE_S = 300.0


def look(server: FakeComfyUi, at_s: float = 0.0) -> Look:
    queue = {"queue_running": server.running, "queue_pending": server.pending}
    return read_answers(queue, dict(list(server.history.items())[-1:]), server.stats(), at_s=at_s, grace_s=GRACE_S)


def watch(server: FakeComfyUi, dog: Watchdog, from_s: float, to_s: float) -> list[Decision]:
    return [dog.see(look(server, from_s + 10.0 * n)) for n in range(int((to_s - from_s) / 10.0))]


@pytest.fixture
def dog() -> Watchdog:
    return Watchdog(Limits(grace_s=GRACE_S), canaries=False, begun_s=-1_000.0)


def test_a_prompt_that_is_silent_for_two_minutes_is_no_stall(dog: Watchdog) -> None:
    """Scenario 32: one node, or a model load."""
    server = FakeComfyUi(device="cpu")
    server.submit()
    decisions = watch(server, dog, 0.0, 290.0)
    assert {decision.finding.verdict for decision in decisions} == {Verdict.BUSY}
    server.finish()
    assert dog.see(look(server, 290.0)).finding.verdict is Verdict.IDLE


def test_memory_of_the_accelerator_that_breathes_is_movement(dog: Watchdog) -> None:
    """A video that takes an hour, in one prompt."""
    server = FakeComfyUi()
    server.submit()
    verdicts = set()
    for n in range(360):
        server.torch_free_bytes = 1_000_000 + (n // 12) % 2
        verdicts.add(dog.see(look(server, 10.0 * n)).finding.verdict)
    assert verdicts == {Verdict.BUSY}


def test_b75_a_queue_that_only_grows_is_stalled_and_restarted_once(dog: Watchdog) -> None:
    server = FakeComfyUi()
    server.submit()
    actions = []
    for n in range(80):
        server.submit()
        decision = dog.see(look(server, 10.0 * n))
        actions.append(decision.action)
        if decision.action is Action.RESTART:
            assert 600.0 <= 10.0 * n <= 620.0
            dog.restarted(10.0 * n)
    assert actions.count(Action.RESTART) == 1
    assert Action.CANARY not in actions


def test_one_prompt_after_another_is_movement(dog: Watchdog) -> None:
    server = FakeComfyUi(device="cpu")
    for _ in range(20):
        server.submit()
    memory: Memory | None = None
    for n in range(20):
        judgement = judge(memory, look(server, 10.0 * n).engines[""], period_s=10.0)
        memory = judgement.memory
        assert judgement.moved == (n > 0)
        server.finish()


@pytest.mark.parametrize(
    ("queue", "history", "stats"),
    [
        ({}, {}, {"devices": []}),
        ({"queue_running": 1, "queue_pending": []}, {}, {"devices": []}),
        ({"queue_running": [[1]], "queue_pending": []}, {}, {"devices": []}),
        ({"queue_running": [], "queue_pending": []}, {}, []),
        ({"queue_running": [], "queue_pending": []}, {}, {"devices": [{"type": "cuda"}]}),
        ([], {}, {}),
    ],
)
def test_other_shapes_are_unreadable(queue: Any, history: Any, stats: Any) -> None:
    assert read_answers(queue, history, stats, at_s=0.0, grace_s=GRACE_S).answer is Answer.UNREADABLE


def test_a_real_servers_answers_are_read() -> None:
    if not TRANSCRIPT.exists():
        pytest.skip("the recorded answers are not here")
    recorded = json.loads(TRANSCRIPT.read_text())
    queue = recorded["queue while one runs and two wait"]["body"]
    history = recorded["history of the interrupted"]["body"]
    stats = recorded["system_stats"]["body"]
    reading = read_answers(queue, history, stats, at_s=0.0, grace_s=GRACE_S).engines[""]
    assert (reading.in_flight, reading.waiting) == (1, 2)
    assert queue["queue_running"][0][1] in reading.signs
    assert next(iter(history)) in reading.signs
    fake = FakeComfyUi()
    assert fake.stats().keys() == stats.keys()
    assert fake.stats()["devices"][0].keys() == stats["devices"][0].keys()


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e999", "-Infinity", "NaN", '"much"', "[" * 900 + "]" * 900])
def test_memory_that_is_no_number_is_unreadable_and_no_movement(number: str) -> None:
    stats = json.loads(f'{{"devices": [{{"type": "cuda", "torch_vram_total": {number}, "torch_vram_free": 1}}]}}')
    queue: dict[str, list[Any]] = {"queue_running": [], "queue_pending": []}
    assert read_answers(queue, {}, stats, at_s=0.0, grace_s=GRACE_S).answer is Answer.UNREADABLE
