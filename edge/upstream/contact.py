"""Everything the edge has with one worker: its channel, its streams, the probe on its way."""

from __future__ import annotations

import asyncio
import time

import structlog

from edge.calls import Call, ContactSnapshot
from edge.pool import events as ev
from edge.upstream import attempt, probe
from edge.upstream.cancelled import task_is_cancelled
from edge.upstream.channel import Link
from edge.upstream.passwords import Key, Passwords
from edge.upstream.refusal import Refusal
from edge.upstream.watch import Emit, Spawn, Watch

log = structlog.get_logger()


class Contact:
    """Made with the pool's `Open`, ended with its `Close`; after that nothing of it is ever heard again."""

    def __init__(self, link: Link, passwords: Passwords, *, emit: Emit, spawn: Spawn) -> None:
        self._link = link
        self._key = Key(passwords, link.target)
        self._emit = emit
        self._spawn = spawn
        self._watch = Watch(link, self._key, emit=emit, spawn=spawn)
        self._probe: asyncio.Task[None] | None = None

    async def run(
        self, call: Call, call_id: str, timeout_s: float, progressed: attempt.Progressed, *, traceparent: str
    ) -> attempt.Reply | Refusal:
        """One attempt, in `timeout_s` whatever happens. A refused password is not the end while there is another."""
        until_s = time.monotonic() + timeout_s
        answer: attempt.Reply | Refusal = Refusal(ev.Code.UNAUTHENTICATED)
        for token in self._key.tokens():
            answer = await self._link.calls[call.method](  # looked up each time: it may be another channel by now
                call.message,
                timeout_s=timeout_s,
                metadata=attempt.call_metadata(token, call.request_id, call_id, traceparent),
                progressed=progressed,
            )
            if not isinstance(answer, Refusal) or answer.code is not ev.Code.UNAUTHENTICATED:
                self._key.worked(token)
                break
            timeout_s = until_s - time.monotonic()
        if isinstance(answer, Refusal) and answer.code is ev.Code.RESOURCE_EXHAUSTED and not answer.reason:
            # Neither a busy slot nor the request's size: the pool judges it without a word.
            log.warning("answer_not_taken", worker=self._link.target, call_id=call_id, problem=answer.transport)
        return answer

    def probe(self, timeout_s: float) -> None:
        """Check it now; open its streams, unless they are."""
        self._watch.start()
        self._probe = self._spawn(self._check(timeout_s))

    def ask_status(self) -> None:
        """Have a status that is younger than this moment."""
        self._watch.ask_status()

    def renew(self, link: Link) -> Link:
        """Do everything from now on over another channel; the old one, on which calls may still run."""
        old, self._link = self._link, link
        self._watch.stop()
        self._watch = Watch(link, self._key, emit=self._emit, spawn=self._spawn)
        self._watch.start()
        return old

    def snapshot(self) -> ContactSnapshot:
        """At this moment."""
        return ContactSnapshot(former_password=self._key.is_former)

    def end(self) -> Link:
        """Nothing more is wanted of it; its channel, to be closed."""
        self._watch.stop()
        if self._probe is not None:
            self._probe.cancel()
        return self._link

    async def _check(self, timeout_s: float) -> None:
        """One active check. Whatever comes of it, a bug too, ends it: a probe that never ends would be the last."""
        try:
            result, evidence = await self._judge(timeout_s)
        except asyncio.CancelledError:
            if task_is_cancelled():
                raise
            result, evidence = ev.ProbeResult.ERROR, "the channel was closed"
        except Exception as error:
            self._end_probe(ev.ProbeResult.ERROR, type(error).__name__)
            raise
        self._end_probe(result, evidence)

    async def _judge(self, timeout_s: float) -> tuple[ev.ProbeResult, str]:
        until_s = time.monotonic() + timeout_s
        result, evidence = await probe.check(lambda: self._link, self._key, timeout_s)
        if result is ev.ProbeResult.GOOD and (problem := await self._watch.status_problem(until_s - time.monotonic())):
            return ev.ProbeResult.ERROR, f"WatchStatus: {problem}"
        return result, evidence

    def _end_probe(self, result: ev.ProbeResult, evidence: str) -> None:
        self._emit(ev.ProbeEnded(time.monotonic(), self._link.target, result, f"probe: {evidence}"))
