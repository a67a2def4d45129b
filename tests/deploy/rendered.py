"""The Kubernetes manifests as a cluster would get them."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
OVERLAYS = sorted(folder.name for folder in (FOLDER / "overlays").iterdir())

Object = dict[str, Any]


@cache
def overlay(name: str) -> tuple[Object, ...]:
    """What `kubectl kustomize` makes of it."""
    command = [str(Path(sys.executable).with_name("kubectl")), "kustomize", str(FOLDER / "overlays" / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr  # what it warns of is out of date
    return tuple(yaml.safe_load_all(done.stdout))


def one(name: str, kind: str, called: str) -> Object:
    """The one object of that kind and name; a generated name by its beginning."""
    found = [
        each
        for each in overlay(name)
        if each["kind"] == kind and (each["metadata"]["name"] == called or each["kind"] == "ConfigMap")
    ]
    assert len(found) == 1, (name, kind, called)
    return found[0]


def pod(name: str, part: str) -> Object:
    """The pods of `edge` or `worker`."""
    spec: Object = one(name, "Deployment", f"hairmesh-{part}")["spec"]["template"]["spec"]
    return spec


def container(name: str, part: str) -> Object:
    """Their one container."""
    (only,) = pod(name, part)["containers"]
    found: Object = only
    return found


def ports(name: str, part: str) -> dict[str, int]:
    """Its ports by name."""
    return {port["name"]: port["containerPort"] for port in container(name, part)["ports"]}
