"""Names: what they stand for, when they move, and what a bad resolver cannot do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence

import pytest
from hair.analysis.v1 import measure_pb2
from structlog.testing import capture_logs

from edge.calls import Call, Outcome
from edge.pool.config import HealthCheckConfig, PoolConfig
from edge.upstream.channel import ChannelSecurity
from edge.upstream.driver import Driver
from edge.upstream.resolver import Resolver, Resolving, system_lookup
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.edge.upstream.tls import Authority
from tests.fakes.worker import FakeWorker

OFTEN_S = 0.05
CALL = Call("Measure", measure_pb2.MeasureRequest(), "request-1")
ANYWHERE = ChannelSecurity(insecure=True)


class Names:
    """A name server that says what a test tells it to."""

    def __init__(self, **records: Iterable[str]) -> None:
        self.records: dict[str, Iterable[str] | OSError] = dict(records)
        self.asked: list[str] = []
        self.hangs = asyncio.Event()
        self.hangs.set()
        """Cleared: nobody gets an answer."""

    async def lookup(self, host: str, _port: int) -> Sequence[str]:
        self.asked.append(host)
        await self.hangs.wait()
        record = self.records.get(host, ())
        if isinstance(record, OSError):
            raise record
        return list(record)

    def resolving(self, every_s: float = OFTEN_S, timeout_s: float = 3.0) -> Resolving:
        return Resolving(every_s=every_s, unknown_every_s=every_s, timeout_s=timeout_s, lookup=self.lookup)

    async def asked_again(self) -> None:
        """Until a look-up that began after this moment has ended."""
        asked = len(self.asked)
        await until(lambda: len(self.asked) >= asked + 2)


def port_of(worker: FakeWorker) -> int:
    return int(worker.address.rpartition(":")[2])


def targets(mesh: Driver) -> set[str]:
    return {each.target for each in mesh.snapshot().endpoints}


async def test_a_name_is_resolved_before_the_first_round_of_probes_is_over(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    names = Names(localhost=["127.0.0.1"])
    mesh = await driver(f"dns:///localhost:{port_of(worker)}", resolving=names.resolving(every_s=3_600))
    assert mesh.online().healthy == 1
    assert (await mesh.call(CALL)).worker == worker.address
    assert names.asked == ["localhost"]


NAMES_THAT_HANG = """
import asyncio, socket, threading
from edge.upstream.resolver import Resolver, Resolving

real = socket.getaddrinfo

def getaddrinfo(host, *arguments, **named):
    if host != "localhost":
        threading.Event().wait()
    return real(host, *arguments, **named)

async def main():
    hanging = Resolver(Resolving(timeout_s=0.1), lambda: None)
    await hanging.look_up([f"dns:///hangs-{number}.test:1" for number in range(100)])
    await asyncio.to_thread(print, "other work is done")
    other = Resolver(Resolving(timeout_s=30), lambda: print("resolved"))
    await other.look_up(["dns:///localhost:1"])
    await hanging.close()

socket.getaddrinfo = getaddrinfo
asyncio.run(main())
"""


def test_names_that_hang_for_ever_keep_no_other_work_from_being_done_and_no_process_from_ending() -> None:
    command = [sys.executable, "-c", NAMES_THAT_HANG]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    said = [line for line in process.stdout.splitlines() if "name_" not in line]
    assert said == ["other work is done", "resolved"]


async def test_the_systems_own_resolver_knows_localhost(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    assert set(await system_lookup("localhost", 80)) == {"127.0.0.1"}, "one family, or every worker counted twice"
    mesh = await driver(f"dns:///localhost:{port_of(worker)}")
    assert (await mesh.call(CALL)).worker == worker.address


async def test_21_a_name_that_moves_while_the_old_address_still_answers_is_followed_without_losing_a_call(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (old,) = await workers(1)
    new = FakeWorker(host="127.0.0.2")
    await new.start(port_of(old))
    hold = old.hold()
    names = Names(**{"workers.test": ["127.0.0.1"]})
    try:
        mesh = await driver(f"dns:///workers.test:{port_of(old)}", resolving=names.resolving(), security=ANYWHERE)
        running = asyncio.create_task(mesh.call(CALL))
        await hold.started.wait()
        names.records["workers.test"] = ["127.0.0.2"]
        await until(lambda: new.address in targets(mesh))
        await until(lambda: new.probes > 0 and mesh.online().healthy == 1)
        outcomes: list[Outcome] = [await mesh.call(CALL) for _ in range(5)]
        assert {outcome.worker for outcome in outcomes} == {new.address}
        assert old.serving, "nothing is wrong with it"
        assert mesh.online().total == 1
        hold.release.set()
        assert (await running).worker == old.address
        await until(lambda: old.watchers == 0)
        assert targets(mesh) == {new.address}
        await mesh.close()
    finally:
        await new.stop()


async def test_b47_a_worker_that_dies_and_comes_back_elsewhere_is_used_again_and_others_carry_the_load(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    moves, other = await workers(2)
    names = Names(**{"workers.test": ["127.0.0.1"]})
    successor = FakeWorker(host="127.0.0.2")
    try:
        mesh = await driver(
            f"dns:///workers.test:{port_of(moves)}", other.address, resolving=names.resolving(), security=ANYWHERE
        )
        assert mesh.online().healthy == 2
        await moves.stop()
        outcomes = [await mesh.call(CALL) for _ in range(5)]
        assert {outcome.worker for outcome in outcomes} == {other.address}
        await successor.start(port_of(moves))
        names.records["workers.test"] = ["127.0.0.2"]
        await until(lambda: mesh.online().healthy == 2)
        outcomes = [await mesh.call(CALL) for _ in range(4)]
        assert {outcome.worker for outcome in outcomes} == {other.address, successor.address}
        await mesh.close()
    finally:
        await successor.stop()


@pytest.mark.parametrize("answer", [(), OSError(-3, "Temporary failure in name resolution")], ids=["empty", "failed"])
async def test_an_empty_or_failed_answer_keeps_the_last_one_and_is_said_once(
    workers: MakeWorkers, driver: MakeDriver, answer: Iterable[str] | OSError
) -> None:
    (worker,) = await workers(1)
    names = Names(localhost=["127.0.0.1"])
    with capture_logs() as lines:
        mesh = await driver(f"dns:///localhost:{port_of(worker)}", resolving=names.resolving())
        names.records["localhost"] = answer
        await names.asked_again()
        await names.asked_again()
        assert (await mesh.call(CALL)).worker == worker.address
    complaints = [line for line in lines if line["event"] == "name_not_resolved"]
    assert len(complaints) == 1
    assert complaints[0]["kept"] == (worker.address,)


async def test_a_name_with_several_addresses_is_as_many_workers_of_one_priority(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (first,) = await workers(1)
    second = FakeWorker(host="127.0.0.2")
    await second.start(port_of(first))
    (backup,) = await workers(1)
    name = f"dns:///workers.test:{port_of(first)}"
    names = Names(**{"workers.test": ["127.0.0.1", "127.0.0.2", "127.0.0.2"]})
    try:
        mesh = await driver(
            name, backup.address, primary_workers=(name,), resolving=names.resolving(), security=ANYWHERE
        )
        counts = mesh.online()
        assert (counts.total, counts.primary_total, counts.primary_healthy) == (3, 2, 2)
        outcomes = [await mesh.call(CALL) for _ in range(4)]
        assert {outcome.worker for outcome in outcomes} == {first.address, second.address}
        await mesh.close()
    finally:
        await second.stop()


async def test_a_resolver_that_hangs_delays_the_port_by_the_probe_timeout_at_most_and_nobody_else(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    plain, named = await workers(2)
    names = Names(localhost=["127.0.0.1"])
    names.hangs.clear()
    begun_s = time.monotonic()
    health = HealthCheckConfig(timeout_seconds=0.5)
    with capture_logs() as lines:
        mesh = await driver(
            plain.address, f"dns:///localhost:{port_of(named)}", health=health, resolving=names.resolving(timeout_s=0.1)
        )
        assert time.monotonic() - begun_s < 30  # without the bound: never
        assert mesh.online().healthy == 1
        assert (await mesh.call(CALL)).worker == plain.address
        await until(lambda: any(line["event"] == "name_not_resolved" for line in lines))
    names.hangs.set()
    await until(lambda: mesh.online().healthy == 2)


async def test_one_look_up_of_a_name_is_on_its_way_however_long_it_takes() -> None:
    names = Names(localhost=["127.0.0.1"])
    names.hangs.clear()
    resolver = Resolver(names.resolving(timeout_s=0.02), lambda: None)
    config = PoolConfig(("dns:///localhost:9",))
    for _ in range(3):
        await resolver.look_up(config.workers)
    assert names.asked == ["localhost"]
    names.hangs.set()
    await resolver.look_up(config.workers)
    assert [each.address for each in resolver.targets(config, ChannelSecurity())] == ["127.0.0.1:9"]
    await resolver.look_up(config.workers)
    assert names.asked == ["localhost"] * 2


async def test_the_plaintext_rule_holds_for_what_a_name_leads_to(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    names = Names(localhost=["127.0.0.1", "192.0.2.7"])
    with capture_logs() as lines:
        mesh = await driver(f"dns:///localhost:{port_of(worker)}", resolving=names.resolving())
        await names.asked_again()
    assert targets(mesh) == {worker.address}
    (refused,) = [line for line in lines if line["event"] == "address_refused"]
    assert refused["address"] == f"192.0.2.7:{port_of(worker)}"


async def test_closing_does_not_wait_for_a_resolver_that_hangs(driver: MakeDriver) -> None:
    names = Names()
    names.hangs.clear()
    mesh = await driver(
        "dns:///localhost:1", health=HealthCheckConfig(timeout_seconds=0.2), resolving=names.resolving()
    )
    assert mesh.online().total == 0
    async with asyncio.timeout(60):
        await mesh.close()


async def test_a_driver_closed_while_it_resolves_makes_no_channel_any_more(
    authority: Authority, workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    names = Names()
    names.hangs.clear()
    mesh = await driver(worker.address, resolving=names.resolving())
    config = PoolConfig((worker.address, "dns:///localhost:1"))
    changing = asyncio.create_task(mesh.reconfigure(config, "another", authority.security("edge")))
    await until(lambda: names.asked == ["localhost"])
    await mesh.close()
    await changing
    assert not mesh._tasks, "nothing watches or closes any more"
    assert [each.target for each in mesh.snapshot().endpoints] == [worker.address]


async def test_a_name_that_no_record_can_have_is_said_and_nothing_breaks() -> None:
    resolver = Resolver(Resolving(), lambda: None)
    with capture_logs() as lines:
        await resolver.look_up([f"dns:///{'x' * 70}.test:1"])
    assert [line["event"] for line in lines] == ["name_not_resolved"]


async def test_an_address_is_there_once_whoever_leads_to_it() -> None:
    names = Names(**{"a.test": ["127.0.0.1", "::1"], "b.test": ["127.0.0.1"]})
    resolver = Resolver(names.resolving(), lambda: None)
    config = PoolConfig(("dns:///a.test:9", "127.0.0.1:9", "dns:///b.test:9"), ("dns:///a.test:9",))
    assert [each.address for each in resolver.targets(config, ANYWHERE)] == ["127.0.0.1:9"], "what needs no resolving"
    await resolver.look_up(config.workers)
    found = resolver.targets(config, ANYWHERE)
    assert [(each.address, each.primary, each.name) for each in found] == [
        ("127.0.0.1:9", True, "dns:///a.test:9"),
        ("[::1]:9", True, "dns:///a.test:9"),
    ]


@pytest.mark.parametrize("by", ["dns:///gpu.test:9", "127.0.0.1:9"])
@pytest.mark.parametrize("primary_last", [True, False])
async def test_an_address_is_primary_if_anything_primary_leads_to_it_in_whatever_order(
    by: str, primary_last: bool
) -> None:
    names = Names(**{"all.test": ["127.0.0.1", "127.0.0.2"], "gpu.test": ["127.0.0.1"]})
    resolver = Resolver(names.resolving(), lambda: None)
    config = PoolConfig(("dns:///all.test:9", by) if primary_last else (by, "dns:///all.test:9"), (by,))
    await resolver.look_up(config.workers)
    found = resolver.targets(config, ANYWHERE)
    assert [(each.address, each.primary) for each in found] == [("127.0.0.1:9", True), ("127.0.0.2:9", False)]


async def test_a_resolver_that_is_closed_asks_no_more() -> None:
    names = Names(localhost=["127.0.0.1"])
    resolver = Resolver(names.resolving(), lambda: None)
    await resolver.close()
    await resolver.look_up(["dns:///localhost:9"])
    assert names.asked == []
