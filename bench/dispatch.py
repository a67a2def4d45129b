"""How fast bursts are worked off by few slots: our edge, which binds a call when a slot is free, and Envoy 1.40.

    python bench/dispatch.py [--rounds N] [--quick]

Three workers with one slot each (real worker processes, whose computing is waiting); all peers stand before the same
three, one after the other. Blocking clients, each with a connection of its own, send at the same moment; the figure is
the time until the last answer. Bursts: 6 and 12 calls of 0.5 s; 12 calls of 0.1 to 0.9 s, in another order each round;
6 calls of 0.5 s while one slot is taken by a call of 3 s, counted without that one. Envoy runs in its best
configuration for such workers (`bench/peers/envoy_one_call.py`), with each policy that could suit; `*_envoy_s` is the
policy that did best at that burst, medians over the rounds. What no dispatch can beat is printed beside.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import secrets
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.progress import track

from bench.edge_overhead import ROUTE, HttpPeer, edge_config, multipart
from bench.harness import console, emit, process, table, wait_for_port
from bench.peers.envoy_one_call import POLICIES, one_call_config
from hairmesh.stack import LOOPBACK, free_ports, write_private
from hairmesh.wire import TOKEN_KEY
from tests.e2e.breakable_worker import photo

WORKERS = 3
OURS = "our edge"
SETTLE_S = 0.3
"""Between two bursts, so that each finds idle slots."""


@dataclass(frozen=True, slots=True)
class Burst:
    """Calls sent at one moment, by their computing time in s."""

    name: str
    title: str
    calls_s: tuple[float, ...]
    taken_s: float = 0.0
    """A call of this time that has one slot before the burst comes; 0: none."""
    shuffled: bool = False
    """Whether each round sends them in another order."""

    def bound_s(self) -> float:
        """No dispatch can be faster: the work shared evenly among the free slots, or the longest call."""
        return max(*self.calls_s, sum(self.calls_s) / (WORKERS - bool(self.taken_s)))


BURSTS = (
    Burst("burst", "6 calls of 0.5 s", (0.5,) * 6),
    Burst("burst12", "12 calls of 0.5 s", (0.5,) * 12),
    Burst("mixed", "12 calls of 0.1 to 0.9 s", tuple(0.1 + 0.8 * n / 11 for n in range(12)), shuffled=True),
    Burst("behind_slow", "6 calls of 0.5 s, one slot taken for 3 s", (0.5,) * 6, taken_s=3.0),
)

Send = Callable[[HttpPeer], object]


class Peer:
    """Whoever stands before the workers, with as many clients as a burst needs."""

    def __init__(self, port: int, prepare: Callable[[float], tuple[str, bytes, dict[str, str]]]) -> None:
        self._port = port
        self._prepare = prepare

    def burst(self, burst: Burst, calls_s: Sequence[float]) -> float:
        """Send them all at once; seconds until the last answer. Raises `BenchError` when one is no 200."""
        first = [self._client(burst.taken_s)] if burst.taken_s else []
        clients = [self._client(call_s) for call_s in calls_s]
        together = threading.Barrier(len(clients) + 1)
        failures: list[BaseException] = []

        def send(client: HttpPeer, barrier: threading.Barrier | None) -> None:
            try:
                if barrier is not None:
                    barrier.wait()
                client.call()
            except BaseException as error:  # noqa: BLE001  (carried to the main thread below)
                failures.append(error)

        slow = [threading.Thread(target=send, args=(client, None)) for client in first]
        threads = [threading.Thread(target=send, args=(client, together)) for client in clients]
        for thread in (*slow, *threads):
            thread.start()
        if slow:
            time.sleep(SETTLE_S)  # until it has its slot
        together.wait()
        begun_s = time.perf_counter()
        for thread in threads:
            thread.join()
        taken_s = time.perf_counter() - begun_s
        for thread in slow:
            thread.join()
        if failures:
            raise failures[0]
        time.sleep(SETTLE_S)
        return taken_s

    def _client(self, call_s: float) -> HttpPeer:
        route, body, headers = self._prepare(call_s)
        return HttpPeer(self._port, route, body, headers)


def as_form(call_s: float) -> tuple[str, bytes, dict[str, str]]:
    """Route, body and headers of one call to our edge."""
    return (ROUTE, *multipart(photo(seconds=call_s)))


def as_json(token: str) -> Callable[[float], tuple[str, bytes, dict[str, str]]]:
    """The same for Envoy's transcoder, which hands the password through."""

    def prepare(call_s: float) -> tuple[str, bytes, dict[str, str]]:
        body = json.dumps({"photo": {"data": base64.b64encode(photo(seconds=call_s)).decode()}}).encode()
        headers = {"Content-Type": "application/json", TOKEN_KEY: token}
        return "/hair.analysis.v1.AnalyzeService/Measure", body, headers

    return prepare


def start_peers(stack: ExitStack, folder: Path) -> dict[str, Peer]:
    """Three workers, our edge and an Envoy for each policy, all running."""
    token = secrets.token_urlsafe(24)
    edge_port, *ports = free_ports(1 + WORKERS + len(POLICIES))
    workers, envoys = ports[:WORKERS], dict(zip(POLICIES, ports[WORKERS:], strict=True))
    for number, port in enumerate(workers, start=1):
        path = folder / f"worker{number}.json"
        values = {"listen": f"{LOOPBACK}:{port}", "accept_passwords": [token], "health": {"min_free_gb": 0}}
        write_private(path, json.dumps(values))
        command = [sys.executable, "-m", "tests.e2e.breakable_worker", str(path)]
        stack.enter_context(process(f"worker{number}", command, folder))
    write_private(folder / "edge.json", edge_config(folder / "edge", edge_port, workers, token))
    edge = str(Path(sys.executable).with_name("hairmesh-edge"))
    for port in workers:
        wait_for_port(port)
    stack.enter_context(process("edge", [edge, "--config", str(folder / "edge.json")], folder))
    envoy = str(Path(sys.executable).with_name("envoy"))
    for number, (policy, port) in enumerate(envoys.items(), start=1):
        own = folder / f"envoy{number}"
        own.mkdir()
        config = one_call_config(own, port, workers, policy)
        command = [envoy, "-c", str(config), "--concurrency", "1", "-l", "error", "--use-dynamic-base-id"]
        stack.enter_context(process(f"envoy{number}", command, folder))
    for port in (edge_port, *envoys.values()):
        wait_for_port(port)
    return {
        OURS: Peer(edge_port, as_form),
        **{f"Envoy, {policy}": Peer(port, as_json(token)) for policy, port in envoys.items()},
    }


def figures(times: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, float]:
    """`<burst>_s` and `<burst>_envoy_s` from the times by burst and peer."""
    found: dict[str, float] = {}
    for name, by_peer in times.items():
        medians = {peer: statistics.median(taken) for peer, taken in by_peer.items()}
        found[f"{name}_s"] = medians.pop(OURS)
        found[f"{name}_envoy_s"] = min(medians.values())
    return found


def main() -> None:
    """Start the peers, measure in rounds, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round")
    args = parser.parse_args()
    rounds = 1 if args.quick else args.rounds
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        peers = start_peers(stack, Path(name))
        warm_up = Burst("", "", (0.02,) * WORKERS)
        for peer in peers.values():
            peer.burst(warm_up, warm_up.calls_s)
        times: dict[str, dict[str, list[float]]] = {burst.name: {peer: [] for peer in peers} for burst in BURSTS}
        steps = [(number, burst, peer) for number in range(rounds) for burst in BURSTS for peer in peers]
        for number, burst, who in track(steps, "measuring", console=console, transient=True):
            calls_s = list(burst.calls_s)
            if burst.shuffled:
                random.Random(number).shuffle(calls_s)
            times[burst.name][who].append(peers[who].burst(burst, calls_s))
    rows = [
        [who, *(f"{statistics.median(times[b.name][who]):.2f} ({max(times[b.name][who]):.2f})" for b in BURSTS)]
        for who in peers
    ]
    rows.append(["no dispatch can beat", *(f"{burst.bound_s():.2f}" for burst in BURSTS)])
    table(f"Until the last answer, s: median (worst), {WORKERS} slots", ["peer", *(b.title for b in BURSTS)], rows)
    emit(figures(times))


if __name__ == "__main__":
    main()
