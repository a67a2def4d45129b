"""The Kubernetes manifests: valid, and true of the programs that they start."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject

import edge.settings
import worker.settings
from edge.command import GRACE_S
from edge.upstream.resolver import Resolving
from hairmesh import __version__
from hairmesh.wire import PLACEHOLDERS
from tests.deploy.monitoring import program
from tests.deploy.promql import check, evaluate, labels_of, metrics_of, there_are
from tests.deploy.rendered import FOLDER, OVERLAYS, ROOT, Object, container, one, overlay, pod, ports
from tests.edge.process import Process as Edge
from vision.types import STALL_AFTER_S, Stage
from worker.health.reporter import OPEN_NAMES
from worker.thresholds import Thresholds

VERSIONS = ("1.30", "1.37")
"""The oldest Kubernetes that knows all of it (preStop by `sleep`), and the newest."""
RECORD_LIVES_S = 30
"""How long CoreDNS lets others remember what a name stands for, unless it is told otherwise."""
PARTS = ("edge", "worker")
GIB = 1024**3

every_overlay = pytest.mark.parametrize("name", OVERLAYS)


def example(file: str) -> str:
    """An example configuration with secrets of one's own."""
    text = (FOLDER / file).read_text()
    for number, secret in enumerate(value for value in _strings(json.loads(text)) if value.startswith(PLACEHOLDERS)):
        text = text.replace(secret, f"a-secret-of-the-tests-{number}")
    return text


def _strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in _strings(each)]
    return [value] if isinstance(value, str) else []


def edge_settings() -> edge.settings.Settings:
    return edge.settings.parse(example("edge_config.example.json").encode())


def worker_settings(name: str) -> worker.settings.Settings:
    environment: dict[str, str] = one(name, "ConfigMap", "hairmesh-worker")["data"]
    return worker.settings.parse(example("worker_config.example.json"), environment, origin="the example")


def bytes_of(quantity: str) -> int:
    assert quantity.endswith("Gi")
    return int(quantity.removesuffix("Gi")) * GIB


# --- What a cluster takes ---


@every_overlay
@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_what_kubernetes_knows(name: str, version: str) -> None:
    for found in overlay(name):
        if found["apiVersion"].startswith("keda.sh/"):
            ScaledObject.model_validate(found, extra="forbid")
        else:
            kubernetes_validate.validate(found, version, strict=True)


def test_the_overlays_differ_in_what_their_names_say() -> None:
    assert {name: one(name, "Deployment", "hairmesh-edge")["spec"]["replicas"] for name in OVERLAYS} == {
        "cpu": 1,
        "gpu": 1,
        "several-edges": 3,
        "keda": 3,
    }
    gpus = {name: container(name, "worker")["resources"]["limits"].get("nvidia.com/gpu") for name in OVERLAYS}
    assert gpus == {"cpu": None, "gpu": "1", "several-edges": "1", "keda": "1"}
    assert {name: worker_settings(name).device for name in OVERLAYS} == {
        "cpu": "cpu",
        "gpu": "cuda",
        "several-edges": "cuda",
        "keda": "cuda",
    }


@every_overlay
@pytest.mark.parametrize("part", PARTS)
def test_pods_have_no_rights_and_keep_the_restricted_standard(name: str, part: str) -> None:
    spec, inside = pod(name, part), container(name, part)["securityContext"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert inside["allowPrivilegeEscalation"] is False
    assert inside["readOnlyRootFilesystem"] is True
    assert inside["capabilities"] == {"drop": ["ALL"]}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    assert all(set(volume) & {"secret", "emptyDir", "persistentVolumeClaim"} for volume in spec["volumes"])
    labels = one(name, "Namespace", "hairmesh")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


@every_overlay
@pytest.mark.parametrize("part", PARTS)
def test_secrets_are_files_in_a_folder_that_follows_them(name: str, part: str) -> None:
    """A file that is mounted by itself never changes, and what stands in an environment is seen by every child."""
    assert not [found for found in overlay(name) if found["kind"] == "Secret"]
    secret = next(volume for volume in pod(name, part)["volumes"] if "secret" in volume)
    (mount,) = [each for each in container(name, part)["volumeMounts"] if each["name"] == secret["name"]]
    assert mount == {"name": secret["name"], "mountPath": "/etc/hairmesh", "readOnly": True}
    assert secret["secret"]["defaultMode"] == 0o440  # the group of the pod, fsGroup
    assert "env" not in container(name, part)


@every_overlay
def test_services_budgets_and_policies_pick_the_pods_they_mean(name: str) -> None:
    labels = {
        part: one(name, "Deployment", f"hairmesh-{part}")["spec"]["template"]["metadata"]["labels"] for part in PARTS
    }
    for part in PARTS:
        deployment = one(name, "Deployment", f"hairmesh-{part}")["spec"]["selector"]["matchLabels"]
        service = one(name, "Service", f"hairmesh-{part}")["spec"]["selector"]
        budget = one(name, "PodDisruptionBudget", f"hairmesh-{part}")["spec"]["selector"]["matchLabels"]
        policy = one(name, "NetworkPolicy", f"hairmesh-{part}")["spec"]["podSelector"]["matchLabels"]
        for picked in (deployment, service, budget, policy):
            assert [other for other in PARTS if picked.items() <= labels[other].items()] == [part]


# --- Who reaches whom ---


def _reached(name: str, part: str, port: int) -> list[Object]:
    """From where pods of `part` are reached at `port`."""
    rules = one(name, "NetworkPolicy", f"hairmesh-{part}")["spec"]["ingress"]
    return [peer for rule in rules if port in {each["port"] for each in rule["ports"]} for peer in rule["from"]]


@every_overlay
def test_only_edges_reach_a_workers_port_and_a_worker_reaches_nobody(name: str) -> None:
    nothing = one(name, "NetworkPolicy", "hairmesh-nothing")["spec"]
    assert nothing == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    edges = one(name, "Deployment", "hairmesh-edge")["spec"]["selector"]
    assert _reached(name, "worker", ports(name, "worker")["grpc"]) == [{"podSelector": edges}]
    policies = [found["spec"] for found in overlay(name) if found["kind"] == "NetworkPolicy"]
    workers = one(name, "Deployment", "hairmesh-worker")["spec"]["selector"]
    assert not [spec for spec in policies if spec["podSelector"] == workers and "egress" in spec]


@every_overlay
def test_edges_reach_workers_names_and_their_object_store(name: str) -> None:
    to_workers, to_names = one(name, "NetworkPolicy", "hairmesh-edge")["spec"]["egress"]
    workers = one(name, "Deployment", "hairmesh-worker")["spec"]["selector"]
    assert to_workers == {"to": [{"podSelector": workers}], "ports": [{"port": ports(name, "worker")["grpc"]}]}
    assert {(each["port"], each["protocol"]) for each in to_names["ports"]} == {(53, "UDP"), (53, "TCP")}
    store = [found for found in overlay(name) if found["metadata"]["name"] == "hairmesh-edge-object-store"]
    assert bool(store) == (one(name, "Deployment", "hairmesh-edge")["spec"]["replicas"] > 1)


# --- What is true of the programs ---


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


def test_an_examples_own_secrets_are_refused() -> None:
    with pytest.raises(edge.settings.ConfigError, match="placeholder"):
        edge.settings.parse((FOLDER / "edge_config.example.json").read_bytes())
    with pytest.raises(worker.settings.SettingsError, match="placeholder"):
        worker.settings.parse((FOLDER / "worker_config.example.json").read_text(), {}, origin="the example")


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


# --- Prometheus and KEDA ---


def scaling() -> Object:
    spec: Object = one("keda", "ScaledObject", "hairmesh-worker")["spec"]
    return spec


def query(trigger: str) -> str:
    found: str = next(each for each in scaling()["triggers"] if each["name"] == trigger)["metadata"]["query"]
    return found


def test_scaling_rests_on_metrics_that_there_are(tmp_path: Path) -> None:
    queries = [trigger["metadata"]["query"] for trigger in scaling()["triggers"]]
    check(queries, tmp_path)
    metrics = {name for each in queries for name in metrics_of(each)}
    assert metrics == {"hairmesh_slots_busy", "hairmesh_queue_waiting", "hairmesh_queue_wait_seconds_bucket"}
    for each in queries:
        known = {label for name in metrics_of(each) for label in there_are()[name].labels}
        assert labels_of(each) <= known | {"job", "le"}
    assert scaling()["scaleTargetRef"]["name"] == "hairmesh-worker"
    assert scaling()["minReplicaCount"] >= 1  # with none, calls are refused at once and nothing waits
    assert "replicas" not in one("keda", "Deployment", "hairmesh-worker")["spec"]


def test_work_is_counted_in_workers_and_silence_is_no_number(tmp_path: Path) -> None:
    busy = {f'hairmesh_slots_busy{{job="hairmesh-edge",edge="{edge}"}}': "3x20" for edge in "ab"}
    waiting = {
        f'hairmesh_queue_waiting{{job="hairmesh-edge",edge="{edge}",class="{kind}"}}': "1x20"
        for edge in "ab"
        for kind in ("fast", "slow")
    }
    evaluate(query("work"), busy | waiting, "5m", 10, tmp_path)  # 6 compute, 4 wait: KEDA asks for 10 / 0.8
    evaluate(query("work"), {'up{job="hairmesh-edge"}': "0x20"}, "5m", None, tmp_path)
    trigger = scaling()["triggers"][0]["metadata"]
    assert (trigger["threshold"], trigger["ignoreNullValues"]) == ("0.8", "false")  # no answer: an error, not 0


def test_queue_time_is_zero_without_calls_and_scales_before_people_are_told(tmp_path: Path) -> None:
    def buckets(upto_4: str, upto_8: str, kind: str = "fast") -> dict[str, str]:
        name = f'hairmesh_queue_wait_seconds_bucket{{job="hairmesh-edge",edge="a",class="{kind}",le='
        return {f'{name}"4"}}': upto_4, f'{name}"8"}}': upto_8, f'{name}"+Inf"}}': upto_8}

    evaluate(query("queue-time"), buckets("0x20", "0+10x20"), "5m", 7.8, tmp_path)
    evaluate(query("queue-time"), buckets("5x20", "5x20"), "5m", 0, tmp_path)
    evaluate(query("queue-time"), buckets("0x20", "0+10x20", "slow"), "5m", 0, tmp_path)
    threshold_s = float(scaling()["triggers"][1]["metadata"]["threshold"])
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "hairmesh.rules.yml").read_text())
    alert = next(
        rule for group in rules["groups"] for rule in group["rules"] if rule.get("alert") == "HairMeshQueueLong"
    )
    assert threshold_s < float(alert["expr"].split("> ")[1].split()[0])


def test_prometheus_finds_the_pods_and_gives_them_the_names_that_rules_use(tmp_path: Path) -> None:
    scraping = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    jobs = {job["job_name"]: job for job in scraping["scrape_configs"]}
    on_one_machine = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    assert set(jobs) == {job["job_name"] for job in on_one_machine["scrape_configs"]}
    picked = {
        "hairmesh-edge": ("edge", "metrics"),
        "hairmesh-monitor": ("edge", "http"),
        "hairmesh-worker": ("worker", "metrics"),
    }
    for job, (part, port) in picked.items():
        by_component, by_port = jobs[job]["relabel_configs"][:2]
        assert by_component["source_labels"] == ["__meta_kubernetes_pod_label_app_kubernetes_io_component"]
        assert (by_component["regex"], by_port["regex"]) == (part, port)
        assert port in ports("cpu", part)
    for job in ("hairmesh-edge", "hairmesh-monitor"):
        assert "edge" in {rule.get("target_label") for rule in jobs[job]["relabel_configs"]}

    # Debian's promtool is built without Kubernetes: it reads everything but how pods are found.
    for each in scraping["scrape_configs"]:
        assert each.pop("kubernetes_sd_configs") == [{"role": "pod", "namespaces": {"names": ["hairmesh"]}}]
        each["static_configs"] = [{"targets": ["10.0.0.1:1"]}]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(scraping))
    done = subprocess.run(
        [program("promtool"), "check", "config", str(tmp_path / "prometheus.yml")], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
