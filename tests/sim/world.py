"""Edges, workers and clients on one virtual clock, without any I/O.

The world plays the shell's part (`edge.upstream`), the network's and the workers'. Every decision of every pool is
checked (`tests.sim.checks`).
"""

from __future__ import annotations

from edge.pool import events as ev
from edge.pool.config import PoolConfig
from edge.pool.endpoint import Endpoint
from edge.pool.manager import Pool
from tests.sim.clock import Clock, Ties
from tests.sim.edge import Client, SimEdge, Trace
from tests.sim.worker import SimWorker

EDGE_ID = "edge"


class World:
    """Everything, and its clock. What names no edge is the first one's."""

    def __init__(
        self, config: PoolConfig, *, seed: int = 1, edges: int = 1, latency_s: float = 0.0, ties: Ties = Ties.FIRST
    ) -> None:
        self.clock = Clock(ties, seed)
        self.latency_s = latency_s
        """Of every message, in s."""
        self.trace: Trace | None = None
        self.peace = False
        """All troubles are over: what one of them has still planned is not done."""
        self.original = config
        """What the edges begin with."""
        self.workers: dict[str, SimWorker] = {}
        names = [EDGE_ID, *(f"{EDGE_ID}{number}" for number in range(2, edges + 1))]
        self.edges = [SimEdge(self, config, seed=seed + n, edge_id=name) for n, name in enumerate(names)]
        for target in config.workers:
            self.worker(target)

    @property
    def now_s(self) -> float:
        return self.clock.now_s

    @property
    def config(self) -> PoolConfig:
        return self.edges[0].config

    @property
    def pool(self) -> Pool:
        return self.edges[0].pool

    @property
    def clients(self) -> dict[str, Client]:
        return self.edges[0].clients

    @property
    def log(self) -> list[tuple[float, ev.Log]]:
        return self.edges[0].log

    @property
    def probes(self) -> list[tuple[float, str]]:
        return self.edges[0].probes

    def worker(self, target: str) -> SimWorker:
        """The one at this address; there is one at every address that is asked for."""
        if target not in self.workers:
            self.workers[target] = SimWorker(target, self.clock)
        return self.workers[target]

    # Clock

    def start(self) -> None:
        """First probes, streams, and the time these take."""
        for edge in self.edges:
            edge.start()
        self.run(self.config.health.timeout_seconds)

    def run(self, duration_s: float) -> None:
        """Let time pass."""
        self.clock.run_until(self.now_s + duration_s)

    # Clients

    def submit(self, *, slow: bool = False, timeout_s: float | None = None, size_bytes: int = 0) -> Client:
        """A client calls the first edge."""
        return self.edges[0].submit(slow=slow, timeout_s=timeout_s, size_bytes=size_bytes)

    def leave(self, client: Client) -> None:
        """It goes away; the shell cancels its RPC, the worker's thread computes on."""
        self.edges[0].leave(client)

    # Workers

    def endpoint(self, target: str) -> Endpoint:
        """As the first pool sees it."""
        return self.edges[0].endpoint(target)

    def kill(self, target: str) -> None:
        """SIGKILL: its calls fail, its connections break."""
        self.workers[target].kill()

    def boot_up(self, target: str) -> None:
        """A new process at the same address, in good health."""
        self.workers[target].boot_up()

    def heal(self, target: str) -> None:
        """Whatever was wrong is over; a call that hangs and a worker that drains stay so until the process ends."""
        self.workers[target].heal()

    def tell(self, target: str, *, serving: bool, cause: ev.Cause | None = None) -> None:
        """Its health changes, and both streams say so."""
        self.workers[target].tell(serving=serving, cause=cause)

    def drain(self, target: str) -> None:
        """SIGTERM: not serving at once, new calls are refused, the running one ends."""
        self.workers[target].drain()

    def drop_streams(self, target: str) -> None:
        """Its connections break and are made again; the process lives on and so does its slot."""
        self.workers[target].reset()

    def other_edge_calls(self, target: str, duration_s: float) -> None:
        """The call of an edge that is not simulated gets its slot, if it is free."""
        self.workers[target].occupy(duration_s)

    def feed(self, event: ev.Event) -> None:
        """An event of the first edge."""
        self.edges[0].feed(event)
