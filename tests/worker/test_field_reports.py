"""What operators of such workers reported, as far as it is the worker's to get right."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2
from hair.worker.v1 import worker_service_pb2 as pb

from hairmesh.wire import TOKEN_KEY
from tests.worker.fakes import HOLDS, NO_FACE, OK, SPAWNS, FakePipeline, held
from tests.worker.harness import PASSWORD, PATIENCE_S, QUICK, SERVING, TOKEN, Client, refused, running, started
from tests.worker.processes import ROOT, fake_worker, write_config

WRITES_OFTEN = replace(QUICK, disk_free_period_s=0.02, disk_write_period_s=0.02)
OURS = ("hairmesh", "edge", "worker", "vision")


async def test_b21_a_configuration_that_changes_under_running_calls_fails_none_of_them(tmp_path: Path) -> None:
    """Models are never rebuilt under a call: what a change needs beyond passwords waits for a restart."""
    path = write_config(tmp_path / "w.json")
    async with fake_worker(path) as (worker, client):
        for change in range(30):
            call = asyncio.ensure_future(client.measure(OK))
            write_config(path, accept_passwords=[PASSWORD, f"another-{change}"], device=("cpu", "cuda")[change % 2])
            await call
        await worker.event("config_change_needs_restart", keys=["device"])
        call = asyncio.ensure_future(client.measure(held(OK, by=tmp_path / "held")))
        await client.until_slot(pb.SLOT_STATE_BUSY)
        worker.signal(signal.SIGTERM)
        await client.until(lambda status: status.state == pb.SERVING_STATE_DRAINING)
        (tmp_path / "held").unlink()
        assert (await call).HasField("measurements")
        assert await worker.end() == 0


async def test_b21_what_a_call_computes_with_is_closed_after_it(pipeline: FakePipeline) -> None:
    async with running(pipeline.load) as (worker, client):
        call = asyncio.ensure_future(client.measure(HOLDS))
        await started(pipeline)
        stopping = asyncio.ensure_future(worker.stop())
        await client.until(lambda status: status.state == pb.SERVING_STATE_DRAINING)
        assert not pipeline.closed
        pipeline.release.set()
        assert (await call).HasField("measurements")
        assert await stopping
        assert pipeline.closed


def test_b44_nothing_forks_processes_are_started_anew() -> None:
    """A fork of a process that has used gRPC hangs in the child."""
    for path in itertools.chain.from_iterable((ROOT / package).rglob("*.py") for package in OURS):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            assert not {"multiprocessing", "pty"} & {name.partition(".")[0] for name in (*names, module)}, path
            assert not (isinstance(node, ast.Attribute) and node.attr in {"fork", "forkpty"}), path
            assert "preexec_fn" not in {word.arg for word in getattr(node, "keywords", ())}, path


async def test_b44_a_worker_that_starts_children_goes_on_answering(client: Client) -> None:
    for _call in range(10):
        await client.measure(SPAWNS)
        assert await client.check() == SERVING


async def test_b48_the_log_line_of_a_call_that_is_refused_at_the_very_end_is_written(tmp_path: Path) -> None:
    async with fake_worker(write_config(tmp_path / "w.json")) as (worker, client):
        call = asyncio.ensure_future(refused(client.measure(held(NO_FACE, by=tmp_path / "held"))))
        await client.until_slot(pb.SLOT_STATE_BUSY)
        worker.signal(signal.SIGTERM)
        await client.until(lambda status: status.state == pb.SERVING_STATE_DRAINING)
        (tmp_path / "held").unlink()
        assert (await call)[1].reason == "NO_FACE"
        assert await worker.end() == 0
        said = [line for line in worker.lines if '"event": "call"' in line]
        assert len(said) == 1
        assert '"reason": "NO_FACE"' in said[0]


async def test_b51_fifty_watchers_killed_leave_nothing_behind(pipeline: FakePipeline) -> None:
    async with running(pipeline.load) as (worker, client):
        await client.measure(OK)
        before = len(asyncio.all_tasks())
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WATCHERS, worker.address, *TOKEN[0], cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        assert child.stdout
        assert await child.stdout.readline() == b"watching\n"
        assert len(asyncio.all_tasks()) >= before + 50
        assert await client.check() == SERVING
        await client.measure(OK)
        child.kill()
        await child.wait()
        while len(asyncio.all_tasks()) > before:  # the test's own timeout ends it
            await client.check()
        await client.measure(OK)


WATCHERS = """
import asyncio, sys
from grpc import aio
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

async def main():
    address, *token = sys.argv[1:]
    async with aio.insecure_channel(address) as channel:
        request = health_pb2.HealthCheckRequest(service="")
        watches = [HealthStub(channel).Watch(request, metadata=(tuple(token),)) for _n in range(50)]
        for watch in watches:
            await watch.read()
        print("watching", flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


async def test_b68_faults_of_callers_never_touch_the_workers_health(client: Client, pipeline: FakePipeline) -> None:
    wrong = ((TOKEN_KEY, "wrong"),)
    for photo in range(10):
        assert (await refused(client.measure(NO_FACE + b"%d" % photo)))[0] is grpc.StatusCode.FAILED_PRECONDITION
        assert (await refused(client.measure(b"")))[0] is grpc.StatusCode.INVALID_ARGUMENT
        assert (await refused(client.measure(OK, metadata=wrong)))[0] is grpc.StatusCode.UNAUTHENTICATED
        leaving = asyncio.ensure_future(client.measure(HOLDS))
        await started(pipeline)
        leaving.cancel()
        await client.until_slot(pb.SLOT_STATE_FREE)
    status = await client.status()
    assert (status.state, list(status.reasons), status.live) == (pb.SERVING_STATE_SERVING, [], True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB of its own; skipped where this user may not mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=False).returncode:
        pytest.skip("may not mount a file system here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


async def remount(folder: Path, how: str) -> None:
    """Refused as busy whenever the worker's probe has its file open in that moment."""
    async with asyncio.timeout(100):
        while True:
            child = await asyncio.create_subprocess_exec(
                "mount", "-o", f"remount,{how}", folder, stderr=asyncio.subprocess.DEVNULL
            )
            if await child.wait() == 0:
                return


async def test_b69_a_full_disk_and_a_read_only_one_are_found_by_writing(
    pipeline: FakePipeline, small_disk: Path
) -> None:
    """Free bytes are no proof: more is free than the limit asks for, and the write fails. It comes back by itself."""
    health = {"min_free_gb": 1e-9, "resume_free_gb": 1e-9, "disk_paths": [str(small_disk)]}
    async with running(pipeline.load, health=health, thresholds=WRITES_OFTEN) as (_worker, client):
        filler = small_disk / "filler"
        with contextlib.suppress(OSError), filler.open("wb") as file:
            file.write(bytes(1_040_000))  # 8 KiB are left: some, but not enough to write
        status = await client.until(lambda status: status.cause == "disk")
        assert list(status.reasons) == ["disk_write_failed:ENOSPC"]
        assert status.live
        assert (await refused(client.measure(OK)))[1].reason == "DISK"
        filler.unlink()
        await client.until_serving()
        await remount(small_disk, "ro")
        status = await client.until(lambda status: status.cause == "disk")
        assert list(status.reasons) == ["disk_write_failed:EROFS"]
        await remount(small_disk, "rw")
        await client.until_serving()
        assert list(small_disk.iterdir()) == []


async def test_b70_fifty_jobs_wait_at_the_door_and_checks_do_not(client: Client, pipeline: FakePipeline) -> None:
    call = asyncio.ensure_future(client.measure(HOLDS))
    await started(pipeline)
    jobs = [asyncio.ensure_future(refused(client.measure(OK))) for _job in range(50)]
    for _check in range(20):
        assert await client.check() == SERVING
    assert {info.reason for _code, info, _details in await asyncio.gather(*jobs)} == {"BUSY"}
    pipeline.release.set()
    await call


async def test_33_full_disk_is_the_same_whether_a_watcher_or_a_call_learns_it_first(pipeline: FakePipeline) -> None:
    """Scenario 33, the worker's part: `Watch`, `WatchStatus` and the refusal of a call say one thing."""
    huge = {"min_free_gb": 1e6, "resume_free_gb": 1e6}
    async with running(pipeline.load, warm=False, health=huge) as (_worker, client):
        status = await client.until(lambda status: status.cause == "disk" and "starting" not in status.reasons)
        code, info, _details = await refused(client.measure(OK))
        assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, status.cause.upper())
        watch = client.health.Watch(health_pb2.HealthCheckRequest(service=""), metadata=TOKEN, timeout=PATIENCE_S)
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        watch.cancel()
