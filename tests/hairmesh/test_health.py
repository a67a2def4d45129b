"""`hairmesh health` of real workers and a real edge."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from hairmesh import certs, health
from hairmesh.stack import free_ports
from tests.edge.process import Process as Edge
from tests.worker.fakes import FakePipeline
from tests.worker.harness import running

GIB_NOBODY_HAS = 1_000_000


async def asked(target: str, *, ready: bool = False, folder: Path | None = None, mutual: bool = False) -> int:
    files = {
        "ca": folder and folder / "ca.pem",
        "cert": folder / "client.pem" if folder and mutual else None,
        "key": folder / "client.key" if folder and mutual else None,
    }
    return await asyncio.to_thread(partial(health.run, target, ready=ready, **files))


async def test_a_worker_that_serves_is_alive_and_ready(capsys: pytest.CaptureFixture[str]) -> None:
    async with running(FakePipeline().load) as (worker, _client):
        assert await asked(worker.address) == health.WELL
        assert await asked(worker.address, ready=True) == health.WELL
    assert capsys.readouterr().out.count("SERVING\n") == 2


async def test_a_worker_with_mutual_tls_wants_a_certificate(tmp_path: Path) -> None:
    certs.write_dev(tmp_path)
    tls = {"cert": tmp_path / "worker.pem", "key": tmp_path / "worker.key", "client_ca": tmp_path / "ca.pem"}
    async with running(FakePipeline().load, warm=False, tls=tls) as (worker, _client):
        assert await asked(worker.address, folder=tmp_path, mutual=True) == health.WELL
        assert await asked(worker.address, folder=tmp_path) == health.NOT_SEEN
        assert await asked(worker.address) == health.NOT_SEEN


async def test_a_worker_with_a_full_disk_is_alive_and_not_ready() -> None:
    full = {"min_free_gb": GIB_NOBODY_HAS, "resume_free_gb": GIB_NOBODY_HAS}
    async with running(FakePipeline().load, warm=False, health=full) as (worker, _client):
        assert await asked(worker.address) == health.WELL
        assert await asked(worker.address, ready=True) == health.NOT_WELL


async def test_an_edge_without_workers_is_well(tmp_path: Path) -> None:
    async with Edge(tmp_path, "127.0.0.1:1") as edge:
        assert await asked(f"http://127.0.0.1:{edge.port}") == health.WELL
        assert await asked(f"http://127.0.0.1:{edge.port}/", ready=True) == health.WELL
        assert await asked(f"http://127.0.0.1:{edge.port}/no-edge") == health.NOT_WELL


async def test_nobody_there_is_no_answer() -> None:
    (port,) = free_ports(1)
    assert await asked(f"127.0.0.1:{port}") == health.NOT_SEEN
    assert await asked(f"http://127.0.0.1:{port}") == health.NOT_SEEN


@pytest.mark.parametrize("target", ["worker", "worker:", ":1", "ftp://worker:1", "http://"])
async def test_what_is_no_target_is_wrong_usage(target: str) -> None:
    assert await asked(target) == 64


@pytest.mark.parametrize("target", ["127.0.0.1:1", "https://127.0.0.1:1"])
async def test_what_is_no_authority_is_wrong_usage_and_nothing_is_asked(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    authority = tmp_path / "ca.pem"
    assert await asked(target, folder=tmp_path) == 64
    authority.write_text("no certificate\n")
    assert await asked(target, folder=tmp_path) == 64
    authority.unlink()
    authority.mkdir()
    assert await asked(target, folder=tmp_path) == 64
    lines = capsys.readouterr().err.splitlines()
    assert [line.removeprefix(f"health: {authority}") for line in lines] == [
        ": No such file or directory",
        " holds no certificate, PEM",
        ": Is a directory",
    ]
