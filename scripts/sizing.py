"""The numbers in docs/sizing.md, computed; `--check` only compares, `--simulate` holds the waits against the real pool.

Exit status 1 with --check: the page is stale; with --simulate: the arithmetic and the pool disagree.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "sizing.md"
sys.path.insert(0, str(ROOT))

from edge.pool import config as pool  # noqa: E402  (the tree first)
from hairmesh import wire  # noqa: E402
from scripts import sizing_arithmetic as sums  # noqa: E402
from scripts.sizing_arithmetic import DISPATCH, HEALTH, LIMITS, STATIC, Cell, Site, given  # noqa: E402
from tests.sim.waiting import waits  # noqa: E402


def number(value: float) -> str:
    """For people: two digits that count, or whole."""
    if value >= 10:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.2g}"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In Markdown."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


SITES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
WORKERS = (1, 2, 4, 8, 16, 64, 256, 1000, 2000)


NEARLY_ALL = 0.995
"""More would be rounded to all of them."""


def waiting_table() -> str:
    """How long calls wait, by the number of workers."""
    call_s = given("measure_s")
    rows = []
    for workers in WORKERS:
        calls_per_s = given("busy_share") * workers / call_s
        late_s = sums.wait_s(workers, calls_per_s, call_s)
        most = sums.calls_within(workers, call_s, given("patience_s"))
        busy = most * call_s / workers
        rows.append(
            [
                f"{workers:,}",
                number(calls_per_s),
                f"{late_s:.1f} s" if late_s >= 0.05 else "0 s",
                number(most),
                f"{busy:.0%}" if busy < NEARLY_ALL else "nearly all",
            ]
        )
    headings = ["workers", f"measurements per s that keep {given('busy_share'):.0%} busy", "19 of 20 wait less than"]
    at_most = [f"most per s for {given('patience_s'):g} s", "busy then"]
    return table([*headings, *at_most], rows)


def calls_table() -> str:
    """What each call is to an edge, its network and the store."""
    rows = [
        [call.name, str(call.pictures), *map(number, (call.in_mb, call.out_mb, call.edge_ms, call.disk_gb))]
        for call in sums.CALLS_WITH_PICTURES
    ]
    kept = f"GB kept for 1,000 a day ({STATIC.max_age_hours:g} h)"
    return table(["call", "pictures", "MB into the edge", "MB out of it", "ms of a core there", kept], rows)


def sites_table() -> str:
    """Whole services."""
    rows = []
    for measures in SITES:
        site = Site(measures)
        per_s = f"{number(site.measures_per_s)} + {number(site.styles_per_s)}"
        sizes = (f"{site.workers:,}", f"{site.edges:,}", f"{site.cells:,}", number(site.mb_s), number(site.disk_gb))
        rows.append([f"{measures:,}", per_s, *sizes])
    headings = ["measurements a day", "calls per s at the busiest", "workers", "edges", "cells", "MB/s out of edges"]
    return table([*headings, "GB of pictures"], rows)


def cells_table() -> str:
    """What to set, and what an edge takes."""
    rows = []
    for workers, edges in ((4, 2), (30, 2), (100, 3), (300, 4), (1000, 10)):
        cell = Cell(workers, edges)
        share, mb = f"{cell.watch_core:.3f}", number(cell.edge_mb)
        sizes = (f"{cell.max_in_flight:,}", mb, share, number(cell.checks_per_s), f"{workers * edges:,}")
        rows.append([f"{workers:,}", str(edges), *sizes])
    headings = ["workers", "edges", "`max_in_flight` of each", "MB of memory of each, at most", "cores of each, idle"]
    return table([*headings, "`Check` per s, all together", "connections"], rows)


def given_table() -> str:
    """What all of it follows from."""
    rows = [[each.what, f"{each.value:g} {each.unit}".rstrip(), each.source] for each in sums.GIVEN.values()]
    return table(["what", "here", "from"], rows)


def deployed(name: str, pattern: str) -> int:
    """The one number in a file of deploy/nginx."""
    (found,) = set(re.findall(pattern, (ROOT / "deploy" / "nginx" / name).read_text()))
    return int(found)


def kernel(name: str) -> int:
    """A setting for the kernel of the proxy's host."""
    return deployed("hairmesh-sysctl.conf", rf"net\.ipv4\.{name} = (\d+)")


FIRST_RETRY_S = 0.2
"""When the kernel first sends anew what is not acknowledged; each pause after it is twice as long."""
TABLES = {
    "waiting": waiting_table,
    "calls": calls_table,
    "sites": sites_table,
    "cells": cells_table,
    "given": given_table,
}
NUMBERS = {
    **{
        name: f"{given(name):g}"
        for name in ("measure_s", "busy_share", "patience_s", "edge_core", "line_mb_s", "again", "styles_share")
    },
    "growth_of_time": f"{sums.growth_of_time():.0%}",
    "growth_of_disk": f"{sums.growth_of_disk():.0%}",
    "max_in_flight": f"{DISPATCH.max_in_flight}",
    "slow_inside": f"{DISPATCH.max_in_flight * pool.SLOW_SHARE_INSIDE:g}",
    "max_connections": f"{LIMITS.max_connections:,}",
    "interval_seconds": f"{HEALTH.interval_seconds:g}",
    "ping_s": f"{wire.PING_INTERVAL_MS / 1000:g}",
    "silence_s": f"{(wire.PING_INTERVAL_MS + wire.PING_TIMEOUT_MS) / 1000:g}",
    "local_mb": f"{given('local_mb'):g}",
    "cell_edges": f"{given('cell_edges'):g}",
    "cell_workers": f"{given('cell_workers'):,.0f}",
    "connect_s": f"{deployed('hairmesh.conf', r'proxy_connect_timeout ([0-9]+)s;')}",
    "avoided_s": f"{deployed('hairmesh.conf', r'server 10[^;]* fail_timeout=([0-9]+)s;')}",
    "silent_s": f"{kernel('tcp_keepalive_time') + kernel('tcp_keepalive_intvl') * kernel('tcp_keepalive_probes')}",
    "in_vain_s": f"{FIRST_RETRY_S * (2 ** (kernel('tcp_retries2') + 1) - 1):.0f}",
}


def rewritten(page: str) -> str:
    """The page with the numbers of now between its marks. Raises `ValueError` where a mark is missing or unknown."""
    for name, make in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"{PAGE.name}: not exactly one {begin.strip()} … {end.strip()}")
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{make()}\n{end}{rest.partition(end)[2]}"
    for name in re.findall(r"<!-- =(\w+) -->", page):
        page = re.sub(rf"(<!-- ={name} -->).*?(<!-- / -->)", rf"\g<1>{NUMBERS[name]}\g<2>", page)
    return page


# The simulator

CALLS = 100_000
"""So that chance leaves the mean wait within some 5 %."""
SIMULATED = (2, 8, 64, 1000)
TOLERANCE, TOLERANCE_S = 0.15, 0.01


def disagreements(workers: int, calls: int = CALLS) -> list[str]:
    """Where the real pool, on virtual time, waits otherwise than the formula says."""
    call_s = given("measure_s")
    calls_per_s = given("busy_share") * workers / call_s
    seen = waits(workers, calls_per_s, call_s, calls=calls)
    found = [] if seen.refused == 0 else [f"{workers} workers: {seen.refused} calls were refused"]
    for name, formula_s, simulated_s in (
        ("mean", sums.mean_wait_s(workers, calls_per_s, call_s), seen.mean_s),
        ("19 of 20", sums.wait_s(workers, calls_per_s, call_s), seen.quantile_s(0.95)),
    ):
        if not math.isclose(formula_s, simulated_s, rel_tol=TOLERANCE, abs_tol=TOLERANCE_S):
            found.append(f"{workers} workers, {name}: {formula_s:.3f} s by formula, {simulated_s:.3f} s in the pool")
    return found


def impatience(site: Site) -> list[str]:
    """Where measurements of a site wait longer in the real pool than promised, growth running beside them."""
    seen = waits(
        site.workers,
        site.measures_per_s,
        given("measure_s"),
        calls=CALLS // 5,
        slow_per_s=site.styles_per_s,
        slow_call_s=given("styles_s"),
    )
    waited_s = seen.quantile_s(0.95)
    name = f"{site.measures:,} measurements a day on {site.workers:,} workers"
    return [f"{name}: 19 of 20 wait less than {waited_s:.1f} s"] if waited_s > given("patience_s") else []


def main() -> None:
    """Write the page, or compare, or simulate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--simulate", action="store_true")
    arguments = parser.parse_args()
    if arguments.simulate:
        found = [line for workers in SIMULATED for line in disagreements(workers)]
        found += [line for measures in SITES for line in impatience(Site(measures))]
        sys.exit("\n".join(found) or 0)
    page = PAGE.read_text()
    if not arguments.check:
        PAGE.write_text(rewritten(page))
    elif rewritten(page) != page:
        sys.exit(f"{PAGE.name} is stale: run scripts/sizing.py")


if __name__ == "__main__":
    main()
