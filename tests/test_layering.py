"""Who may import whom: the contracts stand in pyproject.toml under `tool.importlinter`.

What decides without I/O and without a clock is listed here, with all that it may import.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WATCHDOG = ROOT / "worker" / "health" / "watchdog"
DECIDES = {
    *(f"edge.pool.{path.stem}" for path in (ROOT / "edge" / "pool").glob("*.py") if path.stem != "__init__"),
    "edge.announcements",
    "edge.peers",
    "edge.rate_limit",
    "vision.describe_terms",
    "hairmesh.histogram",
    "hairmesh.trace_context",
    "hairmesh.wire",
    "worker.announcements",
    "worker.doubt",
    "worker.health.checks",
    "worker.health.deps",
    "worker.health.freshness",
    "worker.health.growth",
    "worker.health.report",
    "worker.health.probes.comfyui",
    "worker.health.verdict",
    *(f"worker.health.watchdog.{path.stem}" for path in WATCHDOG.glob("*.py") if path.stem != "__init__"),
    "worker.service_times",
    "worker.slot",
    "worker.thresholds",
}
HARMLESS = {
    "__future__",
    "annotated_types",  # bounds as data
    "bisect",
    "collections",
    "dataclasses",
    "enum",
    "functools",
    "heapq",
    "ipaddress",
    "math",
    "operator",
    "random",
    "re",
    "statistics",
    "types",
    "typing",
}
HEAVY = ("torch", "mediapipe", "cv2", "numpy", "onnxruntime", "PIL", "worker")
LIGHT_VISION = {"vision", "vision.describe_terms", "vision.errors", "vision.jpeg"}
"""All of it that an edge loads before it computes anything itself."""


def test_contracts_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("module", ["edge.app", "edge.command"])
def test_edge_process_loads_nothing_heavy(module: str) -> None:
    loaded = modules_after_importing(module)
    assert not packages(loaded) & set(HEAVY)
    assert {name for name in loaded if name.partition(".")[0] == "vision"} == LIGHT_VISION


def test_worker_process_does_not_load_the_edge() -> None:
    assert "edge" not in packages(modules_after_importing("worker.command"))


@pytest.mark.parametrize("module", sorted(DECIDES))
def test_what_decides_imports_only_what_is_harmless(module: str) -> None:
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            whole = {f"{node.module}.{alias.name}" for alias in node.names} & DECIDES
            imported |= whole or {str(node.module)}
    assert {name for name in imported - DECIDES if name.partition(".")[0] not in HARMLESS} == set()


def test_pool_draws_no_randomness_of_its_own() -> None:
    """A pure pool takes its generator from outside, so that a simulation can be repeated."""
    for path in sorted((ROOT / "edge" / "pool").rglob("*.py")):
        tree = ast.parse(path.read_text())
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "random"
        }
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "random"
            for alias in node.names
        }
        assert used | imported <= {"Random"}, path


def modules_after_importing(module: str) -> set[str]:
    """Modules in memory of a fresh process that imported `module`."""
    code = f"import sys, {module}; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def packages(modules: set[str]) -> set[str]:
    """The top-level packages of these modules."""
    return {name.partition(".")[0] for name in modules}
