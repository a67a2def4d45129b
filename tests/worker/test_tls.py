"""TLS and mutual TLS on a real port, and its certificate replaced while the worker runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from grpc import aio
from hair.worker.v1 import worker_service_pb2 as pb
from hair.worker.v1.worker_service_pb2_grpc import WorkerServiceStub
from structlog.typing import EventDict

from hairmesh import certs, renewal
from tests.fakes.scrape import Scrape
from tests.worker.fakes import FakePipeline
from tests.worker.harness import PATIENCE_S, QUICK, TOKEN, settings
from worker.certificates import PortCertificate
from worker.server import Worker
from worker.settings import SettingsError, TlsSettings

OURS = certs.Authority(certs.LOCAL_HOSTS)
NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def put(folder: Path, pair: certs.Signed) -> None:
    """Replace certificate and key, one after the other."""
    for name, content in (("cert.pem", pair.certificate), ("key.pem", pair.key)):
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)


@pytest.fixture
def pems(tmp_path: Path) -> Mapping[str, Path]:
    """A certificate for localhost, and its key."""
    put(tmp_path, OURS.sign("worker"))
    (tmp_path / "ca.pem").write_bytes(OURS.certificate)
    return {"cert": tmp_path / "cert.pem", "key": tmp_path / "key.pem"}


def client(authority: certs.Authority = OURS, own: certs.Signed | None = None) -> grpc.ChannelCredentials:
    """Of a caller that trusts `authority` and has a certificate of its own, or none."""
    key, chain = (own.key, own.certificate) if own else (None, None)
    return grpc.ssl_channel_credentials(authority.certificate, key, chain)


async def status_over(address: str, credentials: grpc.ChannelCredentials) -> pb.GetStatusResponse:
    alone = (("grpc.use_local_subchannel_pool", 1),)  # a connection of its own
    async with aio.secure_channel(address, credentials, options=alone) as channel:
        return await WorkerServiceStub(channel).GetStatus(pb.GetStatusRequest(), metadata=TOKEN, timeout=PATIENCE_S)


async def test_only_encrypted_clients_get_in(pems: Mapping[str, Path], pipeline: FakePipeline) -> None:
    worker = await Worker.start(settings(tls=pems, listen="localhost:0"), load_pipeline=pipeline.load, thresholds=QUICK)
    try:
        answer = await status_over(worker.address, client())
        assert answer.status.boot_id == worker.identity.boot_id
        async with aio.insecure_channel(worker.address) as plain:
            with pytest.raises(aio.AioRpcError) as caught:
                await WorkerServiceStub(plain).GetStatus(pb.GetStatusRequest(), metadata=TOKEN, timeout=PATIENCE_S)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    finally:
        await worker.stop()


async def test_mutual_tls_asks_for_a_client_certificate(pems: Mapping[str, Path], pipeline: FakePipeline) -> None:
    tls = {**pems, "client_ca": pems["cert"].with_name("ca.pem")}
    worker = await Worker.start(settings(tls=tls, listen="localhost:0"), load_pipeline=pipeline.load, thresholds=QUICK)
    try:
        strangers = {
            "none": client(),
            "of another authority": client(own=certs.Authority(["localhost"]).sign("client")),
            "expired": client(own=OURS.sign("client", valid=(NOW - 2 * DAY, NOW - DAY))),
            "not valid yet": client(own=OURS.sign("client", valid=(NOW + DAY, NOW + 2 * DAY))),
            "a server's": client(own=OURS.sign("worker")),
        }
        for name, refused in strangers.items():
            with pytest.raises(aio.AioRpcError) as caught:
                await status_over(worker.address, refused)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE, name
        answer = await status_over(worker.address, client(own=OURS.sign("client")))
        assert answer.status.boot_id == worker.identity.boot_id
    finally:
        await worker.stop()


async def test_replaced_files_are_shown_to_new_connections_while_open_ones_live_on(
    pems: Mapping[str, Path], pipeline: FakePipeline
) -> None:
    """Here the authority is another one, too, which shows who sees what."""
    tls = {**pems, "client_ca": pems["cert"].with_name("ca.pem")}
    more: dict[str, Any] = {"listen": "localhost:0", "metrics": {"listen": "127.0.0.1:0"}}
    worker = await Worker.start(settings(tls=tls, **more), load_pipeline=pipeline.load, thresholds=QUICK)
    assert worker._certificate is not None
    before, after = OURS, certs.Authority(certs.LOCAL_HOSTS)
    try:
        async with aio.secure_channel(worker.address, client(before, before.sign("client"))) as open_one:
            ask = WorkerServiceStub(open_one).GetStatus
            await ask(pb.GetStatusRequest(), metadata=TOKEN, timeout=PATIENCE_S)
            put(pems["cert"].parent, after.sign("worker"))
            tls["client_ca"].write_bytes(after.certificate)
            worker._certificate.look()
            await ask(pb.GetStatusRequest(), metadata=TOKEN, timeout=PATIENCE_S)
            with pytest.raises(aio.AioRpcError):
                await status_over(worker.address, client(before, before.sign("client")))
            shown = await Scrape.of_port(worker.metrics_port)
            until = worker._certificate.validity.expires_at.timestamp()
            assert shown.value("hairmesh_certificate_expires_timestamp_seconds", key="tls") == until
            answer = await status_over(worker.address, client(after, after.sign("client")))
            assert answer.status.boot_id == worker.identity.boot_id
            await ask(pb.GetStatusRequest(), metadata=TOKEN, timeout=PATIENCE_S)
    finally:
        await worker.stop()


class Watched:
    """A certificate that is looked at when the test says so."""

    def __init__(self, pems: Mapping[str, Path]) -> None:
        self.now_s = 0.0
        made = PortCertificate.of(TlsSettings(**pems), poll_s=1.0, clock=lambda: self.now_s)
        assert made is not None
        self.certificate = made

    def look(self, after_s: float = 1.0) -> list[EventDict]:
        """What is said about it `after_s` later."""
        self.now_s += after_s
        with structlog.testing.capture_logs() as logs:
            self.certificate.look()
        return logs

    def is_news(self) -> bool:
        """Whether gRPC would be told to show another one; then it is."""
        return self.certificate._tell() is not None


@pytest.mark.parametrize("order", [("cert.pem", "key.pem"), ("key.pem", "cert.pem")])
def test_half_a_pair_is_waited_for(pems: Mapping[str, Path], order: tuple[str, str]) -> None:
    watched, new = Watched(pems), OURS.sign("worker")
    halves = {"cert.pem": new.certificate, "key.pem": new.key}
    pems["cert"].with_name(order[0]).write_bytes(halves[order[0]])
    assert watched.look() == []
    assert not watched.is_news()
    pems["cert"].with_name(order[1]).write_bytes(halves[order[1]])
    (told,) = watched.look()
    assert (told["event"], told["log_level"]) == ("certificate_renewed", "info")
    assert watched.is_news()
    assert watched.look() == []
    assert not watched.is_news()


@pytest.mark.parametrize(
    ("problem", "pair"),
    [
        ("no certificate and its private key", certs.Signed(OURS.sign("worker").certificate, OURS.sign("worker").key)),
        ("holds no private key", certs.Signed(b"SENTINEL", b"SENTINEL")),
        ("has expired", OURS.sign("worker", valid=(NOW - 2 * DAY, NOW - DAY))),
    ],
)
def test_a_broken_pair_changes_nothing_and_is_one_error(
    pems: Mapping[str, Path], problem: str, pair: certs.Signed
) -> None:
    watched = Watched(pems)
    validity = watched.certificate.validity
    put(pems["cert"].parent, pair)
    said = [*watched.look(), *watched.look(renewal.SETTLE_S), *watched.look(), *watched.look(100)]
    assert [(each["event"], each["log_level"]) for each in said] == [("certificate_refused", "error")]
    assert problem in said[0]["problem"]
    assert "SENTINEL" not in str(said)
    assert not watched.is_news()
    assert watched.certificate.validity == validity
    put(pems["cert"].parent, OURS.sign("worker"))
    assert [each["event"] for each in watched.look()] == ["certificate_renewed"]


def test_a_key_that_others_can_read_is_warned_of_at_the_start_and_when_it_is_taken_over(
    pems: Mapping[str, Path],
) -> None:
    watched, key = Watched(pems), pems["key"]
    key.chmod(0o644)
    with structlog.testing.capture_logs() as logs:
        watched.certificate.start()
        watched.certificate.stop()
    put(key.parent, OURS.sign("worker"))
    assert [each["event"] for each in watched.look()] == ["certificate_renewed"], "its mode is 0600"
    put(key.parent, OURS.sign("worker"))
    key.chmod(0o644)
    renewed, told = watched.look()
    assert renewed["event"] == "certificate_renewed"
    for each in (*logs, told):
        assert (each["event"], each["file"], each["mode"]) == ("key_open_to_others", str(key), "0644")
    assert len(logs) == 1
    assert watched.look() == []


@pytest.mark.parametrize(("days_left", "level"), [(1, "warning"), (-1, "error")])
def test_what_expires_is_said(pems: Mapping[str, Path], days_left: int, level: str) -> None:
    put(pems["cert"].parent, OURS.sign("worker", valid=(NOW - 90 * DAY, NOW + days_left * DAY)))
    watched = Watched(pems)
    (told,) = watched.look()
    assert (told["event"], told["log_level"]) == ("certificate_expires", level)
    assert told["file"] == str(pems["cert"])
    assert watched.look() == []


async def test_files_that_cannot_be_used_are_bad_configuration(
    pems: Mapping[str, Path], pipeline: FakePipeline
) -> None:
    junk = pems["key"].with_name("junk.pem")
    junk.write_text("junk")
    for wrong in ({"key": pems["key"].with_name("gone.pem")}, {"cert": junk}, {"client_ca": junk}):
        with pytest.raises(SettingsError, match=r"tls: .*(gone|junk)\.pem"):
            await Worker.start(settings(tls={**pems, **wrong}), load_pipeline=pipeline.load, thresholds=QUICK)
