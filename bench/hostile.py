"""Ten thousand hostile requests: does anything break, leak, or grow?

    python bench/hostile.py [--requests N] [--seed N]

A real edge and two real workers with the real models. What is sent (`bench/hostile_requests.py`): malformed HTTP on raw
sockets, several requests on one, offers of other protocols, odd headers, paths, methods and tokens, fuzzed JSON and
forms, what is no picture, bombs, and spoilt photos of every format, of which many reach a worker. Each request carries
a mark that nothing may repeat.

`requests`: how many were sent. `answers_500`: answers of 500. `answers_5xx`: every 5xx but what is honestly said of a
busy pool and of a client without patience (BUSY, DEADLINE), which is `answers_busy`. `unanswered`: whole requests whose
connection was kept open for a minute without an answer. `worker_strikes`: workers that were taken out or ended, calls
that were tried twice or that a worker failed. `leaked_bytes`: marks in answers, logs and stored pictures, in base64
too, and what lies in the folder for temporary files when all is over. `leaked_descriptors`: the largest growth of open
files of one of the processes. `growth_mb`: the largest growth of the resident size of one of the processes from the
second fifth of the requests to the last (medians), in MB of 10^6 bytes; the first fifth is the warm-up.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import re
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from rich.progress import Progress

from bench.harness import console, emit, table
from bench.hostile_requests import MARK, Arsenal, Shot
from bench.memory import Resident
from hairmesh.client.plain import Client
from hairmesh.stack import Stack

WORKERS = 2
AT_ONCE = 8
SAMPLES = 200
"""Looks at the processes, evenly over the requests."""
TIMEOUT_S = 60.0
BUSY_REASONS = {"BUSY", "DEADLINE"}
STRUCK_REASONS = {"WORKER_FAILED", "POISON_INPUT", "NO_WORKER"}
NO_ANSWER, SILENT = "closed", "silent"
"""What stands in the place of a status: the connection was closed without an answer, or kept without one."""

_STATUS = re.compile(rb"HTTP/1\.1 ([2-5]\d\d) ")
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
_REASON = re.compile(rb'"reason":"([A-Z_]+)"')


def _in_base64(mark: bytes) -> Iterator[bytes]:
    """What every base64 text of bytes that hold the mark has in it: it may begin at any of three places."""
    for ahead in range(3):
        text = base64.b64encode(bytes(ahead) + mark)
        yield text[-(-ahead * 4 // 3) : (ahead + len(mark)) * 4 // 3]


_MARKS = re.compile(b"|".join(re.escape(form) for form in (MARK, *_in_base64(MARK))))


def marks_in(text: bytes) -> int:
    """Bytes of marks in a text."""
    return sum(len(found[0]) for found in _MARKS.finditer(text))


@dataclass
class Seen:
    """What became of the requests so far."""

    by_group: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    reasons: Counter[str] = field(default_factory=Counter)
    leaked_bytes: int = 0
    leaks: list[str] = field(default_factory=list)
    """Where, for people."""

    def note(self, shot: Shot, answer: bytes | None) -> None:
        """One request is over; its answer as it came, None where the connection was kept without a whole one."""
        if answer is None:
            self.by_group[shot.group][NO_ANSWER if shot.breaks_off else SILENT] += 1
            return
        # The worst, where there are several.
        status = max(_STATUS.finditer(answer), key=lambda each: each[1], default=None)
        self.by_group[shot.group][status[1].decode() if status else NO_ANSWER] += 1
        reason = _REASON.search(answer, status.start() if status else 0)
        if reason:
            self.reasons[reason[1].decode()] += 1
        if status and status[1][:1] == b"5":
            said = reason[1].decode() if reason else "no reason"
            self.reasons[f"{status[1].decode()} {said}"] += 1
        self.leaked(f"answer to {shot.group}", marks_in(answer))

    def leaked(self, where: str, count: int) -> None:
        """So many bytes came to light somewhere."""
        self.leaked_bytes += count
        if count:
            self.leaks.append(f"{where}: {count} bytes")

    def statuses(self, beginning: str) -> int:
        """How many answers have a status that begins so."""
        return sum(
            count
            for answers in self.by_group.values()
            for status, count in answers.items()
            if status.startswith(beginning)
        )

    def busy(self) -> int:
        """How many 5xx only said that there is no room, or no time."""
        return sum(count for name, count in self.reasons.items() if name[0] == "5" and name[4:] in BUSY_REASONS)


def _is_whole(answer: bytes) -> bool:
    """Whether an answer ends where it says it does; one that does not say ends with its connection."""
    status = _STATUS.search(answer)
    if status is None:
        return False
    head, _, body = answer[status.start() :].partition(b"\r\n\r\n")
    length = _LENGTH.search(head + b"\r\n")
    return length is not None and len(body) >= int(length[1])


async def fire(port: int, shot: Shot) -> bytes | None:
    """Send one on a connection of its own; what came back until it was whole or closed, None when neither came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            try:
                writer.write(shot.wire)
                await writer.drain()
                if shot.breaks_off:
                    writer.write_eof()
                while (shot.to_the_end or not _is_whole(answer)) and (more := await reader.read(1 << 16)):
                    answer += more
            except OSError:  # reset while it was still being sent: what came before that counts
                while more := await reader.read(1 << 16):
                    answer += more
    except TimeoutError:
        return answer if _STATUS.search(answer) else None
    except OSError:  # reset again: closed, not kept
        return answer
    finally:
        writer.transport.abort()
    return answer


@dataclass
class Watched:
    """Sizes and open files of the processes, look by look."""

    pids: dict[str, int]
    sizes_mb: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    descriptors: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def look(self, residents: dict[str, Resident]) -> None:
        """Once more."""
        for name, pid in self.pids.items():
            self.sizes_mb[name].append(residents[name].now_mb())
            self.descriptors[name].append(psutil.Process(pid).num_fds())

    def growth_mb(self) -> dict[str, float]:
        """From the second fifth to the last."""
        return {name: _growth(sizes) for name, sizes in self.sizes_mb.items()}

    def more_descriptors(self) -> dict[str, float]:
        """The same of open files."""
        return {name: _growth([float(count) for count in counts]) for name, counts in self.descriptors.items()}


def _by_fifths(series: list[float]) -> list[float]:
    """Medians of the first fifth, the second, and so on."""
    fifth = max(1, len(series) // 5)
    return [statistics.median(series[number * fifth : (number + 1) * fifth] or series) for number in range(5)]


def _growth(series: list[float]) -> float:
    _warm_up, second, *_, last = _by_fifths(series)
    return last - second


async def storm(port: int, arsenal: Arsenal, count: int, watched: Watched, seen: Seen) -> None:
    """Send them all, some at once, and look now and then."""
    residents = {name: Resident(pid) for name, pid in watched.pids.items()}
    every = max(1, count // SAMPLES)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("hostile requests", total=count)
        left = iter(range(count))

        async def client() -> None:
            for number in left:
                shot = arsenal.shot()
                seen.note(shot, await fire(port, shot))
                progress.advance(task)
                if number % every == 0:
                    watched.look(residents)

        async with asyncio.TaskGroup() as clients:
            for _ in range(AT_ONCE):
                clients.create_task(client())
    for each in residents.values():
        each.close()


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log that are JSON."""
    for line in path.read_bytes().splitlines():
        try:
            yield json.loads(line)
        except ValueError:  # what a library says
            continue


def strikes(stack: Stack) -> Counter[str]:
    """Everything that counts against a worker, by what it was."""
    found: Counter[str] = Counter()
    for record in records(stack.edge.log_path):
        if record.get("event") == "worker_state" and record.get("from") == "SERVING":
            found[f"taken out: {record.get('cause')}"] += 1
    for line in stack.requests():
        if line["attempts"] > 1:
            found["tried twice"] += 1
        if line["reason"] in STRUCK_REASONS:
            found[line["reason"]] += 1
    for worker in stack.workers:
        if worker.has_ended():
            found[f"{worker.name} has ended"] += 1
    return found


def complaints(stack: Stack) -> Counter[tuple[str, str, str]]:
    """Warnings and errors in the logs: whose, how bad, which."""
    return Counter(
        (child.name, str(record["level"]), str(record["event"]))
        for child in (stack.edge, *stack.workers)
        for record in records(child.log_path)
        if record.get("level") not in {"info", "debug", None}
    )


def look_for_leaks(stack: Stack, temporary: Path, seen: Seen) -> None:
    """Search what the service has written, and what it has left behind."""
    pictures = (stack.folder / "pictures").rglob("*")
    for path in (*stack.folder.glob("*.log"), *stack.folder.glob("request_log.jsonl*"), *pictures):
        if path.is_file():
            seen.leaked(path.name, marks_in(path.read_bytes()))
    for path in temporary.rglob("*"):
        if path.is_file():
            seen.leaked(f"left behind: {path.relative_to(temporary)}", path.stat().st_size)


def show(seen: Seen, watched: Watched, struck: Counter[str], complained: Counter[tuple[str, str, str]]) -> None:
    """Tables for people."""
    statuses = sorted({status for answers in seen.by_group.values() for status in answers})
    rows = [[group, *(str(answers[status] or "") for status in statuses)] for group, answers in seen.by_group.items()]
    table("Answers by status", ["requests", *statuses], rows)
    table("Refusals by reason", ["reason", "answers"], [[name, str(n)] for name, n in seen.reasons.most_common()])
    more = watched.more_descriptors()
    sizes = [
        [name, *(f"{mb:.0f}" for mb in _by_fifths(series)), f"{max(series):.0f}", f"{more[name]:+.0f}"]
        for name, series in watched.sizes_mb.items()
    ]
    table("Processes: MB by fifths", ["process", *"12345", "highest", "more descriptors"], sizes)
    for what, count in (*struck.items(), *((" ".join(key), n) for key, n in complained.most_common())):
        console.print(f"{count:6}  {what}")
    for leak in seen.leaks[:20]:
        console.print(f"leaked  {leak}")


def main() -> None:
    """Start all, send all, search all, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    seen = Seen()
    with tempfile.TemporaryDirectory() as name:
        temporary = Path(name) / "tmp"
        temporary.mkdir()
        os.environ["TMPDIR"] = str(temporary)  # of the processes that are started
        with Stack(Path(name) / "stack", workers=WORKERS) as stack:
            stack.start()
            with Client(stack.url) as client:
                stack.wait_online(client, WORKERS)
            arsenal, port = Arsenal(args.seed), int(stack.edge.address.rpartition(":")[2])
            for shot in arsenal.warm_up() * WORKERS:
                seen.note(shot, asyncio.run(fire(port, shot)))
            watched = Watched({child.name: child.pid for child in (stack.edge, *stack.workers)})
            asyncio.run(storm(port, arsenal, args.requests, watched, seen))
            struck, complained = strikes(stack), complaints(stack)
            stack.edge.ask_to_stop()  # what it still has to write is written then
            stack.edge.wait_stopped(time.monotonic() + TIMEOUT_S)
            look_for_leaks(stack, temporary, seen)
    show(seen, watched, struck, complained)
    emit(
        {
            "requests": args.requests,
            "answers_500": seen.statuses("500"),
            "answers_5xx": seen.statuses("5") - seen.busy(),
            "answers_busy": seen.busy(),
            "unanswered": seen.statuses(SILENT),
            "worker_strikes": struck.total(),
            "leaked_bytes": seen.leaked_bytes,
            "leaked_descriptors": int(max(watched.more_descriptors().values())),
            "growth_mb": max(watched.growth_mb().values()),
        }
    )


if __name__ == "__main__":
    main()
