"""Edges and workers on hosts of their own: lines that are slow, deaf in one direction, or dead without a word."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.edges import overlaps
from hairmesh import wire
from tests.deploy.proxy import ELSEWHERE, SYSCTL, Nginx
from tests.e2e.network import Host, Network
from tests.e2e.service import Load, Service, Worker, said_at_s

COOLDOWN_S = 4.0
SPREAD: dict[str, Any] = {
    "tls": {"insecure": True},
    "worker_tls": {"insecure": True},
    "public_base_url": "https://face.example",
    "health_check": {"cooldown_seconds": COOLDOWN_S, "cooldown_max_seconds": COOLDOWN_S},
}
"""The defaults, but no TLS, and a worker that failed is soon back."""
NOTICED_S = (wire.PING_INTERVAL_MS + wire.PING_TIMEOUT_MS) / 1000
BUSY_S = 15.0
"""What a busy machine may add. TCP by itself would take a quarter of an hour."""
CLIENTS = 3


@dataclass(frozen=True, slots=True)
class Site:
    """Everything, running, each on a host of its own; the test lives on one more, where a proxy would."""

    network: Network
    edges: Sequence[Service]
    edge_hosts: Sequence[Host]
    workers: Sequence[Worker]
    worker_hosts: Sequence[Host]


@asynccontextmanager
async def spread(folder: Path, *, edges: int, workers: int, delay_s: float = 0.0) -> AsyncIterator[Site]:
    """Started, every worker online at every edge; `delay_s` from host to host."""
    with Network() as network:
        network.delay_s = delay_s
        own = network.host()
        edge_hosts = [network.host() for _ in range(edges)]
        worker_hosts = [network.host() for _ in range(workers)]
        first, *others = services = [Service(folder / f"edge{n}", host) for n, host in enumerate(edge_hosts)]
        for host in worker_hosts:
            first.add_worker(host=host)
        for other in others:
            other.workers, other.token = first.workers, first.token
        with own.entered():
            try:
                await first.start(**SPREAD)
                await asyncio.gather(*(other.start_edge(**SPREAD) for other in others))
                yield Site(network, services, edge_hosts, first.workers, worker_hosts)
            finally:
                await asyncio.gather(*(service.stop() for service in services))


async def test_each_edge_judges_by_its_own_lines_and_no_client_sees_an_error(tmp_path: Path) -> None:
    """Between one edge and a worker frames vanish in one direction, later those of another worker in the other one.

    Nothing is refused or reset, so only silence can tell; the other edge goes on using both. Mended, each is back when
    its cooldown is over, and no sooner. One after the other: a call has two attempts, and would fail where both are
    made to workers that are just falling silent.
    """
    async with spread(tmp_path, edges=2, workers=4) as site:
        (near, far), network = site.edges, site.network
        unheard, unhearing = site.workers[:2]
        lines = {
            unheard: (site.worker_hosts[0], site.edge_hosts[0]),
            unhearing: (site.edge_hosts[0], site.worker_hosts[1]),
        }
        async with Load(near, clients=CLIENTS) as load, Load(far, clients=CLIENTS) as elsewhere:
            await load.more(20)
            for worker, line in lines.items():
                cut_s = time.time()
                network.cut(*line)
                await near.edge.event("worker_state", worker=worker.address, to="EJECTED", cause="passive")
                assert (await near.monitor()).json()["workers_healthy"] == 3
                assert (await far.monitor()).json()["workers_healthy"] == 4
                mended_s = time.time()
                network.mend(*line)
                await near.edge.event("worker_state", worker=worker.address, to="SERVING")
                await near.until_online(4)
                await load.more(20)
                assert worker.calls_begun_after(mended_s)
                _online, out, *_, back = near.changes(worker)
                ejected_s = max(said_at_s(change) for change in near.changes(worker) if change["to"] == "EJECTED")
                assert said_at_s(out) - cut_s < NOTICED_S + BUSY_S
                assert back["to"] == "SERVING"
                assert said_at_s(back) - ejected_s > 0.75 * COOLDOWN_S, "the first line may have been written late"
        assert load.failed == elsewhere.failed == []
        assert all(far.changes(worker)[1:] == [] for worker in site.workers), "nothing but that each came online"
        assert [overlaps(worker.records) for worker in site.workers] == [0] * 4


async def test_a_slow_line_takes_nobody_out(tmp_path: Path) -> None:
    """200 ms from host to host and back: two edges over two workers, and not one attempt failed or slot taken twice."""
    async with spread(tmp_path, edges=2, workers=2, delay_s=0.1) as site:
        async with Load(site.edges[0], clients=3) as load, Load(site.edges[1], clients=3) as elsewhere:
            await load.more(10)
        answers = [*load.answers, *elsewhere.answers]
        assert {answer.code for answer in answers} == {0}
        assert min(answer.ended_s - answer.began_s for answer in answers) >= 2 * 0.2, "to the edge, and on to a worker"
        assert all(edge.changes(worker)[1:] == [] for edge in site.edges for worker in site.workers)
        assert not [line for edge in site.edges for line in edge.edge.records if line.get("event") == "attempt_failed"]
        assert [overlaps(worker.records) for worker in site.workers] == [0, 0]


KERNEL = {name: int(value) for name, value in re.findall(r"^net\.ipv4\.(\w+) = (\d+)$", SYSCTL, re.MULTILINE)}
"""Of the proxy's host."""
GIVEN_UP_S = 0.2 * (2 ** (KERNEL["tcp_retries2"] + 1) - 1)
"""After how long the kernel ends a connection whose data is not acknowledged."""


@pytest.mark.long
async def test_an_edge_whose_host_goes_dark_costs_no_more_than_the_connections_that_nginx_kept_to_it(
    tmp_path: Path,
) -> None:
    """Its calls are answered `EDGE_FAILED` when the kernel ends their connections; new ones go to the other edge."""
    async with spread(tmp_path, edges=2, workers=3) as site:
        for name, value in KERNEL.items():
            Path("/proc/sys/net/ipv4", name).write_text(str(value))  # of the network that this test lives in
        servers = [edge.url.removeprefix("http://") for edge in site.edges]
        front = site.edges[0]
        await front.client.aclose()
        async with (
            Nginx(tmp_path / "nginx", *servers, server=ELSEWHERE) as nginx,
            nginx.client() as front.client,
            Load(front, clients=CLIENTS) as load,
        ):
            await load.more(20)
            site.network.go_dark(site.edge_hosts[1])
            async with Load(front, clients=2 * CLIENTS) as newcomers:
                await newcomers.more(20)
            await load.more(20)
    lost = [*load.failed, *newcomers.failed]
    assert len(lost) <= CLIENTS
    assert {(answer.http_status, answer.reason) for answer in lost} <= {(503, "EDGE_FAILED")}
    assert all(answer.ended_s - answer.began_s < GIVEN_UP_S + BUSY_S for answer in lost)
