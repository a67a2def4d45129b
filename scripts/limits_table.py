"""The table in docs/limits.md: every limit of the edge, with its value out of the code; `--check` only compares.

Exit status 1 with --check: the page is stale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from python_multipart import multipart

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "limits.md"
sys.path.insert(0, str(ROOT))

from edge import command, exchange, messages, monitor, peers, photo, upload  # noqa: E402  (the tree first)
from edge.errors import TABLE, ApiError  # noqa: E402
from edge.pool.config import DispatchConfig  # noqa: E402
from edge.server import connection, crowd, door  # noqa: E402
from edge.settings import Limits, LocalVision, Static  # noqa: E402
from hairmesh import wire  # noqa: E402
from vision import decode, decode_child, jpeg, raster  # noqa: E402

LIMITS, DISPATCH, LOCAL, STATIC = Limits(), DispatchConfig(), LocalVision(), Static()
AFTER_AN_ATTEMPT = "It has failed: another worker may get a second one."
BEGIN, END = "<!-- limits -->\n", "\n<!-- end of limits -->"


@dataclass(frozen=True, slots=True)
class Row:
    """One limit."""

    what: str
    value: str
    key: str = ""
    """Of the configuration, where it can be set."""
    reason: str = ""
    """What `data.reason` says beyond it, where that is an answer under `/api/`."""
    beyond: str = ""
    """What else happens."""


def size(count: int) -> str:
    """Bytes for people."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit and count % (unit // 4) == 0:
            return f"{count / unit:g} {name}"
    return f"{count:,} bytes"


def seconds(value: float) -> str:
    """A time for people."""
    return f"{value:g} s"


TABLES: Mapping[str, Sequence[Row]] = {
    "Connections": (
        Row(
            "open at once",
            f"{LIMITS.max_connections:,} and {crowd.RESERVED} more",
            "limits.max_connections",
            beyond="The one that has waited the longest for a request is closed; where none waits, one that has its "
            "refusal, then the one that takes its answer the most slowly, then the one whose request came last. A new "
            "one always comes in: it may be one of alerting.",
        ),
        Row(
            "requests under `/api/` at once",
            f"{LIMITS.max_connections:,}",
            "limits.max_connections",
            "BUSY",
            "Everything outside `/api/` is still answered.",
        ),
        Row(
            "requests at once on one",
            "1",
            beyond=f"What comes behind one before its answer is out is dropped, up to {size(exchange.LINGER_BYTES)};"
            " after the answer it is closed.",
        ),
        Row("TLS agreed on, for HTTPS", seconds(door.HANDSHAKE_S), beyond="It is closed."),
        Row("without a request since it was opened", seconds(connection.HEAD_TIMEOUT_S), beyond="It is closed."),
        Row("kept alive after an answer", seconds(command.KEEP_ALIVE_S), beyond="It is closed."),
        Row(
            "an answer that the client does not take",
            f"{size(connection.NOT_READING_BYTES)} in {seconds(connection.NOT_READING_S)} at least",
            beyond="It is closed.",
        ),
        Row(
            "answers that clients have not taken, together",
            size(LIMITS.max_sending_bytes),
            "limits.max_sending_bytes",
            beyond="The connection that takes its own the most slowly is closed. What the system's buffers took does "
            "not count, nor up to 80 KiB of each connection.",
        ),
    ),
    "Before the body": (
        Row("request line and headers", size(connection.MAX_HEAD_BYTES), "", "HEAD_TOO_LARGE", "Then it is closed."),
        Row("number of headers", f"{connection.MAX_HEADERS}", "", "HEAD_TOO_LARGE", "Then it is closed."),
        Row(
            "for all of them to arrive",
            seconds(connection.HEAD_TIMEOUT_S),
            "",
            "HEAD_LATE",
            "However steadily something comes. Then it is closed.",
        ),
        Row("semicolons in `Content-Type`", f"{upload.MAX_SEMICOLONS}", "", "UNSUPPORTED_MEDIA_TYPE"),
        Row(
            "of `Accept` and `Accept-Language`",
            f"{messages.MAX_HEADER_CHARACTERS:,} characters",
            beyond="What stands behind them is not read.",
        ),
        Row(
            "addresses in `X-Forwarded-For`",
            f"{peers.MAX_HOPS}",
            beyond="From the right; those before them are not read.",
        ),
        Row(
            "patience in `X-Request-Timeout-Ms`",
            seconds(exchange.MAX_PATIENCE_MS / 1000),
            "",
            "INVALID_PARAMETER",
        ),
    ),
    "The body": (
        Row("as sent, all of it", size(LIMITS.max_body_bytes), "limits.max_body_bytes", "BODY_TOO_LARGE"),
        Row(
            "of a refused one, taken and dropped",
            f"{size(exchange.LINGER_BYTES)}, {seconds(exchange.LINGER_S)}",
            beyond="So that a client that sends before it reads sees its refusal. Then the connection is closed. "
            "Of one that no route wants, as many bytes.",
        ),
        Row(
            "speed",
            f"{size(int(upload.BODY_MIN_BYTES_PER_S))}/s on average, after {seconds(upload.BODY_GRACE_S)} of grace",
            "",
            "BODY_INCOMPLETE",
        ),
        Row(
            "of all requests together, while they arrive",
            size(LIMITS.max_uploading_bytes),
            "limits.max_uploading_bytes",
            "BUSY",
            "Bytes that came count, not those that were announced.",
        ),
        Row(
            "what chunks have around them",
            f"{size(connection.MAX_FRAMING_BYTES)}, and as much again as the body",
            "",
            "BAD_REQUEST",
            "Trailers count. Then the connection is closed.",
        ),
        Row("parts of a form", f"{upload.MAX_PARTS}", "", "BAD_MULTIPART"),
        Row(
            "headers of a part",
            f"{multipart.DEFAULT_MAX_HEADER_COUNT}, each of {multipart.DEFAULT_MAX_HEADER_SIZE:,} bytes",
            "",
            "BAD_MULTIPART",
        ),
        Row("blanks behind a boundary", f"{upload.MAX_PADDING}", "", "BAD_MULTIPART", "Before it is parsed."),
        Row("semicolons in the disposition of a part", f"{upload.MAX_SEMICOLONS}", "", "BAD_MULTIPART"),
        Row("keys of a JSON object", f"{upload.MAX_PARTS}", "", "BAD_JSON"),
        Row(
            "commas and opening brackets of a JSON body",
            f"{upload.MAX_VALUES:,}",
            "",
            "BAD_JSON",
            "Before it is parsed.",
        ),
        Row("a parameter in a form", size(upload.MAX_FIELD_BYTES), "", "INVALID_PARAMETER"),
        Row(
            "of `/monitor/fault`",
            f"{size(monitor.MAX_SMALL_BODY_BYTES)}, {seconds(monitor.BODY_TIMEOUT_S)}",
            beyond="400, and nothing changes.",
        ),
    ),
    "The photo": (
        Row("short side at least", f"{photo.MIN_SIDE_PX} px", "", "IMAGE_TOO_SMALL"),
        Row(
            "pixels",
            f"{LIMITS.max_pixels:,}",
            "limits.max_pixels",
            "IMAGE_TOO_MANY_PIXELS",
            "By the header, undecoded.",
        ),
        Row(
            "formats",
            "JPEG, PNG, WebP and " + ", ".join(sorted(LIMITS.rare_formats)),
            "limits.rare_formats",
            "UNSUPPORTED_FORMAT",
            "Nor is a JPEG with arithmetic coding read, which hardly a viewer shows.",
        ),
        Row(
            "scans of a JPEG",
            f"{jpeg.MAX_SCANS}",
            "",
            "DAMAGED_IMAGE",
            "By its markers, undecoded: each goes through all pixels again. Cameras write 1 or 10.",
        ),
        Row("segments of a JPEG, before its pixels", f"{jpeg.MAX_SEGMENTS:,}", "", "DAMAGED_IMAGE"),
        Row(
            "chunks of a PNG",
            f"{raster.MAX_CHUNKS:,}, one of them a profile",
            "",
            "DAMAGED_IMAGE",
            "Seen on the worker.",
        ),
        Row(
            f"decoding of a rare format, or of a WebP above {decode.WEBP_HERE_PIXELS:,} pixels",
            f"{size(decode_child.MEMORY_BYTES)} of memory, {seconds(decode.CHILD_TIMEOUT_S)}",
            "",
            "DAMAGED_IMAGE",
            "In a process of its own, on the worker.",
        ),
        Row("long side of pictures in answers", f"{LIMITS.max_output_side:,} px", "limits.max_output_side"),
        Row("one message between edge and worker", size(wire.MAX_MESSAGE_BYTES)),
    ),
    "The queue": (
        Row(
            "calls that run or wait for a worker",
            f"{DISPATCH.max_in_flight}",
            "dispatch.max_in_flight",
            beyond="Others wait outside.",
        ),
        Row(
            "bodies of those outside, together",
            size(DISPATCH.max_queued_bytes),
            "dispatch.max_queued_bytes",
            "BUSY",
        ),
        Row("waiting outside", seconds(DISPATCH.max_queue_wait_seconds), "dispatch.max_queue_wait_seconds", "BUSY"),
        Row("waiting for a worker", seconds(DISPATCH.queue_wait_seconds), "dispatch.queue_wait_seconds", "BUSY"),
        Row(
            "one attempt of a fast call",
            seconds(DISPATCH.request_timeout_seconds),
            "dispatch.request_timeout_seconds",
            beyond=AFTER_AN_ATTEMPT,
        ),
        Row(
            "one attempt of a slow call",
            seconds(DISPATCH.growth_timeout_seconds),
            "dispatch.growth_timeout_seconds",
            beyond=AFTER_AN_ATTEMPT,
        ),
        Row("calls in line for the edge's own vision", f"{LOCAL.max_waiting}", "local_vision.max_waiting", "BUSY"),
        Row("line and computing there", seconds(LOCAL.timeout_seconds), "local_vision.timeout_seconds", "DEADLINE"),
        Row(
            "requests of one client", "none by default", "rate_limit", "TOO_MANY_REQUESTS", "`api_keys` have their own."
        ),
    ),
    "Pictures of answers": (
        Row(
            "all together",
            size(STATIC.max_bytes),
            "static.max_bytes",
            "STORE_FULL",
            "Once nothing is old enough to go.",
        ),
        Row("age", f"{STATIC.max_age_hours:g} h", "static.max_age_hours", beyond="They are removed: 404."),
    ),
}


def answer(reason: str) -> str:
    """What a client gets for a reason, as the table of reasons has it."""
    row = TABLE[reason]
    return f"{row.http_status}, {row.code} `{reason}`{', `Retry-After`' if ApiError(reason).retry_after_s else ''}."


def render() -> str:
    """The tables."""
    parts = []
    for title, rows in TABLES.items():
        lines = [f"### {title}", "", "| what | limit | key | beyond it |", "|---|---|---|---|"]
        for row in rows:
            beyond = " ".join(filter(None, (row.reason and answer(row.reason), row.beyond)))
            lines.append(f"| {row.what} | {row.value} | {f'`{row.key}`' if row.key else ''} | {beyond} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def rewritten(page: str) -> str:
    """The page with the tables of now between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{render()}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Write the page, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    page = PAGE.read_text()
    if not parser.parse_args().check:
        PAGE.write_text(rewritten(page))
    elif page != rewritten(page):
        raise SystemExit(f"{PAGE.relative_to(ROOT)} is stale: run scripts/limits_table.py")


if __name__ == "__main__":
    main()
