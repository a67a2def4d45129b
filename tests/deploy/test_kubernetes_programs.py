"""The Kubernetes manifests are true of the programs that they start: ports, probes, times, memory, images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import edge.settings
import worker.settings
from edge.command import GRACE_S
from edge.upstream.resolver import Resolving
from hairmesh import __version__
from tests.deploy.configured import edge_settings, worker_settings
from tests.deploy.rendered import FOLDER, OVERLAYS, ROOT, container, one, pod, ports
from tests.edge.process import Process as Edge
from vision.types import STALL_AFTER_S, Stage
from worker.health.reporter import OPEN_NAMES
from worker.thresholds import Thresholds

RECORD_LIVES_S = 30
"""How long CoreDNS lets others remember what a name stands for, unless it is told otherwise."""
PARTS = ("edge", "worker")
GIB = 1024**3

every_overlay = pytest.mark.parametrize("name", OVERLAYS)


def bytes_of(quantity: str) -> int:
    assert quantity.endswith("Gi")
    return int(quantity.removesuffix("Gi")) * GIB


@every_overlay
def test_ports_and_names_are_those_of_the_configuration(name: str) -> None:
    at_edge, at_worker = edge_settings(), worker_settings(name)
    assert ports(name, "edge") == {"http": at_edge.port, "metrics": int((at_edge.metrics.listen or "").split(":")[1])}
    assert ports(name, "worker") == {
        "grpc": int(at_worker.listen.split(":")[1]),
        "metrics": int((at_worker.metrics.listen or "").split(":")[1]),
    }
    service = one(name, "Service", "hairmesh-worker")
    where = f"{service['metadata']['name']}.{service['metadata']['namespace']}"
    assert at_edge.workers == (f"dns:///{where}:{ports(name, 'worker')['grpc']}",)
    assert service["spec"]["clusterIP"] == "None"  # every worker's own address
    assert service["spec"]["publishNotReadyAddresses"] is True  # else a sick worker would not be there at all
    (at_service,) = one(name, "Service", "hairmesh-edge")["spec"]["ports"]
    assert ports(name, "edge")[at_service["targetPort"]] == at_edge.port
    known_ports = {port for part in PARTS for port in ports(name, part).values()}
    for policy in (one(name, "NetworkPolicy", f"hairmesh-{part}") for part in PARTS):
        assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} <= known_ports


@every_overlay
def test_what_the_environment_says_is_a_key_of_the_worker(name: str) -> None:
    said = one(name, "ConfigMap", "hairmesh-worker")["data"]
    assert set(said) <= {variable for _keys, variable in worker.settings.variables()}


def test_an_examples_own_secrets_are_refused() -> None:
    with pytest.raises(edge.settings.ConfigError, match="placeholder"):
        edge.settings.parse((FOLDER / "edge_config.example.json").read_bytes())
    with pytest.raises(worker.settings.SettingsError, match="placeholder"):
        worker.settings.parse((FOLDER / "worker_config.example.json").read_text(), {}, origin="the example")


def test_a_proxy_is_trusted_which_only_the_reader_can_name() -> None:
    """Without one all clients are one address: whoever guesses tokens shuts everybody out."""
    assert edge_settings().trusted_proxies
    with pytest.raises(edge.settings.ConfigError, match="trusted_proxies"):
        edge.settings.parse((FOLDER / "edge_config.example.json").read_bytes())


@every_overlay
def test_what_is_written_lies_on_volumes(name: str) -> None:
    at_edge = edge_settings()
    for path in (at_edge.static.dir, at_edge.request_log.path):
        assert not path.is_absolute()  # of the working directory, which is the image's
    mounts = {each["name"]: each["mountPath"] for each in container(name, "edge")["volumeMounts"]}
    assert mounts["state"] in dockerfile_line("WORKDIR")
    state = next(volume for volume in pod(name, "edge")["volumes"] if volume["name"] == "state")
    log_bytes = at_edge.request_log.max_bytes * (at_edge.request_log.keep + 1)
    if "persistentVolumeClaim" in state:
        claim = one(name, "PersistentVolumeClaim", state["persistentVolumeClaim"]["claimName"])
        room = bytes_of(claim["spec"]["resources"]["requests"]["storage"])
        assert room > at_edge.static.max_bytes + log_bytes
    else:
        assert bytes_of(state["emptyDir"]["sizeLimit"]) > log_bytes
    paths = worker_settings(name).health.disk_paths
    mounted = {each["mountPath"] for each in container(name, "worker")["volumeMounts"] if not each.get("readOnly")}
    assert {str(path) for path in paths} <= mounted


def probes(part: str, name: str = "cpu") -> dict[str, Any]:
    return {key: value for key, value in container(name, part).items() if key.endswith("Probe")}


def test_workers_are_asked_by_names_that_need_no_password() -> None:
    asked = {kind: probe["grpc"] for kind, probe in probes("worker").items()}
    assert {probe.get("service", "") for probe in asked.values()} <= OPEN_NAMES
    assert asked["livenessProbe"]["service"] == asked["startupProbe"]["service"] == "liveness"
    assert "service" not in asked["readinessProbe"]  # "": takes calls now
    assert {probe["port"] for probe in asked.values()} == {ports("cpu", "worker")["grpc"]}


def test_models_may_load_for_as_long_as_a_worker_itself_allows() -> None:
    """Liveness is SERVING while they load, so the start is over when the port is open."""
    start = probes("worker")["startupProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] >= 120  # imports from a cold disk
    assert STALL_AFTER_S[Stage.MODEL_LOAD] == 300  # what the manifest tells


async def test_edges_are_asked_for_what_they_answer(tmp_path: Path) -> None:
    async with Edge(tmp_path, "127.0.0.1:1") as running:  # nobody is online: no reason to start it anew
        for probe in probes("edge").values():
            assert (await running.client.get(probe["httpGet"]["path"])).status_code == 200
        assert (await running.client.get("/monitor")).status_code == 503
    assert {ports("cpu", "edge")[probe["httpGet"]["port"]] for probe in probes("edge").values()} == {
        edge_settings().port
    }


async def test_a_store_that_takes_nothing_takes_no_edge_out_of_its_service(tmp_path: Path) -> None:
    """Edges that share a store would all go at once, and with them every call that needs no picture."""
    (no_folder := tmp_path / "no_folder").touch()
    async with Edge(tmp_path, "127.0.0.1:1", static={"dir": str(no_folder / "pictures")}) as running:
        assert (await running.client.get("/readyz")).status_code == 503
        for kind, probe in probes("edge").items():
            assert (await running.client.get(probe["httpGet"]["path"])).status_code == 200, kind


@every_overlay
def test_nobody_is_killed_before_it_has_ended_in_order(name: str) -> None:
    stop = container(name, "edge")["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod(name, "edge")["terminationGracePeriodSeconds"] >= stop + GRACE_S + 10
    settings, limits = worker_settings(name), Thresholds()
    drained = settings.drain_delay_seconds + settings.drain_grace_seconds
    closed = 2 * limits.close_s + limits.thread_end_s
    assert pod(name, "worker")["terminationGracePeriodSeconds"] >= drained + closed + 5
    assert "lifecycle" not in container(name, "worker")


@every_overlay
def test_a_rollout_waits_until_edges_have_found_the_new_worker(name: str) -> None:
    spec = one(name, "Deployment", "hairmesh-worker")["spec"]
    assert spec["minReadySeconds"] >= Resolving().every_s + RECORD_LIVES_S
    rolling = spec["strategy"]["rollingUpdate"]
    assert (rolling["maxSurge"], rolling["maxUnavailable"]) == ((0, 1) if name != "cpu" else (1, 0))


@every_overlay
def test_memory_is_enough_for_what_was_measured(name: str) -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    assert "reaches 1.14 GB" in page
    assert "from 0.13 to 0.63 GB" in page
    at_edge = edge_settings().dispatch.max_queued_bytes + (0.63 + 0.5) * 1e9
    assert bytes_of(container(name, "edge")["resources"]["limits"]["memory"]) > at_edge
    assert bytes_of(container(name, "worker")["resources"]["limits"]["memory"]) > 1.5e9


def dockerfile_line(instruction: str) -> str:
    text = (ROOT / "deploy" / "docker" / "Dockerfile").read_text()
    return next(line for line in text.splitlines() if line.startswith(instruction))


@every_overlay
def test_images_are_those_of_the_dockerfile_at_this_version(name: str) -> None:
    images = {part: container(name, part)["image"] for part in PARTS}
    assert images["edge"] == f"registry.example/hairmesh-edge-vision:{__version__}"
    assert images["worker"] == f"registry.example/hairmesh-worker{'' if name == 'cpu' else '-cuda'}:{__version__}"
    user, group = dockerfile_line("USER").split()[1].split(":")
    for part in PARTS:
        context = pod(name, part)["securityContext"]
        assert (context["runAsUser"], context["runAsGroup"]) == (int(user), int(group))
