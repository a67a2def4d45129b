"""TLS and mutual TLS on a real port."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import grpc
import pytest
from grpc import aio
from hair.worker.v1 import worker_service_pb2 as pb
from hair.worker.v1.worker_service_pb2_grpc import WorkerServiceStub

from tests.worker.fakes import FakePipeline
from tests.worker.harness import QUICK, TOKEN, settings
from worker.server import Worker
from worker.settings import SettingsError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A self-signed certificate for localhost that is its own authority, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(
        [*command.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    return {"cert": cert, "key": key}


async def status_over(address: str, credentials: grpc.ChannelCredentials) -> pb.GetStatusResponse:
    async with aio.secure_channel(address, credentials) as channel:
        return await WorkerServiceStub(channel).GetStatus(pb.GetStatusRequest(), metadata=TOKEN, timeout=5)


async def test_only_encrypted_clients_get_in(pems: Mapping[str, Path], pipeline: FakePipeline) -> None:
    worker = await Worker.start(settings(tls=pems, listen="localhost:0"), load_pipeline=pipeline.load, thresholds=QUICK)
    try:
        answer = await status_over(worker.address, grpc.ssl_channel_credentials(pems["cert"].read_bytes()))
        assert answer.status.boot_id == worker.identity.boot_id
        async with aio.insecure_channel(worker.address) as plain:
            with pytest.raises(aio.AioRpcError) as caught:
                await WorkerServiceStub(plain).GetStatus(pb.GetStatusRequest(), metadata=TOKEN, timeout=5)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    finally:
        await worker.stop()


async def test_mutual_tls_asks_for_a_client_certificate(pems: Mapping[str, Path], pipeline: FakePipeline) -> None:
    tls = {**pems, "client_ca": pems["cert"]}
    cert, key = pems["cert"].read_bytes(), pems["key"].read_bytes()
    worker = await Worker.start(settings(tls=tls, listen="localhost:0"), load_pipeline=pipeline.load, thresholds=QUICK)
    try:
        with pytest.raises(aio.AioRpcError):
            await status_over(worker.address, grpc.ssl_channel_credentials(cert))
        answer = await status_over(worker.address, grpc.ssl_channel_credentials(cert, key, cert))
        assert answer.status.boot_id == worker.identity.boot_id
    finally:
        await worker.stop()


async def test_files_that_cannot_be_used_are_bad_configuration(
    pems: Mapping[str, Path], pipeline: FakePipeline
) -> None:
    junk = pems["key"].with_name("junk.pem")
    junk.write_text("junk")
    for wrong in ({"key": pems["key"].with_name("gone.pem")}, {"cert": junk}, {"client_ca": junk}):
        with pytest.raises(SettingsError, match=r"tls: .*(gone|junk)\.pem"):
            await Worker.start(settings(tls={**pems, **wrong}), load_pipeline=pipeline.load, thresholds=QUICK)
