"""A pool whose events are written by hand."""

from __future__ import annotations

from typing import Any

from edge.pool import events as ev
from edge.pool.config import PoolConfig, Target
from edge.pool.endpoint import Endpoint
from edge.pool.manager import Pool

A, B, C = "a:1", "b:1", "c:1"
GOOD, REFUSED, SILENT = ev.ProbeResult.GOOD, ev.ProbeResult.UNREACHABLE, ev.ProbeResult.TIMEOUT


class Bench:
    """Remembers every decision. Calls carry an input and a client of their own unless told otherwise."""

    def __init__(self, *workers: str, targets: tuple[Target, ...] | None = None, **settings: Any) -> None:
        self.config = PoolConfig(workers=workers or (A, B), **settings)
        self.pool = Pool(self.config, seed=1, edge_id="edge", targets=targets)
        self.decisions: list[ev.Decision] = []
        self.calls = 0
        self.inputs: dict[str, str] = {}

    def tell(self, event: ev.Event) -> list[ev.Decision]:
        made = self.pool.handle(event)
        self.decisions += made
        return made

    def online(self, now_s: float = 0.0) -> Bench:
        """Started, and every worker probed well."""
        self.tell(ev.Started(now_s))
        self.tell(ev.Tick(now_s + 0.5))
        for endpoint in self.pool.endpoints():
            self.probed(endpoint.target, GOOD, now_s + 0.6)
        return self

    def probed(self, target: str, result: ev.ProbeResult, now_s: float) -> list[ev.Decision]:
        return self.tell(ev.ProbeEnded(now_s, target, result, "test"))

    def back(self, target: str, now_s: float) -> None:
        """Whatever is planned comes, and its probe is good."""
        self.tell(ev.Tick(now_s))
        self.probed(target, GOOD, now_s)

    def call(
        self,
        now_s: float,
        *,
        slow: bool = False,
        timeout_s: float | None = None,
        size_bytes: int = 0,
        capability: str = "",
        photo: str = "",
        client: str = "",
    ) -> str:
        self.calls += 1
        call_id = f"edge-{self.calls}"
        self.inputs[call_id] = photo or f"photo of {call_id}"
        input_key = self.inputs[call_id] if self.pool.minds_inputs else ""
        self.tell(ev.Submitted(now_s, call_id, slow, timeout_s, size_bytes, capability, input_key, client or call_id))
        return call_id

    def ended(
        self, call_id: str, now_s: float, code: ev.Code, reason: str = "", retry_after_s: float | None = None
    ) -> list[ev.Decision]:
        input_key = "" if code is ev.Code.OK else self.inputs[call_id]
        return self.tell(ev.CallEnded(now_s, call_id, code, reason, retry_after_s, input_key))

    def answered(self, now_s: float, **call: Any) -> str:
        """One call that goes well."""
        call_id = self.call(now_s, **call)
        self.ended(call_id, now_s + 0.01, ev.Code.OK)
        assert self.finished(call_id)
        return call_id

    def status(self, target: str, now_s: float, **says: Any) -> list[ev.Decision]:
        says = {"asked_s": now_s, "boot_id": "boot-1", **says}
        return self.tell(ev.StatusTold(now_s, target, **says))

    def configure(self, now_s: float, *targets: str, **settings: Any) -> list[ev.Decision]:
        """Another configuration, with exactly these workers."""
        self.config = PoolConfig(workers=targets, **settings)
        return self.tell(ev.Configured(now_s, self.config, self.config.targets()))

    def of(self, kind: type, call_id: str) -> list[Any]:
        about_calls = [each for each in self.decisions if isinstance(each, (ev.Start, ev.Finish, ev.Fail))]
        return [each for each in about_calls if type(each) is kind and each.call_id == call_id]

    def runs_on(self, call_id: str) -> str:
        """Where its last attempt was started."""
        started = self.of(ev.Start, call_id)
        return started[-1].endpoint if started else ""

    def failed(self, call_id: str) -> ev.Fail | None:
        fails = self.of(ev.Fail, call_id)
        return fails[0] if fails else None

    def reason(self, call_id: str) -> str:
        """Why it failed; empty when it did not."""
        failed = self.failed(call_id)
        return failed.reason if failed else ""

    def finished(self, call_id: str) -> ev.Finish | None:
        finishes = self.of(ev.Finish, call_id)
        return finishes[0] if finishes else None

    def logs(self, event: str) -> list[dict[str, Any]]:
        """Fields of every log line with this event."""
        return [dict(each.fields) for each in self.decisions if isinstance(each, ev.Log) and each.event == event]

    def history(self, target: str, now_s: float = 1_000.0) -> list[str]:
        """What is remembered of it, the latest first."""
        endpoints = self.pool.snapshot(now_s).endpoints
        return [entry.what for each in endpoints if each.target == target for entry in each.history]

    def __getitem__(self, target: str) -> Endpoint:
        return next(endpoint for endpoint in self.pool.endpoints() if endpoint.target == target)
