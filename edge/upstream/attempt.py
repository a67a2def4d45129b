"""One attempt of a call on one worker: an RPC that answers once, or one that tells its progress first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import grpc
from google.protobuf.message import Message

from edge.pool.events import Code
from edge.upstream.refusal import Refusal, read
from hairmesh import wire

Metadata = tuple[tuple[str, str], ...]
Progressed = Callable[[Message], None]
"""Takes every progress message as it comes."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A worker's whole answer."""

    response: Message
    """Of a stream: its last message."""
    results: tuple[Message, ...] = ()
    """Of a stream: every message that is no progress."""


class Attempt(Protocol):
    """An RPC of either kind, bound to its channel."""

    def __call__(
        self, message: Message, *, timeout_s: float, metadata: Metadata, progressed: Progressed
    ) -> Awaitable[Reply | Refusal]:
        """Run it once."""


async def ask(
    rpc: grpc.aio.UnaryUnaryMultiCallable[Message, Message | None],
    message: Message,
    *,
    timeout_s: float,
    metadata: Metadata,
    progressed: Progressed,
) -> Reply | Refusal:
    """An RPC that answers once. What cannot be decoded is no answer: INTERNAL."""
    try:
        response = await rpc(message, timeout=timeout_s, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        return read(error, message)
    return Refusal(Code.INTERNAL) if response is None else Reply(response)


async def follow(
    rpc: grpc.aio.UnaryStreamMultiCallable[Message, Message | None],
    message: Message,
    *,
    timeout_s: float,
    metadata: Metadata,
    progressed: Progressed,
) -> Reply | Refusal:
    """An RPC that streams: progress as it comes, the rest at its end.

    A damaged message, or an end without the summary, is no answer: INTERNAL. However it is left, the RPC is over.
    """
    stream = rpc(message, timeout=timeout_s, metadata=metadata)
    results: list[Message] = []
    try:
        async for part in stream:
            if part is None:
                return Refusal(Code.INTERNAL)
            if part.WhichOneof("event") == "progress":
                progressed(part)
            else:
                results.append(part)
    except grpc.aio.AioRpcError as error:
        return read(error, message)
    finally:
        stream.cancel()  # nothing to do for one that has ended
    if not results or results[-1].WhichOneof("event") != "summary":
        return Refusal(Code.INTERNAL)
    return Reply(results[-1], tuple(results))


def call_metadata(token: tuple[str, str], request_id: str, call_id: str, traceparent: str) -> Metadata:
    """What goes with every attempt."""
    return (token, (wire.REQUEST_ID_KEY, request_id), (wire.CALL_ID_KEY, call_id), (wire.TRACE_KEY, traceparent))
