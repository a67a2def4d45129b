"""The site for nginx: a real nginx in front of real edges."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from edge.command import KEEP_ALIVE_S
from edge.errors import PARAMETER, SYSTEM, TABLE, ApiError
from edge.messages import Lang
from edge.pool.config import DispatchConfig
from edge.settings.pictures import Limits
from tests.deploy.monitoring import ROOT
from tests.deploy.proxy import ADMIN, ELSEWHERE, SITE, SYSCTL, Nginx, Site
from tests.edge.process import Process
from tests.edge.rest import MEASURE, PHOTO, STYLES
from tests.fakes.answers import Grow, Hold
from tests.fakes.worker import PASSWORD, FakeWorker

SIZING = re.sub(r"<!-- (?:=\w+|/) -->", "", (ROOT / "docs" / "sizing.md").read_text())
"""As it is read, without the marks of computed numbers."""
KUBERNETES = (ROOT / "docs" / "kubernetes.md").read_text()
MIB = 1024 * 1024
FORM: dict[str, Any] = {"files": {"image": ("p.jpg", PHOTO)}}


def number(pattern: str) -> float:
    """The one number that stands there in the site's file."""
    (found,) = re.findall(rf"^\s*{pattern}", SITE, re.MULTILINE)
    return float(found)


# What the file says.


def test_nginx_takes_the_file(tmp_path: Path) -> None:
    said = Nginx(tmp_path / "nginx", "127.0.0.1:8080").check()
    assert "[warn]" not in said
    assert "test is successful" in said


def test_a_body_that_the_edge_takes_passes_and_never_touches_a_disk() -> None:
    largest = number(r"client_max_body_size (\d+)m;") * MIB
    assert Limits().max_body_bytes < largest < number(r"client_body_buffer_size (\d+)m;") * MIB
    assert f'"max_bytes":{Limits().max_body_bytes}' in SITE
    assert re.search(r"^\s*client_body_temp_path /run/", SITE, re.MULTILINE)
    assert number(r"proxy_max_temp_file_size (\d+);") == 0


def test_the_longest_call_is_waited_for() -> None:
    dispatch = DispatchConfig()
    assert dispatch.max_queue_wait_seconds == 590
    attempts_s = (1 + dispatch.max_retries) * dispatch.growth_timeout_seconds
    longest_s = dispatch.max_queue_wait_seconds + dispatch.queue_wait_seconds + attempts_s
    assert number(r"proxy_read_timeout (\d+)s;") > longest_s
    (told,) = re.findall(r"to wait (\d[\d,]*) s for an answer", KUBERNETES)
    assert float(told.replace(",", "")) > longest_s  # of an ingress
    assert number(r"    keepalive_timeout (\d+)s;  # shorter") < KEEP_ALIVE_S


def test_nothing_that_was_sent_is_sent_again() -> None:
    (conditions,) = re.findall(r"^\s*proxy_next_upstream ([^;]+);", SITE, re.MULTILINE)
    assert set(conditions.split()) == {"error", "timeout"}


def test_its_refusals_are_the_edges() -> None:
    """Every reason that nginx gives, word by word and number by number."""
    set_in = re.findall(r"set \$hairmesh_reason (\w+);\s+return (\d+) \$hairmesh_refusal;", SITE)
    assert len(set_in) == 9
    for reason, status in set_in:
        assert TABLE[reason].http_status == int(status), reason
        for lang in Lang:
            (message,) = re.findall(rf'"{reason} {lang}" "(.+)";', SITE)
            assert message == TABLE[reason].message.of(lang)
            advice = ApiError(reason).advice
            told = re.findall(rf"\"(?:{reason}|~\^\([A-Z_|]*\b{reason}\b[A-Z_|]*\)) {lang}\" '\"(.+)\"';", SITE)
            assert told == ([advice.of(lang)] if advice else []), reason
        (code,) = re.findall(rf"^    {reason} (1\d+);", SITE, re.MULTILINE) or [str(PARAMETER)]
        assert int(code) == TABLE[reason].code
        (later,) = re.findall(r"^map \$hairmesh_reason \$hairmesh_retry_after \{.*?^\}", SITE, re.MULTILINE | re.DOTALL)
        told_s = re.findall(rf"^    {reason} (\d+);", later, re.MULTILINE)
        assert told_s == ([str(TABLE[reason].retry_after_s)] if TABLE[reason].retry_after_s else []), reason


def test_the_page_on_several_machines_shows_what_lies_in_the_files() -> None:
    shown = dict(re.findall(r"^```(nginx|ini)\n(.*?)^```", SIZING, re.M | re.S))
    assert f"#{shown['nginx']}" in SITE
    assert [line for line in SYSCTL.splitlines() if not line.startswith("#")] == shown["ini"].splitlines()
    kernel = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", shown["ini"])}
    silent_s = kernel["tcp_keepalive_time"] + kernel["tcp_keepalive_intvl"] * kernel["tcp_keepalive_probes"]
    in_vain_s = int(0.2 * (2 ** (kernel["tcp_retries2"] + 1) - 1))  # doubled from 0.2 s on
    assert f"after {silent_s} s, or {in_vain_s} s" in SIZING
    assert f"with these after {silent_s} s, or {in_vain_s} s" in SYSCTL
    assert "proxy_socket_keepalive on;" in SITE


def test_nginx_takes_the_servers_on_other_machines_too(tmp_path: Path) -> None:
    said = Nginx(tmp_path / "nginx", "10.0.0.11:8080", "10.0.0.12:8080", server=ELSEWHERE).check()
    assert "test is successful" in said


# What it does.


def handled(edge: Process, request_id: str) -> int:
    """How many requests with that id an edge, which has stopped, has in its log."""
    lines = (edge.folder / "request_log.jsonl").read_text().splitlines()
    return [json.loads(line)["request_id"] for line in lines].count(request_id)


async def test_from_outside(tmp_path: Path, worker: FakeWorker) -> None:
    """TLS and HTTP/2, calls, pictures, closed paths, refusals, addresses; and what stands in the log of all that."""
    async with Site(tmp_path, worker, 1) as site:
        good = await site.client.post(MEASURE, **FORM, headers={"X-Request-ID": "mine-1"})
        assert (good.status_code, good.json()["request_id"], good.headers["x-request-id"]) == (200, "mine-1", "mine-1")
        picture = await see_the_picture(site, good.json()["data"]["annotated_image_url"])
        await speak_http2(site)
        await find_closed(site)
        await be_refused(site)
        await be_known_by_address(site)
    lines = site.nginx.log()
    assert next(line for line in lines if line["request_id"] == "mine-1")["path"] == MEASURE
    assert {line["path"] for line in lines} >= {"/static/annotations/-", "/api/v1/requests/-/pictures", "-"}
    errors = (site.nginx.folder / "hairmesh_error.log").read_text()
    for never in (picture, "SENTINEL", "127.0.0.2", ADMIN):
        assert never not in (site.nginx.folder / "hairmesh.log").read_text() + errors


async def see_the_picture(site: Site, url: str) -> str:
    """Its file's name. What the edge says of it is said once."""
    assert url.startswith("https://face.example/static/annotations/")
    name = url.rpartition("/")[2]
    seen = await site.client.get(f"/static/annotations/{name}?token=SENTINEL")
    assert (seen.status_code, seen.content[:4]) == (200, b"\x89PNG")
    for header, value in {
        "cache-control": "private, no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "strict-transport-security": "max-age=31536000",
    }.items():
        assert seen.headers.get_list(header) == [value]
    return name


async def speak_http2(site: Site) -> None:
    assert await curl(site.nginx, "--http2", path="/livez") == '{"status":"ok","service":"gateway"} 2 200'


async def curl(nginx: Nginx, *arguments: str, path: str) -> str:
    """The answer, the version of HTTP and the status."""
    command = ["curl", "-s", "--cacert", str(nginx.folder / "tls" / "ca.pem"), "-w", " %{http_version} %{http_code}"]
    process = await asyncio.create_subprocess_exec(
        *command, *arguments, f"{nginx.url}{path}", stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    return said.decode()


async def find_closed(site: Site) -> None:
    """The edge would answer each of these."""
    token = {"Authorization": f"Bearer {ADMIN}"}
    for path in ("/metrics", "/admin/pool", "/admin/stats", "/docs", "/openapi.json", "/console", "/nothing/SENTINEL"):
        for sent in (path, f"/api/..{path}", f"/static/annotations/%2e%2e/..{path}", f"/{path}"):
            answer = await site.client.get(httpx.URL(site.nginx.url).copy_with(raw_path=sent.encode()), headers=token)
            assert answer.status_code in {400, 404}, sent
            assert answer.json() == {"status": "error", "message": answer.json()["message"]}
    for path in ("/livez", "/readyz", "/health", "/gateway-health", "/monitor"):
        assert (await site.client.get(path)).status_code == 200
    # A drill is of one edge, and made at its own port: from outside it would be of use to nobody but who guesses.
    drill = await site.client.post("/monitor/fault", json={"enabled": True}, headers={"X-Internal-Token": PASSWORD})
    assert drill.status_code == 404
    assert (await site.client.get("/monitor")).status_code == 200


async def be_refused(site: Site) -> None:
    """One body is too large for the edge, the other for nginx already: clients see no difference."""
    kind = {"Content-Type": "application/json"}
    sizes = (5 * MIB // 2, 4 * MIB)
    answers = [await site.client.post(MEASURE, content=bytes(size), headers=kind) for size in sizes]
    told = [answer.json() for answer in answers]
    assert [answer.status_code for answer in answers] == [413, 413]
    assert told[0]["data"]["details"] == {"size_bytes": 5 * MIB // 2, "max_bytes": 2 * MIB}
    assert told[1]["data"]["details"] == {"size_bytes": 4 * MIB, "max_bytes": 2 * MIB}
    for each, answer in zip(told, answers, strict=True):
        assert answer.headers["x-request-id"] == each.pop("request_id")
        del each["data"]["details"]
    assert told[0] == told[1]
    for header in ("content-type", "content-language", "vary", "cache-control", "strict-transport-security"):
        assert answers[0].headers.get_list(header) == answers[1].headers.get_list(header), header
    in_english = await site.client.post(MEASURE, content=bytes(4 * MIB), headers={"Accept-Language": "en-GB,zh;q=0.5"})
    assert in_english.json()["message"] == TABLE["BODY_TOO_LARGE"].message.en
    for long in (
        await site.client.get(f"{MEASURE}?{'SENTINEL' * 5_000}"),
        await site.client.post(MEASURE, **FORM, headers={"X-Long": "a" * 40_000}),
    ):
        assert (long.status_code, reason(long)) == (431, "HEAD_TOO_LARGE")
    traced = await site.client.request("TRACE", MEASURE)
    assert (traced.status_code, reason(traced)) == (405, "METHOD_NOT_ALLOWED")
    odd = await curl(site.nginx, "--http1.1", "-H", "Transfer-Encoding: xchunked", "-d", "x", path=MEASURE)
    assert '"BAD_REQUEST"' in odd
    assert odd.endswith(" 1.1 400")
    async with httpx.AsyncClient(trust_env=False) as plain:
        answer = await plain.get(f"http://127.0.0.1:{site.nginx.port}{MEASURE}?token=SENTINEL")
        assert (answer.status_code, reason(answer)) == (400, "BAD_REQUEST")


async def be_known_by_address(site: Site) -> None:
    """The edge knows who guesses tokens, whatever they claim to be."""
    async with site.nginx.client(from_address="127.0.0.2") as guesser:
        headers = {"Authorization": "Bearer wrong-token-of-somebody", "X-Forwarded-For": "10.9.9.9"}
        answer = await guesser.delete("/api/v1/requests/mine-1/pictures", headers=headers)
    assert answer.status_code == 401
    stderr = site.edges[0].process.stderr
    assert stderr is not None
    while (line := json.loads(await stderr.readline()))["event"] != "wrong_tokens":
        pass
    assert line["clients"] == ["127.0.0.2"]


async def test_progress_arrives_while_the_call_runs(tmp_path: Path, worker: FakeWorker) -> None:
    held = Hold()
    worker.script.append(Grow(steps=3, midway_at=1, midway=held))
    async with Site(tmp_path, worker, 1) as site:
        headers = {"Accept": "text/event-stream"}
        async with site.client.stream("POST", STYLES, **FORM, headers=headers) as answer:
            lines = answer.aiter_lines()
            first = [await anext(lines), await anext(lines)]
            while "event: progress" not in first:
                first.append(await anext(lines))
            assert not held.release.is_set()
            held.release.set()
            rest = [line async for line in lines]
    assert "event: result" not in first
    assert "event: result" in rest


async def test_a_call_that_its_edge_took_along_is_told_so_and_made_once(tmp_path: Path, worker: FakeWorker) -> None:
    held = worker.hold()
    async with Site(tmp_path, worker, 2) as site:
        call = asyncio.create_task(site.client.post(MEASURE, **FORM, headers={"X-Request-ID": "lost"}))
        await held.started.wait()
        dead, alive = site.edges
        dead.process.kill()  # the first request goes to the first edge
        answer = await call
        held.release.set()
        told = answer.json()
        assert (answer.status_code, answer.headers["retry-after"], told["request_id"]) == (503, "1", "lost")
        assert (told["code"], told["data"]["reason"]) == (SYSTEM, "EDGE_FAILED")
        after = [await site.client.post(MEASURE, **FORM) for _call in range(10)]
        assert {each.status_code for each in after} == {200}
        alive.process.send_signal(signal.SIGTERM)
        await alive.process.wait()
        assert handled(alive, "lost") == 0
        nobody = await site.client.post(MEASURE, **FORM, headers={"Accept-Language": "en"})
        assert (nobody.status_code, nobody.json()["message"]) == (503, TABLE["NO_EDGE"].message.en)
        monitored = await site.client.get("/monitor")
        assert (monitored.status_code, monitored.json()["status"]) == (503, "error")
    assert [seen.metadata["x-request-id"] for seen in worker.seen].count("lost") == 1


class Callers:
    """Clients that make one fast call after the other until they are told to end."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.answers: list[httpx.Response] = []
        self.leaving = self.left = 0
        """Edges that were told to go, and those that are gone."""
        self.meanwhile: list[httpx.Response] = []
        """Those of the answers to calls that were under way while an edge went."""
        self._client = client
        self._news = asyncio.Condition()
        self._end = False
        self.may_call = asyncio.Event()
        """Cleared while nothing is to be seen: nginx slows down who makes more than 200 calls at once."""
        self.may_call.set()

    async def call(self) -> None:
        while not self._end:
            await self.may_call.wait()
            left = self.left
            answer = await self._client.post(MEASURE, **FORM)
            self.answers.append(answer)
            if self.leaving > left:
                self.meanwhile.append(answer)
            async with self._news:
                self._news.notify_all()

    async def several_more(self, count: int = 40) -> None:
        """Until so many more answers have come."""
        before = len(self.answers)
        async with self._news:
            await self._news.wait_for(lambda: len(self.answers) >= before + count)

    def end(self) -> None:
        self._end = True


@pytest.mark.parametrize("number_of_signal", [signal.SIGTERM, signal.SIGKILL])
async def test_one_edge_after_the_other_is_replaced_and_fast_calls_go_on(
    tmp_path: Path, worker: FakeWorker, number_of_signal: signal.Signals
) -> None:
    """Told to go, it finishes what it has: no error at all. Killed, it takes along calls that were under way to it."""
    clients = 4
    async with Site(tmp_path, worker, 2) as site, asyncio.TaskGroup() as group:
        callers = Callers(site.client)
        for _client in range(clients):
            group.create_task(callers.call())
        for leaver in site.edges:
            await callers.several_more()
            callers.leaving += 1
            leaver.process.send_signal(number_of_signal)
            await leaver.process.wait()
            callers.left += 1
            await callers.several_more()
            callers.may_call.clear()
            await leaver.restart()
            callers.may_call.set()
        callers.end()
    lost = [answer for answer in callers.answers if answer.status_code != 200]
    if number_of_signal is signal.SIGTERM:
        assert lost == []
    else:
        assert {(answer.status_code, reason(answer)) for answer in lost} <= {(503, "EDGE_FAILED")}
        assert all(answer in callers.meanwhile for answer in lost), "none that was made once the edge was gone"
        assert len(callers.meanwhile) < len(callers.answers)


def reason(answer: httpx.Response) -> Any:
    return answer.json()["data"]["reason"]


async def test_a_flood_from_one_address_is_slowed_down(tmp_path: Path) -> None:
    changes = {"rate=100r/s": "rate=1r/m", "burst=200": "burst=1"}
    async with Nginx(tmp_path / "nginx", "127.0.0.1:1", changes=changes) as nginx, nginx.client() as client:
        answers = [await client.post(MEASURE, **FORM) for _call in range(3)]
        assert [answer.status_code for answer in answers] == [503, 503, 429]
        assert reason(answers[2]) == "TOO_MANY_REQUESTS"
        assert answers[2].headers["retry-after"] == "5"


async def test_no_photo_touches_a_disk(tmp_path: Path) -> None:
    """nginx says where it writes a body down, or tries to; however it is sent."""
    changes = {"hairmesh_error.log crit": "hairmesh_error.log warn"}
    photo = bytes(29 * MIB // 10)
    async with Nginx(tmp_path / "nginx", "127.0.0.1:1", changes=changes) as nginx, nginx.client() as client:

        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(photo), 50_000):
                yield photo[at : at + 50_000]

        for content in (photo, pieces()):
            assert (await client.post(MEASURE, content=content)).status_code == 503
        (tmp_path / "photo").write_bytes(photo)
        said = await curl(nginx, "--http2", "--data-binary", f"@{tmp_path / 'photo'}", path=MEASURE)
        assert said.endswith(" 503")
    assert str(nginx.folder / "bodies") not in (nginx.folder / "hairmesh_error.log").read_text()
    assert [line["edge_status"] for line in nginx.log()] == ["502"] * 3  # each went as far as an edge that is not there
