"""The operators' handbook: every line that can run here runs, and what it names is what there is."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import shutil
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from edge.reload import TAKES_EFFECT
from edge.words import GROWN_REASONS
from hairmesh.client import MEASURE_ROUTE
from hairmesh.stack import write_private
from tests.e2e.breakable_worker import photo
from tests.e2e.service import Record, Service, Worker
from worker import settings as worker_settings
from worker.command import EXIT_BAD_CONFIGURATION, EXIT_NOT_NOW
from worker.server import EXIT_ACCELERATOR_LOST, EXIT_BROKEN

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
HANDBOOK = (DOCS / "operations.md").read_text()
BIN = Path(sys.executable).parent
EXAMPLE_WORKER = "10.0.0.11:28187"
ADMIN_TOKEN = "SENTINEL-admin-token"
NEW_PASSWORD = "the-second-password"

Events = Mapping[str, set[str]]
"""By name: the fields."""

# What every line has, or every line of a request.
COMMON = {"event", "service", "level", "timestamp", "request_id", "trace_id", "exception"}
_LOGGER = re.compile(r"_?(log|note|say\w*|level|Log|info|warning|error|exception|debug)")
_EVENT = re.compile(r"[a-z]+(_[a-z]+)*")
_LEVELS = {"debug", "info", "warning", "error"}


def blocks(language: str, page: str = HANDBOOK) -> list[str]:
    """The fenced blocks of that language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    """Cells of the table below a heading, without its head."""
    section = re.split(r"^#+ ", HANDBOOK.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(cell: str) -> set[str]:
    """What stands in backquotes."""
    return set(re.findall(r"`([^`]+)`", cell))


def documented(*headings: str) -> Events:
    """Every event in the tables below these headings."""
    return {words(row[0]).pop(): words(row[1]) for heading in headings for row in rows(heading)}


def logged(folder: str) -> tuple[Events, Events]:
    """By event that code below `folder` logs: fields it certainly has, and every name in the package that logs it."""
    certain: dict[str, set[str]] = defaultdict(set)
    near: dict[str, set[str]] = defaultdict(set)
    trees = {path: ast.parse(path.read_text()) for path in (ROOT / folder).rglob("*.py")}
    names: dict[Path, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        for each in ast.walk(tree):
            name = each.arg if isinstance(each, ast.keyword) else each.value if isinstance(each, ast.Constant) else None
            names[path.parent] |= {name} if isinstance(name, str) else set()
    for path, tree in trees.items():
        for function in (each for each in ast.walk(tree) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))):
            local = _dicts(function)
            for event, call in _log_calls(function):
                certain[event] |= {each.arg for each in call.keywords if each.arg} - {"exc_info"}
                for facts in (*call.args, *(each.value for each in call.keywords if each.arg is None)):
                    certain[event] |= _keys(facts) | local.get(getattr(facts, "id", ""), set())
                near[event] |= names[path.parent]
    return certain, near


def _dicts(function: ast.AST) -> dict[str, set[str]]:
    """By variable: the keys of what is written out there."""
    found = {}
    for each in ast.walk(function):
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None:
            target = each.targets[0] if isinstance(each, ast.Assign) else each.target
            if isinstance(target, ast.Name):
                found[target.id] = _keys(each.value)
    return found


def _keys(value: ast.expr) -> set[str]:
    keys = value.keys if isinstance(value, ast.Dict) else []
    return {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def _log_calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Calls with an event's name among their arguments, or in the variable that is."""
    for node in ast.walk(tree):
        named: list[ast.expr] = []
        call = ast.Call(ast.Name(""), [], [])  # of whose fields nothing is known
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "event_name":
            named = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
        elif isinstance(node, ast.Call) and _LOGGER.fullmatch(_name_of(node.func)):
            named, call = node.args, node
        for each in named:
            text = each.value if isinstance(each, ast.Constant) else None
            if isinstance(text, str) and _EVENT.fullmatch(text) and text not in _LEVELS:
                yield text, call


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.IfExp):  # (log.info if … else log.warning)("event")
        function = function.body
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


TABLES = {"edge": documented("The pool", "The edge"), "worker": documented("The worker")}


@pytest.mark.parametrize("process", ["edge", "worker"])
def test_every_event_that_is_logged_stands_in_the_handbook(process: str) -> None:
    table, (certain, near) = TABLES[process], logged(process)
    assert set(certain) == set(table)
    for event, fields in certain.items():
        assert fields <= table[event], event
        assert table[event] <= near[event], event


def test_keys_that_are_live_are_those_of_the_code() -> None:
    (of_edge, of_worker) = rows("What lives, what waits for a restart")
    for effect, cell in zip(("live", "restart"), of_edge[1:], strict=True):
        assert words(cell) == {key for key, takes in TAKES_EFFECT.items() if takes == effect}
    assert words(of_worker[1]) == {"accept_passwords"} < set(worker_settings.Settings.model_fields)


def test_why_there_is_no_grown_picture_is_told_reason_by_reason() -> None:
    assert [words(row[0]) for row in rows("Why is there no grown picture?")] == [{each} for each in GROWN_REASONS]


def test_exit_statuses_of_a_worker_are_those_of_the_code() -> None:
    told: dict[str, set[str]] = defaultdict(set)
    program = ""
    for first, status, *_ in rows("Exit status"):
        program = first or program
        told[program] |= set(status.split(", "))
    ends = {0, EXIT_BROKEN, EXIT_BAD_CONFIGURATION, EXIT_NOT_NOW, EXIT_ACCELERATOR_LOST}
    signals = {128 + signal.SIGINT, 128 + signal.SIGTERM}
    assert told["`hairmesh-worker`"] == {str(int(status)) for status in ends | signals}


@pytest.mark.parametrize("page", sorted([*ROOT.glob("README*.md"), *DOCS.glob("*.md")]), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        led_to = page.parent / name if name else page
        assert led_to.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", led_to.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, target


def test_what_takes_a_worker_out_for_an_exercise_is_accepted() -> None:
    (block,) = blocks("env")
    environment = dict(line.split("=") for line in block.splitlines())
    health = worker_settings.parse('{"accept_passwords": ["secret"]}', environment, origin="test").health
    assert health.resume_free_gb >= health.min_free_gb > 100_000


def test_example_of_an_ejection_is_of_events_that_there_are() -> None:
    (example,) = blocks("json")
    for line in example.splitlines():
        record = json.loads(line)
        assert set(record) - COMMON <= TABLES["edge"][record["event"]]


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    service = Service(tmp_path / "service")
    for _ in range(3):
        service.add_worker(config={"drain_delay_seconds": 0})
    try:
        await service.start(admin_tokens=[ADMIN_TOKEN], health_check={"interval_seconds": 0.5, "cooldown_seconds": 1})
        yield service
    finally:
        await service.stop()


class Configuration:
    """A configuration file that is changed while its process runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._values: dict[str, Any] = json.loads(path.read_text())

    def change(self, **values: object) -> None:
        self._values |= values
        write_private(self.path, json.dumps(self._values))


async def lose_a_worker(service: Service, request_id: str) -> Worker:
    """One is killed in the middle of a call, and started again."""
    call = asyncio.create_task(
        service.client.post(
            MEASURE_ROUTE,
            files={"image": ("p.jpg", photo(seconds=5), "image/jpeg")},
            headers={"X-Request-ID": request_id},
        )
    )
    answer = await service.until(
        "/admin/pool", lambda answer: any(worker["stage"] for worker in answer.json()["workers"])
    )
    busy = next(each["address"] for each in answer.json()["workers"] if each["stage"])
    worker = next(each for each in service.workers if each.address == busy)
    await worker.end()
    await service.edge.event("attempt_failed", worker=busy)
    assert (await call).json()["code"] == 0
    await worker.start()
    await service.until_online(3)
    return worker


async def change_configurations(service: Service, lost: Worker) -> str:
    """A broken file, a worker less, another password; the password of now."""
    edge = Configuration(service.folder / "edge.json")
    workers = [Configuration(service.folder / f"worker{number}.json") for number in (1, 2, 3)]
    edge.path.write_text("{")
    await service.edge.event("configuration_refused")
    gone = next(each for each in service.workers if each is not lost)
    edge.change(workers=[each.address for each in service.workers if each is not gone])
    await service.edge.event("worker_leaves", worker=gone.address)
    edge.change(shared_password=NEW_PASSWORD, listen="127.0.0.1:1")
    await service.edge.event("configuration_waits_for_restart")
    for changing in workers:
        changing.change(accept_passwords=[NEW_PASSWORD, service.token])
    for each in service.workers:
        await each.event("passwords_changed", count=2)
    return NEW_PASSWORD


async def run_block(script: str) -> tuple[int, str]:
    """Exit status and everything that was said; the first line that fails ends it."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", script, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def test_every_line_of_the_handbook_runs(service: Service, tmp_path: Path) -> None:
    given, *lines = blocks("sh")
    lines += blocks("sh", (DOCS / "pictures.md").read_text())
    request_id = re.findall(r"grep (\w+) \$REQUESTS", HANDBOOK)[0]
    service.client.headers["X-Admin-Token"] = ADMIN_TOKEN
    lost = await lose_a_worker(service, request_id)
    password = await change_configurations(service, lost)
    secrets = tmp_path / "secrets"
    secrets.mkdir(mode=0o700)
    (secrets / "admin_token").write_text(ADMIN_TOKEN)
    (secrets / "worker_password").write_text(password)
    logs = {"edge_log": tmp_path / "edge.log", "worker_log": tmp_path / "worker.log"}
    values = {
        "EDGE": service.url,
        "WORKER": f"http://{lost.address}",
        "CONFIG": str(tmp_path / "checked.json"),
        "SECRETS": str(secrets),
        "REQUESTS": str(service.request_log),
        "PATH": f"{BIN}:$PATH",
    }
    shutil.copy2(service.folder / "edge.json", values["CONFIG"])
    ours = [f"{name}={value}" for name, value in values.items()]
    ours += [f"{name}() {{ cat {path}; }}" for name, path in logs.items()]
    assert names_given(given) == names_given("\n".join(ours))
    for block in lines:
        for name, records in (("edge_log", service.edge.records), ("worker_log", all_of(service.workers))):
            logs[name].write_text("".join(json.dumps(record) + "\n" for record in records))
        code, said = await run_block("\n".join([*ours, block.replace(EXAMPLE_WORKER, lost.address)]))
        if "/Drain" in block:
            await lost.end(signal.SIGTERM)
            await lost.start()
            await service.until_online(2)
        assert code == 0, f"{block}\n{said}"
        assert "SENTINEL" not in said
    for process, records in (("edge", service.edge.records), ("worker", all_of(service.workers))):
        for record in records:
            if record["event"] in {"computing", "computed"}:  # the light worker's own
                continue
            fields = TABLES[process][record["event"]] | COMMON
            assert set(record) <= (fields | {"call_id"} if process == "worker" else fields), record


def names_given(script: str) -> set[str]:
    """Variables and functions that a script defines."""
    return set(re.findall(r"^(\w+)(?:=|\(\))", script, re.MULTILINE))


def all_of(workers: list[Worker]) -> list[Record]:
    """What all of them have logged."""
    return [record for worker in workers for record in worker.records]
