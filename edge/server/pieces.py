"""Large answers over HTTPS, handed to the connection in pieces.

TLS encrypts whatever it is given at once and passes it on to the socket's buffer, of which uvloop tells nobody: an
answer in one piece looks taken while its client has read nothing. In pieces the first ones fill that buffer, and the
next wait where they are seen.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

PIECE_BYTES = 16_384
"""One record of TLS. With it a client that takes 64 KiB lets the next ones go on."""


class Pieces:
    """Of the answers of one connection."""

    def __init__(self) -> None:
        self.waiting_bytes = 0
        """Of the answer that is being sent, that no buffer has yet."""

    def of(self, app: ASGIApp) -> ASGIApp:
        """The application, whose large answers are cut."""

        async def in_pieces(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_in_pieces(message: Message) -> None:
                body = memoryview(message.get("body", b""))
                size = len(body)
                if size <= PIECE_BYTES:
                    await send(message)
                    return
                for end in range(PIECE_BYTES, size + PIECE_BYTES, PIECE_BYTES):
                    self.waiting_bytes = max(0, size - end)
                    more = end < size or message.get("more_body", False)
                    await send({**message, "body": body[end - PIECE_BYTES : end], "more_body": more})

            await app(scope, receive, send_in_pieces)

        return in_pieces
