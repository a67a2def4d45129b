"""What gRPC itself says of an RPC that ended without the worker's own word, for logs and operators.

A killed process, a frozen one and a port where nobody listens have one status code; gRPC's text tells them apart. That
text comes from the same place as any text of the worker's, which may hold anything: so only what has one of the forms
below, known to be gRPC's own, is ever taken.
"""

from __future__ import annotations

import re

import grpc

from hairmesh.plain import printable

MAX_CHARS = 120
"""Of what is taken, at most."""

_FORMS = (
    re.compile(r"failed to connect to all addresses; last error: [A-Z_]+: [^ ]+: (.+)"),
    re.compile(r"(?:errors resolving [^ ]+:|DNS resolution failed for [^ ]+:) (.+)"),
    re.compile(r"Stream removed \((.+)\)"),
    re.compile(r"(Socket closed|ping timeout|keepalive watchdog timeout|Broken pipe|Connection reset by peer)"),
    re.compile(r"((?:recvmsg|sendmsg): ?.+)"),
    re.compile(r"((?:Received )?RST_STREAM with error code [0-9]+)"),
    re.compile(r"(Cancelling all calls)"),  # a server that ends without waiting
    re.compile(r"(?:CLIENT|SERVER): ((?:Sent|Received) message larger than max \([0-9]+ vs\. [0-9]+\))"),
)
"""Of a whole text; what is worth telling in the first group."""

_SYSTEM_CALL = re.compile(r"(?:recvmsg|sendmsg): ?(.+?)(?: \([0-9]+\))?")
"""How the system's own word of a socket is wrapped, as in `recvmsg:Connection reset by peer (104)`."""


def said(error: grpc.aio.AioRpcError) -> str:
    """The transport's reason in a few printable words; empty when it is not the transport's, or only the code again."""
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return ""
    text = printable(error.details() or "")
    for form in _FORMS:
        if match := form.fullmatch(text):
            system = _SYSTEM_CALL.fullmatch(match[1])
            return printable(system[1] if system else match[1], MAX_CHARS)
    return ""
