"""TLS, plaintext and passwords."""

from __future__ import annotations

from pathlib import Path

import pytest
from hair.analysis.v1 import measure_pb2

from edge.calls import Call
from edge.pool.config import PoolConfig
from edge.upstream.channel import ChannelSecurity, ChannelSecurityError, check_password, is_loopback
from edge.upstream.driver import Driver
from edge.upstream.resolver import Resolving
from tests.edge.upstream.conftest import MakeDriver
from tests.edge.upstream.tls import Authority
from tests.fakes.worker import PASSWORD, FakeWorker


@pytest.mark.parametrize("target", ["127.0.0.1:1", "127.9.9.9:1", "localhost:1", "dns:///localhost:1", "[::1]:1"])
def test_plaintext_on_this_machine_needs_no_words(target: str) -> None:
    assert is_loopback(target)
    ChannelSecurity().check_target(target)


@pytest.mark.parametrize(
    "target", ["10.0.0.11:1", "dns:///worker:1", "worker:1", "[fe80::1]:1", "localhost.evil.example:1", "0.0.0.0:1"]
)
def test_plaintext_over_a_network_must_be_allowed_in_words(target: str) -> None:
    with pytest.raises(ChannelSecurityError, match='"insecure": true'):
        ChannelSecurity().check_target(target)
    ChannelSecurity(insecure=True).check_target(target)
    ChannelSecurity(ca=Path("ca.pem")).check_target(target)


def test_the_driver_checks_every_target() -> None:
    with pytest.raises(ChannelSecurityError, match=r"10\.0\.0\.11:1"):
        Driver(PoolConfig(workers=("127.0.0.1:1", "10.0.0.11:1")), PASSWORD)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"cert": Path("c.pem")}, "cert and key belong together"),
        ({"cert": Path("c.pem"), "key": Path("k.pem")}, "need ca"),
        ({"ca": Path("ca.pem"), "insecure": True}, "keep one"),
    ],
)
def test_halves_and_contradictions_are_refused(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ChannelSecurityError, match=says):
        ChannelSecurity(**settings)  # type: ignore[arg-type]


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChannelSecurityError, match=r"worker_tls: .*none\.pem: No such file"):
        ChannelSecurity(ca=tmp_path / "none.pem").read()
    (tmp_path / "junk.pem").write_text("junk")
    with pytest.raises(ChannelSecurityError, match=r"worker_tls: .*junk\.pem holds no certificate"):
        ChannelSecurity(ca=tmp_path / "junk.pem").read()


@pytest.mark.parametrize("password", ["", "café", "tab\there", "新密码", " padded "])
def test_a_password_that_metadata_cannot_carry_is_refused_without_being_told(password: str) -> None:
    with pytest.raises(ChannelSecurityError) as caught:
        check_password(password)
    assert not password or password not in str(caught.value)


async def test_mutual_tls_lets_in_who_has_a_certificate(authority: Authority, driver: MakeDriver) -> None:
    worker = FakeWorker(credentials=authority.worker_credentials())
    await worker.start()
    try:
        mesh = await driver(worker.address, security=authority.security("edge"))
        outcome = await mesh.call(Call("Measure", measure_pb2.MeasureRequest(), "request-1"))
        assert outcome.worker == worker.address
        stranger = await driver(worker.address, security=ChannelSecurity(ca=authority.folder / "ca.pem"))
        assert stranger.online().healthy == 0
        plain = await driver(worker.address)
        assert plain.online().healthy == 0
    finally:
        await worker.stop()


@pytest.mark.parametrize(("name", "online"), [("workers.test", 1), ("others.test", 0)])
async def test_a_worker_found_by_name_must_have_a_certificate_for_that_name(
    authority: Authority, driver: MakeDriver, name: str, online: int
) -> None:
    worker = FakeWorker(credentials=authority.worker_credentials("named"))
    await worker.start()

    async def lookup(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    try:
        target = f"dns:///{name}:{worker.address.rpartition(':')[2]}"
        mesh = await driver(target, security=authority.security("edge"), resolving=Resolving(lookup=lookup))
        assert mesh.online().healthy == online
        assert [each.target for each in mesh.snapshot().endpoints] == [worker.address]
    finally:
        await worker.stop()
