"""`hairmesh analyze` as a person runs it, against a served edge."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import pty
import signal
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hair.analysis.v1 import growth_pb2
from PIL import Image

from edge.calls import Call, Outcome
from hairmesh.analyze import main
from hairmesh.analyze.options import Options, UsageError
from hairmesh.analyze.run import EndedError
from hairmesh.client.answers import MeasureResponse
from hairmesh.client.decode import decode
from hairmesh.client.plain import Client as PlainClient
from hairmesh.demo_inputs import studio_portrait
from hairmesh.stack import Stack
from tests.edge.process import Process as EdgeProcess
from tests.edge.rest import ANNOTATED, FakeMesh, Rest, failed, grown_styles, picture, serving
from tests.fakes.worker import FakeWorker
from tests.hairmesh.client.scripted import SPECIAL, Reply, refused, scripted

PROGRAM = Path(sys.executable).with_name("hairmesh")
ANNA, BERTA, NOBODY = (picture(size=(200 + number, 300)) for number in range(3))
PATIENCE_S = 90


@dataclass
class Picky(FakeMesh):
    """Finds no face in photos it does not like, and is busy as often as it is told to."""

    dislikes: bytes = b""
    busy: int = 0

    async def call(self, call: Call) -> Outcome:
        """As above."""
        message: Any = call.message
        self.failure, self.refuses = None, False
        if self.busy:
            self.busy -= 1
            self.failure, self.refuses = failed("BUSY", retry_after_s=0.1), True
        elif message.photo.data == self.dislikes:
            self.failure = failed("NO_FACE")
        return await super().call(call)


OPTIONS = Options(
    photos=[Path("faces")],
    call="measure",
    parameters=[],
    mask=None,
    out=Path("out/analysis"),
    url=None,
    api_key_file=None,
    ca=None,
    language="en",
    concurrency=2,
    patience_s=60.0,
    wait_s=60.0,
    recursive=True,
    again=False,
    as_json=False,
    insecure=False,
)


@dataclass
class Desk:
    """A folder with photos, which is the working directory; an edge; and the program, as a process or in this one."""

    folder: Path
    rest: Rest
    mesh: Picky

    @property
    def url(self) -> str:
        """Of the edge."""
        return f"http://127.0.0.1:{self.rest.port}"

    async def start(
        self, *arguments: str, stderr: int = asyncio.subprocess.PIPE, under: tuple[str, ...] = ()
    ) -> asyncio.subprocess.Process:
        """Run it on the folder `faces`, as a process; `under`: the command that runs it."""
        command = [*under, str(PROGRAM), "analyze", "faces", "-r", "--url", self.url, *arguments]
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        return await asyncio.create_subprocess_exec(
            *command, cwd=self.folder, env=environment, stdout=asyncio.subprocess.PIPE, stderr=stderr
        )

    async def analyse(self, **options: Any) -> tuple[int, int]:
        """The same in this process; how many were answered now, and how many before. Raises `EndedError`."""
        analysis = main.planned(replace(OPTIONS, **{"url": self.url, **options}))
        await analysis.work()
        return len(analysis.outcome.answered), len(analysis.outcome.done_before)

    def files(self) -> set[str]:
        """What lies in the output folder."""
        out = self.folder / "out/analysis"
        return {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.chdir(tmp_path)
    for name, photo in (("anna/front.jpg", ANNA), ("berta/front.jpg", BERTA), ("nobody.jpg", NOBODY)):
        path = tmp_path / "faces" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photo)
    mesh = Picky(dislikes=NOBODY)
    async with serving(tmp_path, mesh) as rest:
        yield Desk(tmp_path, rest, mesh)


ANSWERED = [f"faces/{name}/front.jpg.measure.{end}" for name in ("anna", "berta") for end in ("json", "annotated.png")]


async def test_a_folder_and_what_failed_is_tried_again(desk: Desk) -> None:
    process = await desk.start("--json")
    async with asyncio.timeout(PATIENCE_S):
        out, said = await process.communicate()
    assert process.returncode == 1
    assert said.decode().splitlines() == [
        "3 photos: 2 answered, 1 failed",
        "  faces/nobody.jpg: NO_FACE: No face was found in the photo. Take the photo again: facing the camera, in even "
        "light, the whole face in the frame.",
        *(f"  out/analysis/{name}" for name in ANSWERED),
    ]
    failures = "failures.measure.json"
    assert desk.files() == {*ANSWERED, failures}
    assert (desk.folder / "out/analysis/faces/anna/front.jpg.measure.annotated.png").read_bytes() == ANNOTATED
    by_photo = {line["photo"]: line for line in map(json.loads, out.splitlines())}
    assert by_photo["faces/anna/front.jpg"]["answer"]["scale"]["mm_per_px"] == 0.2
    assert by_photo["faces/nobody.jpg"]["error"]["reason"] == "NO_FACE"
    assert json.loads((desk.folder / "out/analysis" / failures).read_text()) == [by_photo["faces/nobody.jpg"]]

    desk.mesh.calls.clear()
    desk.mesh.dislikes, desk.mesh.busy = b"", 1
    assert await desk.analyse() == (1, 2)
    assert [call.message.photo.data for call in desk.mesh.calls] == [NOBODY, NOBODY]  # type: ignore[attr-defined]


async def test_what_is_done_is_done_for_that_photo_with_those_parameters(desk: Desk) -> None:
    desk.mesh.dislikes = b""
    assert await desk.analyse() == (3, 0)
    (desk.folder / "faces/anna/front.jpg").write_bytes(picture(size=(222, 300)))
    (desk.folder / "out/analysis/faces/berta/front.jpg.measure.annotated.png").unlink()
    assert await desk.analyse() == (2, 1)
    assert await desk.analyse() == (0, 3)
    with_scale: dict[str, Any] = {"parameters": ["pupillary_distance_mm=63.5"]}
    assert await desk.analyse(**with_scale, again=True) == (3, 0)
    assert desk.mesh.request.pupillary_distance_mm == 63.5
    assert await desk.analyse(**with_scale, again=True) == (3, 0)
    assert await desk.analyse(**with_scale) == (0, 3)
    for damaged in ("{", "[]", '{"pictures": 5}'):
        (desk.folder / "out/analysis/faces/anna/front.jpg.measure.json").write_text(damaged)
        assert await desk.analyse(**with_scale) == (1, 2)


async def test_answers_to_other_parameters_stay_unless_it_is_said(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.mesh.dislikes = b""
    assert await desk.analyse(photos=[Path("faces/anna")]) == (1, 0)
    before = {name: (desk.folder / "out/analysis" / name).read_bytes() for name in desk.files()}
    desk.mesh.calls.clear()
    other = replace(OPTIONS, url=desk.url, parameters=["pupillary_distance_mm=63.5"])
    assert main.run(other) == 64
    assert capsys.readouterr().err == (
        "analyze: 1 answer of other parameters would be lost, such as out/analysis/faces/anna/front.jpg.measure.json "
        "(pupillary_distance_mm: not given there, 63.5 here): another --out keeps both, --again replaces what lies "
        "there\n"
    )
    assert main.run(replace(OPTIONS, url=desk.url, language="zh")) == 64
    assert "lang: en there, zh here" in capsys.readouterr().err
    assert desk.mesh.calls == []
    assert {name: (desk.folder / "out/analysis" / name).read_bytes() for name in desk.files()} == before
    assert await desk.analyse(parameters=other.parameters, out=Path("out/second")) == (3, 0)
    analysis = main.planned(replace(other, again=True))
    await analysis.work()
    assert analysis.finish(0) == 0
    said = "3 photos: 3 answered\n  1 of the answers replaced an earlier one\n"
    assert capsys.readouterr().err.startswith(said)


async def test_pictures_of_a_former_answer_do_not_stay_beside_another(desk: Desk) -> None:
    def grow(style: str) -> None:
        result = growth_pb2.StyleResult(style=style)
        result.image.data = result.grown_image.data = ANNOTATED
        desk.mesh.results = grown_styles(result)

    desk.mesh.dislikes = b""
    grow("m")
    await desk.analyse(call="styles", parameters=["styles=m"], photos=[Path("faces/nobody.jpg")])
    assert desk.files() == {f"faces/nobody.jpg.styles.{end}" for end in ("json", "m.png", "m_grown.png")}
    grow("bell")
    await desk.analyse(call="styles", parameters=["styles=bell"], photos=[Path("faces/nobody.jpg")], again=True)
    assert desk.files() == {f"faces/nobody.jpg.styles.{end}" for end in ("json", "bell.png", "bell_grown.png")}


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_stopped_in_the_middle_it_leaves_nothing_half_and_goes_on(
    desk: Desk, number: signal.Signals, status: int
) -> None:
    desk.mesh.dislikes = b""
    desk.mesh.gate = asyncio.Event()
    process = await desk.start("--concurrency", "1")
    async with asyncio.timeout(PATIENCE_S):
        await desk.mesh.called.wait()
        process.send_signal(number)
        _, said = await process.communicate()
        await desk.mesh.cancelled.wait()
    assert process.returncode == status
    assert said.decode() == "3 photos: 3 not tried\nanalyze: stopped. The same command goes on from here.\n"
    assert desk.files() == set()
    desk.mesh.gate = None
    assert await desk.analyse() == (3, 0)


async def test_under_nohup_it_outlives_its_terminal(desk: Desk) -> None:
    desk.mesh.dislikes = b""
    desk.mesh.gate = asyncio.Event()
    process = await desk.start(under=("sh", "-c", 'trap "" HUP; exec "$0" "$@"'))
    async with asyncio.timeout(PATIENCE_S):
        await desk.mesh.called.wait()
        process.send_signal(signal.SIGHUP)
        desk.mesh.gate.set()
        _, said = await process.communicate()
    assert process.returncode == 0
    assert said.startswith(b"3 photos: 3 answered\n")


WITH_PICTURE = Reply(200, {}, SPECIAL.content.replace(b'"points"', b'"annotated_image_url": "/static/1.png", "points"'))
HALF_A_PICTURE = Reply(200, {}, b"half of a fa", stalls=True)
SPECIAL_POINTS = ("--call", "special-points", "--concurrency", "1", "--language", "en")


@pytest.mark.parametrize("lost", [False, True])
async def test_a_lost_terminal_leaves_no_half_of_a_picture(desk: Desk, lost: bool) -> None:
    """And where nobody is left to read the summary, its failures are files all the same."""
    ours, theirs = pty.openpty()
    with scripted() as server:
        server.replies = [refused(1001, "NO_FACE", 400), WITH_PICTURE, HALF_A_PICTURE]
        process = await desk.start(*SPECIAL_POINTS, "--url", server.url, stderr=theirs)
        os.close(theirs)
        assert await asyncio.to_thread(server.stalled.wait, PATIENCE_S)
        assert [name.endswith(".part") for name in desk.files()] == [True]
        if lost:
            os.close(ours)
        process.send_signal(signal.SIGHUP)
        said = "" if lost else await asyncio.to_thread(all_of, ours)
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == 129
    assert lost or "1 failed, 2 not tried" in said
    assert desk.files() == {"failures.special-points.json"}


async def test_what_a_killed_run_has_left_half_is_removed_by_the_next_and_nothing_else_is(desk: Desk) -> None:
    others = {"faces/.nobody.jpg.0123abcd.part", "faces/.nobody.jpg.masks.json.part", ".a.json.0123abcd.part"}
    for name in others:
        path = desk.folder / "out/analysis" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"of somebody else")
    ask: dict[str, Any] = {"call": "special-points", "photos": [Path("faces/nobody.jpg")]}
    with scripted() as server:
        server.replies = [WITH_PICTURE, HALF_A_PICTURE]
        process = await desk.start(*SPECIAL_POINTS, "--url", server.url)
        assert await asyncio.to_thread(server.stalled.wait, PATIENCE_S)
        (half,) = desk.files() - others
        assert half.endswith(".part")
        server.replies = [SPECIAL]
        assert await desk.analyse(**ask, url=server.url) == (1, 0)
        assert half in desk.files(), "it is being written"
        process.kill()
        await process.communicate()
        assert half in desk.files()
        assert await desk.analyse(**ask, url=server.url) == (0, 1)
    assert desk.files() == {*others, "faces/nobody.jpg.special-points.json"}


async def test_an_answer_that_cannot_be_read_is_that_photos_failure(desk: Desk) -> None:
    with scripted() as server:
        server.replies = [Reply(200, {"content-encoding": "gzip"}, b"not gzip"), SPECIAL]
        assert await desk.analyse(url=server.url, call="special-points", concurrency=1) == (2, 0)


async def test_what_every_photo_would_meet_ends_it(desk: Desk) -> None:
    with pytest.raises(EndedError, match=r"INVALID_PARAMETER.*pupillary_distance_mm.*40") as caught:
        await desk.analyse(parameters=["pupillary_distance_mm=5"], concurrency=1)
    assert "request" in str(caught.value)
    assert desk.rest.server.server_state.total_requests == 1
    assert desk.mesh.calls == []


async def test_an_edge_that_restarts_in_the_middle_is_waited_for(desk: Desk) -> None:
    """It is killed with a photo inside, and every photo is answered in the end."""
    worker = FakeWorker()
    await worker.start()
    (desk.folder / "edge").mkdir()
    async with EdgeProcess(desk.folder / "edge", worker.address) as edge:
        held = worker.hold()
        url = f"http://127.0.0.1:{edge.port}"
        process = await desk.start("--concurrency", "1", "--url", url)
        assert process.stderr is not None
        async with asyncio.timeout(PATIENCE_S):
            await held.started.wait()
            edge.process.kill()
            await edge.process.wait()
            held.release.set()
            told = await process.stderr.readline()
            await edge.restart()
            said = (await process.stderr.read()).decode()
            assert await process.wait() == 0
    await worker.stop()
    assert told.decode() == f"analyze: no edge at {url}: waiting for it, up to 60 s\n"
    assert said.startswith("3 photos: 3 answered\n"), "and the line came once"


async def test_an_edge_that_does_not_come_ends_it(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        for wait_s, lines in ((0.0, 0), (1.0, 1)):
            with pytest.raises(EndedError, match="not reachable") as caught:
                await desk.analyse(url=url, wait_s=wait_s)
            assert caught.value.to_do == "The same command goes on from here."
            assert capsys.readouterr().err.count("waiting for it, up to 1 s") == lines


async def test_the_photo_that_met_the_end_has_failed_and_the_others_were_not_tried(desk: Desk) -> None:
    process = await desk.start("--set", "pupillary_distance_mm=5", "--concurrency", "1", "--json")
    async with asyncio.timeout(PATIENCE_S):
        out, said = await process.communicate()
    assert process.returncode == 1
    counted, failed, ended = said.decode().splitlines()
    assert counted == "3 photos: 1 failed, 2 not tried"
    assert failed.startswith("  faces/nobody.jpg: INVALID_PARAMETER: ")
    assert ended.startswith("analyze: A parameter is invalid. (INVALID_PARAMETER, request ")
    assert '{"field": "pupillary_distance_mm"' in ended
    assert ended.endswith("}. The same command fails again: --set and --mask say what is sent with each photo.")
    (line,) = map(json.loads, out.splitlines())
    assert json.loads((desk.folder / "out/analysis/failures.measure.json").read_text()) == [line]


async def test_names_of_any_bytes(desk: Desk, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    name = os.fsdecode(b"\xff \n \x1b[2J \xe5\xae\x89.jpg")
    (desk.folder / "faces" / name).write_bytes(picture(size=(333, 300)))
    assert await desk.analyse(as_json=True) == (3, 0)
    assert await desk.analyse(as_json=True) == (0, 3)
    out, _ = capsysbinary.readouterr()
    lines = out.splitlines()
    assert len(lines) == 8
    assert f"faces/{name}" in {json.loads(line)["photo"] for line in lines}
    assert "安".encode() in out


async def test_a_photo_as_a_camera_makes_it_is_told_the_limit(desk: Desk) -> None:
    (desk.folder / "faces/large.jpg").write_bytes(ANNA + bytes(2 * 1024 * 1024))
    process = await desk.start()
    async with asyncio.timeout(PATIENCE_S):
        _, said = await process.communicate()
    (line,) = (line for line in said.decode().splitlines() if "large" in line)
    assert line.startswith("  faces/large.jpg: BODY_TOO_LARGE: The request is too large. {")
    assert '"max_bytes": 2097152' in line
    assert line.endswith("Compress the picture or scale it down before uploading it.")


async def test_results_that_cannot_be_written_end_it(desk: Desk) -> None:
    (desk.folder / "out").write_text("no folder")
    with pytest.raises(NotADirectoryError):
        await desk.analyse()


async def test_a_photo_that_cannot_be_read_is_its_own_failure(desk: Desk) -> None:
    (desk.folder / "faces/gone.jpg").symlink_to("nowhere")
    os.mkfifo(desk.folder / "faces/pipe.jpg")
    analysis = main.planned(replace(OPTIONS, url=desk.url))
    await analysis.work()
    reasons = {str(failure.photo): failure.reason for failure in analysis.outcome.failures}
    unreadable = dict.fromkeys(("faces/gone.jpg", "faces/pipe.jpg"), "UNREADABLE_FILE")
    assert reasons == {**unreadable, "faces/nobody.jpg": "NO_FACE"}
    assert len(analysis.outcome.answered) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"parameters": ["colour=red"]}, "measure has annotate, pupillary_distance_mm"),
        ({"parameters": ["annotate"]}, "NAME=VALUE"),
        ({"parameters": ["annotate=\udcff"]}, "annotate: bytes of"),
        ({"url": None}, r"give its --url, or start `hairmesh serve`"),
        ({"url": "http://face.example"}, "plain text"),
        ({"url": "face.example"}, "url must be"),
        ({"url": "http://face.example:port"}, "url must be"),
        ({"mask": Path("faces/nobody.jpg")}, "only grow takes one"),
        ({"photos": [Path("out")], "insecure": True, "url": "http://face.example"}, "no photos"),
    ],
)
def test_wrong_usage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: dict[str, Any],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    assert main.run(replace(OPTIONS, **{"url": "https://face.example", **options})) == 64
    out, error = capsys.readouterr()
    assert said in error
    assert out == ""


async def test_a_key_from_a_file_or_the_environment(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "SENTINEL-key-of-a-client"
    (desk.folder / "key").write_text(f"{key}\n")
    (desk.folder / "keyed").mkdir()
    keys = [{"name": "ours", "sha256": hashlib.sha256(key.encode()).hexdigest()}]
    async with serving(desk.folder / "keyed", desk.mesh, api_keys=keys) as rest:
        asker = Desk(desk.folder, rest, desk.mesh)
        with pytest.raises(EndedError, match="UNAUTHORIZED") as caught:
            await asker.analyse()
        assert "--api-key-file" in caught.value.to_do
        assert "goes on" not in caught.value.to_do
        assert await asker.analyse(api_key_file=Path("key")) == (2, 0)
        monkeypatch.setenv("HAIRMESH_API_KEY", key)
        assert await asker.analyse(again=True) == (2, 0)
    assert all(b"SENTINEL" not in path.read_bytes() for path in (desk.folder / "out").rglob("*") if path.is_file())


async def test_the_service_that_runs_here_is_found(desk: Desk) -> None:
    (desk.folder / "out").mkdir()
    (desk.folder / "out/serve.json").write_text(json.dumps({"url": desk.url, "token": "t"}))
    assert await desk.analyse(url=None) == (2, 0)


@pytest.mark.parametrize("left_behind", ["", "null", "[]", '"url"', "1"])
async def test_half_of_what_a_service_says_of_itself_is_none(desk: Desk, left_behind: str) -> None:
    (desk.folder / "out").mkdir()
    (desk.folder / "out/serve.json").write_text(left_behind)
    with pytest.raises(UsageError, match="which edge"):
        await desk.analyse(url=None)


async def test_a_terminal_sees_how_far_it_is(desk: Desk) -> None:
    desk.mesh.dislikes = b""
    ours, theirs = pty.openpty()
    process = await desk.start(stderr=theirs)
    os.close(theirs)
    seen = await asyncio.to_thread(all_of, ours)
    out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"")
    assert "0/3" in seen
    assert "front.jpg" in seen
    assert "3 photos: 3 answered" in seen


def all_of(terminal: int) -> str:
    """What was written until nobody holds the other side any more."""
    seen = b""
    while True:
        try:
            seen += os.read(terminal, 65536)
        except OSError:  # the other side is closed
            os.close(terminal)
            return seen.decode()


@pytest.mark.models
def test_with_a_real_edge_and_a_real_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    faces = tmp_path / "faces"
    faces.mkdir()
    (faces / "portrait.jpg").write_bytes(studio_portrait())
    (faces / "nobody.png").write_bytes(picture("PNG"))
    with Stack(tmp_path / "stack", workers=1, tls=True) as stack:
        stack.start()
        with PlainClient(stack.url, authority=stack.authority) as client:
            stack.wait_online(client, 1)
        options = replace(OPTIONS, url=stack.url, ca=stack.authority, as_json=True)
        assert main.run(options) == 1
        assert main.run(replace(options, call="hairlines", parameters=["styles=round,m", "sex=female"])) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    refused = {line["error"]["reason"] for line in lines if "error" in line}
    assert refused == {"NO_FACE"}
    measured = next(line for line in lines if line.get("call") == "measure")
    answer = decode(MeasureResponse, measured["answer"])
    assert answer.measurements is not None
    assert answer.measurements.thirds is not None
    assert answer.measurements.thirds.middle is not None
    assert 40 < (answer.measurements.thirds.middle.mm or 0) < 90
    out = tmp_path / "out/analysis/faces"
    for name in ("measure.annotated", "hairlines.round", "hairlines.m"):
        with Image.open(out / f"portrait.jpg.{name}.png") as opened:
            assert max(opened.size) > 1000
