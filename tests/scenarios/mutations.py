"""Shows that a test fails when the behaviour it stands for is taken away.

`python -m tests.scenarios.mutations [NAME…]` copies the tree, changes one text at a time in the copy, and runs there
the one test named for it. A mutation is *killed* when that test fails; it is no proof when the test cannot even be
collected. Exit status 1 when one survives, when a text no longer stands in its file exactly once, or when a test fails
without any change.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.scenarios.mutation_table import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("edge", "hairmesh", "worker", "vision", "tests", "protos", "pyproject.toml", "scripts")
TESTS_FAILED = 1
"""Pytest's exit status for that and nothing else."""
TIMEOUT_S = 120


@dataclass(slots=True)
class Tree:
    """A copy of the tree to break things in."""

    root: Path
    _environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def copied(cls) -> Iterator[Tree]:
        """Gone at the end."""
        with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
            root = Path(folder)
            for part in PARTS:
                source = ROOT / part
                if source.is_dir():
                    shutil.copytree(source, root / part, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(source, root / part)
            yield cls(root, {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"})

    def run(self, *tests: str) -> tuple[int, str]:
        """Pytest's exit status for these, and how the first failure begins."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-W", "ignore", *tests]
        try:
            done = subprocess.run(
                command,
                cwd=self.root,
                env=self._environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=TIMEOUT_S * len(tests),
            )
        except subprocess.TimeoutExpired:
            return TESTS_FAILED, "waits for ever"
        said = [line.removeprefix("E").strip() for line in done.stdout.splitlines() if line.startswith("E  ")]
        return done.returncode, said[0] if said else ""

    @contextmanager
    def broken(self, mutation: Mutation) -> Iterator[None]:
        """With that change in it."""
        path = self.root / mutation.file
        text = path.read_text()
        path.write_text(text.replace(mutation.text, mutation.broken))
        try:
            yield
        finally:
            path.write_text(text)


def misfit(mutation: Mutation) -> str:
    """Why it cannot be applied; empty when it can."""
    times = (ROOT / mutation.file).read_text().count(mutation.text)
    return "" if times == 1 else f"its text stands {times} times in {mutation.file}"


def demonstrate(mutations: Sequence[Mutation]) -> bool:
    """Run them all and say what came of each; whether every one was killed."""
    good = True
    with Tree.copied() as tree:
        print(f"{len(mutations)} mutations; their tests without any change first", flush=True)
        status, said = tree.run(*sorted({mutation.test for mutation in mutations}))
        if status != 0:
            print(f"a test fails as it is, so that nothing can be shown: {said}")
            return False
        for number, mutation in enumerate(mutations, 1):
            began_s = time.monotonic()
            with tree.broken(mutation):
                status, said = tree.run(mutation.test)
            verdict = "killed" if status == TESTS_FAILED else "SURVIVED" if status == 0 else f"NO PROOF ({status})"
            good &= status == TESTS_FAILED
            took_s = time.monotonic() - began_s
            print(f"{number:3}/{len(mutations)} {verdict:9} {took_s:5.1f} s  {mutation.name}: {said}", flush=True)
    return good


def main() -> None:
    """All of them, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="; ".join(each.name for each in MUTATIONS))
    names = parser.parse_args().names
    chosen = [mutation for mutation in MUTATIONS if not names or mutation.name in names]
    if unknown := set(names) - {mutation.name for mutation in MUTATIONS}:
        parser.error(f"no such mutation: {', '.join(sorted(unknown))}")
    stale = [f"{mutation.name}: {problem}" for mutation in chosen if (problem := misfit(mutation))]
    if stale:
        print("\n".join(stale))
    raise SystemExit(bool(stale) or not demonstrate(chosen))


if __name__ == "__main__":
    main()
