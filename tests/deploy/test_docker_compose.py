"""The Compose file: valid, and true of the programs that it starts."""

from __future__ import annotations

import json
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema import Draft7Validator

import edge.settings
import worker.settings
from edge.command import GRACE_S
from hairmesh.wire import PLACEHOLDERS
from tests.deploy.monitoring import ROOT
from worker.thresholds import Thresholds

FOLDER = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
WORKERS = {name: service for name, service in SERVICES.items() if name != "edge"}
TARGETS = [line.split()[-1] for line in (FOLDER / "docker" / "Dockerfile").read_text().splitlines() if " AS " in line]


def example(part: str) -> str:
    """The example configuration of `edge` or `worker`, with a secret of one's own in the place of each."""
    content = json.loads((FOLDER / "compose" / f"{part}_config.example.json").read_text())
    for key, value in content.items():
        if isinstance(value, list) and value[0].startswith(PLACEHOLDERS):
            content[key] = [f"the-{key}-of-the-tests"]
        elif isinstance(value, str) and value.startswith(PLACEHOLDERS):
            content[key] = f"the-{key}-of-the-tests"
    return json.dumps(content)


def test_it_is_what_compose_takes() -> None:
    Draft7Validator(get_builtin_schema("vendor.compose-spec")).validate(COMPOSE)


def test_a_profile_brings_two_workers_and_waits_for_them() -> None:
    for profile in ("cpu", "cuda"):
        of_it = {name: service for name, service in WORKERS.items() if service["profiles"] == [profile]}
        assert sum(service["deploy"].get("replicas", 1) for service in of_it.values()) == 2
        assert {service["environment"]["DEVICE"] for service in of_it.values()} == {profile}
    assert set(SERVICES["edge"]["depends_on"]) == set(WORKERS)
    for condition in SERVICES["edge"]["depends_on"].values():
        assert condition == {"condition": "service_healthy", "required": False}  # the other profile is not there
    for service in WORKERS.values():
        assert service["healthcheck"]["test"] == ["CMD", "hairmesh", "health", "127.0.0.1:28187", "--ready"]
    gpus = [
        device
        for service in WORKERS.values()
        for each in service["deploy"].get("resources", {}).get("reservations", {}).get("devices", [])
        for device in each["device_ids"]
    ]
    assert gpus == ["0", "1"]


@pytest.mark.parametrize("name", SERVICES)
def test_containers_have_no_rights_and_end_in_order(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"user", "privileged", "network_mode", "pid"} & set(service)  # the user is the image's
    settings, limits = worker.settings.parse(example("worker"), {}, origin="the example"), Thresholds()
    drained = settings.drain_delay_seconds + settings.drain_grace_seconds + limits.thread_end_s + 2 * limits.close_s
    assert int(service["stop_grace_period"].removesuffix("s")) >= max(drained, GRACE_S) + 5


@pytest.mark.parametrize("name", SERVICES)
def test_photos_get_to_no_disk_by_swap_or_core_dumps(name: str) -> None:
    """Without a limit of both together Docker gives as much swap as memory."""
    service = SERVICES[name]
    assert service["memswap_limit"] == service["mem_limit"]
    assert service["ulimits"] == {"core": 0}


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_written_is_on_a_volume_and_secrets_in_a_folder_that_follows_them(name: str) -> None:
    config, state = SERVICES[name]["volumes"]
    folder = config["source"].rpartition("/")[2]
    assert name.startswith(folder)
    assert (config["type"], config["target"], config["read_only"]) == ("bind", "/etc/hairmesh", True)
    assert state.endswith("/var/lib/hairmesh")
    assert set(SERVICES[name].get("environment", {})) <= {"DEVICE"}


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_targets_of_the_dockerfile(name: str) -> None:
    build = SERVICES[name]["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).resolve() == FOLDER / "docker" / "Dockerfile"
    assert build["target"] in TARGETS
    assert build["args"] == {"MODELS": "baked"} | ({"TORCH_INDEX": ""} if "cuda" in name else {})


def test_models_may_be_mounted_instead_of_being_in_the_images() -> None:
    mounted = yaml.safe_load((FOLDER / "compose.models.yaml").read_text())
    Draft7Validator(get_builtin_schema("vendor.compose-spec")).validate(mounted)
    assert set(mounted["services"]) == set(SERVICES)
    dockerfile = (FOLDER / "docker" / "Dockerfile").read_text()
    for service in mounted["services"].values():
        assert service["build"] == {"args": {"MODELS": "mounted"}}
        (volume,) = service["volumes"]
        assert (volume["type"], volume["read_only"]) == ("bind", True)
        assert f"HAIRMESH_MODELS_DIR={volume['target']}" in dockerfile


def test_the_edge_finds_the_workers_and_nobody_else_does() -> None:
    settings = edge.settings.parse(example("edge").encode())
    at_worker = worker.settings.parse(example("worker"), {}, origin="the example")
    for name, service in WORKERS.items():
        assert settings.workers == (f"dns:///{service['networks']['workers']['aliases'][0]}:28187",), name
        assert set(service["networks"]) == {"workers"}
        assert "ports" not in service
    assert at_worker.listen.endswith(":28187")
    assert COMPOSE["networks"]["workers"]["internal"] is True
    (front,) = COMPOSE["networks"]["front"]["ipam"]["config"]
    # Whoever comes through the published port comes from the gateway, and the port is on loopback: that is the proxy.
    assert [str(network) for network in settings.trusted_proxies] == [f"{front['gateway']}/32"]
    assert ip_address(front["gateway"]) in ip_network(front["subnet"])
    assert SERVICES["edge"]["ports"] == [f"127.0.0.1:8080:{settings.port}"]
    assert set(SERVICES["edge"]["networks"]) == {"front", "workers"}
