"""Who may call: the password in the metadata, compared in constant time as bytes.

Wrong ones are told of, not slowed down: callers cannot be told apart by their addresses (all edges may come from one,
with a stranger beside them), and whoever guesses from there must not be able to shut out the edges. So a password has
to be one that cannot be guessed, and one that looks short enough to be is told of as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, TypeVar

import grpc
import structlog
from grpc import aio
from pydantic import SecretStr

from hairmesh import flood
from hairmesh.flood import Flood, Later
from hairmesh.secret import is_one_of
from hairmesh.wire import TOKEN_KEY, WorkerReason
from worker.bare_checks import BareChecks
from worker.connections import address_of
from worker.refusals import Refusal, to_status
from worker.tally import Tally

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")

Metadata = Sequence[tuple[str, str | bytes]]

log = structlog.stdlib.get_logger("worker.passwords")

HEALTH_CHECK = "/grpc.health.v1.Health/Check"
"""The one method that may be called without a password for some of its names: the health servicer decides."""

LONG_ENOUGH = 16
"""Characters of a password that nobody guesses, if they are random: as many as admin tokens must have."""


class Credential(Enum):
    """What a caller showed."""

    NONE = "none"
    WRONG = "wrong"
    GOOD = "good"


class Passwords:
    """The accepted passwords; replaced as a whole when the configuration changes."""

    def __init__(self, accepted: Sequence[SecretStr]) -> None:
        self._accepted: tuple[bytes, ...] = ()
        self.replace(accepted)

    def replace(self, accepted: Sequence[SecretStr]) -> None:
        """From now on these, never none. One assignment: callers in other threads see the old or the new ones."""
        if not accepted:
            raise ValueError("a worker without a password would accept nobody")
        self._accepted = tuple(password.get_secret_value().encode() for password in accepted)
        if short := sum(len(password) < LONG_ENOUGH for password in self._accepted):
            log.warning("passwords_short", count=short, advice=f"at least {LONG_ENOUGH} random characters")

    def judge(self, metadata: Metadata) -> Credential:
        """Exactly one accepted password in `x-internal-token`; two of them are as wrong as a wrong one."""
        shown = [_bytes(value) for key, value in metadata if key == TOKEN_KEY]
        if not shown:
            return Credential.NONE
        return Credential.GOOD if len(shown) == 1 and is_one_of(shown[0], self._accepted) else Credential.WRONG

    def __repr__(self) -> str:
        """How many, never which."""
        return f"<Passwords: {len(self._accepted)}>"


class PasswordInterceptor(aio.ServerInterceptor):
    """Turns away every call without a good password, before its message is read; of a health check without one that
    message is needed, and read by `BareChecks`.

    The log is told of the first one without a password and of the first with a wrong one, then of how many there were
    of each kind and from where, once in `log_period_s`.
    """

    def __init__(
        self,
        passwords: Passwords,
        *,
        tally: Tally,
        known: Container[str],
        bare_checks: BareChecks,
        log_period_s: float,
        clock: Callable[[], float],
        later: Later = flood.later,
    ) -> None:
        """`known`: all methods that are served, as `/service/method`; other names are counted as none."""
        self._passwords = passwords
        self._tally = tally
        self._known = known
        self._bare_checks = bare_checks
        self._told = {
            credential: Flood(partial(_tell, credential), period_s=log_period_s, clock=clock, later=later)
            for credential in (Credential.NONE, Credential.WRONG)
        }

    def close(self) -> None:
        """Tell the log of what waits."""
        for told in self._told.values():
            told.close()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[RequestT, ResponseT] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[RequestT, ResponseT] | None:
        """See `grpc.aio.ServerInterceptor`."""
        credential = self._passwords.judge(tuple(handler_call_details.invocation_metadata or ()))
        if credential is Credential.GOOD:
            return await continuation(handler_call_details)
        if credential is Credential.NONE and handler_call_details.method == HEALTH_CHECK:
            handler = await continuation(handler_call_details)
            return handler and self._bare_checks.guard(
                handler, partial(self._note, method=HEALTH_CHECK, credential=credential)
            )
        # A stream in both directions fits every kind of call, and does not wait for the caller's message.
        return grpc.stream_stream_rpc_method_handler(
            partial(self._turn_away, method=handler_call_details.method, credential=credential)
        )

    async def _turn_away(
        self, _requests: object, context: aio.ServicerContext[Any, Any], *, method: str, credential: Credential
    ) -> None:
        self._note(context, method=method, credential=credential)
        await context.abort_with_status(to_status(Refusal(WorkerReason.WRONG_PASSWORD)))

    def _note(self, context: aio.ServicerContext[Any, Any], *, method: str, credential: Credential) -> None:
        named = method if method in self._known else ""
        self._tally.turned_away[named] += 1
        self._told[credential].note(methods=named, peers=address_of(context.peer()))


def _tell(credential: Credential, calls: int, seen: Mapping[str, list[str]]) -> None:
    log.warning("turned_away", password=credential.value, calls=calls, **seen)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
