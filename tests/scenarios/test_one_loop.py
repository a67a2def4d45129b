"""Scenario 23: two event loops on the same channels cannot happen, because nothing of the edge makes a second one."""

from __future__ import annotations

import ast
import asyncio
import threading
from pathlib import Path

import pytest

from edge.pool import events as ev
from edge.pool.manager import Pool
from tests.edge.upstream.conftest import MakeWorkers
from tests.scenarios.conftest import MakeEdge

EDGE = Path(__file__).resolve().parents[2] / "edge"
MAKES_LOOPS = {"new_event_loop", "Runner", "run_coroutine_threadsafe", "call_soon_threadsafe", "ProcessPoolExecutor"}
LEAVES_THE_LOOP = {"to_thread", "run_in_executor", "ThreadPoolExecutor", "Thread", *MAKES_LOOPS}
MAKES_PROCESSES = {"multiprocessing", "concurrent.futures.process"}


def names_used(path: Path) -> set[str]:
    """Every name and attribute in a file, and every module that it imports."""
    used = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            used.add(node.attr)
            if isinstance(node.value, ast.Name):
                used.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Import):
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            used |= {str(node.module), *(alias.name for alias in node.names)}
    return used


def test_23_nothing_of_the_edge_makes_a_second_loop_or_another_process() -> None:
    found = {
        str(path.relative_to(EDGE)): names_used(path) & {*MAKES_LOOPS, *MAKES_PROCESSES, "asyncio.run", "os.fork"}
        for path in EDGE.rglob("*.py")
    }
    thread_safe = {"threads.py", "request_log.py", "local/thread.py"}  # their threads hand back results, own no channel
    assert {name: used for name, used in found.items() if used and name not in thread_safe} == {}


@pytest.mark.parametrize("path", sorted((EDGE / "upstream").glob("*.py")), ids=lambda path: path.stem)
def test_23_who_owns_channels_never_leaves_the_loop(path: Path) -> None:
    assert names_used(path) & LEAVES_THE_LOOP == set()


async def test_23_every_event_reaches_the_pool_from_one_thread(
    workers: MakeWorkers, edge: MakeEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard_on: set[int] = set()
    handle = Pool.handle

    def noting(pool: Pool, event: ev.Event) -> list[ev.Decision]:
        heard_on.add(threading.get_ident())
        return handle(pool, event)

    monkeypatch.setattr(Pool, "handle", noting)
    pool = await workers(2)
    rest, _ = await edge(*(worker.address for worker in pool))
    pool[0].tell(serving=False, cause="disk")
    await asyncio.gather(*(rest.measure() for _ in range(20)), *(rest.client.get("/monitor") for _ in range(20)))
    assert heard_on == {threading.get_ident()}
