"""docs/kubernetes.md typed with a real kubectl: the number of workers is KEDA's, and nobody else's, from then on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.cluster import Cluster, write_kubectl
from tests.deploy.rendered import overlay
from tests.deploy.test_kubernetes_page import KUBECTL, PAGE
from tests.test_distribution import ROOT, run

SECTION = PAGE.partition("## Prometheus, Grafana, KEDA")[2]
TO_KEDA, BACK = re.findall(r"^```sh\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
BEFORE = "kubectl apply -k deploy/kubernetes/overlays/several-edges"
WORKERS = ("Deployment", "hairmesh-worker")
SCALED = ("ScaledObject", "hairmesh-worker")
MANY = 7
"""Workers there are: by hand before KEDA, by KEDA later."""


class Terminal:
    """Where the page's lines are typed, and the cluster that they reach."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.cluster, self._folder = cluster, folder
        write_kubectl(folder / "bin", KUBECTL, cluster)
        (folder / "deploy").symlink_to(ROOT / "deploy")

    def type(self, block: str) -> None:
        """One block, which does well."""
        run("bash", "-euo", "pipefail", "-c", block, folder=self._folder, PATH=f"{self._folder}/bin:/usr/bin:/bin")

    @property
    def workers(self) -> int:
        """How many there are to be."""
        number: int = self.cluster.objects[WORKERS]["spec"]["replicas"]
        return number

    @workers.setter
    def workers(self, number: int) -> None:
        self.cluster.objects[WORKERS]["spec"]["replicas"] = number


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """With the overlay `several-edges` in force, and more workers than that asks for."""
    with Cluster(overlay("keda")) as cluster:
        terminal = Terminal(tmp_path, cluster)
        terminal.type(BEFORE)
        assert terminal.workers == 2
        terminal.workers = MANY
        yield terminal


def test_workers_stay_as_many_as_they_were_when_keda_takes_over(terminal: Terminal) -> None:
    terminal.type(TO_KEDA)
    assert SCALED in terminal.cluster.objects
    assert terminal.workers == MANY


def test_without_that_step_one_worker_is_left(terminal: Terminal) -> None:
    """Why the page has it, and that this cluster would show it."""
    (applied,) = re.findall(r"^kubectl apply -k .*$", TO_KEDA, re.MULTILINE)
    terminal.type(applied)
    assert terminal.workers == 1


def test_a_new_version_leaves_the_number_to_keda(terminal: Terminal) -> None:
    terminal.type(TO_KEDA)
    terminal.workers = MANY + 1
    (applied,) = re.findall(r"^kubectl apply -k .*$", TO_KEDA, re.MULTILINE)
    terminal.type(applied)
    assert terminal.workers == MANY + 1


def test_back_keda_goes_before_anybody_else_sets_the_number(terminal: Terminal) -> None:
    """Else the two would set it by turns."""
    terminal.type(TO_KEDA)
    terminal.cluster.requests.clear()
    terminal.type(BACK)
    assert SCALED not in terminal.cluster.objects
    methods = [(method, path.rpartition("/")[2]) for method, path in terminal.cluster.requests]
    assert methods[0] == ("DELETE", "hairmesh-worker")
    assert terminal.workers == 2
