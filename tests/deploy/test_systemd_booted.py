"""`docs/install.md` and `docs/one-machine.md`, typed on a Debian that systemd boots; then what the units promise."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import hairmesh
from hairmesh.client import MEASURE_ROUTE
from scripts import version
from tests.conftest import studio_portrait
from tests.deploy.booted import ADDRESS, NAME, OTHERS, PATIENCE_S, Machine, debian, skip_where_it_cannot
from tests.deploy.monitoring import ROOT
from tests.test_distribution import run, tracked
from vision.models import ModelFiles

pytestmark = [pytest.mark.long, pytest.mark.models, pytest.mark.timeout(1800)]

NEWER = "9.8.7"
TLS = "etc/hairmesh/tls"
UNITS = ("hairmesh-worker@1", "hairmesh-edge@1", "hairmesh-edge@2")
TIMED_OUT, STREAM_REFUSED = 28, 92
"""curl's exit status: no answer to its packets; gRPC is there and takes no plain GET."""
Entry = dict[str, Any]


def block(page: str, begins: str) -> str:
    """The one block of the page that begins so."""
    found = re.findall(r"^```(?:sh|console)\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.M | re.S)
    (one,) = (str(text) for text in found if text.startswith(begins))
    return one


def put(text: str, **values: str) -> str:
    """With what the page leaves to the reader; each is there."""
    for name, value in values.items():
        assert name in text, name
        text = text.replace(name, value)
    return text


# What is released, and the machine.


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By version: what is given out of this tree as it is, and of the same tree under a newer version; with wheels."""
    folder = tmp_path_factory.mktemp("releases")
    clone = folder / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    for name in tracked():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    for name in (".venv", "protos/typescript/node_modules"):
        (clone / name).symlink_to(ROOT / name)
    who = {f"GIT_{who}_{what}": "release@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    given_out = {}
    for number in (hairmesh.__version__, NEWER):
        version.write(number, clone)
        run("git", "commit", "-q", "-a", "--allow-empty", "-m", number, folder=clone, **who)
        given_out[number] = folder / number
        run(clone / "scripts" / "release.sh", given_out[number], folder=clone)
        names = put(block("install.md", "VERSION="), **{f"VERSION={hairmesh.__version__}": f"VERSION={number}"})
        script = "\n".join(
            ["set -euo pipefail", names, block("install.md", "tar -xzf hairmesh-$VERSION.tar.gz\npython3")]
        )
        run("bash", "-c", script, folder=given_out[number], PATH=f"{ROOT}/.venv/bin:{os.environ['PATH']}")
    return given_out


@pytest.fixture(scope="module")
def machine(releases: dict[str, Path], model_files: ModelFiles) -> Iterator[Machine]:
    """Installed and started, nginx in front. The model files lie where they would be fetched to."""
    skip_where_it_cannot()
    machine = Machine(debian())
    try:
        for number, given_out in releases.items():
            shutil.copytree(given_out, machine.root / "srv" / number)
        models = machine.root / "var" / "lib" / "hairmesh" / "models"
        models.mkdir(parents=True)
        for file in (model_files.face_landmarker, model_files.parser_weights):
            shutil.copy(file, models)
            (models / file.name).chmod(0o644)
        machine.boot()
        install(machine, hairmesh.__version__)
        machine.type(block("install.md", "ln -sfn"))
        unpack(machine, hairmesh.__version__)
        for begins in ("PATH=", "SECRETS=", "hairmesh models fetch", "systemctl daemon-reload"):
            said = machine.type(block("one-machine.md", begins))
        assert json.loads(said.splitlines()[-1])["workers_healthy"] == 1, "READY means that it serves"
        (certificates,) = re.findall(r"`(hairmesh certs dev [^`]*)`", (ROOT / "docs" / "one-machine.md").read_text())
        machine.type(put(certificates, **{"YOUR.NAME": NAME}))
        machine.type(put(block("one-machine.md", "install -m 644 deploy/nginx"), **{"YOUR.NAME": NAME}))
        machine.type(block("one-machine.md", "install -D -m 755 /dev/stdin"))
        yield machine
    finally:
        machine.close()


def install(machine: Machine, number: str, *, like: str | None = None) -> None:
    """A version beside those that are there, without internet. With what it needs of others already in place where
    `like` has it, so that pip has to unpack our own wheels alone.
    """
    there = block("install.md", "python3 -m venv $HOUSE/$VERSION\n$HOUSE/$VERSION/bin/pip install --no-index")
    machine.type(put(block("install.md", "VERSION="), **{f"VERSION={hairmesh.__version__}": f"VERSION={number}"}))
    if like is not None:
        machine.type(f"mkdir $HOUSE/{number} && cp -al $HOUSE/{like}/lib $HOUSE/{number}")
        machine.type(f"rm -r $HOUSE/{number}/lib/python3*/site-packages/pip*")  # it leads to the old folder
    said = machine.type(f"cd /srv/{number}\n{there}")
    assert said.split()[-1] == number


def unpack(machine: Machine, number: str) -> None:
    """The sources, and go there."""
    machine.type(f"cd /srv/{number} && tar -xzf hairmesh-{number}.tar.gz && cd hairmesh-{number}")


# What is asked of it.


def measured(machine: Machine) -> dict[str, Any]:
    """A measurement of the other machine's, through nginx."""
    command = ("curl", "-sS", "--cacert", str(machine.root / TLS / "ca.pem"), "-F", f"image=@{studio_portrait()}")
    said = subprocess.run(
        machine.elsewhere(*command, f"https://{NAME}{MEASURE_ROUTE}"), capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    answer: dict[str, Any] = json.loads(said.stdout)
    return answer


class Journal:
    """What was written after it was opened, as it is written."""

    def __init__(self, machine: Machine, unit: str) -> None:
        cursor = machine.run("journalctl", "--lines=0", "--show-cursor").split("cursor: ")[1].strip()
        follow = (
            "stdbuf",
            "--output=L",
            "journalctl",
            "--follow",
            "--output=json",
            f"--unit={unit}",
            f"--after-cursor={cursor}",
        )
        self._follow = machine.process(*follow)
        self._patience = threading.Timer(PATIENCE_S, self._follow.kill)
        self._patience.start()
        self.entries: list[Entry] = []

    def until(self, said: str) -> Entry:
        """The next entry with that in its message."""
        assert self._follow.stdout is not None
        for line in self._follow.stdout:
            self.entries.append(entry := json.loads(line))
            if said in entry["MESSAGE"]:
                found: Entry = entry
                return found
        raise AssertionError(f"{said!r} never came; {[entry['MESSAGE'] for entry in self.entries]}")

    def close(self) -> None:
        """Read no more."""
        self._patience.cancel()
        self._follow.kill()
        self._follow.communicate()


@contextmanager
def journal(machine: Machine, unit: str) -> Iterator[Journal]:
    """Of one unit, from here on."""
    opened = Journal(machine, unit)
    try:
        yield opened
    finally:
        opened.close()


def at_s(entry: Entry) -> float:
    """When it was written, by a clock that nobody sets."""
    return int(entry["__MONOTONIC_TIMESTAMP"]) / 1e6


class Calls:
    """What two clients on the other machine are answered, who go on calling; see `tests.deploy.caller`."""

    def __init__(self, machine: Machine) -> None:
        client = (sys.executable, "-m", "tests.deploy.caller", f"https://{NAME}", str(machine.root / TLS / "ca.pem"))
        tether = (sys.executable, "-m", "hairmesh.tether", str(os.getpid()), shutil.which("nsenter") or "")
        command = machine.elsewhere(*client, str(studio_portrait()))
        self._process = subprocess.Popen([*tether, *command[1:]], stdout=subprocess.PIPE, text=True)
        self.answers: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self.answers.append(json.loads(line))
                self._news.notify_all()

    def until(self, good: Callable[[dict[str, Any]], bool], *, count: int = 1) -> None:
        """Until so many more of these have come."""
        with self._news:
            begin = len(self.answers)
            assert self._news.wait_for(lambda: sum(map(good, self.answers[begin:])) >= count, PATIENCE_S), self.answers

    def close(self) -> None:
        """When the last ones are answered."""
        self._process.terminate()
        self._reader.join()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def calls(machine: Machine) -> Iterator[Calls]:
    """Clients that call all the time, until the end."""
    calling = Calls(machine)
    try:
        calling.until(well, count=4)
        yield calling
    finally:
        calling.close()


def well(answer: dict[str, Any]) -> bool:
    """Whether a call went well."""
    return bool(answer["code"] == 0)


def show(machine: Machine, unit: str, *names: str) -> list[str]:
    """What systemd says of a unit."""
    return [machine.run("systemctl", "show", "--value", f"--property={name}", unit).strip() for name in names]


def version_of(machine: Machine, unit: str) -> str:
    """Of the program that runs."""
    (pid,) = show(machine, unit, "MainPID")
    (number,) = re.findall(r"^/opt/hairmesh/([^/]+)/bin/", machine.run("ps", "-o", "args=", "-p", pid))
    return str(number)


def until_online(machine: Machine, count: int) -> None:
    """Until both edges have so many workers online, and no other."""
    for port in (8080, 8081):
        counted = f'"workers_total":{count},"workers_healthy":{count},'
        asked = f"until curl -s 127.0.0.1:{port}/monitor | grep -qF '{counted}'; do sleep 0.2; done"
        machine.run("timeout", f"{PATIENCE_S:.0f}", "bash", "-c", asked)


# The tests, each of which leaves the machine as it was.


def test_a_measurement_comes_through_nginx_and_so_does_its_picture(machine: Machine, tmp_path: Path) -> None:
    answer = measured(machine)
    assert answer["code"] == 0, answer
    picture = answer["data"]["annotated_image_url"]
    assert picture.startswith(f"https://{NAME}/static/annotations/")
    authority = str(machine.root / TLS / "ca.pem")
    run(
        *machine.elsewhere("curl", "-sSf", "--cacert", authority, "-o", str(tmp_path / "p.png"), picture),
        folder=tmp_path,
    )
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    refused = subprocess.run(machine.elsewhere("curl", "-s", f"http://{NAME}/"), capture_output=True, check=False)
    assert refused.returncode == 7, "nothing listens on port 80"
    assert machine.run("systemctl", "list-units", "--failed", "--no-legend") == ""


def test_they_leave_open_what_the_page_says(machine: Machine) -> None:
    page = (ROOT / "docs" / "one-machine.md").read_text()
    (told,) = re.findall(r"`systemd-analyze security` gives both (\d\.\d) on Debian 12", page)
    for unit in UNITS:
        assert f".service: {told} OK" in machine.run("systemd-analyze", "security", "--no-pager", f"{unit}.service")


def test_nginx_has_the_connections_and_the_descriptors_that_the_page_gives_it(machine: Machine) -> None:
    """Those of the processes that run, whatever its files say."""
    page = (ROOT / "docs" / "one-machine.md").read_text()
    (descriptors,) = re.findall(r"worker_rlimit_nofile (\d+);", page)
    (connections,) = re.findall(r"s/worker_connections \.\*/worker_connections (\d+);/", page)
    assert f"worker_connections {connections};" in machine.run("nginx", "-T")
    for pid in machine.run("pgrep", "--full", "nginx: worker process$").split():
        (limit,) = re.findall(r"Max open files +(\d+) ", machine.run("cat", f"/proc/{pid}/limits"))
        assert limit == descriptors


def test_lines_are_structured_and_secrets_stand_nowhere(machine: Machine) -> None:
    assert measured(machine)["code"] == 0
    edge, worker = (json.loads(machine.run("cat", f"/etc/hairmesh/{name}-1.json")) for name in ("edge", "worker"))
    secrets = {edge["shared_password"], *edge["admin_tokens"], *worker["accept_passwords"]}
    assert all(len(secret) == 48 for secret in secrets)
    files = [f"/etc/hairmesh/secrets/{name}" for name in ("admin_token", "worker_password")]
    assert {machine.run("cat", file).strip() for file in files} == secrets
    for user in ("hairmesh-edge", "hairmesh-worker", "nobody"):
        machine.run("bash", "-c", f"! setpriv --reuid={user} --clear-groups cat {' '.join(files)}")
    told = [
        machine.run("journalctl", "--output=export"),
        machine.run("ps", "axwwwe", "-o", "args"),
        machine.run("systemctl", "show", "*"),
        machine.run("systemctl", "status", "--all", "--full", "--lines=1000", *UNITS),
        machine.run("cat", "/var/log/nginx/hairmesh.log"),
        machine.type("set; history"),
    ]
    assert not [secret for secret in secrets for text in told if secret in text]
    for unit in UNITS:
        said = machine.run("journalctl", "--output=json", f"_SYSTEMD_UNIT={unit}.service", "_TRANSPORT=stdout")
        entries = [json.loads(json.loads(line)["MESSAGE"]) for line in said.splitlines()]
        assert entries
        assert all({"event", "service", "level", "timestamp"} <= entry.keys() for entry in entries)


def test_a_worker_that_is_killed_is_back_after_three_seconds(machine: Machine) -> None:
    (before,) = show(machine, "hairmesh-worker@1", "NRestarts")
    with journal(machine, "hairmesh-worker@1") as worker:
        machine.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", "hairmesh-worker@1")
        gone = worker.until("Main process exited, code=killed, status=9/KILL")
        started = worker.until("Starting hairmesh-worker@1.service")
        assert 3 <= at_s(started) - at_s(gone) < 30
        worker.until("Started hairmesh-worker@1.service")
    until_online(machine, 1)
    assert measured(machine)["code"] == 0
    assert show(machine, "hairmesh-worker@1", "NRestarts") == [str(int(before) + 1)]


def test_what_stands_still_is_restarted_by_the_watchdog(machine: Machine) -> None:
    """Worker and edge at once, after the 30 s of the units."""
    still = ("hairmesh-worker@1", "hairmesh-edge@2")
    with journal(machine, still[0]) as worker, journal(machine, still[1]) as edge:
        machine.run("systemctl", "kill", "--kill-whom=main", "--signal=STOP", *still)
        for unit, follow in zip(still, (worker, edge), strict=True):
            follow.until("Watchdog timeout (limit 30s)!")
            follow.until(f"Started {unit}.service")
    until_online(machine, 1)
    assert measured(machine)["code"] == 0


def test_stopping_a_worker_lets_its_calls_end(machine: Machine) -> None:
    with calls(machine) as calling, journal(machine, "hairmesh-worker@1") as worker:
        machine.run("systemctl", "stop", "hairmesh-worker@1")
        calling.until(lambda answer: answer["reason"] == "NO_WORKER")
        assert show(machine, "hairmesh-worker@1", "Result", "ExecMainStatus") == ["success", "0"]
        worker.until('"phase": "announced"')
        worker.until('"outcome": "ok"')  # a call that ran when it was told to stop
        worker.until('"event": "stopped"')
        machine.run("systemctl", "start", "hairmesh-worker@1")
        calling.until(well, count=2)
    assert_only_without_a_worker(calling.answers)


def assert_only_without_a_worker(answers: list[dict[str, Any]]) -> None:
    """Whatever did not go well was told at once to come again later."""
    refused = [answer for answer in answers if not well(answer)]
    assert {(answer["status"], answer["code"], answer["reason"]) for answer in refused} <= {(503, 1007, "NO_WORKER")}
    assert all(int(answer["retry_after"]) > 0 for answer in refused)


def test_only_who_is_named_reaches_a_worker(machine: Machine) -> None:
    """It listens everywhere; who may reach it is the unit's business."""
    named, nobodys = OTHERS
    config = "/etc/hairmesh/worker-1.json"
    machine.type(f"sed -i s/127.0.0.1:28187/0.0.0.0:28187/ {config}; systemctl restart hairmesh-worker@1")
    try:
        assert measured(machine)["code"] == 0, "this machine reaches it"
        assert not any(reached(machine, each) for each in OTHERS)
        edges = block("one-machine.md", "EDGES=")
        machine.type(edges)
        assert named in edges
        assert nobodys not in edges
        machine.type("systemctl daemon-reload; systemctl restart hairmesh-worker@1")
        assert reached(machine, named)
        assert not reached(machine, nobodys)
        assert measured(machine)["code"] == 0
    finally:
        machine.type(f"rm -rf $SYSTEM/hairmesh-worker@.service.d; sed -i s/0.0.0.0:28187/127.0.0.1:28187/ {config}")
        machine.type("systemctl daemon-reload; systemctl restart hairmesh-worker@1")


def reached(machine: Machine, address: str) -> bool:
    """Whether a packet from that address of the other machine's reaches the worker; nginx is always reached."""
    ask = (
        "curl",
        "-sk",
        "--http2-prior-knowledge",
        "--connect-timeout",
        "4",
        "--interface",
        address,
        "-o",
        "/dev/null",
    )
    nginx, worker = (
        subprocess.run(machine.elsewhere(*ask, way), check=False).returncode
        for way in (f"https://{NAME}/livez", f"http://{ADDRESS}:28187")
    )
    assert nginx == 0
    return {TIMED_OUT: False, STREAM_REFUSED: True}[worker]


def test_a_new_version_and_back(machine: Machine) -> None:
    """Edges cost no call, the only worker those until its models are loaded; of two workers nobody notices."""
    older = hairmesh.__version__
    install(machine, NEWER, like=older)
    unpack(machine, NEWER)
    for begins in ("PATH=", "EDGES="):
        machine.type(block("one-machine.md", begins))
    assert {version_of(machine, unit) for unit in UNITS} == {older}
    newer = put(block("one-machine.md", "/opt/hairmesh/VERSION/bin/hairmesh config check"), VERSION=NEWER)
    edges, worker = newer[: (at := newer.index("systemctl restart hairmesh-worker"))], newer[at:]
    with calls(machine) as calling:
        machine.type(edges)
        calling.until(well, count=2)
        assert all(map(well, calling.answers)), "edges cost no call"
        machine.type(worker)
        calling.until(well, count=2)
    assert_only_without_a_worker(calling.answers)
    assert {version_of(machine, unit) for unit in UNITS} == {NEWER}

    add_a_worker(machine)
    with calls(machine) as calling:
        back = put(
            block("install.md", "BEFORE="), **{"$VERSION": older, "edge_config.json": "/etc/hairmesh/edge-1.json"}
        )
        machine.type(back)
        machine.type(block("install.md", "systemctl restart "))
        machine.type("systemctl restart hairmesh-worker@2")
        calling.until(well, count=2)
    assert [answer for answer in calling.answers if not well(answer)] == []
    assert {version_of(machine, unit) for unit in (*UNITS, "hairmesh-worker@2")} == {older}


def add_a_worker(machine: Machine) -> None:
    """Until both edges have it online."""
    machine.type(
        """cd /etc/hairmesh
        sed s/:28187/:28188/ worker-1.json | install -m 600 /dev/stdin worker-2.json
        systemd-tmpfiles --create hairmesh.conf
        systemctl enable --now hairmesh-worker@2
        sed -i 's/"workers": \\["127.0.0.1:28187"/&, "127.0.0.1:28188"/' edge-1.json edge-2.json"""
    )
    until_online(machine, 2)
