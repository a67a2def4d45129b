"""Who is to blame for a broken worker: the worker, its input, its client, or none of them. Says so in the log."""

from __future__ import annotations

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.admission import Request
from edge.pool.clients import Clients
from edge.pool.endpoint import Endpoint
from edge.pool.outbox import Outbox
from edge.pool.passive import Harm
from edge.pool.poison import Break, PoisonMemory


class Blame:
    """What ends of attempts say about inputs and clients."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.inputs = PoisonMemory()
        self.clients = Clients()

    def went_well(self, request: Request) -> None:
        """An attempt of it ended without any harm to its worker."""
        self.inputs.succeeded(request.input_key)
        if request.client_key:
            self.clients.went_well(request.client_key, request.input_key)

    def broke(self, request: Request, endpoint: Endpoint, harm: Harm, event: ev.CallEnded) -> None:
        """An attempt of it harmed its worker, and no cause is known that all share."""
        request.input_key = event.input_key
        broken = Break(
            at_s=event.now_s,
            began_s=request.began_s,
            input_key=event.input_key,
            client_key=request.client_key,
            worker=endpoint.target,
            boot_id=endpoint.boot_id,
            died=harm is Harm.DIED,
        )
        held_before = self.holds(request, event.now_s)
        if harm is not Harm.INPUT_FAILED:  # there the worker has made sure itself that it is well
            request.broke += 1
            if event.input_key and not held_before and not self._suspect(broken):
                return
        if self.clients.broke(broken):
            self._log(
                "client_held",
                client=self.clients.tag(broken.client_key),
                worker=broken.worker,
                call_id=request.call_id,
                for_s=fixed.POISON_S,
            )

    def _suspect(self, broken: Break) -> bool:
        """Note it against the input; False when the cause is a shared one."""
        if not self.inputs.broke(broken):
            self.shared_cause()
            return False
        if self.inputs.refused_for_s(broken.input_key, broken.at_s) == fixed.POISON_S:
            self._log("input_condemned", input=self.inputs.tag(broken.input_key), worker=broken.worker)
        return True

    def shared_cause(self) -> None:
        """Nobody's input is to blame for what has happened since the last success."""
        for client_key in self.inputs.absolve():
            self.clients.release(client_key)

    def seen(self, event: ev.StatusTold) -> None:
        """Which process answers: one that is said to have died may not have."""
        for tag, broken in self.inputs.seen(event.endpoint, event.boot_id, event.asked_s):
            self.clients.strike(broken)
            self._log("input_cleared", input=tag, worker=event.endpoint, boot_id=event.boot_id)

    def note_refusal(self, request: Request) -> None:
        """A request is refused for its input."""
        self._log("input_refused", input=self.inputs.tag(request.input_key), call_id=request.call_id)

    def explained_by_input(self, request: Request) -> list[Break]:
        """What its input is known to have done; nothing unless it is condemned."""
        return self.inputs.breaks_of(request.input_key)

    def explained_by_client(self, request: Request, now_s: float) -> list[Break]:
        """What its client is held for; nothing unless it is held."""
        return self.clients.breaks_of(request.client_key) if self.holds(request, now_s) else []

    def refuses_for_s(self, request: Request, now_s: float) -> float:
        """How long its input will still be refused, in s; 0 when it is not."""
        if not request.input_key or not self.inputs:
            return 0.0
        return self.inputs.refused_for_s(request.input_key, now_s)

    def forbids_retry(self, request: Request, now_s: float) -> str:
        """Why it must not touch another worker; empty when nothing is against it."""
        if request.broke >= fixed.POISON_WORKERS or self.refuses_for_s(request, now_s) > 0:
            return "its input broke two workers"
        return "its client is held to one worker" if self.holds(request, now_s) else ""

    def holds(self, request: Request, now_s: float) -> bool:
        """Whether its client is held to one worker."""
        return bool(self.clients.held) and self.clients.holds(request.client_key, now_s)

    def _log(self, event: str, **facts: object) -> None:
        self._outbox.add(ev.Log("warning", event, facts))
