"""Secrets and certificates change under load, wrong ones are told apart, no secret shows anywhere: real processes."""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import grpc
import httpx
import psutil
import pytest
from hair.worker.v1.worker_service_pb2 import GetStatusRequest
from hair.worker.v1.worker_service_pb2_grpc import WorkerServiceStub

from hairmesh import certs
from hairmesh.client import FEATURES_ROUTE, MEASURE_ROUTE
from hairmesh.wire import TOKEN_KEY
from tests.e2e.breakable_worker import photo
from tests.e2e.service import Load, Service
from vision import models

CLIENTS = 3
NOW = datetime.now(UTC)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Not started; whatever of it runs at the end is ended."""
    made = Service(tmp_path)
    yield made
    await made.stop()


class Files:
    """Certificates in a folder, signed by one authority that can sign others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.authority = certs.Authority(certs.LOCAL_HOSTS)
        self.ca = folder / "ca.pem"
        self.ca.write_bytes(self.authority.certificate)

    def put(self, name: str, pair: certs.Signed) -> dict[str, str]:
        """Write, or replace; where they are, as the configuration names them."""
        for ending, content in (("pem", pair.certificate), ("key", pair.key)):
            path = self.folder / f"{name}.{ending}"
            path.write_bytes(content)
            path.chmod(0o600)
        return {"cert": str(self.folder / f"{name}.pem"), "key": str(self.folder / f"{name}.key")}

    def renew(self) -> None:
        """Others for edge, workers, and the edge as their client."""
        for role in certs.ROLES:
            self.put(role, self.authority.sign(role))

    def trust(self) -> ssl.SSLContext:
        """A client's."""
        return ssl.create_default_context(cafile=self.ca)

    async def is_newest(self, address: str, role: str) -> bool:
        """Whether a new connection there sees what the files hold now."""
        host, _, port = address.rpartition(":")
        ours = self.trust()
        ours.load_cert_chain(self.folder / "client.pem", self.folder / "client.key")
        _reader, writer = await asyncio.open_connection(host, int(port), ssl=ours)
        shown = ssl.DER_cert_to_PEM_cert(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.transport.abort()
        return shown == (self.folder / f"{role}.pem").read_text()


async def test_tls_between_all_of_them_what_is_wrong_is_told_apart_and_certificates_change_under_load(
    service: Service, tmp_path: Path
) -> None:
    made = Files(tmp_path / "certs")
    made.renew()
    ca, past = str(made.ca), (NOW - timedelta(days=2), NOW - timedelta(days=1))
    mutual = {"cert": str(made.folder / "worker.pem"), "key": str(made.folder / "worker.key"), "client_ca": ca}
    stranger = made.folder / "stranger.pem"
    stranger.write_bytes(certs.Authority(["localhost"]).certificate)
    good = [service.add_worker(config={"tls": mutual}) for _ in range(2)]
    expired, plain, stern = (
        service.add_worker(config={"tls": tls})
        for tls in (
            made.put("expired", made.authority.sign("worker", valid=past)),
            {},
            mutual | {"client_ca": str(stranger)},
        )
    )
    service.speak_tls(made.trust())
    await asyncio.gather(*(worker.start() for worker in service.workers))
    named = {name: str(made.folder / f"client.{name[:4].replace('cert', 'pem')}") for name in ("cert", "key")}
    edge = {"cert": str(made.folder / "edge.pem"), "key": str(made.folder / "edge.key")}
    await service.start_edge(2, tls=edge, worker_tls={"ca": ca, **named}, admin_tokens=["an-admin-token-of-the-test"])

    wrong = {
        expired.address: "probe: UNAVAILABLE its certificate has expired",
        plain.address: "probe: UNAVAILABLE it speaks no TLS",
        stern.address: "probe: UNAVAILABLE closed while connecting (it may not take our certificate: worker_tls.cert)",
    }
    out = {"cause": "unreachable"}
    await service.edge.several(
        *(("worker_state", out | {"worker": address, "evidence": said}) for address, said in wrong.items())
    )
    service.client.headers["X-Admin-Token"] = "an-admin-token-of-the-test"
    pool = (await service.client.get("/admin/pool")).json()["workers"]
    assert {each["address"]: each["evidence"] for each in pool if each["address"] in wrong} == wrong
    assert await answer_to_a_stranger(good[0].address, made) is grpc.StatusCode.UNAVAILABLE

    service.edge.forget()
    async with Load(service, clients=CLIENTS) as load:
        for asks in (False, True):
            await load.more(2 * CLIENTS)
            made.renew()
            if asks:
                service.edge.send(signal.SIGHUP)
            await service.edge.several(*(("certificate_renewed", {"key": key}) for key in ("tls", "worker_tls")))
            for worker in good:
                await worker.event("certificate_renewed")
                assert await made.is_newest(worker.address, "worker")
            assert await made.is_newest(service.url.removeprefix("https://"), "edge")
            await load.more(4 * CLIENTS)
    assert load.failed == []
    assert len(service.edge.lines) == len(service.edge.records), "every line is JSON, whatever fails"
    assert [change for worker in good for change in service.changes(worker)[1:]] == []


async def answer_to_a_stranger(address: str, made: Files) -> grpc.StatusCode:
    """What a caller without a certificate gets to hear."""
    credentials = grpc.ssl_channel_credentials(made.ca.read_bytes())
    async with grpc.aio.secure_channel(address, credentials) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await WorkerServiceStub(channel).GetStatus(GetStatusRequest(), timeout=20)
        return caught.value.code()


async def test_passwords_and_tokens_are_rotated_under_load_in_both_orders(service: Service) -> None:
    workers = [service.add_worker() for _ in range(2)]
    first, second, third = service.token, "the-second-password", "the-third-password"
    old, new = "an-admin-token-that-is-old", "an-admin-token-that-is-new"
    await service.start(admin_tokens=[old], health_check={"interval_seconds": 1})

    async def drill_takes(password: str) -> int:
        headers = {"X-Internal-Token": password}
        return (await service.client.post("/monitor/fault", headers=headers, json={"enabled": False})).status_code

    async def admin_takes(token: str) -> int:
        return (await service.client.get("/admin/pool", headers={"X-Admin-Token": token})).status_code

    async def accept(*passwords: str) -> None:
        for number, worker in enumerate(workers):
            service.change_worker(number, accept_passwords=passwords)
            await worker.event("passwords_changed", count=len(passwords))

    async def both_say(event: str) -> None:
        await service.edge.several(*((event, {"worker": worker.address}) for worker in workers))

    async with Load(service, clients=CLIENTS) as load:
        # Workers first, as the handbook says.
        await load.more(CLIENTS)
        await accept(second, first)
        await load.more(2 * CLIENTS)
        assert (await drill_takes(first), await drill_takes(second)) == (200, 401)
        service.change_edge(shared_password=second, admin_tokens=[old, new])
        await service.edge.event("configuration_applied", changed=["shared_password", "admin_tokens"])
        assert (await drill_takes(first), await drill_takes(second)) == (401, 200)
        assert (await admin_takes(old), await admin_takes(new)) == (200, 200)
        await both_say("password_current")
        await accept(second)
        await load.more(2 * CLIENTS)
        # The edge first.
        service.change_edge(shared_password=third, admin_tokens=[new])
        await service.edge.event("configuration_applied", changed=["shared_password", "admin_tokens"])
        assert (await drill_takes(second), await drill_takes(third)) == (401, 200)
        assert (await admin_takes(old), await admin_takes(new)) == (401, 200)
        await both_say("former_password_used")
        await load.more(2 * CLIENTS)
        await accept(third)
        await both_say("password_current")
        await load.more(2 * CLIENTS)
    assert load.failed == []
    assert [change for worker in workers for change in service.changes(worker)[1:]] == []


def secret(name: str) -> str:
    """One that is found wherever it shows, in any log or answer."""
    return f"SENTINEL-{name}-of-the-test"


async def test_b99_b100_no_secret_shows_anywhere(service: Service, tmp_path: Path) -> None:
    """At debug level, with wrong tokens at every door and behind it, and with everything downstream failing."""
    debug = {"LOG_LEVEL": "debug"}
    service.token = secret("password")
    worker = service.add_worker(environment=debug)
    llm, admin, key = secret("llm-key"), secret("admin"), secret("api-key")
    store = {"AWS_SECRET_ACCESS_KEY": secret("store"), "AWS_ACCESS_KEY_ID": "test", "AWS_ALLOW_HTTP": "true"}
    store |= {"AWS_ENDPOINT": "http://127.0.0.1:1", "AWS_REGION": "here"}
    service.edge.set_environment(store)
    await service.start(
        admin_tokens=[admin],
        api_keys=[{"name": "clinic", "sha256": sha256(key.encode()).hexdigest()}],
        features={"base_url": "http://127.0.0.1:1/v1", "model": "eyes", "api_key": llm, "timeout_seconds": 2},
        static={"store_url": "s3://pictures/here"},
        log_level="debug",
    )
    seen: list[str] = []

    async def ask(method: str, path: str, headers: Mapping[str, str] | None = None, **more: object) -> httpx.Response:
        response = await service.client.request(method, path, headers=headers, **more)  # type: ignore[arg-type]
        seen.append(f"{response.status_code} {response.headers} {response.text}")
        return response

    good, light = {"X-API-Key": key}, {"image": ("p.jpg", photo(), "image/jpeg")}
    portrait = files("openpeople").joinpath("data/curated/P001/assets")
    face = {"image": ("p.jpg", min(portrait.iterdir(), key=lambda each: each.name).read_bytes(), "image/jpeg")}
    stored = await ask("POST", MEASURE_ROUTE, good, files=light)
    assert stored.json()["data"]["reason"] in {"STORE_FAILED", "STORE_FULL"}
    await ask("POST", FEATURES_ROUTE, good, files=face)
    wrong = secret("wrong")
    for name in ("X-API-Key", "Authorization", "X-Internal-Token", "X-Admin-Token", "Cookie"):
        headers = {name: f"Bearer {wrong}" if name == "Authorization" else wrong}
        for method, path in (("POST", MEASURE_ROUTE), ("POST", "/monitor/fault"), ("GET", "/admin/pool")):
            assert (await ask(method, path, headers)).status_code == 401, (name, path)
    # In the query: none of them is taken.
    for token in (wrong, admin, key, service.token):
        for method, path in (("POST", "/monitor/fault"), ("GET", "/admin/pool"), ("POST", MEASURE_ROUTE)):
            for name in ("token", "X-Internal-Token", "x-admin-token", "api_key"):
                assert (await ask(method, f"{path}?{name}={token}")).status_code in {401, 429}
        assert (await ask("GET", f"/monitor?token={token}")).status_code == 200
        assert (await ask("GET", f"/api/v1/{token}")).status_code == 404
    async with grpc.aio.insecure_channel(worker.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await WorkerServiceStub(channel).GetStatus(GetStatusRequest(), metadata=((TOKEN_KEY, wrong),), timeout=20)
        seen.append(repr(caught.value))
    await worker.event("turned_away")
    service.change_worker(0, accept_passwords=[secret("another-password")])  # the edge is turned away from now on
    await worker.event("passwords_changed")
    service.change_edge(shared_password=secret("café"))  # cannot be used
    await service.edge.event("configuration_refused")
    await service.edge.event("worker_state", worker=worker.address, cause="auth")
    await ask("POST", MEASURE_ROUTE, good, files=light)
    for path in ("/monitor", "/health", "/readyz", "/docs", "/openapi.json", "/console"):
        await ask("GET", path)
    for path in ("/admin/pool", "/admin/stats", "/metrics"):
        assert (await ask("GET", path, {"X-Admin-Token": admin})).status_code == 200, path
    for process in (service.edge, worker):
        for each in (of_it := psutil.Process(process.running.pid), *of_it.children(recursive=True)):
            seen.append(" ".join(each.cmdline()))
            seen += [f"{name}={value}" for name, value in each.environ().items() if name not in store]
    await service.edge.end(signal.SIGTERM)
    await worker.end(signal.SIGTERM)
    seen += [*service.edge.lines, *worker.lines, service.request_log.read_text()]
    assert any("wrong_tokens" in line for line in service.edge.lines)
    if models_are_here():
        assert any("features_llm_failed" in line for line in service.edge.lines)
    assert [text[:2000] for text in seen if "SENTINEL" in text] == []


def models_are_here() -> bool:
    """Whether the edge's own vision can look at a photo."""
    return (models.default_cache_dir() / "face_landmarker.task").exists()
