"""Any sequence of loads and faults: what always holds is checked by the world at every decision, and at the end
everything recovers.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from edge.pool import events as ev
from edge.pool.config import DispatchConfig, HealthCheckConfig, PoolConfig
from tests.sim.world import World

WORKERS = st.integers(0, 3)
CALL_CODES = st.sampled_from(
    [ev.Code.INTERNAL, ev.Code.UNAVAILABLE, ev.Code.UNKNOWN, ev.Code.FAILED_PRECONDITION, ev.Code.UNAUTHENTICATED]
)


CALL_TIMES = st.sampled_from([0.001, 0.5, 5.0, 20.0])


def refuse(reason: str) -> Callable[[World, str], None]:
    def act(world: World, target: str) -> None:
        world.workers[target].refuses_with = reason

    return act


def hang_calls(world: World, target: str) -> None:
    world.workers[target].hangs = True


def hang_probes(world: World, target: str) -> None:
    world.workers[target].probes_hang = True


BREAKS: dict[str, Callable[[World, str], None]] = {
    "kill": World.kill,
    "drain": World.drain,
    "lose the connection": World.drop_streams,
    "hang calls": hang_calls,
    "hang probes": hang_probes,
    "refuse as full": refuse("DISK"),
    "refuse as stalled": refuse("STALLED"),
    "say it is full": lambda world, target: world.tell(target, serving=False, cause=ev.Cause.DISK),
    "say it is sick": lambda world, target: world.tell(target, serving=False),
}


class PoolMachine(RuleBasedStateMachine):
    """Clients and an evil operator."""

    @initialize(
        workers=st.integers(1, 4),
        primaries=st.integers(0, 2),
        seed=st.integers(0, 5),
        places=st.sampled_from([1, 3, 64]),
        cooldown_s=st.sampled_from([0.0, 5.0, 60.0]),
        thresholds=st.tuples(st.integers(1, 3), st.integers(1, 2)),
        max_retries=st.integers(0, 2),
    )
    def start(
        self,
        workers: int,
        primaries: int,
        seed: int,
        places: int,
        cooldown_s: float,
        thresholds: tuple[int, int],
        max_retries: int,
    ) -> None:
        targets = tuple(f"w:{number}" for number in range(1, workers + 1))
        config = PoolConfig(
            workers=targets,
            primary_workers=targets[: min(primaries, workers)],
            health=HealthCheckConfig(
                unhealthy_threshold=thresholds[0], healthy_threshold=thresholds[1], cooldown_seconds=cooldown_s
            ),
            dispatch=DispatchConfig(
                max_in_flight=places,
                queue_wait_seconds=10,
                max_queue_wait_seconds=20,
                max_queued_bytes=500,
                request_timeout_seconds=8,
                growth_timeout_seconds=15,
                max_retries=max_retries,
            ),
        )
        self.world = World(config, seed=seed)
        self.world.start()

    def target(self, number: int) -> str:
        return self.world.config.workers[number % len(self.world.config.workers)]

    @rule(
        slow=st.booleans(),
        timeout_s=st.sampled_from([None, 0.0, 0.3, 3.0, 30.0]),
        size_bytes=st.sampled_from([1, 100, 400]),
        times=st.integers(1, 5),
        apart_s=st.sampled_from([0.0, 0.1]),
    )
    def submit(self, slow: bool, timeout_s: float | None, size_bytes: int, times: int, apart_s: float) -> None:
        for _ in range(times):
            self.world.submit(slow=slow, timeout_s=timeout_s, size_bytes=size_bytes)
            self.world.run(apart_s)

    @rule(number=st.integers(0, 50))
    def leave(self, number: int) -> None:
        open_ = [client for client in self.world.clients.values() if client.answered_s is None and not client.left]
        if open_:
            self.world.leave(open_[number % len(open_)])

    @rule(duration_s=st.sampled_from([0.001, 0.1, 0.5, 2.0, 7.0, 61.0]))
    def wait(self, duration_s: float) -> None:
        self.world.run(duration_s)

    @rule(number=WORKERS, how=st.sampled_from(list(BREAKS)))
    def break_worker(self, number: int, how: str) -> None:
        BREAKS[how](self.world, self.target(number))

    @rule(number=WORKERS, code=CALL_CODES, reason=st.sampled_from(["", "SAID_SO"]), after_s=CALL_TIMES)
    def fail_calls(self, number: int, code: ev.Code, reason: str, after_s: float) -> None:
        worker = self.world.workers[self.target(number)]
        worker.fails_with, worker.fails_because, worker.call_s = code, reason, after_s

    @rule(number=WORKERS, call_s=CALL_TIMES)
    def repair(self, number: int, call_s: float) -> None:
        self.world.boot_up(self.target(number))
        self.world.heal(self.target(number))
        self.world.workers[self.target(number)].call_s = call_s

    @rule(number=WORKERS, duration_s=st.sampled_from([0.02, 0.5, 5.0]))
    def other_edge_calls(self, number: int, duration_s: float) -> None:
        self.world.other_edge_calls(self.target(number), duration_s)

    @invariant()
    def the_books_agree(self) -> None:
        """The pool's counts are those of the clients."""
        clients = self.world.clients.values()
        snapshot = self.world.pool.snapshot(self.world.now_s)
        running = {client.call_id: client.running_on for client in clients if client.running_on}
        waiting = [client for client in clients if client.waits]
        assert snapshot.inside + snapshot.waiting_outside == len(running) + len(waiting)
        assert snapshot.waiting_fast + snapshot.waiting_slow == len(waiting)
        assert snapshot.inside <= self.world.config.dispatch.max_in_flight
        held = {each.call_id: each.target for each in snapshot.endpoints if each.call_id and not each.left_behind}
        assert held.items() <= running.items()
        assert not waiting or any(endpoint.online for endpoint in self.world.pool.endpoints())

    @invariant()
    def nobody_waits_in_vain(self) -> None:
        """No fast request stands inside while a worker that it may use is free.

        While a cause is shared, workers on trial get a call only now and then.
        """
        world = self.world
        snapshot = world.pool.snapshot(world.now_s)
        idle = {
            each.target
            for each in snapshot.endpoints
            if each.state == "SERVING"
            and not each.call_id
            and not each.taken_by_others
            and world.endpoint(each.target).busy_until_s <= world.now_s
            and not (snapshot.braked and world.endpoint(each.target).on_trial)
            and (world.endpoint(each.target).primary or not any(e.online and e.primary for e in world.pool.endpoints()))
        }
        stuck = [client for client in world.clients.values() if client.waits and not client.slow]
        if snapshot.waiting_outside == 0:
            assert all(idle <= client.failed_on for client in stuck)

    def teardown(self) -> None:
        """All faults stop: every call is answered, every worker comes back and works."""
        if not hasattr(self, "world"):
            return
        world = self.world
        for target, worker in world.workers.items():
            if worker.hangs or worker.slot or worker.drains:
                world.kill(target)  # a thread that hangs and a worker that drains end with their process
            world.boot_up(target)
            world.heal(target)
            worker.call_s = 0.5
        world.run(700.0)
        assert all(client.answered_s is not None or client.left for client in world.clients.values())
        assert all(endpoint.online for endpoint in world.pool.endpoints()), world.pool
        last = [world.submit() for _ in world.workers]
        world.run(30.0)
        assert [client.answer for client in last] == ["ok"] * len(last)
        assert world.pool.snapshot(world.now_s).inside == 0


TestPool = PoolMachine.TestCase
TestPool.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
