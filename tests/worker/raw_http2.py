"""A gRPC call written by hand, for what no gRPC client does: header values of any bytes, and to take no answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING = 0, 1, 3, 4, 6
_ACK, _END_STREAM, _END_HEADERS = 1, 1, 4


async def call(address: str, method: str, headers: Mapping[str, bytes], message: bytes, *, keep_back: int = 0) -> bytes:
    """All that the server sends back until it ends the call: frames, header blocks uncompressed where it pleases.

    Answers pings, and takes no more than the first 64 KiB of an answer: raises `IncompleteReadError` when the server
    shuts the connection. The last `keep_back` bytes of the message are never sent.
    """
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    everything = {
        ":method": b"POST",
        ":scheme": b"http",
        ":path": method.encode(),
        ":authority": b"localhost",
        "content-type": b"application/grpc",
        "te": b"trailers",
        **headers,
    }
    block = b"".join(b"\0" + _text(name.encode()) + _text(value) for name, value in everything.items())
    body = b"\0" + len(message).to_bytes(4, "big") + message
    writer.write(_PREFACE + _frame(_SETTINGS, 0, 0) + _frame(_HEADERS, _END_HEADERS, 1, block))
    writer.write(_frame(_DATA, 0 if keep_back else _END_STREAM, 1, body[: len(body) - keep_back]))
    received = b""
    try:
        while True:
            head = await reader.readexactly(9)
            payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
            received += head + payload
            if head[3] == _PING and not head[4] & _ACK:
                writer.write(_frame(_PING, _ACK, 0, payload))
            ours = int.from_bytes(head[5:], "big") == 1
            if ours and (head[3] == _RST_STREAM or (head[3] in {_DATA, _HEADERS} and head[4] & _END_STREAM)):
                return received
    finally:
        writer.close()


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _text(value: bytes) -> bytes:
    """A string literal of HPACK, without compression."""
    assert len(value) < 127
    return bytes([len(value)]) + value
