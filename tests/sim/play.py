"""Plays a schedule to its end: load and troubles, then peace, in which everything must recover."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from tests.sim.clock import Ties
from tests.sim.edge import Client, Trace
from tests.sim.faults import FAULTS, Fault, all_over
from tests.sim.rules import ViolationError
from tests.sim.schedule import Load, Schedule
from tests.sim.world import World

LAST_WORDS_S = 2.0
"""After the last load and trouble, so that each has said all it had to say."""
STEP_S = 1.0
"""How often recovery is looked for."""
WORKS_S = 60.0
"""Within which the last calls must be answered."""
FORGETS_S = 660.0
"""After so long without a request the pool must have forgotten everything."""
KEEPS = 260
"""Entries by which a pool may grow for good: samples of service times, and the brake's last few seconds."""
KEEPS_PER_ENDPOINT = 40
"""The same for each endpoint: its last changes."""


Note = Callable[[float, str], None]
"""Hears of every trouble: when, and what."""


class CrashError(Exception):
    """The pool itself raised."""

    invariant = "crash"


@dataclass(frozen=True, slots=True)
class Report:
    """How it went."""

    schedule: Schedule
    requests: int
    answered_ok: int
    failure: ViolationError | CrashError | None
    end: tuple[object, ...]
    """What two runs with other ties must have in common."""


def play(
    schedule: Schedule,
    *,
    ties: Ties = Ties.FIRST,
    trace: Trace | None = None,
    note: Callable[[float, str], None] | None = None,
) -> Report:
    """Never raises: what goes wrong stands in the report."""
    stage = _Stage(schedule, ties, trace, note)
    failure: ViolationError | CrashError | None = None
    try:
        stage.run()
    except ViolationError as error:
        failure = error
    except Exception as error:  # noqa: BLE001  (any exception of the pool is a finding)
        failure = CrashError(f"{stage.world.now_s:.6f}: {type(error).__name__}: {error}")
        failure.__cause__ = error
    clients = [client for edge in stage.world.edges for client in edge.clients.values()]
    return Report(
        schedule,
        len(clients),
        sum(client.answer == "ok" for client in clients),
        failure,
        () if failure else stage.end(),
    )


class _Stage:
    """One run."""

    def __init__(self, schedule: Schedule, ties: Ties, trace: Trace | None, note: Note | None) -> None:
        self.schedule = schedule
        self.world = world = World(
            schedule.config, seed=schedule.seed, edges=schedule.edges, latency_s=schedule.latency_s, ties=ties
        )
        world.trace = trace
        self._note = note or (lambda _at_s, _text: None)
        for worker in world.workers.values():
            worker.call_s, worker.slow_call_s, worker.step_s = schedule.call_s, schedule.slow_call_s, schedule.step_s
            worker.status_gap_s = 0.05
            worker.capabilities = frozenset({"growth"})
            worker.restarts_in_s = 1.0
        for load in schedule.loads:
            if load.poison:
                for worker in world.workers.values():
                    worker.poisons[load.poison] = schedule.poison_ends

    def run(self) -> None:
        """To the end."""
        world, schedule = self.world, self.schedule
        world.start()
        began_s = world.now_s
        self._fresh = {edge.edge_id: entries(edge.pool) for edge in world.edges}
        for load in schedule.loads:
            world.clock.after(load.begins_s, partial(self._call, load, random.Random(load.seed), began_s))
        for fault in schedule.faults:
            world.clock.after(fault.at_s, partial(self._begin, fault))
            world.clock.after(fault.at_s + fault.lasts_s, partial(self._end, fault))
        world.run(schedule.over_s + LAST_WORDS_S)
        self._note(world.now_s, "the faults stop")
        all_over(world, schedule.config)
        over_s = world.now_s
        self._recover(over_s)
        self._works()
        if schedule.seed % 8 == 0:
            self._forgets()
        self._check_strikes(over_s)

    def end(self) -> tuple[object, ...]:
        """States and queues, when everything is over."""
        world = self.world
        return tuple(
            (
                edge.edge_id,
                sorted((each.target, each.state, each.cause, each.call_id) for each in snapshot.endpoints),
                snapshot.inside,
                snapshot.waiting_outside,
                len(edge.open),
            )
            for edge in world.edges
            for snapshot in [edge.pool.snapshot(world.now_s)]
        )

    def _begin(self, fault: Fault) -> None:
        if self.world.peace:
            return
        self._note(self.world.now_s, f"begins: {fault}")
        FAULTS[fault.kind].begin(self.world, fault)

    def _end(self, fault: Fault) -> None:
        if self.world.peace:
            return
        self._note(self.world.now_s, f"ends: {fault}")
        FAULTS[fault.kind].end(self.world, fault)

    def _call(self, load: Load, chance: random.Random, began_s: float) -> None:
        world = self.world
        if world.now_s >= began_s + load.begins_s + load.lasts_s:
            return
        edge = world.edges[load.edge]
        for _ in range(load.burst):
            slow = chance.random() < load.slow
            number = len(edge.clients)
            client = edge.submit(
                slow=slow,
                timeout_s=chance.choice(load.patience_s),
                size_bytes=chance.choice([100, 400]),
                capability="growth" if slow and load.growth else "",
                input_key=load.input_key(number),
                client_key=load.seed,
            )
            if chance.random() < load.leaves:
                world.clock.after(chance.choice([0.0, 0.1, 1.0]), partial(edge.leave, client))
        world.clock.after(load.every_s, partial(self._call, load, chance, began_s))

    # Afterwards

    def _recover(self, over_s: float) -> None:
        """Everyone is back within the longest cooldown and a probe period, and everybody answered."""
        world, health = self.world, self.schedule.config.health
        world.run(health.timeout_seconds + LAST_WORDS_S)  # what was under way when the faults stopped has its say first
        while True:
            late = [late for late in self._late(over_s, health.cooldown_max_seconds) if late]
            if not late:
                return
            for why in late:
                if why != "not yet":
                    raise ViolationError("recovery", f"{world.now_s:.3f} {why}")
            world.run(STEP_S)

    def _late(self, over_s: float, cooldown_max_s: float) -> Iterator[str]:
        health, dispatch = self.schedule.config.health, self.schedule.config.dispatch
        settled_s = 3 * health.timeout_seconds + 1.1 * health.interval_seconds * health.healthy_threshold + 5.0
        for edge in self.world.edges:
            for endpoint in edge.pool.endpoints():
                heard = edge.checks.heard[endpoint.target]
                until_s = max(over_s, heard.struck_s) + cooldown_max_s + settled_s
                if not endpoint.online:
                    yield "not yet" if self.world.now_s <= until_s else f"{edge.edge_id}: {endpoint!r} is not back"
            slow_s = dispatch.default_timeout_s(slow=True)
            for client in edge.open.values():
                waits = self.world.now_s <= over_s + slow_s + 10.0
                yield "not yet" if waits else f"{edge.edge_id}: {client.call_id} has no answer"

    def _check_strikes(self, over_s: float) -> None:
        """Nobody is ejected for a call that began when all was well."""
        for edge in self.world.edges:
            for target, heard in edge.checks.heard.items():
                if heard.struck_began_s > over_s:
                    raise ViolationError("recovery", f"{edge.edge_id}: {target} failed a call in good health")

    def _works(self) -> None:
        """One call for each worker at each edge, one edge after another."""
        world = self.world
        last: list[Client] = []
        for edge in world.edges:
            last += [edge.submit() for _ in edge.pool.endpoints()]
        world.run(WORKS_S)
        failed = {client.call_id: client.answer for client in last if client.answer not in {"ok", "BUSY"}}
        if failed:
            raise ViolationError("recovery", f"afterwards {failed}")

    def _forgets(self) -> None:
        """Nothing of the past is kept for ever."""
        world = self.world
        world.run(FORGETS_S)
        for edge in world.edges:  # what is too old is forgotten when somebody asks
            edge.submit(input_key="last input", client_key="last client")
        world.run(WORKS_S)
        for edge in world.edges:
            kept = entries(edge.pool)
            allowed = self._fresh[edge.edge_id] + KEEPS + KEEPS_PER_ENDPOINT * len(edge.pool.endpoints())
            if kept > allowed:
                raise ViolationError("memory", f"{edge.edge_id}: {kept} entries in the pool, {allowed} allowed")


def entries(thing: object) -> int:
    """Entries of all containers that can be reached from `thing` within the pool's own objects."""
    seen: set[int] = set()
    todo, count = [thing], 0
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, dict):
            count += len(each)
            todo += [*each.keys(), *each.values()]
        elif isinstance(each, (list, tuple, set, frozenset, deque)):
            count += len(each)
            todo += each
        elif type(each).__module__.startswith("edge.pool"):
            todo += [getattr(each, name) for name in _attributes(each) if hasattr(each, name)]
    return count


def _attributes(thing: object) -> list[str]:
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    return [*slots, *getattr(thing, "__dict__", {})]


def shrink(schedule: Schedule, ties: Ties = Ties.FIRST) -> Schedule:
    """The schedule with every trouble left out that its failure does not need."""
    report = play(schedule, ties=ties)
    if report.failure is None:
        return schedule
    for fault in schedule.faults:
        smaller = replace(schedule, faults=tuple(each for each in schedule.faults if each is not fault))
        failure = play(smaller, ties=ties).failure
        if failure is not None and failure.invariant == report.failure.invariant:
            return shrink(smaller, ties)
    return schedule


def replay_command(schedule: Schedule, ties: Ties = Ties.FIRST) -> str:
    """What to type to see it again, with every event and decision."""
    words = [f"python -m tests.sim --seed {schedule.seed} --requests {schedule.requests}"]
    if schedule.kinds:
        words.append(f"--kinds '{','.join(schedule.kinds)}'")
    if ties is not Ties.FIRST:
        words.append(f"--ties {ties}")
    if missing := schedule.left_out():
        words.append(f"--without {','.join(map(str, missing))}")
    return " ".join([*words, "--trace"])
