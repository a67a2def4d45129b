"""`hairmesh watch worker` against a real worker with a scripted pipeline."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hair.worker.v1 import worker_service_pb2 as pb

from hairmesh.watch.loop import Exit
from hairmesh.watch.options import Kind
from tests.hairmesh.watching import last_line, options, watch
from tests.worker.fakes import FROZEN, HOLDS, QUEUES, FakePipeline
from tests.worker.harness import PASSWORD, Client, released, running


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    return file


async def rests_in(stage: str, client: Client) -> None:
    """Return when a call stands still in `stage`, and the evidence, which may be one period old, has followed it."""
    while True:
        status = await client.status()
        (progress,) = [check for check in status.checks if check.name == "progress"]
        call = status.slot.call
        if call.stage == stage and progress.evidence["step_counter"] == call.step_counter:
            return
        await asyncio.sleep(0.02)  # no news tells of it


async def test_a_workers_own_words_are_the_verdict(
    secret: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with released(FakePipeline()) as pipeline:
        async with running(pipeline.load) as (_worker, client):
            address = client.target
            assert await watch(options(address, Kind.WORKER, secret_file=secret)) is Exit.WELL
            assert last_line(capsys)["verdict"] == "idle"

            assert await watch(options(address, Kind.WORKER)) is Exit.DEGRADED
            assert "only liveness is known" in last_line(capsys)["why"]

            wrong = tmp_path / "wrong"
            wrong.write_text("another")
            assert await watch(options(address, Kind.WORKER, secret_file=wrong)) is Exit.DEGRADED
            assert "accept_passwords" in last_line(capsys)["why"]

            for photo, status, verdict in ((HOLDS, Exit.WELL, "busy"), (FROZEN, Exit.SICK, "stalled")):
                pipeline.release.clear()
                call = asyncio.ensure_future(client.measure(photo, timeout_s=200.0))
                if photo == FROZEN:
                    await rests_in("parsing", client)
                await client.until_slot(pb.SLOT_STATE_BUSY)
                assert await watch(options(address, Kind.WORKER, secret_file=secret)) is status
                said = last_line(capsys)
                assert (said["verdict"], said["running"]) == (verdict, 1)
                pipeline.release.set()
                await call
    assert await watch(options(address, Kind.WORKER, secret_file=secret, interval_s=0.05)) is Exit.SICK
    assert last_line(capsys)["verdict"] == "dead"


async def test_a_worker_whose_call_waits_in_comfyuis_queue_is_well_and_left_alone(
    secret: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restarted = tmp_path / "restarted"
    with released(FakePipeline()) as pipeline:
        async with running(pipeline.load) as (_worker, client):
            call = asyncio.ensure_future(client.measure(QUEUES, timeout_s=200.0))
            await rests_in("diffusion_queue", client)
            asked = options(client.target, Kind.WORKER, secret_file=secret)
            assert await watch(asked, ["touch", str(restarted)]) is Exit.WELL
            said = last_line(capsys)
            assert (said["verdict"], said["running"], said["why"]) == ("waiting", 1, "in the queue of comfyui")
            pipeline.release.set()
            await call
    assert not restarted.exists()
