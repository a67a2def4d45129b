"""What edge and worker keep resident, and whether it stays flat.

    python bench/memory.py [--calls N]

A real edge and a real worker with the real models. After a warm-up: one photo of 40 MP, six of 12 MP in turn, then N
measure calls of a portrait. `edge_rss_mb` and `worker_rss_mb` are the highest resident sizes seen anywhere (the
worker's decoding children are counted with it), `growth_mb` is the larger growth of the two between the first fifth
and the last fifth of the calls (medians), in MB of 10^6 bytes.

After all that, and not in these figures: `styles_rss_mb` is the worker's highest size while hair is grown to four
styles on the photo of 40 MP, `edge_local_rss_mb` the edge's once it has loaded models of its own for the first call it
answers itself.
"""

from __future__ import annotations

import argparse
import io
import statistics
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
from PIL import Image
from rich.progress import track

from bench.harness import BenchError, console, emit, table
from bench.mark_crop import resolve
from hairmesh.client.envelope import Envelope
from hairmesh.client.plain import Client
from hairmesh.stack import Stack

PERSON = "openpeople/P001"
MAX_BODY_BYTES = 2_097_152
PORTRAIT_SIDE_PX = 768
SAMPLE_S = 0.05
MB = 1e6


def portrait(side_px: int) -> bytes:
    """The studio portrait, resized to a square of `side_px`, as a JPEG within the body limit."""
    picture = Image.open(resolve(PERSON)).convert("RGB").resize((side_px, side_px), Image.Resampling.LANCZOS)
    for quality in (90, 75, 60, 45, 30, 15):
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=quality)
        if buffer.tell() < MAX_BODY_BYTES * 0.95:
            return buffer.getvalue()
    raise BenchError(f"no JPEG of {side_px} px fits into {MAX_BODY_BYTES} bytes")


class Resident:
    """Resident size of a process with its children, sampled all the time in a thread."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.peak_mb = 0.0
        self._thread.start()

    def now_mb(self) -> float:
        """The size now."""
        total = self._process.memory_info().rss
        for child in self._process.children(recursive=True):
            try:
                total += child.memory_info().rss
            except psutil.NoSuchProcess:  # it ended between the two looks
                continue
        return float(total / MB)

    def close(self) -> None:
        """Stop sampling."""
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            try:
                self.peak_mb = max(self.peak_mb, self.now_mb())
            except psutil.NoSuchProcess:
                return


def good(answer: Envelope) -> Envelope:
    """The answer; raises `BenchError` for a refusal."""
    if not answer.ok:
        raise BenchError(f"answered {answer.code} {answer.reason}")
    return answer


def peak_mb(pid: int, call: Callable[[], Envelope]) -> float:
    """Highest size of a process during a call, and right after it."""
    resident = Resident(pid)
    good(call())
    resident.close()
    return max(resident.peak_mb, resident.now_mb())


def main() -> None:
    """Start both, send, watch, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=500)
    args = parser.parse_args()
    small, twelve, forty = portrait(PORTRAIT_SIDE_PX), portrait(3464), portrait(6324)
    with tempfile.TemporaryDirectory() as name, Stack(Path(name), workers=1) as stack:
        stack.start()
        with Client(stack.url) as client:
            stack.wait_online(client, 1)
            resident = {"edge": Resident(stack.edge.pid), "worker": Resident(stack.workers[0].pid)}
            rows = []

            def note(what: str) -> None:
                rows.append([what, *(f"{each.now_mb():.0f} ({each.peak_mb:.0f})" for each in resident.values())])

            note("started")
            for _ in range(3):
                good(client.measure(small))
            note("3 portraits")
            good(client.measure(forty))
            note("40 MP")
            for _ in range(6):
                good(client.measure(twelve))
            note("12 MP x 6")
            series: dict[str, list[float]] = {who: [] for who in resident}
            for _ in track(range(args.calls), "measuring", console=console, transient=True):
                good(client.measure(small))
                for who, each in resident.items():
                    series[who].append(each.now_mb())
            note(f"{args.calls} portraits")
            for each in resident.values():
                each.close()
            styles_mb = peak_mb(stack.workers[0].pid, lambda: client.styles(forty, seed=1))
            edge_local_mb = peak_mb(stack.edge.pid, lambda: client.features(small))
    fifth = max(1, args.calls // 5)
    growth = {who: statistics.median(s[-fifth:]) - statistics.median(s[:fifth]) for who, s in series.items()}
    rows.append(["growth over the calls", *(f"{growth[who]:+.1f}" for who in resident)])
    rows.append(["styles of 40 MP", "", f"({styles_mb:.0f})"])
    rows.append(["a call of the edge's own", f"({edge_local_mb:.0f})", ""])
    table("Resident size, MB: now (highest so far)", ["after", *resident], rows)
    emit(
        {
            "edge_rss_mb": resident["edge"].peak_mb,
            "worker_rss_mb": resident["worker"].peak_mb,
            "growth_mb": max(growth.values()),
            "styles_rss_mb": styles_mb,
            "edge_local_rss_mb": edge_local_mb,
        }
    )


if __name__ == "__main__":
    main()
