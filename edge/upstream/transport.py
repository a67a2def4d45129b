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

CLOSED = "closed while connecting"
"""A worker, or whatever listens there, took the connection and ended it before a word was said."""

_CONNECTING = re.compile(r"failed to connect to all addresses; last error: [A-Z_]+: [^ ]+: (.+)")
_WHILE_CONNECTING = (
    (re.compile(r"Socket closed|recvmsg: ?Connection reset by peer.*"), CLOSED),
    (re.compile(r"Custom verification check .*Hostname Verification.*"), "its certificate is for another name"),
    (
        re.compile(r".*CERTIFICATE_VERIFY_FAILED: (?:unable to get local issuer|self.signed) certificate.*"),
        "its certificate is not signed by an authority in worker_tls.ca",
    ),
    (re.compile(r".*CERTIFICATE_VERIFY_FAILED: certificate has expired.*"), "its certificate has expired"),
    (re.compile(r".*CERTIFICATE_VERIFY_FAILED: certificate is not yet valid.*"), "its certificate is not valid yet"),
    (re.compile(r".*CERTIFICATE_VERIFY_FAILED: unsupported certificate purpose.*"), "its certificate is no server's"),
    (re.compile(r".*OPENSSL_internal:(?:WRONG_VERSION_NUMBER|HTTP_REQUEST).*"), "it speaks no TLS"),
    (re.compile(r".*handshake failed .*OPENSSL_internal:([A-Z0-9_]+).*"), r"TLS handshake: \1"),
)
"""Of a connection that was not made: gRPC's words, and what they come to."""

_FORMS = (
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
    if match := _CONNECTING.fullmatch(text):
        return printable(_why_not_connected(match[1]), MAX_CHARS)
    for form in _FORMS:
        if match := form.fullmatch(text):
            system = _SYSTEM_CALL.fullmatch(match[1])
            return printable(system[1] if system else match[1], MAX_CHARS)
    return ""


def _why_not_connected(text: str) -> str:
    for form, words in _WHILE_CONNECTING:
        if match := form.fullmatch(text):
            return match.expand(words)
    return text
