"""docs/kubernetes.md typed as far as no cluster is needed: what kubectl would send fits together.

The blocks on KEDA: `test_kubernetes_keda`.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import sys
from pathlib import Path

import yaml

from tests.deploy.configured import example
from tests.deploy.rendered import OVERLAYS, Object, overlay, pod
from tests.test_distribution import BIN, ROOT, run

PAGE = (ROOT / "docs" / "kubernetes.md").read_text()
CREATE, LABEL, NEXT, _LOOK, _TO_KEDA, _BACK = (
    re.sub(r"^ {3}", "", text, flags=re.MULTILINE)
    for text in re.findall(r"^ *```sh\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
)
KUBECTL = Path(sys.executable).with_name("kubectl")
OFFLINE = f"""#!/bin/sh
# kubectl, but what would be sent to a cluster is written to a file; `rollout`, which only waits there, is noted.
set -eu
case "$*" in
    *create*) {KUBECTL} "$@" --dry-run=client --output yaml ;;
    "diff -k "* | "apply -k "*) {KUBECTL} kustomize "$3" ;;
    "label namespace "*)
        echo '{{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "'"$3"'"}}}}' |
            {KUBECTL} label --local --filename - --output yaml "$4" ;;
    *" rollout status "*) echo "waited: \\"$*\\"" ;;
    *) exit 1 ;;
esac >>"$SENT"
echo --- >>"$SENT"
"""
"""The page's words for a cluster that is not here."""


def typed(block: str, folder: Path) -> list[Object]:
    """The objects that a cluster would have got, one after the other."""
    (programs := folder / "bin").mkdir()
    (programs / "kubectl").write_text(OFFLINE)
    (programs / "kubectl").chmod(0o755)
    (folder / "deploy").symlink_to(ROOT / "deploy")
    way = f"{programs}:{BIN}:/usr/bin:/bin"
    run("bash", "-euo", "pipefail", "-c", block, folder=folder, PATH=way, SENT=str(folder / "sent.yaml"))
    return [each for each in yaml.safe_load_all((folder / "sent.yaml").read_text()) if each]


def named(sent: list[Object], kind: str) -> dict[str, Object]:
    """Of that kind, by namespace and name."""
    return {
        f"{each['metadata'].get('namespace', '')}/{each['metadata']['name']}": each
        for each in sent
        if each.get("kind") == kind
    }


def test_the_secrets_that_are_made_are_those_that_pods_mount(tmp_path: Path) -> None:
    copied, then = CREATE.partition("hairmesh-edge --config")[::2]
    assert copied.count("\n") == 2
    secrets = "\n".join(
        f"cat >{part}_config.json <<'END'\n{example(f'{part}_config.example.json')}\nEND" for part in ("edge", "worker")
    )
    sent = typed(f"{copied}{secrets}\nhairmesh-edge --config{then}", tmp_path)
    assert next(iter(named(sent, "Namespace"))) == "/hairmesh"
    created = named(sent, "Secret")
    for part in ("edge", "worker"):
        (mounted,) = (volume["secret"] for volume in pod("cpu", part)["volumes"] if "secret" in volume)
        data = created[f"hairmesh/{mounted['secretName']}"]["data"]
        assert list(data) == [file := f"{part}_config.json"]
        assert json.loads(base64.b64decode(data[file])) == json.loads((tmp_path / file).read_text())
    assert {f"hairmesh/hairmesh-{part}" for part in ("edge", "worker")} <= set(named(sent, "Deployment"))


def test_a_new_version_waits_for_the_deployments_that_it_changes(tmp_path: Path) -> None:
    sent = typed(NEXT, tmp_path)
    waited = [shlex.split(each["waited"]) for each in sent if "waited" in each]
    names = {f"{words[1]}/{words[4].removeprefix('deployment/')}" for words in waited}
    assert names == set(named(sent, "Deployment"))


def test_the_labels_are_those_that_the_rules_ask_for(tmp_path: Path) -> None:
    labelled = named(typed(LABEL, tmp_path), "Namespace").values()
    labels = {f"{label}: {value}" for each in labelled for label, value in each["metadata"]["labels"].items()}
    rules = [each for name in OVERLAYS for each in overlay(name) if each["kind"] == "NetworkPolicy"]
    asked = set(re.findall(r'"(hairmesh/\w+)": "(\w+)"', json.dumps(rules)))
    assert labels == {": ".join(each) for each in asked}
