"""What is wrong between edge and worker by TLS is said in the worker's evidence, in words that name the setting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest

from edge.pool.config import HealthCheckConfig
from edge.upstream.channel import ChannelSecurity
from hairmesh import certs
from tests.edge.upstream.conftest import MakeDriver, until
from tests.fakes.worker import FakeWorker

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
PLAIN = ChannelSecurity()
OURS, OTHERS = certs.Authority(certs.LOCAL_HOSTS), certs.Authority(certs.LOCAL_HOSTS)

Security = Callable[[Path], ChannelSecurity]


def served(pair: certs.Signed, clients: certs.Authority | None = None) -> grpc.ServerCredentials:
    """What a worker listens with; mutual TLS where `clients` signs for those it takes."""
    authority = clients.certificate if clients else None
    return grpc.ssl_server_credentials([(pair.key, pair.certificate)], authority, require_client_auth=bool(clients))


def edge(authority: certs.Authority, own: certs.Signed | None = None) -> Security:
    """What an edge is configured with."""

    def write(folder: Path) -> ChannelSecurity:
        (folder / "ca").write_bytes(authority.certificate)
        if own is None:
            return ChannelSecurity(ca=folder / "ca")
        (folder / "cert").write_bytes(own.certificate)
        (folder / "key").write_bytes(own.key)
        return ChannelSecurity(ca=folder / "ca", cert=folder / "cert", key=folder / "key")

    return write


GOOD, CLIENT = OURS.sign("worker"), OURS.sign("client")
EXPIRED, NOT_YET = (NOW - 2 * DAY, NOW - DAY), (NOW + DAY, NOW + 2 * DAY)
CASES: dict[str, tuple[grpc.ServerCredentials | None, Security, str]] = {
    "wrong authority": (served(GOOD), edge(OTHERS), "its certificate is not signed by an authority in worker_tls.ca"),
    "expired": (served(OURS.sign("worker", valid=EXPIRED)), edge(OURS), "its certificate has expired"),
    "not yet": (served(OURS.sign("worker", valid=NOT_YET)), edge(OURS), "its certificate is not valid yet"),
    "name": (served(OURS.sign("worker", hosts=["localhost"])), edge(OURS), "its certificate is for another name"),
    "client's": (served(CLIENT), edge(OURS), "its certificate is no server's"),
    "TLS to plaintext": (None, edge(OURS), "it speaks no TLS"),
    "plaintext to TLS": (
        served(GOOD),
        lambda _folder: PLAIN,
        "closed while connecting (it may want TLS: worker_tls.ca)",
    ),
    "no client certificate": (
        served(GOOD, OURS),
        edge(OURS),
        "closed while connecting (it may want a certificate: worker_tls.cert)",
    ),
    "client of another authority": (
        served(GOOD, OURS),
        edge(OURS, OTHERS.sign("client")),
        "closed while connecting (it may not take our certificate: worker_tls.cert)",
    ),
    "client expired": (
        served(GOOD, OURS),
        edge(OURS, OURS.sign("client", valid=EXPIRED)),
        "closed while connecting (it may not take our certificate: worker_tls.cert)",
    ),
    "server's certificate as a client's": (
        served(GOOD, OURS),
        edge(OURS, OURS.sign("edge")),
        "closed while connecting (it may not take our certificate: worker_tls.cert)",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_cause_stands_in_the_evidence(tmp_path: Path, driver: MakeDriver, case: str) -> None:
    credentials, security, says = CASES[case]
    worker = FakeWorker(credentials=credentials)
    await worker.start()
    try:
        at_once = HealthCheckConfig(unhealthy_threshold=1)
        mesh = await driver(worker.address, security=security(tmp_path), health=at_once)
        await until(lambda: mesh.snapshot().endpoints[0].state == "NOT_SERVING")
        (endpoint,) = mesh.snapshot().endpoints
        assert (endpoint.cause, endpoint.evidence) == ("unreachable", f"probe: UNAVAILABLE {says}")
    finally:
        await worker.stop()


async def test_who_has_what_is_asked_for_is_let_in(tmp_path: Path, driver: MakeDriver) -> None:
    worker = FakeWorker(credentials=served(GOOD, OURS))
    await worker.start()
    try:
        mesh = await driver(worker.address, security=edge(OURS, CLIENT)(tmp_path))
        assert mesh.online().healthy == 1
    finally:
        await worker.stop()
