"""Certificates that are replaced while the edge serves: new handshakes see the new one, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import structlog
from structlog.typing import EventDict

from edge import certificates, reload
from edge.certificates import Certificates
from edge.reload import InForce
from edge.settings import parse
from edge.tls import HttpsCertificate
from hairmesh import certs, renewal
from tests.edge.rest import MEASURE, PHOTO, FakeMesh, Rest, eventually, serving

AUTHORITY = certs.Authority(certs.LOCAL_HOSTS)
NOW = datetime.now(UTC)
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "POLL_S", 0.01)
    monkeypatch.setattr(renewal, "SETTLE_S", 0.1)


def put(folder: Path, pair: certs.Signed, name: str = "edge") -> None:
    """Replace the files, first the one and then the other, as people do."""
    for ending, content in (("pem", pair.certificate), ("key", pair.key)):
        path = folder / f"{name}.{ending}"
        path.write_bytes(content)
        path.chmod(0o600)


def named(folder: Path, name: str = "edge") -> dict[str, str]:
    return {"cert": str(folder / f"{name}.pem"), "key": str(folder / f"{name}.key")}


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=AUTHORITY.certificate.decode())


async def shown(port: int) -> str:
    """The certificate that a new connection gets to see, PEM."""
    _reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting())
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return ssl.DER_cert_to_PEM_cert(der)


@asynccontextmanager
async def https(folder: Path, mesh: FakeMesh) -> AsyncIterator[tuple[Rest, httpx.AsyncClient, list[EventDict]]]:
    """An edge that serves HTTPS with a pair in `folder`; a client with one connection; what the log is told."""
    put(folder, AUTHORITY.sign("edge"))
    one = httpx.Limits(max_connections=1, keepalive_expiry=None)
    with structlog.testing.capture_logs() as logs:
        async with (
            serving(folder, mesh, tls=named(folder)) as rest,
            httpx.AsyncClient(
                base_url=f"https://127.0.0.1:{rest.port}", verify=trusting(), limits=one, trust_env=False, timeout=60
            ) as client,
        ):
            yield rest, client, logs


def events(logs: list[EventDict], name: str) -> list[EventDict]:
    return [entry for entry in logs if entry["event"] == name]


async def test_new_handshakes_see_the_new_one_and_running_calls_and_open_connections_live_on(
    tmp_path: Path, mesh: FakeMesh
) -> None:
    connections: set[int] = set()

    async def port_of(response: httpx.Response) -> None:
        connections.add(response.extensions["network_stream"].get_extra_info("client_addr")[1])

    async with https(tmp_path, mesh) as (rest, client, logs):
        client.event_hooks = {"response": [port_of]}
        assert (await client.get("/monitor")).status_code == 200
        mesh.gate = asyncio.Event()
        running = asyncio.create_task(client.post(MEASURE, files={"image": PHOTO}))
        await mesh.called.wait()
        second = AUTHORITY.sign("edge")
        put(tmp_path, second)
        await eventually(lambda: bool(events(logs, "certificate_renewed")))
        assert await shown(rest.port) == second.certificate.decode()
        mesh.gate.set()
        assert (await running).status_code == 200
        assert (await client.get("/monitor")).status_code == 200
        assert len(connections) == 1
        (told,) = events(logs, "certificate_renewed")
        assert told["key"] == "tls"
        assert datetime.fromisoformat(told["expires_at"]) > NOW + 29 * DAY
        assert not events(logs, "certificate_refused")


@pytest.mark.parametrize(
    ("problem", "pair"),
    [
        (
            "are no certificate and its private key",
            certs.Signed(AUTHORITY.sign("edge").certificate, AUTHORITY.sign("edge").key),
        ),
        ("holds no certificate", certs.Signed(b"SENTINEL", b"SENTINEL")),
        ("has expired", AUTHORITY.sign("edge", valid=(NOW - 2 * DAY, NOW - DAY))),
    ],
)
async def test_a_broken_one_changes_nothing_and_is_one_error(
    tmp_path: Path, mesh: FakeMesh, problem: str, pair: certs.Signed
) -> None:
    async with https(tmp_path, mesh) as (rest, _client, logs):
        before = await shown(rest.port)
        put(tmp_path, pair)
        await eventually(lambda: bool(events(logs, "certificate_refused")))
        assert await shown(rest.port) == before
        good = AUTHORITY.sign("edge")
        put(tmp_path, good)
        await eventually(lambda: bool(events(logs, "certificate_renewed")))
        assert await shown(rest.port) == good.certificate.decode()
        (refused,) = events(logs, "certificate_refused")
        assert problem in refused["problem"] or "holds no private key" in refused["problem"]
        assert "edge." in refused["problem"]
        assert "SENTINEL" not in str(logs)


async def test_files_that_vanish_change_nothing_either(tmp_path: Path, mesh: FakeMesh) -> None:
    async with https(tmp_path, mesh) as (rest, _client, logs):
        before = await shown(rest.port)
        (tmp_path / "edge.key").unlink()
        await eventually(lambda: bool(events(logs, "certificate_refused")))
        assert await shown(rest.port) == before
        assert "No such file" in events(logs, "certificate_refused")[0]["problem"]


async def test_what_expires_soon_or_has_expired_is_said_once_and_served(tmp_path: Path, mesh: FakeMesh) -> None:
    valid = {"soon": (NOW - 90 * DAY, NOW + DAY), "past": (NOW - 90 * DAY, NOW - DAY)}
    for name, each in valid.items():
        put(tmp_path, AUTHORITY.sign("edge", valid=each), name)
        (folder := tmp_path / name).mkdir()
        with structlog.testing.capture_logs() as logs:
            async with serving(folder, mesh, tls=named(tmp_path, name)):
                await eventually(lambda logs=logs: bool(events(logs, "certificate_expires")))  # type: ignore[misc]
        (told,) = events(logs, "certificate_expires")
        assert told["log_level"] == ("error" if name == "past" else "warning")
        assert (told["key"], told["file"]) == ("tls", str(tmp_path / f"{name}.pem"))
        assert datetime.fromisoformat(told["expires_at"]) == each[1].replace(microsecond=0)


@pytest.mark.parametrize("of", ["tls", "worker_tls"])
async def test_a_key_that_others_can_read_is_warned_of_at_the_start_when_renewed_and_when_asked(
    tmp_path: Path, mesh: FakeMesh, of: str
) -> None:
    key = tmp_path / "edge.key"
    put(tmp_path, AUTHORITY.sign("edge"))
    (tmp_path / "ca.pem").write_bytes(AUTHORITY.certificate)
    files = named(tmp_path) | ({"ca": str(tmp_path / "ca.pem")} if of == "worker_tls" else {})
    content = {"workers": ["127.0.0.1:1"], "shared_password": "x", of: files}
    settings = parse(json.dumps(content).encode())
    https = HttpsCertificate(settings.tls) if of == "tls" else None
    watched = Certificates(InForce(settings), https, mesh.reconfigure)

    async def look(*, asked: bool = False) -> list[str]:
        with structlog.testing.capture_logs() as logs:
            await watched.look(asked=asked)
        for each in events(logs, "key_open_to_others"):
            assert (each["file"], each["mode"]) == (str(key), "0644")
        return [each["event"] for each in logs]

    key.chmod(0o644)
    assert await look() == ["key_open_to_others"]
    assert await look() == []
    put(tmp_path, AUTHORITY.sign("edge"))
    assert await look() == ["certificate_renewed"], "its mode is 0600"
    put(tmp_path, AUTHORITY.sign("edge"))
    key.chmod(0o644)
    assert await look() == ["certificate_renewed", "key_open_to_others"]
    assert await look() == []
    assert await look(asked=True) == ["key_open_to_others"]
    watched.close()


async def test_those_towards_workers_are_taken_over_when_their_files_change(tmp_path: Path, mesh: FakeMesh) -> None:
    put(tmp_path, AUTHORITY.sign("client"), "client")
    (tmp_path / "ca.pem").write_bytes(AUTHORITY.certificate)
    worker_tls = {"ca": str(tmp_path / "ca.pem"), **named(tmp_path, "client")}
    with structlog.testing.capture_logs() as logs:
        async with serving(tmp_path, mesh, worker_tls=worker_tls) as rest:
            assert mesh.configured == []
            put(tmp_path, AUTHORITY.sign("client"), "client")
            await eventually(lambda: bool(events(logs, "certificate_renewed")))
            assert mesh.configured[-1][2] == rest.settings.worker_tls
            mesh.configured.clear()
            (tmp_path / "ca.pem").write_bytes(AUTHORITY.certificate + certs.Authority(["localhost"]).certificate)
            await eventually(lambda: len(events(logs, "certificate_renewed")) == 2)
            assert len(mesh.configured) == 1
    assert {each["key"] for each in events(logs, "certificate_renewed")} == {"worker_tls"}


async def test_when_they_expire_is_there_for_metrics(tmp_path: Path, mesh: FakeMesh) -> None:
    until = (NOW + 5 * DAY).replace(microsecond=0)
    put(tmp_path, AUTHORITY.sign("client", valid=(NOW, until)), "client")
    (tmp_path / "ca.pem").write_bytes(AUTHORITY.certificate)
    worker_tls = {"ca": str(tmp_path / "ca.pem"), **named(tmp_path, "client")}
    content = {"workers": ["127.0.0.1:1"], "shared_password": "x", "worker_tls": worker_tls}
    watched = Certificates(InForce(parse(json.dumps(content).encode())), None, mesh.reconfigure)
    assert watched.expires_at == {}
    await watched.look()
    assert watched.expires_at == {"worker_tls": until}
    later = until + DAY
    put(tmp_path, AUTHORITY.sign("client", valid=(NOW, later)), "client")
    await watched.look()
    assert watched.expires_at == {"worker_tls": later}
    watched.close()


async def test_files_that_change_while_they_are_read_are_told_of_once(tmp_path: Path, mesh: FakeMesh) -> None:
    put(tmp_path, AUTHORITY.sign("client"), "client")
    (tmp_path / "ca.pem").write_bytes(AUTHORITY.certificate)
    worker_tls = {"ca": str(tmp_path / "ca.pem"), **named(tmp_path, "client")}
    content = {"workers": ["127.0.0.1:1"], "shared_password": "x", "worker_tls": worker_tls}
    last = AUTHORITY.sign("client")

    async def reconfigure(*_: object) -> None:
        put(tmp_path, last, "client")

    watched = Certificates(InForce(parse(json.dumps(content).encode())), None, reconfigure)
    put(tmp_path, AUTHORITY.sign("client"), "client")
    with structlog.testing.capture_logs() as logs:
        await watched.look()
        assert events(logs, "certificate_renewed") == []
        for _ in range(3):
            await watched.look()
    assert len(events(logs, "certificate_renewed")) == 1
    watched.close()


async def test_a_disk_that_hangs_delays_nobody_and_is_asked_once(
    tmp_path: Path, mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, AUTHORITY.sign("client"), "client")
    (tmp_path / "ca.pem").write_bytes(AUTHORITY.certificate)
    content = {
        "workers": ["127.0.0.1:1"],
        "shared_password": "x",
        "worker_tls": {"ca": str(tmp_path / "ca.pem"), **named(tmp_path, "client")},
    }
    watched = Certificates(InForce(parse(json.dumps(content).encode())), None, mesh.reconfigure)
    answers, asked = threading.Event(), []

    def hangs(paths: tuple[Path, ...]) -> bytes:
        asked.append(paths)
        answers.wait()
        return renewal.digest(paths)

    monkeypatch.setattr(certificates, "digest", hangs)
    monkeypatch.setattr(certificates, "ANSWER_S", 0.05)
    for _ in range(3):
        await watched.look()
    await eventually(lambda: asked != [])
    assert len(asked) == 1
    answers.set()
    async with asyncio.timeout(60):
        while not watched.expires_at:
            await watched.look()
            await asyncio.sleep(0)
    watched.close()
