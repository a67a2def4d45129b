"""docs/containers.md typed, block by block, on a machine that has Docker: built, started, asked, stopped, replaced.

No registry is asked for the base: it is debootstrap's, under the name that the Dockerfile says.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conftest import studio_portrait
from tests.deploy import debian
from tests.deploy.docker_machine import Machine, skip_where_it_cannot
from tests.deploy.monitoring import ROOT
from tests.deploy.test_docker_images import TEXT
from vision.models import ModelFiles

pytestmark = [pytest.mark.long, pytest.mark.models, pytest.mark.timeout(3600)]

PAGE: Final = (ROOT / "docs" / "containers.md").read_text()
BLOCKS: Final = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
BUILD, COMPOSE, NEXT = BLOCKS
BASE: Final = TEXT.partition("ARG BASE=")[2].partition("\n")[0]
PASSWORD: Final = "the-password-of-edge-and-workers"
TOKEN, OTHER_TOKEN = "the-admin-token-of-one-person", "the-admin-token-of-another"
KEY: Final = "the-private-key-of-somebody"
OLD, NEW = "/srv/old", "/srv/new"
"""Folders of the sources of two releases."""
EDGE: Final = "hairmesh-edge-1"
URL: Final = "http://127.0.0.1:8080"
MEASURE: Final = f"curl --silent --show-error --max-time 120 --form image=@/srv/photo.jpg {URL}/api/v1/face/measure"
MEASURED_AGAIN_AND_AGAIN: Final = f"""
touch /srv/goes-on
while [ -e /srv/goes-on ]; do
    {MEASURE} --write-out '%{{http_code}}\\n' --output /srv/answer.json 2>/dev/null || sleep 0.1
done
"""


def of_release(block: str, tag: str) -> str:
    """The block with its placeholder filled in."""
    assert "=VERSION " in block
    return block.replace("=VERSION ", f"={tag} ")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """With the base, the sources and a photo."""
    skip_where_it_cannot()
    folder = tmp_path_factory.mktemp("docker")
    try:
        with Machine(folder / "machine") as machine:
            base = folder / "machine" / "srv" / "base"
            debian.install(BASE.partition(":")[2].partition("-")[0], base)
            debian.trust_whom_this_machine_trusts(base)
            # PyTorch's index is no reason to wait where it cannot be reached.
            (base / "etc" / "pip.conf").write_text(f"{debian.pip_settings()}retries = 1\n")
            for wheels in map(Path, debian.wheel_folders()):
                shutil.copytree(wheels, base / wheels.relative_to("/"))
            machine.run(f"tar --create --directory /srv/base . | docker import - {BASE}; rm -r /srv/base")
            debian.copy_source(machine.root / OLD[1:], "deploy")
            (machine.root / OLD[1:] / "edge" / "server.key").write_text(KEY)
            shutil.copy(studio_portrait(), machine.root / "srv" / "photo.jpg")
            yield machine
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def built(machine: Machine) -> Machine:
    """After the first block."""
    machine.run(BUILD, OLD)
    return machine


@pytest.fixture(scope="module")
def running(built: Machine) -> Machine:
    """After the second block, with the secrets written where it says so."""
    until_written, _, then = of_release(COMPOSE, "1").partition("sudo ")
    built.run(until_written, OLD)
    folder = built.root / OLD[1:] / "deploy" / "compose" / "config"
    write(folder / "edge" / "edge_config.json", shared_password=PASSWORD, admin_tokens=[TOKEN])
    write(folder / "worker" / "worker_config.json", accept_passwords=[PASSWORD])
    built.run(f"sudo {then}", f"{OLD}/deploy/compose")
    built.until("docker ps --format '{{.Status}}'", lambda said: said.count("(healthy)") == 3)
    return built


def write(file: Path, **values: object) -> None:
    """These values in the place of those that stand there."""
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def containers(machine: Machine, service: str) -> list[str]:
    """The names of those that run, of a service of the Compose file."""
    label = f"label=com.docker.compose.service={service}"
    return machine.run(f"docker ps --filter {label} --format '{{{{.Names}}}}'").split()


def images(machine: Machine) -> set[str]:
    """What runs, by image and tag."""
    return set(machine.run("docker ps --format '{{.Image}}'").split())


def pool(token: str, *more: str) -> str:
    """The command that asks the edge what operators are told."""
    return f"curl --silent --header 'Authorization: Bearer {token}' {' '.join(more)} {URL}/admin/pool"


def measured(machine: Machine) -> dict[str, Any]:
    """The answer to a photo."""
    answer: dict[str, Any] = json.loads(machine.run(MEASURE))
    assert answer["code"] == 0, answer
    return answer


def until_both_take_calls(machine: Machine) -> None:
    """Workers, as the edge sees it."""
    machine.until(f"curl --silent {URL}/monitor || true", lambda told: '"workers_healthy":2' in told)


def said(machine: Machine, name: str, event: str) -> dict[str, Any]:
    """A container's last line of that event."""
    lines = map(json.loads, machine.run(f'docker logs {name} 2>&1 | grep \'"event": "{event}"\'').splitlines())
    *_, last = lines
    found: dict[str, Any] = last
    return found


def test_the_images_run_without_rights_and_hold_no_key(built: Machine) -> None:
    tags = re.findall(r"-t (\S+)", BUILD)
    assert len(tags) == 3
    for tag in tags:
        assert built.run(f"docker run --rm --entrypoint id {tag} -u") == "10001"
        assert "hairmesh" in built.run(f"docker run --rm --read-only {tag} --help")
        inside = f"docker run --rm --user 0 --entrypoint grep {tag}"
        assert "server.key" not in built.run(
            f"docker run --rm --user 0 --entrypoint find {tag} /opt /etc /var -name '*.key'"
        )
        built.refuses(f"{inside} --recursive --quiet {KEY} /opt/hairmesh /etc /var")


def test_a_photo_is_measured_through_the_published_port(running: Machine) -> None:
    assert measured(running)["data"]["annotated_image_url"].startswith("https://face.example/static/annotations/")
    monitor = json.loads(running.run(f"curl --silent {URL}/monitor"))
    assert (monitor["workers_total"], monitor["workers_healthy"]) == (2, 2)


def test_containers_have_no_rights_and_workers_no_way_out(running: Machine) -> None:
    workers = containers(running, "worker-cpu")
    assert len(workers) == 2
    for name in (EDGE, *workers):
        assert running.run(f"docker exec {name} id -u") == "10001"
        for folder in ("/opt/hairmesh", "/etc/hairmesh"):
            refusal = running.refuses(f"docker exec --user 0 {name} touch {folder}/new")
            assert "Read-only file system" in refusal
    way_out = "'/^eth[0-9]+\\t00000000/ {print $1}' /proc/net/route"
    ways = {name: running.run(f"docker exec {name} awk {way_out}") for name in (EDGE, *workers)}
    assert ways == {EDGE: ways[EDGE]} | dict.fromkeys(workers, "")
    assert ways[EDGE]


def test_no_secret_is_told_by_docker_or_the_process_list(running: Machine) -> None:
    told = running.run(
        "docker inspect $(docker ps --all --quiet) $(docker images --quiet);"
        "for image in $(docker images --quiet); do docker history --no-trunc $image; done;"
        "for each in $(docker ps --quiet); do docker logs $each 2>&1; docker top $each; done; ps axwwe"
    )
    assert EDGE in told
    assert "requests_running" in told or "edge_ready" in told
    assert [secret for secret in (PASSWORD, TOKEN, KEY) if secret in told] == []


def test_the_edge_knows_its_clients_apart(running: Machine) -> None:
    """As the proxy in front names them: what comes through the published port is from the address that is trusted."""
    client = "203.0.113.9"
    running.run(pool("a-token-that-is-wrong", f"--header 'X-Forwarded-For: {client}'"))
    running.until(f"docker logs {EDGE} 2>&1", lambda log: client in log)
    assert said(running, EDGE, "wrong_tokens")["clients"] == [client]


def test_a_configuration_that_is_renamed_over_the_old_one_is_in_force(running: Machine) -> None:
    file = f"{OLD}/deploy/compose/config/edge/edge_config.json"
    for old, new in ((TOKEN, OTHER_TOKEN), (OTHER_TOKEN, TOKEN)):
        running.run(f"cp --preserve {file} {file}.new; sed --in-place s/{old}/{new}/ {file}.new; mv {file}.new {file}")
        running.until(pool(new), lambda told: "workers" in told)


@pytest.mark.parametrize("service", ["worker-cpu", "edge"])
def test_docker_stop_lets_a_call_end(running: Machine, service: str) -> None:
    """The one that works on it."""
    measuring = running.start(MEASURE)
    busy = json.loads(running.until(pool(TOKEN), lambda told: '"in_flight":{' in told))["workers"]
    (address,) = (each["address"].partition(":")[0] for each in busy if each["in_flight"])
    at = "{{.Name}} {{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
    listed = running.run(f"docker inspect --format '{at}' $(docker ps --quiet)").splitlines()
    (name,) = (line.split()[0].strip("/") for line in listed if address in line.split())
    stopped = name if service == "worker-cpu" else EDGE
    try:
        (stop,) = re.findall(r"`(docker stop -t \d+)`", PAGE)
        running.run(f"{stop} {stopped}")
        answer, _ = measuring.communicate()
        assert json.loads(answer)["code"] == 0, answer
        assert running.run(f"docker inspect --format '{{{{.State.ExitCode}}}}' {stopped}") == "0"
        if service == "edge":
            assert said(running, EDGE, "edge_stops")["requests_running"] == 1
    finally:
        running.run(f"docker start {stopped}")
        until_both_take_calls(running)
    if service == "worker-cpu":
        lines = running.run(f"docker exec {EDGE} cat /var/lib/hairmesh/request_log.jsonl").splitlines()
        call = next(
            line for line in map(json.loads, reversed(lines)) if line["request_id"] == json.loads(answer)["request_id"]
        )
        assert (call["worker"].partition(":")[0], call["attempts"]) == (address, 1)


def test_a_new_version_and_back_lose_no_call_but_while_the_edge_is_replaced(running: Machine) -> None:
    before = measured(running)["data"]["annotated_image_url"].removeprefix("https://face.example")
    running.run(
        f"cp --archive {OLD} {NEW}; sed --in-place 's/^USER/LABEL release=new\\nUSER/' {NEW}/deploy/docker/Dockerfile"
    )
    for folder, tag, block in (
        (NEW, 2, of_release(NEXT, "2")),
        (OLD, 1, of_release(NEXT, "1").replace("compose build\n", "")),
    ):
        measuring = running.start(MEASURED_AGAIN_AND_AGAIN)
        try:
            running.run(block, f"{folder}/deploy/compose")
            assert images(running) == {f"hairmesh-edge-vision:{tag}", f"hairmesh-worker:{tag}"}
            assert len(containers(running, "worker-cpu")) == 2
        finally:
            running.run("rm /srv/goes-on")
            codes = measuring.communicate()[0].split()
        assert set(codes) <= {"200", "000"}, codes
        assert len([code for code, _ in groupby(codes)]) in (1, 3), f"more than one gap: {codes}"
        assert codes[0] == codes[-1] == "200"
        measured(running)
        assert running.run(f"curl --silent --output /dev/null --write-out '%{{http_code}}' {URL}{before}") == "200"
    assert running.run("docker volume ls --quiet --filter dangling=true") == ""


def test_models_can_be_mounted(running: Machine, model_files: ModelFiles) -> None:
    """Those of a folder, into images that have none."""
    models = model_files.face_landmarker.parent
    shutil.copytree(models, running.root / "srv" / "models")
    up = COMPOSE.splitlines()[-1].partition("--profile ")[2]
    (mounted,) = re.findall(r"`HAIRMESH_MODELS=FOLDER (.*) …`", PAGE)
    folder = f"{OLD}/deploy/compose"
    running.run("docker compose -f ../compose.yaml --profile cpu down", folder)
    running.run(f"export HAIRMESH_TAG=3 HAIRMESH_MODELS=/srv/models; {mounted} --profile {up}", folder)
    for image in ("hairmesh-worker:3", "hairmesh-edge-vision:3"):
        assert running.run(f"docker run --rm --entrypoint ls {image} /opt/models") == ""
    until_both_take_calls(running)
    measured(running)
    points = json.loads(running.run(MEASURE.replace("measure", "special-points")))
    assert points["code"] == 0, points
