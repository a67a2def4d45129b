"""As much of a Kubernetes cluster as `kubectl` needs to apply and delete: it keeps objects, and starts nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from hairmesh.stack import LOOPBACK
from tests.deploy.rendered import Object

VERBS = ["create", "delete", "get", "patch"]
CLUSTER_WIDE = {"Namespace"}


def plural(kind: str) -> str:
    """As kinds are called in addresses: `networkpolicies`."""
    name = kind.lower()
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def merged(object_: Any, patch: Any) -> Any:
    """What a merge patch makes of it (RFC 7386). A strategic one is the same where no list changes."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(object_) if isinstance(object_, dict) else {}
    for name, value in patch.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = merged(kept.get(name), value)
    return kept


class Cluster:
    """Inside `with`: at `url`, with the kinds of `like`. `objects` are what is there, by kind and name."""

    def __init__(self, like: Iterable[Object]) -> None:
        kinds = {(each["apiVersion"], each["kind"]) for each in like}
        self._kinds = {plural(kind): (version, kind) for version, kind in kinds}
        self._at: dict[str, Object] = {}
        self.requests: list[tuple[str, str]] = []
        """Those that change something: method and path."""
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                path = self.path.partition("?")[0]
                found = cluster.answer(self.command, path, json.loads(body) if body else None)
                said = json.dumps(found or {"apiVersion": "v1", "kind": "Status", "reason": "NotFound", "code": 404})
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said.encode())))
                self.end_headers()
                self.wfile.write(said.encode())

            do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815  (names of http.server's)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.url = f"http://{LOOPBACK}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def objects(self) -> dict[tuple[str, str], Object]:
        """What is there; to be changed in place."""
        return {(each["kind"], each["metadata"]["name"]): each for each in self._at.values()}

    def answer(self, method: str, path: str, body: Any) -> Object | None:
        """None: there is no such thing."""
        if method == "GET":
            return self._discovered(path) or self._at.get(path)
        self.requests.append((method, path))
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            self._at[path] = defaulted(body)
        elif method == "PATCH":
            self._at[path] = defaulted(merged(self._at[path], body))
        else:
            return self._at.pop(path, None)
        return self._at[path]

    def _discovered(self, path: str) -> Object | None:
        """What kinds there are, as kubectl asks for it before anything else."""
        versions = sorted({version for version, _ in self._kinds.values() if "/" in version})
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            each = [{"groupVersion": version, "version": version.split("/")[1]} for version in versions]
            groups = [{"name": one["groupVersion"].split("/")[0], "versions": [one]} for one in each]
            return {"apiVersion": "v1", "kind": "APIGroupList", "groups": groups}
        version = path.removeprefix("/apis/").removeprefix("/api/")
        if version not in {*versions, "v1"}:
            return None
        resources = [
            {
                "name": name,
                "singularName": kind.lower(),
                "namespaced": kind not in CLUSTER_WIDE,
                "kind": kind,
                "verbs": VERBS,
            }
            for name, (of, kind) in self._kinds.items()
            if of == version
        ]
        return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}


def defaulted(object_: Object) -> Object:
    """With what Kubernetes writes where a Deployment leaves its number open."""
    if object_["kind"] == "Deployment":
        object_["spec"].setdefault("replicas", 1)
    return object_


def write_kubectl(programs: Path, kubectl: Path, cluster: Cluster) -> None:
    """A `kubectl` of that cluster, which has no schemas to validate by; what it remembers lies beside it."""
    flags = f"--server {cluster.url} --cache-dir {programs}/cache"
    programs.mkdir()
    (programs / "kubectl").write_text(
        f"""#!/bin/sh
case "$1" in
    apply) exec {kubectl} "$@" {flags} $(test "$2" != -k || echo --validate=false) ;;
    *) exec {kubectl} "$@" {flags} ;;
esac
"""
    )
    (programs / "kubectl").chmod(0o755)
