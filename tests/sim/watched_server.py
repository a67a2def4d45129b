"""The real watchdog over a simulated vLLM server on virtual time: what a shell would do, without any waiting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.fakes.vllm_engine import VllmServer
from tests.fakes.vllm_metrics import Flavour, render
from worker.health.probes.vllm import read_metrics
from worker.health.watchdog.limits import Limits
from worker.health.watchdog.looks import Answer, CanaryResult, Look
from worker.health.watchdog.policy import Action, Decision, Watchdog

EPOCH_S = 1_790_000_000.0
"""Seconds since the epoch when virtual time began."""
CANARY_S = 0.05
"""One token."""


class Watched:
    """`server` under a watchdog that looks when told to. `text` changes what its `/metrics` says."""

    def __init__(
        self,
        server: VllmServer,
        limits: Limits | None = None,
        *,
        flavour: Flavour = Flavour.V1,
        text: Callable[[str], str] = str,
        begun_s: float = 0.0,
    ) -> None:
        self.server = server
        self.limits = limits or Limits()
        self.flavour = flavour
        self.text = text
        self.answer: Answer | None = None
        """Instead of metrics, while set."""
        self.took_s = 0.0
        """Of every look."""
        self.clock_ahead_s = 0.0
        """Of our clock, by which ages are told, before the server's."""
        self.canary_error = False
        """Whether the server refuses test requests, as it does without its API key."""
        self.canaries: list[float] = []
        """When they were sent."""
        self._dog = Watchdog(self.limits, canaries=True, begun_s=begun_s)
        self._asked: dict[str, int] = {}
        """Numbers of the canaries on their way, by whom they ask."""
        self._sent_s: dict[str, float] = {}

    def run(self, from_s: float, to_s: float) -> list[Decision]:
        """Look every interval."""
        count = int((to_s - from_s) / self.limits.interval_s)
        return [self.look(from_s + n * self.limits.interval_s) for n in range(count)]

    def look(self, at_s: float) -> Decision:
        """Look once, and do what follows."""
        self.server.advance(at_s)
        self._hear(at_s)
        decision = self._dog.see(replace(self._seen(at_s), took_s=self.took_s))
        if decision.action is Action.CANARY:
            self.canaries.append(at_s)
            self._dog.canaries_sent(at_s, decision.finding.ask)
            for name in decision.finding.ask:
                self._ask(at_s, name)
        elif decision.action is Action.RESTART:
            self._asked = {}
            self.server.restart()
            self._dog.restarted(at_s)
        return decision

    def _seen(self, at_s: float) -> Look:
        if not self.server.listens:
            return Look(at_s, Answer.REFUSED)
        if self.answer is not None:
            return Look(at_s, self.answer, problem="metrics: HTTP 500")
        written = render(self.server.engines, self.flavour, EPOCH_S + self.server.started_s)
        now_epoch_s = EPOCH_S + at_s + self.clock_ahead_s
        return read_metrics(self.text(written), at_s=at_s, now_epoch_s=now_epoch_s, grace_s=self.limits.grace_s)

    def _ask(self, at_s: float, name: str) -> None:
        if self.canary_error:
            self._dog.canary_ended(at_s, name, CanaryResult.ERROR)
            return
        try:
            self._asked[name] = self.server.submit(CANARY_S, rank=int(name) if name else None)
        except IndexError:
            self._dog.canary_ended(at_s, name, CanaryResult.REFUSED)
        self._sent_s[name] = at_s

    def _hear(self, at_s: float) -> None:
        for name, number in list(self._asked.items()):
            if number in self.server.failed:
                self._end(at_s, name, CanaryResult.ERROR)
            elif number in self.server.finished:
                self._end(at_s, name, CanaryResult.PASSED)
            elif at_s - self._sent_s[name] >= self.limits.canary_timeout_s:
                self._end(at_s, name, CanaryResult.TIMED_OUT)

    def _end(self, at_s: float, name: str, result: CanaryResult) -> None:
        self.server.abort(self._asked.pop(name))
        self._dog.canary_ended(at_s, name, result)
