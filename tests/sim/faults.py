"""What can go wrong, by name: how each trouble begins, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from edge.pool import events as ev
from edge.pool.config import PoolConfig
from tests.sim.worker import SimWorker
from tests.sim.world import World


@dataclass(frozen=True, slots=True)
class Fault:
    """One trouble of a schedule."""

    kind: str
    at_s: float
    lasts_s: float
    targets: tuple[str, ...]
    """Workers that have it; what it means to other kinds stands there."""
    edge: int
    """Index of the edge that has it, where one has."""
    amount: float
    """In [0, 1): how bad."""

    def __str__(self) -> str:
        return f"{self.kind} {','.join(self.targets)} edge {self.edge} {self.at_s:.1f}+{self.lasts_s:.1f} s"

    def workers(self, world: World) -> list[SimWorker]:
        """Those that have it."""
        return [world.workers[target] for target in self.targets]


Act = Callable[[World, Fault], None]


class Kind(NamedTuple):
    """How a trouble begins and ends."""

    begin: Act
    end: Act


def _each(act: Callable[[SimWorker, Fault], None]) -> Act:
    def on_all(world: World, fault: Fault) -> None:
        for worker in fault.workers(world):
            act(worker, fault)

    return on_all


def _nothing(world: World, fault: Fault) -> None:
    pass


def _pick(fault: Fault, *choices: object) -> object:
    return choices[int(fault.amount * len(choices))]


def _slow(worker: SimWorker, fault: Fault) -> None:
    worker.slowness = 1 + 20 * fault.amount


def _lie(worker: SimWorker, fault: Fault) -> None:
    code = _pick(
        fault,
        ev.Code.INTERNAL,
        ev.Code.UNKNOWN,
        ev.Code.UNAVAILABLE,
        ev.Code.ABORTED,
        ev.Code.CANCELLED,
        ev.Code.DEADLINE_EXCEEDED,
    )
    assert isinstance(code, ev.Code)
    worker.fails_with, worker.fails_because = code, ""


def _honest(worker: SimWorker, fault: Fault) -> None:
    worker.fails_with, worker.fails_because = None, ""


def _refuse_photos(worker: SimWorker, fault: Fault) -> None:
    worker.fails_with, worker.fails_because = ev.Code.FAILED_PRECONDITION, "NO_FACE"


def _full(word: str, cause: ev.Cause) -> Callable[[SimWorker, Fault], None]:
    """It refuses calls and says so; which is noticed first depends on the moment."""

    def begin(worker: SimWorker, fault: Fault) -> None:
        worker.refuses_with = worker.refuses_with or word

        def say() -> None:
            if worker.alive and worker.refuses_with == word:
                worker.tell(serving=False, cause=cause)

        worker.clock.after(fault.amount, say)

    return begin


def _well_again(worker: SimWorker, fault: Fault) -> None:
    if worker.alive and not worker.drains:
        worker.refuses_with = ""
        worker.clock.after(fault.amount, lambda: worker.tell(serving=True) if worker.alive else None)


def _flap(world: World, fault: Fault) -> None:
    def turn(worker: SimWorker, until_s: float) -> None:
        if world.now_s < until_s and worker.alive and not world.peace:
            worker.tell(serving=not worker.serving, cause=ev.Cause.DISK)
            world.clock.after(0.1 + 3 * fault.amount, partial(turn, worker, until_s))

    for worker in fault.workers(world):
        turn(worker, world.now_s + fault.lasts_s)


def _flap_line(world: World, fault: Fault) -> None:
    """Connections break again and again."""

    def reset(until_s: float) -> None:
        if world.now_s < until_s and not world.peace:
            for worker in fault.workers(world):
                worker.reset()
            world.clock.after(0.05 + 0.3 * fault.amount, partial(reset, until_s))

    reset(world.now_s + fault.lasts_s)


def _roll(world: World, fault: Fault) -> None:
    """A rolling restart of all workers, one by one."""
    workers = list(world.workers.values())
    each_s = fault.lasts_s / len(workers)
    for number, worker in enumerate(workers):
        for step, act in ((0.0, worker.drain), (0.4, worker.kill), (0.6, worker.boot_up)):
            world.clock.after((number + step) * each_s, partial(_unless_peace, world, act))


def _unless_peace(world: World, act: Callable[[], None]) -> None:
    if not world.peace:
        act()


def _end_drain(worker: SimWorker, fault: Fault) -> None:
    worker.kill()
    worker.clock.after(fault.amount, worker.boot_up)


def _restart(worker: SimWorker, fault: Fault) -> None:
    worker.kill()
    worker.boot_up()


def _password(world: World, fault: Fault) -> None:
    """New on one side first, on the other when the fault ends; sometimes both are valid meanwhile."""
    new = f"password-{fault.at_s}"
    if fault.amount < 0.5:
        for edge in world.edges:
            edge.change_password(new)
    else:
        for worker in world.workers.values():
            worker.accepts = {new} if fault.amount > 0.7 else worker.accepts | {new}


def _password_done(world: World, fault: Fault) -> None:
    new = f"password-{fault.at_s}"
    if fault.amount >= 0.5:
        for edge in world.edges:
            edge.change_password(new)
    for worker in world.workers.values():
        worker.accepts = {new}


def _reload(world: World, fault: Fault) -> None:
    """Workers leave, or thresholds change, or priorities."""
    edge = world.edges[fault.edge]
    config = edge.config
    left = tuple(target for target in config.workers if target not in fault.targets)
    changed = config
    if fault.amount < 0.5 and left:
        primaries = tuple(target for target in config.primary_workers if target in left)
        changed = replace(config, workers=left, primary_workers=primaries)
    elif fault.amount < 0.7:
        primaries = tuple(target for target in fault.targets if target in config.workers)
        changed = replace(config, primary_workers=primaries or config.primary_workers)
    elif fault.amount < 0.9:
        changed = replace(config, health=replace(config.health, unhealthy_threshold=3, cooldown_seconds=0.0))
    else:
        changed = replace(
            config, dispatch=replace(config.dispatch, max_in_flight=1 + config.dispatch.max_in_flight // 4)
        )
    edge.configure(changed)


def _reload_back(world: World, fault: Fault) -> None:
    world.edges[fault.edge].configure(world.original)


def _storm(world: World, fault: Fault) -> None:
    """Every client of one edge leaves at once."""
    edge = world.edges[fault.edge]
    for client in list(edge.open.values()):
        edge.leave(client)


def _suspend(world: World, fault: Fault) -> None:
    """The machine with everything on it."""
    slept_s = 30 * fault.amount
    world.clock.jump(slept_s)
    for edge in world.edges:
        if not edge.asleep:
            edge.slept(slept_s)


def _others(world: World, fault: Fault) -> None:
    """Calls of an edge that is not simulated."""
    until_s = world.now_s + fault.lasts_s

    def call(worker: SimWorker) -> None:
        if world.now_s < until_s and not world.peace:
            worker.occupy(0.1 + fault.amount)
            world.clock.after(0.3 + fault.amount, partial(call, worker))

    for worker in fault.workers(world):
        call(worker)


FAULTS: Mapping[str, Kind] = {
    "crash": Kind(_each(lambda worker, _: worker.kill()), _each(lambda worker, _: worker.boot_up())),
    "freeze": Kind(_each(lambda worker, _: worker.freeze()), _each(lambda worker, _: worker.thaw())),
    "black hole": Kind(_each(lambda worker, _: worker.hide()), _each(lambda worker, _: worker.unhide())),
    "partition": Kind(
        lambda world, fault: world.edges[fault.edge].partition(on=True),
        lambda world, fault: world.edges[fault.edge].partition(on=False),
    ),
    "connections reset": Kind(_each(lambda worker, _: worker.reset()), _nothing),
    "line flaps": Kind(_flap_line, _nothing),
    "slow": Kind(_each(_slow), _each(lambda worker, _: setattr(worker, "slowness", 1.0))),
    "flapping health": Kind(_flap, _each(lambda worker, _: worker.tell(serving=True) if worker.alive else None)),
    "lying health": Kind(_each(_lie), _each(_honest)),
    "everything is refused": Kind(_each(_refuse_photos), _each(_honest)),
    "Watch lies": Kind(_each(lambda worker, _: worker.lie()), _each(lambda worker, _: worker.stop_lying())),
    "probes hang": Kind(
        _each(lambda worker, _: setattr(worker, "probes_hang", True)),
        _each(lambda worker, _: setattr(worker, "probes_hang", False)),
    ),
    "calls hang": Kind(_each(lambda worker, _: setattr(worker, "hangs", True)), _each(_restart)),
    "disk full": Kind(_each(_full("DISK", ev.Cause.DISK)), _each(_well_again)),
    "stalled": Kind(_each(_full("STALLED", ev.Cause.STALLED)), _each(_restart)),
    "dependency down": Kind(_each(_full("DEPENDENCY", ev.Cause.DEPENDENCY)), _each(_well_again)),
    "growth gone": Kind(
        _each(lambda worker, _: worker.can(frozenset())), _each(lambda worker, _: worker.can(frozenset({"growth"})))
    ),
    "password": Kind(_password, _password_done),
    "reload": Kind(_reload, _reload_back),
    "drain": Kind(_each(lambda worker, _: worker.drain()), _each(_end_drain)),
    "rolling restart": Kind(_roll, _nothing),
    "cancel storm": Kind(_storm, _nothing),
    "others": Kind(_others, _nothing),
    "suspended": Kind(_suspend, _nothing),
    "edge asleep": Kind(
        lambda world, fault: world.edges[fault.edge].sleep(),
        lambda world, fault: world.edges[fault.edge].wake(sockets_first=fault.amount < 0.5),
    ),
}
"""Every kind of trouble but poison inputs, which are a load."""

SHARED = frozenset({"line flaps", "lying health", "dependency down", "black hole", "crash", "disk full"})
"""Kinds that may strike several workers at once."""


def all_over(world: World, config: PoolConfig) -> None:
    """The faults stop: whatever is wrong is put right, by a new process where nothing else helps."""
    world.peace = True
    for worker in world.workers.values():
        worker.unhide()
        worker.poisons.clear()
        if worker.drains or worker.hangs or worker.hung or worker.refuses_with:
            worker.kill()
        worker.boot_up()
        worker.heal()
        worker.slowness = 1.0
        worker.accepts |= {edge.tokens[0] for edge in world.edges}
        worker.can(frozenset({"growth"}))
    for edge in world.edges:
        while edge.asleep:
            edge.wake(sockets_first=True)
        edge.partition(on=False)
        if edge.config != config:
            edge.configure(config)
