"""The Kubernetes manifests: what a cluster takes, without rights, and closed to all but those who are meant."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network

import kubernetes_validate
import pytest
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject

from hairmesh import config_nodes, config_schema
from tests.deploy.configured import worker_settings
from tests.deploy.rendered import OVERLAYS, ROOT, Object, container, one, overlay, pod, ports

VERSIONS = ("1.30", "1.37")
"""The oldest Kubernetes that knows all of it (preStop by `sleep`), and the newest."""
PAGE = (ROOT / "docs" / "kubernetes.md").read_text()
PARTS = ("edge", "worker")
FROM_OUTSIDE = ("clients", "monitoring")
"""Labels of the namespaces that may come in."""

every_overlay = pytest.mark.parametrize("name", OVERLAYS)


# --- What a cluster takes ---


@every_overlay
@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_what_kubernetes_knows(name: str, version: str) -> None:
    for found in overlay(name):
        if found["apiVersion"].startswith("keda.sh/"):
            ScaledObject.model_validate(found, extra="forbid")
        else:
            kubernetes_validate.validate(found, version, strict=True)


@every_overlay
def test_every_object_is_in_the_namespace(name: str) -> None:
    """Without one it would be in that of whoever applies it, where a policy means no pod and KEDA finds no worker."""
    placed = {f"{each['kind']}/{each['metadata']['name']}": each["metadata"].get("namespace") for each in overlay(name)}
    assert placed.pop("Namespace/hairmesh") is None
    assert set(placed.values()) == {"hairmesh"}, placed


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


@every_overlay
@pytest.mark.parametrize("part", PARTS)
def test_a_node_can_be_emptied_though_nobody_is_well(name: str, part: str) -> None:
    """One that serves goes at a time; those that serve nobody, since their dependency is down, go as they are."""
    budget = one(name, "PodDisruptionBudget", f"hairmesh-{part}")["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")


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
    clients, monitoring = ({"namespaceSelector": {"matchLabels": {f"hairmesh/{who}": "true"}}} for who in FROM_OUTSIDE)
    assert {part: {port: _reached(name, part, at) for port, at in ports(name, part).items()} for part in PARTS} == {
        "edge": {"http": [clients, monitoring], "metrics": [monitoring]},
        "worker": {"grpc": [{"podSelector": edges}], "metrics": [monitoring]},
    }
    policies = [found["spec"] for found in overlay(name) if found["kind"] == "NetworkPolicy"]
    workers = one(name, "Deployment", "hairmesh-worker")["spec"]["selector"]
    assert not [spec for spec in policies if spec["podSelector"] == workers and "egress" in spec]


def test_rules_of_the_page_for_what_else_is_configured_are_taken_and_mean_our_pods() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    policies = {policy["metadata"]["name"]: policy for policy in yaml.safe_load_all(block)}
    assert set(policies) == {f"hairmesh-{part}-out" for part in PARTS}
    names = one("cpu", "NetworkPolicy", "hairmesh-edge")["spec"]["egress"][1]
    for part in PARTS:
        policy = policies[f"hairmesh-{part}-out"]
        for version in VERSIONS:
            kubernetes_validate.validate(policy, version, strict=True)
        assert policy["metadata"]["namespace"] == one("cpu", "Deployment", f"hairmesh-{part}")["metadata"]["namespace"]
        labels = one("cpu", "Deployment", f"hairmesh-{part}")["spec"]["template"]["metadata"]["labels"]
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
        assert policy["spec"]["policyTypes"] == ["Egress"]
    assert names in policies["hairmesh-worker-out"]["spec"]["egress"]  # a worker has none otherwise


def test_whatever_programs_may_ask_for_is_on_the_page() -> None:
    """A key that holds an address leads nowhere where no policy lets it."""
    keys = {key for side in config_schema.SIDES for key, _ in config_nodes.leaves(config_schema.of(side))}
    addresses = {key for key in keys if key.endswith(("_url", "_endpoint"))} - {"public_base_url"}
    assert {"features.base_url", "growth.comfyui_url"} <= addresses
    section = PAGE.partition("## Who may go out")[2].partition("\n## ")[0]
    assert {key for key in addresses | {"deps"} if f"| `{key}`" not in section and f", `{key}`" not in section} == set()


RESOLVERS: dict[str, Object | str] = {
    "CoreDNS, kube-dns": {"kubernetes.io/metadata.name": "kube-system", "k8s-app": "kube-dns"},
    "NodeLocal DNSCache as a pod (Cilium)": {"kubernetes.io/metadata.name": "kube-system", "k8s-app": "node-local-dns"},
    "NodeLocal DNSCache": "169.254.20.10",
    "NodeLocal DNSCache (Kubespray)": "169.254.25.10",
    "Cloud DNS for GKE": "169.254.169.254",
}
"""Who is asked for names: a pod by its labels and its namespace's, or an address in the node's own network, which is no
pod for any rule.
"""


def _is_meant(peer: Object, who: Object | str) -> bool:
    """Whether a rule's peer is that pod or that address."""
    if isinstance(who, str):
        return "ipBlock" in peer and ip_address(who) in ip_network(peer["ipBlock"]["cidr"])
    selectors = [peer[name] for name in ("namespaceSelector", "podSelector") if name in peer]
    labels = {label: [value] for each in selectors for label, value in each.get("matchLabels", {}).items()}
    listed = [each for selector in selectors for each in selector.get("matchExpressions", [])]
    assert {each["operator"] for each in listed} <= {"In"}
    labels |= {each["key"]: each["values"] for each in listed}
    return bool(labels) and all(who.get(label) in values for label, values in labels.items())


@every_overlay
@pytest.mark.parametrize("who", RESOLVERS)
def test_edges_reach_whoever_resolves_names(name: str, who: str) -> None:
    (_, to_names) = one(name, "NetworkPolicy", "hairmesh-edge")["spec"]["egress"]
    assert any(_is_meant(peer, RESOLVERS[who]) for peer in to_names["to"])
    assert not any(_is_meant(peer, "169.254.169.253") for peer in to_names["to"])  # an address is itself alone
    told = RESOLVERS[who]
    assert not isinstance(told, str) or told in PAGE.partition("**DNS differs")[2].partition("|")[0]


@every_overlay
def test_edges_reach_workers_names_and_their_object_store(name: str) -> None:
    to_workers, to_names = one(name, "NetworkPolicy", "hairmesh-edge")["spec"]["egress"]
    workers = one(name, "Deployment", "hairmesh-worker")["spec"]["selector"]
    assert to_workers == {"to": [{"podSelector": workers}], "ports": [{"port": ports(name, "worker")["grpc"]}]}
    assert {(each["port"], each["protocol"]) for each in to_names["ports"]} == {(53, "UDP"), (53, "TCP")}
    store = [found for found in overlay(name) if found["metadata"]["name"] == "hairmesh-edge-object-store"]
    assert bool(store) == (one(name, "Deployment", "hairmesh-edge")["spec"]["replicas"] > 1)
