"""TLS, plaintext and passwords."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import grpc
import pytest
from hair.analysis.v1 import measure_pb2

from edge.calls import Call
from edge.pool.config import PoolConfig
from edge.upstream.channel import ChannelSecurity, ChannelSecurityError, check_password, is_loopback
from edge.upstream.driver import Driver
from tests.edge.upstream.conftest import MakeDriver
from tests.fakes.worker import PASSWORD, FakeWorker


@pytest.mark.parametrize("target", ["127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"])
def test_plaintext_on_this_machine_needs_no_words(target: str) -> None:
    assert is_loopback(target)
    ChannelSecurity().check_target(target)


@pytest.mark.parametrize("target", ["10.0.0.11:1", "worker:1", "[fe80::1]:1", "localhost.evil.example:1", "0.0.0.0:1"])
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


def openssl(*arguments: str, cwd: Path) -> None:
    subprocess.run(["openssl", *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.pem, and cert and key signed by it for worker and edge."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make certificates")
    folder = tmp_path_factory.mktemp("tls")
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *new_key, "-subj", "/CN=test", "-keyout", "ca.key", "-out", "ca.pem", cwd=folder)
    (folder / "san.cnf").write_text("subjectAltName=IP:127.0.0.1")
    for name in ("worker", "edge"):
        openssl("req", *new_key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr", cwd=folder)
        signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "san.cnf", "-days", "1")
        openssl("x509", "-req", "-in", f"{name}.csr", *signing, "-out", f"{name}.pem", cwd=folder)
    return folder


def server_credentials(folder: Path) -> grpc.ServerCredentials:
    """Mutual TLS: the worker wants a certificate of its own authority."""
    pair = ((folder / "worker.key").read_bytes(), (folder / "worker.pem").read_bytes())
    return grpc.ssl_server_credentials([pair], (folder / "ca.pem").read_bytes(), require_client_auth=True)


async def test_mutual_tls_lets_in_who_has_a_certificate(authority: Path, driver: MakeDriver) -> None:
    worker = FakeWorker(credentials=server_credentials(authority))
    await worker.start()
    try:
        ca, cert, key = authority / "ca.pem", authority / "edge.pem", authority / "edge.key"
        mesh = await driver(worker.address, security=ChannelSecurity(ca=ca, cert=cert, key=key))
        outcome = await mesh.call(Call("Measure", measure_pb2.MeasureRequest(), "request-1"))
        assert outcome.worker == worker.address
        stranger = await driver(worker.address, security=ChannelSecurity(ca=ca))
        assert stranger.online().healthy == 0
        plain = await driver(worker.address)
        assert plain.online().healthy == 0
    finally:
        await worker.stop()
