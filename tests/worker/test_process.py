"""Real processes: signals, ports, passwords that change, what the log says and what it never says."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
from pathlib import Path

import grpc
import pytest
from hair.analysis.v1 import masks_pb2
from hair.worker.v1 import worker_service_pb2 as pb

from hairmesh import certs
from hairmesh.wire import ANALYZE_SERVICE, TOKEN_KEY
from tests.worker import raw_http2
from tests.worker.fakes import BREAKS, FROZEN, HOLDS, LOSES_ACCELERATOR, NO_FACE, OK, held
from tests.worker.harness import NOT_SERVING, PASSWORD, PATIENCE_S, SERVING, TOKEN, Client, Metadata, refused, request
from tests.worker.processes import ROOT, fake_worker, process, write_config
from worker.server import EXIT_ACCELERATOR_LOST

MEASURE = f"/{ANALYZE_SERVICE}/Measure"


async def test_idle_worker_leaves_cleanly(tmp_path: Path) -> None:
    async with fake_worker(write_config(tmp_path / "w.json")) as (worker, _client):
        worker.signal(signal.SIGTERM)
        assert await worker.end() == 0


async def test_sigterm_lets_the_running_call_finish(tmp_path: Path) -> None:
    """NOT_SERVING at once; the call outlives the delay and gets its answer."""
    async with fake_worker(write_config(tmp_path / "w.json", drain_delay_seconds=0.1)) as (worker, client):
        running = asyncio.ensure_future(client.measure(held(OK, by=tmp_path / "held")))
        await client.until_slot(pb.SLOT_STATE_BUSY)
        worker.signal(signal.SIGTERM)
        await client.until(lambda status: status.state == pb.SERVING_STATE_DRAINING)
        assert await client.check() == NOT_SERVING
        assert await client.check("liveness") == SERVING
        await worker.event("drain", phase="refusing")
        (tmp_path / "held").unlink()
        assert (await running).HasField("measurements")
        assert await worker.end() == 0


async def test_during_the_drain_delay_calls_are_served_and_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    async with fake_worker(write_config(tmp_path / "w.json", drain_delay_seconds=600)) as (worker, client):
        worker.signal(signal.SIGTERM)
        await client.until(lambda status: status.state == pb.SERVING_STATE_DRAINING)
        assert (await client.measure(OK)).HasField("measurements")
        leaving = asyncio.ensure_future(client.measure(HOLDS))
        await client.until_slot(pb.SLOT_STATE_BUSY)
        leaving.cancel()
        assert (await worker.event("call", outcome="cancelled"))["reason"] == "CANCELLED"  # it left by itself
        worker.signal(signal.SIGTERM)
        assert await worker.end() == 128 + signal.SIGTERM


async def test_compute_thread_that_never_ends_does_not_hold_the_process(tmp_path: Path) -> None:
    async with fake_worker(write_config(tmp_path / "w.json", drain_grace_seconds=0.1)) as (worker, client):
        call = asyncio.ensure_future(refused(client.measure(FROZEN)))
        await client.until(lambda status: status.slot.call.stage != "")  # its thread has it
        worker.signal(signal.SIGTERM)
        code, info, _details = await call
        assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        assert await worker.end() == 0
        assert '"compute_thread_ended": false' in worker.lines[-1]


async def test_lost_accelerator_is_said_at_once_and_ends_the_process_after_edges_have_heard(tmp_path: Path) -> None:
    """B64: latched, drained, and gone with a code of its own, so that a supervisor starts a new process."""
    config = write_config(tmp_path / "w.json", drain_delay_seconds=4)
    async with fake_worker(config) as (worker, client):
        code, info, _details = await refused(client.measure(LOSES_ACCELERATOR))
        assert (code, info.reason) == (grpc.StatusCode.UNAVAILABLE, "ACCELERATOR")
        status = await client.status()
        assert (status.state, status.cause, status.live) == (pb.SERVING_STATE_NOT_SERVING, "accelerator", False)
        assert [await client.check(name) for name in ("", "liveness")] == [NOT_SERVING] * 2
        _code, info, _details = await refused(client.measure(OK))
        assert info.reason == "ACCELERATOR"
        await client.until(lambda status: status.state == pb.SERVING_STATE_DRAINING)
        assert await worker.end() == EXIT_ACCELERATOR_LOST
        assert '"accelerator_lost_for_good"' in "".join(worker.lines)


async def test_a_signal_while_the_accelerator_is_lost_ends_in_order_as_asked(tmp_path: Path) -> None:
    config = write_config(tmp_path / "w.json", drain_delay_seconds=600)
    async with fake_worker(config) as (worker, client):
        await refused(client.measure(LOSES_ACCELERATOR))
        await worker.event("accelerator_lost_for_good")
        worker.signal(signal.SIGTERM)
        await client.until(lambda status: status.state == pb.SERVING_STATE_DRAINING)


async def test_a_signal_while_the_port_opens_ends_in_order_too() -> None:
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", SIGNALLED_EARLY, cwd=ROOT)
    assert await child.wait() == 0


SIGNALLED_EARLY = """
import asyncio, signal, sys
from tests.worker.fakes import FakePipeline
from tests.worker.harness import settings
from worker import server

listen = server.listen_on

def listen_signalled(*arguments):
    assert sys.getswitchinterval() < 0.002  # so that pure Python in the compute thread leaves health its turns
    signal.raise_signal(signal.SIGTERM)
    return listen(*arguments)

server.listen_on = listen_signalled
raise SystemExit(asyncio.run(server.serve(settings(), load_pipeline=FakePipeline().load)))
"""


async def test_no_grace_is_no_hurry_for_an_idle_worker(tmp_path: Path) -> None:
    async with fake_worker(write_config(tmp_path / "w.json", drain_grace_seconds=0)) as (worker, _client):
        worker.signal(signal.SIGINT)
        assert await worker.end() == 0
        assert not [line for line in worker.lines if "grace_over" in line]


async def test_second_worker_on_the_same_port_says_so_and_ends(tmp_path: Path) -> None:
    async with fake_worker(write_config(tmp_path / "a.json")) as (_first, client):
        config = write_config(tmp_path / "b.json", listen=client.target)
        async with process("worker", "--config", str(config)) as second:
            assert await second.end() == 3
            assert second.lines[-1].startswith(f"hairmesh-worker: cannot listen on {client.target}: another process")
        await client.measure(OK)


async def test_passwords_rotate_without_a_restart(tmp_path: Path) -> None:
    config = write_config(tmp_path / "w.json")
    new = ((TOKEN_KEY, "new-password"),)
    async with fake_worker(config) as (worker, client):
        _code, info, _details = await refused(client.measure(OK, metadata=new))
        assert info.reason == "WRONG_PASSWORD"
        write_config(config, accept_passwords=[PASSWORD, "new-password"])
        await worker.event("passwords_changed", count=2)
        await client.measure(OK, metadata=TOKEN)
        await client.measure(OK, metadata=new)
        config.write_text("{ half a fi")
        assert "not JSON" in (await worker.event("config_not_applied"))["problem"]
        await client.measure(OK, metadata=new)
        write_config(config, accept_passwords=["new-password"], device="cpu")
        assert (await worker.event("config_change_needs_restart"))["keys"] == ["device"]
        code, info, _details = await refused(client.measure(OK, metadata=TOKEN))
        assert (code, info.reason) == (grpc.StatusCode.UNAUTHENTICATED, "WRONG_PASSWORD")
        await client.measure(OK, metadata=new)


class Traffic:
    """One call behind the other, with the password of the moment; ends with the first that fails."""

    def __init__(self, client: Client, token: Metadata) -> None:
        self.token = token
        self.answered = 0
        self.task = asyncio.create_task(self._run(client))

    async def more(self, calls: int) -> None:
        """Until so many more were answered."""
        enough = self.answered + calls
        while self.answered < enough:
            assert not self.task.done(), self.task.exception()
            await asyncio.sleep(0)

    async def _run(self, client: Client) -> None:
        while True:
            await client.measure(OK, metadata=self.token)
            self.answered += 1


@pytest.mark.parametrize("edge_first", [True, False])
async def test_passwords_rotate_in_either_order_under_traffic(tmp_path: Path, edge_first: bool) -> None:
    """No call with an accepted password fails, nor does a stream opened with one that is accepted no more."""
    config = write_config(tmp_path / "w.json")
    old, new = TOKEN, ((TOKEN_KEY, "new-password"),)
    async with fake_worker(config) as (worker, client):
        stream = client.worker.WatchStatus(pb.WatchStatusRequest(), metadata=old, timeout=PATIENCE_S)
        await stream.read()
        traffic = Traffic(client, old)
        if edge_first:  # the worker has not heard of it: the edge goes on with the previous one
            _code, info, _details = await refused(client.status(new))
            assert info.reason == "WRONG_PASSWORD"
            write_config(config, accept_passwords=["new-password", PASSWORD])
        else:
            write_config(config, accept_passwords=[PASSWORD, "new-password"])
        await worker.event("passwords_changed", count=2)
        await traffic.more(20)
        traffic.token = new
        await traffic.more(20)
        write_config(config, accept_passwords=["new-password"])
        await worker.event("passwords_changed", count=1)
        await traffic.more(20)
        traffic.task.cancel()
        _code, info, _details = await refused(client.status(old))
        assert info.reason == "WRONG_PASSWORD"
        assert isinstance(await stream.read(), pb.WatchStatusResponse)
        stream.cancel()


async def test_log_has_one_line_per_call_and_neither_passwords_nor_pictures(tmp_path: Path) -> None:
    """B43: distinct outcomes; ids on every line of a call, the compute thread's included."""
    picture = b"PICTURE-SENTINEL"
    config = write_config(tmp_path / "w.json", accept_passwords=["PASSWORD-SENTINEL"])
    async with fake_worker(config, "PASSWORD-SENTINEL") as (worker, client):

        def ids(name: str) -> tuple[tuple[str, str], ...]:
            return ((TOKEN_KEY, "PASSWORD-SENTINEL"), ("x-request-id", f"r-{name}"), ("x-call-id", f"c-{name}"))

        await client.measure(OK + picture, metadata=ids("ok"))
        done = await worker.event("call", request_id="r-ok", call_id="c-ok", outcome="ok", method="Measure")
        assert set(done["stage_ms"]) == {"parsing", "drawing"}
        assert (done["bytes_in"], done["service"]) == (len(OK + picture), "worker")
        await refused(client.measure(NO_FACE + picture, metadata=ids("face")))
        assert (await worker.event("call", request_id="r-face", outcome="refused"))["reason"] == "NO_FACE"
        await refused(client.measure(BREAKS + picture, metadata=ids("breaks")))
        assert (await worker.event("stage_raised", request_id="r-breaks"))["error"] == "ValueError"
        assert (await worker.event("call", request_id="r-breaks"))["reason"] == "INPUT_FAILED"
        late = {"grpc-timeout": b"1S", **{name: value.encode() for name, value in ids("late")}}
        await raw_http2.call(client.target, MEASURE, late, request(HOLDS + picture).SerializeToString())
        await worker.event("call", request_id="r-late", outcome="deadline")
        await worker.event("abandoned_call_ended", request_id="r-late", end="given_up")
        call = asyncio.ensure_future(client.measure(HOLDS, metadata=ids("left")))
        await client.until_slot(pb.SLOT_STATE_BUSY)
        call.cancel()
        await worker.event("call", request_id="r-left", outcome="cancelled")
        await refused(
            client.analyze.SegmentFace(masks_pb2.SegmentFaceRequest(), metadata=ids("new"), timeout=PATIENCE_S)
        )
        await worker.event("call", request_id="r-new", method="SegmentFace", outcome="refused")
        await refused(client.measure(OK, metadata=((TOKEN_KEY, "WRONG-SENTINEL"),)))
        worker.signal(signal.SIGTERM)
        assert await worker.end() == 0
        assert not [line for line in worker.lines if "SENTINEL" in line]
        assert all(line.startswith("{") for line in worker.lines)


async def test_passwords_of_any_bytes_are_refused_and_never_logged(tmp_path: Path) -> None:
    """gRPC itself logs metadata that is not UTF-8."""
    config = write_config(tmp_path / "w.json", accept_passwords=["PASSWORD-SENTINEL"])
    async with fake_worker(config, "PASSWORD-SENTINEL") as (worker, client):
        for shown in (b"caf\xe9-SENTINEL", b"\0\xff\xfe-SENTINEL", "café-SENTINEL".encode(), b"PASSWORD-SENTINEL\xff"):
            headers = {TOKEN_KEY: shown}
            answer = await raw_http2.call(client.target, MEASURE, headers, request(OK).SerializeToString())
            assert b"WRONG_PASSWORD" in answer
        headers = {TOKEN_KEY: b"PASSWORD-SENTINEL", "x-request-id": b"caf\xe9-SENTINEL"}
        assert (await worker.event("turned_away"))["methods"] == [MEASURE]
        assert b"PNG fake" in await raw_http2.call(client.target, MEASURE, headers, request(OK).SerializeToString())
        assert (await worker.event("call", outcome="ok"))["request_id"] == ""
        worker.signal(signal.SIGTERM)
        assert await worker.end() == 0
        assert not [line for line in worker.lines if "SENTINEL" in line]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"accept_passwords": ["caf\\u00e9-SENTINEL"]}', "printable ASCII"),
        ('{"accept_passwords": ["SENTINEL"], "helth": {}}', "helth: there is no such key"),
        ('{"accept_passwords": "SENTINEL"}', "accept_passwords"),
        ('{"accept_passwords": ["SENTINEL"', "not JSON"),
    ],
)
async def test_bad_configuration_is_refused_without_repeating_it(tmp_path: Path, text: str, said: str) -> None:
    config = tmp_path / "w.json"
    config.write_text(text)
    async with process("worker", "--config", str(config)) as worker:
        assert await worker.end() == 2
        assert said in worker.lines[-1]
        assert "SENTINEL" not in "".join(worker.lines)


async def test_a_certificate_that_is_half_replaced_at_the_start_is_worth_another_try(tmp_path: Path) -> None:
    for generation in ("former", "renewed"):
        certs.write_dev(tmp_path / generation)
    tls = {"cert": str(tmp_path / "renewed" / "worker.pem"), "key": str(tmp_path / "worker.key")}
    config = write_config(tmp_path / "w.json", tls=tls)
    shutil.copy(tmp_path / "former" / "worker.key", tmp_path)
    async with process("worker", "--config", str(config)) as worker:
        assert await worker.end() == 3, "systemd starts it again; with 2 it would not"
        assert "are no certificate and its private key" in worker.lines[-1]
    shutil.copy(tmp_path / "renewed" / "worker.key", tmp_path)
    async with process("worker", "--config", str(config)) as worker:
        await worker.event("listening")


async def test_loose_permissions_and_missing_models_are_said(tmp_path: Path) -> None:
    config = write_config(tmp_path / "w.json", models={"dir": str(tmp_path / "models")})
    config.chmod(0o644)
    async with process("worker", "--config", str(config), "--listen", "127.0.0.1:0") as worker:
        assert "chmod 600" in (await worker.event("config_permissions"))["problem"]
        client = Client((await worker.event("listening"))["address"])
        problem = (await worker.event("models_not_loaded"))["problem"]
        assert "face_landmarker.task is missing" in problem
        assert await client.check("liveness", metadata=()) == SERVING
        assert await client.check("") == NOT_SERVING
        assert await client.reason("") == f"models:{problem}"
        await client.channel.close()
        worker.signal(signal.SIGTERM)
        assert await worker.end() == 0


async def test_an_unknown_log_level_is_wrong_usage() -> None:
    async with process("worker", "--log-level", "loud") as worker:
        assert await worker.end() == 2
        assert "'loud'" in "".join(worker.lines)


async def test_help_names_the_options() -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "worker", "--help", cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    text = " ".join((await child.communicate())[0].decode().split())
    assert child.returncode == 0
    for said in ("--config", "--listen", "HEALTH_MIN_FREE_GB", "SIGTERM", "hairmesh models fetch"):
        assert said in text
