"""Sweeping the picture store: how long it takes, and what a client feels of it.

    python bench/store.py [--pictures N] [--rounds N] [--folder PATH]

A real edge over a folder of 100,000 pictures of 4 kB, with a worker that answers at once. One client asks for a
measurement and fetches its picture, again and again; they fill what `static.max_bytes` leaves, so that a sweep comes in
the middle. It finds all the others too old (`age`), or four in five that another edge has put there meanwhile, and by
far too much (`room`), and removes them. How long that took is the edge's own word (`duration_s`), held against what
is left on the disk.

Every request is measured in the same process, before its sweep, while it runs and after it; a round's slowdown is the
median, or the 99th percentile, of those meanwhile less that of the others. `none` is the control: of the requests
outside the sweep, the later half less the earlier. The figures are medians over the rounds, of the worst case.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx

from bench.harness import BenchError, console, emit, process, table, wait_for_port
from edge.images.folder import file_name
from edge.images.retention import NEARLY_FULL
from edge.images.store import new_id
from hairmesh.stack import LOOPBACK, free_ports, write_private
from tests.edge.rest import MEASURE, PHOTO

PICTURES = 100_000
FOUND_BYTES = 4096
"""Of each picture that a sweep finds."""
OWN_BYTES = 1000
"""Of each that the edge stores meanwhile: small, since a sweep may not last until there is no room left for them."""
BEFORE = 800
"""Requests from the start of an edge to its sweep, of which the first quarter warms up."""
AFTER_S = 2.0
"""How long requests go on after the sweep."""
HOUR_S = 3600.0
SWEEP_EVENTS = {"age": "old_pictures_removed", "room": "pictures_removed_for_room"}
OLD_S, YOUNG_S = (73 * HOUR_S, 100 * HOUR_S), (1 * HOUR_S, 71 * HOUR_S)
"""Ages, from the youngest to the oldest."""
KNOWN = {"age": 1.0, "room": 0.2}
"""The share of what a sweep finds that the edge has known from its start."""
KINDS = ("call", "picture")
QUANTILES = (0.5, 0.99)
SWEEP_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the client; moments in Unix time."""

    kind: str
    """One of `KINDS`."""
    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep, by the log."""

    began_s: float
    ended_s: float
    removed: int


@dataclass(frozen=True, slots=True)
class Round:
    """What one edge did."""

    sweep: Sweep
    requests: Sequence[Request]

    def times_ms(self, kind: str, *, sweeping: bool) -> list[float]:
        """How long the requests of that kind took that ran beside the sweep, or that did not, in order."""
        sweep = self.sweep
        return [
            (each.ended_s - each.began_s) * 1000
            for each in self.requests
            if each.kind == kind and sweeping == (each.began_s < sweep.ended_s and each.ended_s > sweep.began_s)
        ]

    def slowdown_ms(self, kind: str, quantile: float) -> float:
        """What the sweep adds."""
        return at(self.times_ms(kind, sweeping=True), quantile) - at(self.times_ms(kind, sweeping=False), quantile)

    def drift_ms(self, kind: str, quantile: float) -> float:
        """What comes and goes without one."""
        times = self.times_ms(kind, sweeping=False)
        half = len(times) // 2
        return at(times[half:], quantile) - at(times[:half], quantile)


def at(times_ms: Sequence[float], quantile: float) -> float:
    """The quantile of some times; raises `BenchError` where there are too few to speak of one."""
    if len(times_ms) < 2:
        raise BenchError("hardly a request ran beside the sweep: more --pictures")
    return statistics.quantiles(times_ms, n=100, method="inclusive")[round(quantile * 100) - 1]


def fill(folder: Path, count: int) -> None:
    """Put pictures there."""
    folder.mkdir(mode=0o700, exist_ok=True)
    data = secrets.token_bytes(FOUND_BYTES)
    for _ in range(count):
        (folder / file_name(new_id(""))).write_bytes(data)


def date(folder: Path, ages_s: tuple[float, float]) -> None:
    """Let the pictures there have ages between these, in no order, and lie on the disk, as those of that age do."""
    youngest_s, oldest_s = ages_s
    now_s = time.time()
    paths = list(folder.iterdir())
    for number, path in enumerate(paths):
        made_s = now_s - youngest_s - (oldest_s - youngest_s) * number / len(paths)
        os.utime(path, (made_s, made_s))
    os.sync()


class Client:
    """One on one kept connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection(LOOPBACK, port, timeout=30)
        self.requests: list[Request] = []

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()

    def ask(self) -> None:
        """One measurement and its picture; raises `BenchError` where either is not had."""
        boundary = "bench-of-the-store"
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="image"; filename="p.jpg"\r\n\r\n'
        body = head.encode() + PHOTO + f"\r\n--{boundary}--\r\n".encode()
        answer = self._request("call", "POST", MEASURE, body, f"multipart/form-data; boundary={boundary}")
        url: str = json.loads(answer)["data"]["annotated_image_url"]
        if len(self._request("picture", "GET", "/" + url.split("/", 3)[3])) < OWN_BYTES // 2:
            raise BenchError("the picture was not whole when the answer arrived")

    def _request(self, kind: str, method: str, path: str, body: bytes | None = None, content_type: str = "") -> bytes:
        began_s = time.time()
        self._connection.request(method, path, body, {"Content-Type": content_type} if content_type else {})
        response = self._connection.getresponse()
        answer = response.read()
        self.requests.append(Request(kind, began_s, time.time()))
        if response.status != http.HTTPStatus.OK:
            raise BenchError(f"{method} {path}: HTTP {response.status} {answer[:200]!r}")
        return answer


@contextmanager
def worker(folder: Path, token: str) -> Iterator[int]:
    """One that answers at once; its port."""
    (port,) = free_ports(1)
    arguments = [sys.executable, "-m", "tests.fakes.worker", "--png-bytes", str(OWN_BYTES), "--port", str(port)]
    with process("worker", arguments, folder, {"FAKE_WORKER_PASSWORD": token}):
        wait_for_port(port)
        yield port


@contextmanager
def edge(folder: Path, worker_port: int, token: str, *, known: int, shared: bool) -> Iterator[int]:
    """One over `folder/pictures`, which holds `known` of them; its port, once it has counted them. What it says stands
    in `folder/edge.log`.
    """
    port, metrics = free_ports(2)
    config = {
        "listen": f"{LOOPBACK}:{port}",
        "public_base_url": f"http://{LOOPBACK}:{port}",
        "workers": [f"{LOOPBACK}:{worker_port}"],
        "shared_password": token,
        "static": {
            "dir": str(folder / "pictures"),
            "shared": shared,
            "max_bytes": round((known * FOUND_BYTES + BEFORE * OWN_BYTES) / NEARLY_FULL),
            "min_age_minutes": 0,
        },
        "metrics": {"listen": f"{LOOPBACK}:{metrics}"},
        "request_log": {"path": str(folder / "request_log.jsonl")},
    }
    write_private(folder / "edge.json", json.dumps(config))
    program = str(Path(sys.executable).with_name("hairmesh-edge"))
    with process("edge", [program, "--config", str(folder / "edge.json")], folder):
        wait_for_port(port)
        until_s = time.monotonic() + SWEEP_TIMEOUT_S
        while f"hairmesh_store_pictures {known}.0\n" not in httpx.get(f"http://{LOOPBACK}:{metrics}/metrics").text:
            if time.monotonic() > until_s:
                raise BenchError(f"the edge has not found {known} pictures")
            time.sleep(0.1)
        yield port


def sweeps(log: str, event: str) -> list[Sweep]:
    """Those that an edge has told of."""
    found = []
    for line in log.splitlines():
        said = json.loads(line)
        if said["event"] == event:
            ended_s = datetime.fromisoformat(said["timestamp"]).timestamp()
            found.append(Sweep(ended_s - said["duration_s"], ended_s, said["count"]))
    return found


def measure(folder: Path, worker_port: int, token: str, why: str, count: int, *, shared: bool) -> Round:
    """One edge and its one great sweep."""
    pictures = folder / "pictures"
    known = round(KNOWN[why] * count)
    fill(pictures, known)
    with ExitStack() as stack:
        port = stack.enter_context(edge(folder, worker_port, token, known=known, shared=shared))
        client = stack.enter_context(closing(Client(port)))
        fill(pictures, count - known)
        date(pictures, OLD_S if why == "age" else YOUNG_S)
        for _ in range(BEFORE // 4):
            client.ask()
        client.requests.clear()
        log = folder / "edge.log"
        until_s = time.monotonic() + SWEEP_TIMEOUT_S
        while not (done := sweeps(log.read_text(), SWEEP_EVENTS[why])):
            client.ask()
            if time.monotonic() > until_s:
                raise BenchError(f"no sweep within {SWEEP_TIMEOUT_S:.0f} s")
        until_s = time.monotonic() + AFTER_S
        while time.monotonic() < until_s:
            client.ask()
    left = sum(1 for path in pictures.iterdir() if path.stat().st_size == FOUND_BYTES)
    if left > (0 if why == "age" else known) or done[0].removed < count - known:
        raise BenchError(f"{done[0].removed} pictures of {count} were removed, {left} are left")
    return Round(done[0], client.requests)


def figures(rounds: Sequence[Sequence[Round]]) -> dict[str, float]:
    """The longest sweep and the worst slowdown of all cases, each of which is the median of its rounds."""
    return {
        "sweep_s": max(median_s(case) for case in rounds),
        "request_slowdown_ms": max(
            statistics.median(each.slowdown_ms(kind, quantile) for each in case)
            for case in rounds
            for kind in KINDS
            for quantile in QUANTILES
        ),
    }


def median_s(case: Sequence[Round]) -> float:
    """How long its sweeps took."""
    return statistics.median(each.sweep.ended_s - each.sweep.began_s for each in case)


def show(rounds: dict[tuple[str, bool], list[Round]], count: int) -> None:
    """Print what was measured of every case."""
    swept, felt = [], []
    for (why, shared), case in rounds.items():
        name = f"by {why}, {'shared' if shared else 'alone'}"
        beside = sum(len(each.times_ms(kind, sweeping=True)) for each in case for kind in KINDS)
        swept.append([name, f"{median_s(case):.2f}", str(beside)])
        for kind in KINDS:
            row = [f"{name}: {kind}"]
            for quantile in QUANTILES:
                quiet = statistics.median(at(each.times_ms(kind, sweeping=False), quantile) for each in case)
                slow = statistics.median(each.slowdown_ms(kind, quantile) for each in case)
                drift = statistics.median(each.drift_ms(kind, quantile) for each in case)
                row += [f"{quiet:.2f}", f"{slow:+.2f}", f"{drift:+.2f}"]
            felt.append(row)
    table(f"{count} pictures swept", ["removed", "s", "requests meanwhile"], swept)
    headings = [f"{word}{quantile * 100:.0f}" for quantile in QUANTILES for word in ("p", "sweep p", "none p")]
    table("What a request takes, and what a sweep adds, or nothing; ms", ["removed", *headings], felt)


def main() -> None:
    """Run every case in turn, round by round; print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=PICTURES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the stores lie; default: where temporary files do")
    args = parser.parse_args()
    token = secrets.token_urlsafe(24)
    rounds: defaultdict[tuple[str, bool], list[Round]] = defaultdict(list)
    with tempfile.TemporaryDirectory(dir=args.folder) as name, ExitStack() as stack:
        folder = Path(name)
        port = stack.enter_context(worker(folder, token))
        for number in range(args.rounds):
            for shared in (False, True):
                for why in SWEEP_EVENTS:
                    with tempfile.TemporaryDirectory(dir=folder) as own:
                        done = measure(Path(own), port, token, why, args.pictures, shared=shared)
                    rounds[why, shared].append(done)
                    console.print(f"round {number + 1}: by {why}, {'shared' if shared else 'alone'}")
    show(rounds, args.pictures)
    emit(figures(list(rounds.values())))


if __name__ == "__main__":
    main()
