"""`hairmesh demo`: everything once, on this machine, in about a minute.

A story in steps; each step checks what it shows, and the first that does not hold ends the demonstration.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import httpx
from rich import box
from rich.console import Console
from rich.table import Column, Table

from hairmesh.child import StackError
from hairmesh.client import NotAnEnvelopeError
from hairmesh.client.envelope import Envelope
from hairmesh.client.plain import Client
from hairmesh.demo_calls import DemoError, Walk
from hairmesh.demo_inputs import PERSON_ID, bad_inputs, studio_portrait
from hairmesh.stack import MIN_FREE_GB, Stack, ends_on_signals

LANG = "en"
COOLDOWN_SECONDS = 5
"""The service's default is 60 s: nobody wants to watch that."""
WIDTH_IN_FILES = 120
"""Characters in a line where the output is not a terminal with a width of its own."""
CALLS_UNDER_LOAD = 6
CLIENTS_UNDER_LOAD = 3
NOTICE_TIMEOUT_S = 15.0
"""For the edge to notice a killed worker; a refused connection is noticed at once, a probe comes every 8 s."""


def run(folder: Path) -> int:
    """Run the demonstration with its files in `folder`; the exit status."""
    begun_s = time.monotonic()
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH_IN_FILES
    try:
        with (
            ends_on_signals(),
            Stack(folder, workers=2, cooldown_seconds=COOLDOWN_SECONDS) as stack,
            Client(stack.url) as client,
        ):
            Demo(stack, client, console).tell()
    except (DemoError, StackError, NotAnEnvelopeError, httpx.HTTPError) as error:
        reason = str(error) or type(error).__name__
        Console(stderr=True, highlight=False).print(f"\ndemo: FAILED: {reason}\nLogs: {folder}/*.log", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        Console(stderr=True).print("demo: interrupted")
        return 130
    console.print(f"{time.monotonic() - begun_s:.0f} s in all. Pictures, page and logs: {folder}", soft_wrap=True)
    console.print("demo: ok")
    return 0


class Demo:
    """The steps, in order."""

    def __init__(self, stack: Stack, client: Client, console: Console) -> None:
        self._stack = stack
        self._client = client
        self._console = console
        self._photo = studio_portrait()
        self._step = 0

    def tell(self) -> None:
        """All steps; raises at the first that does not hold."""
        self._start()
        self._walk_through_all_calls(self._measure_portrait())
        self._send_bad_inputs()
        self._kill_a_worker_under_load()
        self._kill_the_other()
        self._restart()
        self._stop()

    def _start(self) -> None:
        self._headline("Two workers and an edge")
        self._say(
            f"On free loopback ports with passwords made for this run. cooldown_seconds is {COOLDOWN_SECONDS} here "
            f"(default 60), so that a worker that failed comes back while you watch; min_free_gb is {MIN_FREE_GB}."
        )
        self._stack.start()
        with self._console.status("workers load their models …"):
            took_s = self._stack.wait_online(self._client, 2)
        self._say(f"{self._stack.url} is up, 2 workers online after {took_s:.0f} s.")
        self._show_monitor(expected_status=200)

    def _measure_portrait(self) -> Envelope:
        self._headline(f"One photo in: the studio portrait of {PERSON_ID}, a synthetic person (openpeople)")
        begun_s = time.monotonic()
        answer = self._measure(annotate=True)
        took_s = time.monotonic() - begun_s
        self._console.print(measurement_table(answer.data["measurements"]))
        self._say(f"Answered in {took_s:.1f} s.")
        return answer

    def _walk_through_all_calls(self, measured: Envelope) -> None:
        self._headline("The same photo through every other call")
        page = Walk(self._client, self._photo, self._stack.folder, self._console, LANG).take(measured)
        self._say(f"Every picture on one page: {page}")

    def _send_bad_inputs(self) -> None:
        self._headline("One bad input of each kind, and what the client is told")
        table = Table(
            Column("sent", no_wrap=True), "HTTP", "code", Column("reason", no_wrap=True), "message", box=box.SIMPLE_HEAD
        )
        differing = []
        for bad in bad_inputs(self._photo):
            headers = {"accept-language": LANG, **bad.request.get("headers", {})}
            answer = self._client.send(bad.method, bad.route, **{**bad.request, "headers": headers})
            as_promised = (answer.http_status, answer.code, answer.reason) == (bad.http_status, bad.code, bad.reason)
            style = None if as_promised else "bold red"
            table.add_row(
                bad.what, str(answer.http_status), str(answer.code), answer.reason, answer.message, style=style
            )
            if not as_promised:
                differing.append(f"{bad.what}: promised {bad.http_status} {bad.code} {bad.reason}")
        self._console.print(table)
        if differing:
            raise DemoError("other answers than promised: " + "; ".join(differing))

    def _kill_a_worker_under_load(self) -> None:
        self._headline(f"{CALLS_UNDER_LOAD} requests from {CLIENTS_UNDER_LOAD} clients; one worker is killed meanwhile")
        victim = self._stack.workers[0]
        with ThreadPoolExecutor(CLIENTS_UNDER_LOAD) as pool:
            calls = [
                pool.submit(self._client.measure, self._photo, annotate=False, lang=LANG)
                for _ in range(CALLS_UNDER_LOAD)
            ]
            # With more clients than workers, both workers compute from the first answer on.
            wait(calls, return_when=FIRST_COMPLETED)
            self._say(f"First answer is here: SIGKILL to {victim.name} (pid {victim.pid}).")
            victim.kill()
            answers = [call.result() for call in calls]
        failed = [answer for answer in answers if not answer.ok]
        if failed:
            raise DemoError(f"{len(failed)} of {len(answers)} failed: {failed[0].code} {failed[0].message}")
        again = sum(record["attempts"] > 1 for record in self._stack.requests())
        self._say(f"{len(answers)} of {len(answers)} answered with code 0; {again} ran again on the other worker.")
        self._stack.wait_online(self._client, 1, NOTICE_TIMEOUT_S)
        self._show_monitor(expected_status=200)

    def _kill_the_other(self) -> None:
        self._headline("The other worker is killed too")
        self._stack.workers[1].kill()
        took_s = self._stack.wait_online(self._client, 0, NOTICE_TIMEOUT_S)
        self._say(f"Noticed after {took_s:.1f} s.")
        self._show_monitor(expected_status=503)
        answer = self._client.measure(self._photo, annotate=False, lang=LANG)
        if (answer.http_status, answer.code, answer.reason) != (503, 1007, "NO_WORKER"):
            raise DemoError(f"without workers a call got {answer.http_status} {answer.code} {answer.reason}")
        self._say(
            f"A call: {answer.http_status} {answer.code} {answer.reason} {answer.message} "
            f"(Retry-After: {answer.retry_after_s:.0f})"
        )

    def _restart(self) -> None:
        worker = self._stack.workers[0]
        self._headline(f"{worker.name} is started again")
        worker.start()
        with self._console.status("the worker loads its models …"):
            took_s = self._stack.wait_online(self._client, 1)
        self._say(f"Back after {took_s:.0f} s; nobody told the edge.")
        self._show_monitor(expected_status=200)
        self._measure(annotate=False)
        self._say("A call: 200, code 0.")

    def _stop(self) -> None:
        self._headline("Everything stops")
        complaints = self._stack.stop()
        if complaints:
            raise DemoError("; ".join(complaints))
        self._say("Edge and worker ended as asked; pictures and passwords are removed.")

    def _measure(self, *, annotate: bool) -> Envelope:
        answer = self._client.measure(self._photo, annotate=annotate, lang=LANG)
        if not answer.ok:
            raise DemoError(f"the portrait was refused: {answer.code} {answer.reason} {answer.message}")
        return answer

    def _show_monitor(self, *, expected_status: int) -> None:
        status, body = self._client.monitor()
        self._say(f"GET /monitor: {status} {json.dumps(body, ensure_ascii=False)}")
        if status != expected_status:
            raise DemoError(f"/monitor answered {status}, not {expected_status}")

    def _headline(self, text: str) -> None:
        self._step += 1
        self._console.print(f"\n[bold]{self._step}. {text}[/bold]")

    def _say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, markup=False)


def measurement_table(measurements: Mapping[str, Any]) -> Table:
    """Rows for every quantity of the answer, in its order, under its names."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("measurement", no_wrap=True)
    table.add_column("mm", justify="right", no_wrap=True)
    table.add_column("95 % interval", no_wrap=True)
    table.add_column("ratio or angle")
    table.add_column("published norms, mm (adults)")
    for name, quantity in quantities(measurements):
        table.add_row(name, *_length(quantity), _proportion(quantity), _norms(quantity))
    return table


def quantities(measurements: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Dotted names and quantities: `face_height`, `thirds.upper` …"""
    for name, value in measurements.items():
        if isinstance(value, Mapping):
            if "unavailable_reason" in value:
                yield prefix + name, value
            else:
                yield from quantities(value, f"{prefix}{name}.")


def _length(quantity: Mapping[str, Any]) -> tuple[str, str]:
    """Value and interval; why there is none stands in the interval's place."""
    if quantity["mm"] is None:
        return "", quantity["unavailable_reason"] or ""
    interval = quantity["interval_mm"]
    return f"{quantity['mm']:.1f}", f"{interval['low']:.1f}–{interval['high']:.1f}"


def _proportion(quantity: Mapping[str, Any]) -> str:
    if quantity["angle_deg"] is not None:
        return f"{quantity['angle_deg']:.1f}°"
    if quantity["ratio"] is None:
        return ""
    ideals = [f"{norm['low']:.2f}" for norm in quantity["norms"] if norm["unit"] == "ratio"]
    ideal = f" (canon {' or '.join(ideals)})" if ideals else ""
    return f"{quantity['ratio']:.2f} of {quantity['ratio_of']}{ideal}"


def _norms(quantity: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{_range(norm)} {norm['population'].removeprefix('adults').lstrip(', ')}".rstrip()
        for norm in quantity["norms"]
        if norm["unit"] == "mm"
    )


def _range(norm: Mapping[str, Any]) -> str:
    low, high = f"{norm['low']:.1f}", f"{norm['high']:.1f}"
    return low if low == high else f"{low}–{high}"
