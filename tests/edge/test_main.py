"""The command: what it says of itself, what it refuses, how it starts and stops."""

from __future__ import annotations

import asyncio
import errno
import json
import resource
import signal
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import uvloop

from edge import command
from edge.app import create_app
from edge.settings import parse
from hairmesh import certs
from hairmesh.stack import free_ports
from tests.edge.process import Process
from tests.edge.rest import FakeMesh, eventually, picture, serving
from tests.fakes.worker import PASSWORD, FakeWorker

EXAMPLE = Path(__file__).parents[2] / "edge_config.example.json"


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        command.main(list(arguments))
    return int(caught.value.code or 0)


def test_help_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    text = capsys.readouterr().out
    assert "--config FILE" in text
    assert "edge_config.example.json" in text
    assert max(map(len, text.splitlines())) <= 120


def test_a_configuration_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 2
    assert "--config" in capsys.readouterr().err


def test_a_bad_configuration_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "edge.json"
    path.write_text('{"workers": ["127.0.0.1:1"], "shared_password": "SENTINEL", "wrong": 1}')
    assert run("--config", str(path)) == 2
    said = capsys.readouterr().err
    assert "wrong: there is no such key" in said
    assert "SENTINEL" not in said


def test_the_example_as_it_is_only_lacks_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--config", str(EXAMPLE), "--check") == 2
    said = capsys.readouterr().err.splitlines()
    assert [line.removeprefix(f"hairmesh-edge: {EXAMPLE}: ").partition(": ")[0] for line in said] == [
        "shared_password",
        "admin_tokens.0",
    ]
    own = {"shared_password": "one of our own", "admin_tokens": ["another one of our own"]}
    example = {**json.loads(EXAMPLE.read_text()), **own}
    path = tmp_path / "edge.json"
    path.write_text(json.dumps(example))
    path.chmod(0o600)
    assert run("--config", str(path), "--check") == 2
    assert "workers-ca.pem" in capsys.readouterr().err, "the files it names must be there"


def configuration(folder: Path, **changes: Any) -> str:
    """A good one, but for the changes; the path of its file."""
    path = folder / "edge.json"
    path.write_text(json.dumps({"workers": ["127.0.0.1:1"], "shared_password": "x", **changes}))
    path.chmod(0o600)
    return str(path)


def test_a_good_configuration_is_called_good_and_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configuration(
        tmp_path, static={"dir": str(tmp_path / "a" / "b")}, request_log={"path": str(tmp_path / "c" / "log.jsonl")}
    )
    command.main(["--config", path, "--check"])
    assert capsys.readouterr().out == f"hairmesh-edge: {path}: configuration is good\n"
    assert [file.name for file in tmp_path.iterdir()] == ["edge.json"]


def test_a_file_open_to_others_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = configuration(tmp_path, static={"dir": str(tmp_path)}, request_log={"path": str(tmp_path / "log.jsonl")})
    for mode, warned in ((0o644, True), (0o600, False)):
        Path(path).chmod(mode)
        command.main(["--config", path, "--check"])
        said = capsys.readouterr()
        assert ("holds passwords and has mode 0644" in said.err) == warned
        assert "configuration is good" in said.out


def test_a_key_open_to_others_is_warned_of(
    tmp_path: Path, certificate: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    cert, key = certificate
    key.chmod(0o640)
    folders = {"static": {"dir": str(tmp_path)}, "request_log": {"path": str(tmp_path / "log.jsonl")}}
    path = configuration(tmp_path, tls={"cert": str(cert), "key": str(key)}, **folders)
    command.main(["--config", path, "--check"])
    assert capsys.readouterr().err == ""
    key.chmod(0o644)
    command.main(["--config", path, "--check"])
    assert capsys.readouterr().err == f"hairmesh-edge: {key}: warning: holds a key and has mode 0644\n"


def test_certificates_are_checked_before_anything_starts(
    tmp_path: Path, certificate: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    cert, key = certificate
    cert.chmod(0o600)
    for tls in (
        {"tls": {"cert": str(key), "key": str(cert)}},
        {"tls": {"cert": str(cert), "key": str(tmp_path / "none.pem")}},
        {"worker_tls": {"ca": str(key)}},
        {"worker_tls": {"ca": str(cert), "cert": str(cert), "key": str(cert)}},
    ):
        path = configuration(tmp_path, **tls)
        assert run("--config", path, "--check") == 2
        (said,) = capsys.readouterr().err.splitlines()
        assert run("--config", path) == 3, "who is just replacing them finishes: the next start succeeds"
        assert capsys.readouterr().err.splitlines() == [said]
        assert f"{next(iter(tls))}: " in said
        assert "/certs/edge." in said or "none.pem" in said


def test_everything_that_is_wrong_outside_the_file_is_said_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    path = configuration(
        tmp_path,
        tls={"cert": str(tmp_path / "c.pem"), "key": str(tmp_path / "k.pem")},
        worker_tls={"ca": str(tmp_path / "ca.pem")},
        static={"dir": str(tmp_path / "file" / "below")},
        request_log={"path": str(tmp_path / "file" / "log.jsonl")},
    )
    assert run("--config", path, "--check") == 2
    said = capsys.readouterr().err.splitlines()
    keys = [line.removeprefix(f"hairmesh-edge: {path}: ").partition(": ")[0] for line in said]
    assert keys == ["tls", "worker_tls", "static.dir", "request_log.path"]


@pytest.mark.parametrize("key", ["static.dir", "request_log.path"])
def test_folders_that_cannot_be_written_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str) -> None:
    (tmp_path / "file").write_text("")
    good, bad = tmp_path, tmp_path / "file" / "below"
    path = configuration(
        tmp_path,
        static={"dir": str(bad if key == "static.dir" else good)},
        request_log={"path": str((bad if key == "request_log.path" else good) / "log.jsonl")},
    )
    assert run("--config", path, "--check") == 2
    said = capsys.readouterr()
    assert key in said.err
    assert said.out == ""


def test_several_processes_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "edge.json"
    path.write_text('{"workers": ["127.0.0.1:1"], "shared_password": "x"}')
    monkeypatch.setenv("WEB_CONCURRENCY", "2")
    assert run("--config", str(path)) == 2
    assert "one process" in capsys.readouterr().err


async def test_a_whole_life(tmp_path: Path) -> None:
    worker = FakeWorker()
    await worker.start()
    async with Process(tmp_path, worker.address) as edge:
        pool = next(line for line in edge.said if line["event"] == "pool_started")
        assert (pool["interval_s"], pool["unhealthy_threshold"], pool["cooldown_s"]) == (8, 2, 60)
        assert (pool["workers_total"], pool["workers_online"], pool["workers_primary_online"]) == (1, 1, 1)
        response = await edge.client.post("/api/v1/face/measure", files={"image": ("p.jpg", picture())})
        assert response.status_code == 200
        picture_url = response.json()["data"]["annotated_image_url"]
        assert (await edge.client.get(picture_url)).status_code == 200
        assert psutil.Process(edge.process.pid).memory_info().rss < 200 * 1024 * 1024
        command_line = Path(f"/proc/{edge.process.pid}/cmdline").read_text()
        assert PASSWORD not in command_line

        hold = worker.hold()
        running = asyncio.create_task(edge.client.post("/api/v1/face/measure", files={"image": ("p.jpg", picture())}))
        await hold.started.wait()
        edge.process.send_signal(signal.SIGTERM)
        hold.release.set()
        assert (await running).status_code == 200
        assert await asyncio.wait_for(edge.process.wait(), 60) == 0
        assert edge.process.stderr is not None
        rest_of_log = (await edge.process.stderr.read()).decode()
        assert PASSWORD not in rest_of_log + json.dumps(edge.said)
        assert "Traceback" not in rest_of_log
        stops = [json.loads(line) for line in rest_of_log.splitlines() if "edge_stops" in line]
        assert len(stops) == 1, rest_of_log
    lines = [json.loads(line) for line in (tmp_path / "request_log.jsonl").read_text().splitlines()]
    assert [line["code"] for line in lines] == [0, 0]
    assert list((tmp_path / "pictures").glob(".*")) == []
    await worker.stop()


async def test_it_takes_as_many_descriptors_as_it_may_have(tmp_path: Path) -> None:
    few, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(few, 1024, hard // 2), hard))
    try:
        async with Process(tmp_path, "127.0.0.1:1") as edge:
            limits = Path(f"/proc/{edge.process.pid}/limits").read_text()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    (line,) = (line for line in limits.splitlines() if line.startswith("Max open files"))
    assert line.split()[3:5] == [str(hard)] * 2


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for this machine, and its key; `ca.pem` beside them."""
    certs.write_dev(tmp_path / "certs")
    return tmp_path / "certs" / "edge.pem", tmp_path / "certs" / "edge.key"


async def test_https(tmp_path: Path, mesh: FakeMesh, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    async with serving(tmp_path, mesh, tls={"cert": str(cert), "key": str(key)}) as rest:
        base = f"https://127.0.0.1:{rest.port}"
        async with httpx.AsyncClient(
            base_url=base, verify=ssl.create_default_context(cafile=cert.with_name("ca.pem"))
        ) as client:
            response = await client.post("/api/v1/face/measure", files={"image": ("p.jpg", picture())})
            url = response.json()["data"]["annotated_image_url"]
            assert url.startswith(base)
            assert (await client.get(url)).status_code == 200


async def test_a_port_in_use_ends_it(tmp_path: Path) -> None:
    async with Process(tmp_path, "127.0.0.1:1") as edge:
        arguments = ["-m", "edge", "--config", str(tmp_path / "edge.json")]
        second = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, cwd=EXAMPLE.parent, stderr=asyncio.subprocess.PIPE
        )
        _out, said = await second.communicate()
        assert second.returncode == 3
        assert said.decode() == f"hairmesh-edge: listen 127.0.0.1:{edge.port}: Address already in use\n"
        assert (await edge.client.get("/monitor")).status_code == 503


def test_a_metrics_port_in_use_ends_it_before_anything_is_probed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        config = configuration(tmp_path, listen=f"127.0.0.1:{free_ports(1)[0]}", metrics={"listen": address})
        with pytest.raises(SystemExit) as ended:
            command.main(["--config", str(config)])
    assert ended.value.code == 3
    assert capsys.readouterr().err == f"hairmesh-edge: metrics.listen {address}: Address already in use\n"


def test_of_two_that_start_in_the_same_instant_the_second_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both get the address, since nobody listens yet; it is the one who listens first that has it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    folders = {"static": {"dir": str(tmp_path)}, "request_log": {"path": str(tmp_path / "log.jsonl")}}
    settings = parse(Path(configuration(tmp_path, listen=address, **folders)).read_bytes())
    listeners = [command._listener(settings), command._listener(settings)]
    meshes = [FakeMesh(), FakeMesh()]

    async def start_both() -> None:
        first, second = (
            command._Server(settings, create_app(settings, mesh), None, listener)
            for mesh, listener in zip(meshes, listeners, strict=True)
        )
        for server in (first, second):
            server.lifespan = server.config.lifespan_class(server.config)
        await first.startup([listeners[0]])
        with pytest.raises(SystemExit) as caught:
            await second.startup([listeners[1]])
        assert caught.value.code == 3
        assert meshes[1].closed
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"http://{address}/health")).status_code == 200
        await first.shutdown([listeners[0]])

    uvloop.run(start_both())
    listeners[1].close()
    assert capsys.readouterr().err == f"hairmesh-edge: listen {address}: Address already in use\n"


async def test_after_a_crash_it_is_back_at_once(tmp_path: Path) -> None:
    edge = Process(tmp_path, "127.0.0.1:1")
    async with edge:
        await edge.client.get("/health")  # a connection that its end leaves behind
        edge.process.kill()
        await edge.process.wait()
    async with edge:
        assert (await edge.client.get("/health")).status_code == 200


async def test_22_one_of_two_edges_is_stopped_and_no_call_is_lost(tmp_path: Path) -> None:
    worker, other = FakeWorker(), FakeWorker()
    await worker.start()
    await other.start()
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    going, staying = Process(folders[0], worker.address), Process(folders[1], worker.address, other.address)
    async with going, staying:
        hold = worker.hold()
        running = asyncio.create_task(going.measure(picture()))
        await hold.started.wait()
        going.process.send_signal(signal.SIGTERM)
        await eventually(lambda: refuses(going.port))
        assert not running.done()
        assert going.process.returncode is None
        for _ in range(5):
            assert (await staying.measure(picture())).status_code == 200
        hold.release.set()
        assert (await running).status_code == 200
        assert await asyncio.wait_for(going.process.wait(), 60) == 0
        assert (await staying.measure(picture())).status_code == 200
    await worker.stop()
    await other.stop()


def refuses(port: int) -> bool:
    """Whether nobody takes a connection there."""
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


async def test_a_changed_file_is_in_force_in_the_running_process(tmp_path: Path) -> None:
    async with Process(tmp_path, "127.0.0.1:1") as edge:
        assert (await edge.client.get("/admin/pool")).status_code == 403
        content = json.loads(edge.config_path.read_text())
        edge.config_path.write_text(json.dumps({**content, "admin_tokens": ["SENTINEL-of-an-admin"]}))
        edge.process.send_signal(signal.SIGHUP)
        async with asyncio.timeout(60):
            while (await edge.client.get("/admin/pool")).status_code == 403:
                pass
        response = await edge.client.get("/admin/pool", headers={"X-Admin-Token": "SENTINEL-of-an-admin"})
        assert response.json()["configuration"]["version"] >= 2
        edge.process.send_signal(signal.SIGTERM)
        _out, said = await edge.process.communicate()
        assert b"configuration_applied" in said
        assert b"SENTINEL" not in said
