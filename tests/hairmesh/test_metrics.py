"""What a process shows: asked on its loop, read from anywhere; and the page that names it all."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from hairmesh import __version__, metrics
from hairmesh.histogram import Histogram
from hairmesh.metrics import Exposition, Kind, Metric, Values, table
from scripts import metrics_table
from tests.fakes.scrape import Scrape

ROWS = table(
    Metric("things_total", Kind.COUNTER, "Things.", ("kind",)),
    Metric("level", Kind.GAUGE, "A level."),
    Metric("took_seconds", Kind.HISTOGRAM, "How long.", ("kind",)),
)


def values() -> Mapping[str, Values]:
    took = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        took.add(value)
    return {"things_total": {("a",): 3, ('"b\n',): 1}, "level": {(): 2.5}, "took_seconds": {("a",): took}}


async def test_numbers_become_samples() -> None:
    found = Scrape((await Exposition("edge", ROWS, values).text()).decode())
    assert found.value("things_total", kind="a") == 3
    assert found.value("things_total", kind='"b\n') == 1
    assert found.value("level") == 2.5
    counts = [found.value("took_seconds_bucket", kind="a", le=bound) for bound in ("0.1", "1.0", "+Inf")]
    assert counts == [2, 3, 4]
    assert found.value("took_seconds_count", kind="a") == 4
    assert found.value("took_seconds_sum", kind="a") == pytest.approx(7.65)
    assert found.value("hairmesh_build_info", service="edge", version=__version__) == 1
    assert "process_resident_memory_bytes" in found.names


async def test_whoever_reads_the_loop_is_asked() -> None:
    asked_on: list[int] = []

    def noting() -> Mapping[str, Values]:
        asked_on.append(threading.get_ident())
        return values()

    exposition = Exposition("edge", ROWS, noting)
    port = exposition.serve("127.0.0.1:0")
    try:
        for _ in range(2):
            assert "things_total" in await asyncio.to_thread(read, port)
        await exposition.text()
    finally:
        await exposition.close()
    assert asked_on == [threading.get_ident()] * 3


async def test_a_loop_that_hangs_fails_the_scrape(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    patience_s = metrics.ANSWER_S
    monkeypatch.setattr(metrics, "ANSWER_S", 0.05)
    exposition = Exposition("edge", ROWS, values)
    port = exposition.serve("127.0.0.1:0")
    failed = threading.Event()

    def scrape() -> None:
        try:
            read(port)
        except HTTPError as error:
            if error.code == 503:
                failed.set()

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        assert failed.wait(100)  # and the loop does nothing meanwhile
    finally:
        await asyncio.to_thread(thread.join)
        monkeypatch.setattr(metrics, "ANSWER_S", 20 * patience_s)
        assert "level" in await asyncio.to_thread(read, port), "and when it moves again it is read again"
        await exposition.close()
    assert capfd.readouterr() == ("", ""), "standard error is for lines of JSON"


async def test_there_is_nothing_else_at_its_port() -> None:
    exposition = Exposition("edge", ROWS, values)
    port = exposition.serve("[::1]:0")
    try:
        with pytest.raises(HTTPError, match="404"):
            await asyncio.to_thread(urlopen, f"http://[::1]:{port}/", timeout=20)
    finally:
        await exposition.close()


async def test_an_address_that_is_taken_is_an_error() -> None:
    first, second = Exposition("edge", ROWS, values), Exposition("edge", ROWS, values)
    port = first.serve("127.0.0.1:0")
    try:
        with pytest.raises(OSError, match="in use"):
            second.serve(f"127.0.0.1:{port}")
    finally:
        await first.close()
        await second.close()


def read(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=100) as response:
        text: str = response.read().decode()
    return text


@pytest.mark.parametrize("rows", metrics_table.TABLES.values(), ids=list(metrics_table.TABLES))
def test_names_are_as_prometheus_wants_them(rows: Mapping[str, Metric]) -> None:
    for name, metric in rows.items():
        assert (metric.kind is Kind.COUNTER) == name.endswith("_total"), name
        a_time = name.endswith("_seconds") and not name.endswith("_timestamp_seconds")
        assert (metric.kind is Kind.HISTOGRAM) == a_time, name
        assert metric.meaning.endswith("."), name


def test_the_page_names_them_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["metrics_table.py", "--check"])
    metrics_table.main()
    page = tmp_path / "metrics.md"
    page.write_text(metrics_table.PAGE.read_text().replace("`hairmesh_pool_brake`", "`hairmesh_pool_break`"))
    monkeypatch.setattr(metrics_table, "PAGE", page)
    with pytest.raises(SystemExit, match="run scripts/metrics_table"):
        metrics_table.main()
    monkeypatch.setattr(sys, "argv", ["metrics_table.py"])
    metrics_table.main()
    assert "`hairmesh_pool_brake`" in page.read_text()
