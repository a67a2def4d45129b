"""A client that is held to one worker, and everybody else: the rules of the simulator on one scene."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.config import DispatchConfig, PoolConfig
from edge.pool.dispatch import Dispatch
from edge.pool.manager import Pool
from tests.sim.rules import ViolationError
from tests.sim.world import World

WORKERS = ("a:1", "b:1", "c:1", "d:1")


def flooded(places: int) -> World:
    """A client has failed on two workers with two inputs, and floods the pool. `places`: inside."""
    dispatch = DispatchConfig(max_in_flight=places, max_queue_wait_seconds=60.0)
    world = World(PoolConfig(workers=WORKERS, dispatch=dispatch))
    for worker in world.workers.values():
        worker.poisons = {"killer": ev.Code.FAILED_PRECONDITION}
    world.start()
    for number in range(2):
        world.edges[0].submit(input_key=f"killer/{number}", client_key="uploader")
        world.run(1.0)
    for number in range(2 * places):
        world.edges[0].submit(input_key=f"killer/{number + 2}", client_key="uploader")
    return world


def test_others_get_workers_at_once_while_a_held_client_floods_the_pool() -> None:
    world = flooded(16)
    others = [world.edges[0].submit(input_key=f"sound {number}", client_key="sound") for number in range(3)]
    assert all(client.running_on for client in others)
    world.run(60.0)
    assert {client.answer for client in others} == {"ok"}
    answers = [client.answer for client in world.clients.values() if client.client_key == "uploader"]
    assert set(answers) == {"INPUT_FAILED", "BUSY"}


def test_a_pool_in_which_held_clients_take_every_place_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_held: Callable[[Dispatch, float], None] = Dispatch._fail_held

    def without_limit(self: Dispatch, now_s: float) -> None:
        with monkeypatch.context() as patch:  # for the pool alone: the rule keeps the share
            patch.setattr(fixed, "HELD_SHARE_INSIDE", 100.0)
            fail_held(self, now_s)

    monkeypatch.setattr(Dispatch, "_fail_held", without_limit)
    world = flooded(16)
    with pytest.raises(ViolationError, match="stand idle"):
        world.edges[0].submit(input_key="sound", client_key="sound")


@pytest.mark.parametrize("call_first", [True, False])
def test_one_death_does_not_lead_a_held_client_to_the_next_worker(call_first: bool) -> None:
    """Whether the failed call is heard first, or that its worker is down."""
    pool = Pool(PoolConfig(workers=WORKERS), seed=1, edge_id="edge")
    started: list[ev.Start] = []

    def feed(event: ev.Event) -> None:
        for decision in pool.handle(event):
            if isinstance(decision, ev.Probe):
                pool.handle(ev.ProbeEnded(event.now_s, decision.endpoint, ev.ProbeResult.GOOD))
            elif isinstance(decision, ev.Start):
                started.append(decision)

    def call(now_s: float, number: int) -> None:
        feed(ev.Submitted(now_s, f"edge-{number}", client_key="uploader"))

    feed(ev.Started(0.0))
    feed(ev.Tick(0.5))
    for worker in WORKERS:
        feed(ev.StatusTold(0.5, worker, 0.5, "boot-1"))
    for number in range(2):
        call(1.0 + number, number)
        failed = (ev.Code.FAILED_PRECONDITION, "INPUT_FAILED")
        feed(ev.CallEnded(1.5 + number, f"edge-{number}", *failed, input_key=f"killer/{number}"))
    call(5.0, 2)
    call(5.0, 3)  # waits
    died = ev.CallEnded(6.0, "edge-2", ev.Code.UNAVAILABLE, input_key="killer/2")
    down = ev.HealthTold(6.0, started[-1].endpoint, serving=False)
    for event in (died, down) if call_first else (down, died):
        feed(event)
    call(7.0, 4)
    assert [start.call_id for start in started] == ["edge-0", "edge-1", "edge-2"]
