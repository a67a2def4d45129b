"""What happens on the line between edge and worker: pings, silence, middleboxes that forget."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from edge.pool.config import HealthCheckConfig
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import Answer
from tests.scenarios.common import SELDOM, call, taken_out
from tests.scenarios.conftest import MakeEdge


class Line:
    """A TCP proxy in front of one worker, such as a NAT or a load balancer."""

    def __init__(self, port: int, forgets_after_s: float | None) -> None:
        self._port = port
        self._forgets_after_s = forgets_after_s
        self.address = ""
        self.flows = 0
        """Connections that were ever made through it."""
        self.forgotten = 0
        """Flows it has dropped without telling either side."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: list[asyncio.StreamWriter] = []
        self._lost: set[int] = set()

    def forget(self) -> None:
        """Drop every flow there is: not a byte goes through any more, and nobody is told."""
        self._lost |= set(range(1, self.flows + 1))

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One flow."""
        self.flows += 1
        number = self.flows
        back, forth = await asyncio.open_connection("127.0.0.1", self._port)
        self._ends += [writer, forth]
        for source, sink in ((reader, forth), (back, writer)):
            task = asyncio.create_task(self._carry(number, source, sink))
            self._tasks.add(task)

    async def _carry(self, number: int, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while True:
            try:
                async with asyncio.timeout(self._forgets_after_s):
                    data = await source.read(65_536)
            except TimeoutError:
                self.forgotten += 1
                self._lost.add(number)
                continue
            except ConnectionError:
                data = b""
            if number in self._lost and data:
                continue
            sink.write(data)
            if not data:
                sink.close()
                return

    async def close(self) -> None:
        """End every flow."""
        for end in self._ends:
            end.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def line_to(address: str, *, forgets_after_s: float | None = None) -> AsyncIterator[Line]:
    """A line to that worker; with `forgets_after_s` it drops a flow in which nothing moves one way for so long."""
    line = Line(int(address.rpartition(":")[2]), forgets_after_s)
    async with await asyncio.start_server(line.accept, "127.0.0.1", 0) as server:
        line.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield line
        finally:
            await line.close()


@pytest.mark.long
async def test_b40_an_idle_channel_and_a_silent_call_are_pinged_and_never_told_to_calm_down(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    """Ninety seconds are eighteen pings: gRPC's default for servers allows two of them."""
    idle, silent = await workers(2)
    hold = silent.hold()
    with capture_logs() as lines:
        async with line_to(idle.address) as idle_line, line_to(silent.address) as silent_line:
            mesh = await driver(
                idle_line.address, silent_line.address, primary_workers=(silent_line.address,), health=SELDOM
            )
            running = asyncio.create_task(mesh.call(call(slow=True)))
            await hold.started.wait()
            await asyncio.sleep(90)
            assert not running.done()
            assert mesh.online().healthy == 2
            assert (idle_line.flows, silent_line.flows) == (1, 1), "no connection was made anew"
            hold.release.set()
            assert (await running).attempts == 1
            await mesh.close()
    assert taken_out(lines) == []


@pytest.mark.long
async def test_b46_pings_keep_a_flow_alive_where_silence_would_have_it_dropped(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    async with line_to(worker.address, forgets_after_s=12.0) as line:
        mesh = await driver(line.address, health=SELDOM)
        await asyncio.sleep(30)
        outcome = await mesh.call(call())
        assert (outcome.attempts, line.forgotten, line.flows) == (1, 0, 1)
        await mesh.close()


@pytest.mark.long
async def test_b46_a_flow_dropped_without_a_word_costs_one_retry_and_comes_back(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    forgotten, other = await workers(2)
    async with line_to(forgotten.address) as line:
        mesh = await driver(
            line.address, other.address, primary_workers=(line.address,), health=HealthCheckConfig(cooldown_seconds=1)
        )
        line.forget()
        with capture_logs() as lines:
            async with asyncio.timeout(2 * HealthCheckConfig().interval_seconds + 2):
                outcome = await mesh.call(call())
            assert (outcome.worker, outcome.attempts) == (other.address, 2)
            await until(lambda: mesh.online().healthy == 2)
        assert len(taken_out(lines)) == 1, "one strike, not two"
        assert (await mesh.call(call())).worker == line.address
        assert line.flows >= 2
        await mesh.close()


@pytest.mark.long
async def test_b49_five_thousand_requests_while_monitors_ask_and_grpc_has_nothing_to_complain_of(
    workers: MakeWorkers, edge: MakeEdge, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A second event loop on the same channels would end in `BlockingIOError` lines by the thousand."""
    pool = await workers(3)
    for worker in pool:
        worker.default = Answer(png_bytes=200)
    rest, mesh = await edge(*(worker.address for worker in pool))
    threads = threading.active_count()
    done = asyncio.Event()

    async def watch() -> int:
        asked = 0
        while not done.is_set():
            assert (await rest.client.get("/monitor")).status_code == 200
            asked += 1
        return asked

    async def client() -> None:
        for _ in range(250):
            assert (await rest.measure()).status_code == 200

    monitoring = asyncio.create_task(watch())
    await asyncio.gather(*(client() for _ in range(20)))
    done.set()
    assert await monitoring > 0
    assert sum(len(worker.seen) for worker in pool) == 5_000
    assert threading.active_count() <= threads + 8, "the loop, and the threads that write pictures"
    said = "".join(capfd.readouterr()) + caplog.text
    assert "BlockingIOError" not in said
    assert "Traceback" not in said
    assert mesh.online().healthy == 3
