"""No command of the documentation is left untried: a test types it, or the reason why none does stands here."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from hairmesh import cli
from tests.test_distribution import BIN, ROOT, run

SHELL = {"sh", "bash", "shell", "console", "grpcurl"}
TYPED: Mapping[str, str] = {
    "docs/by-hand.md": "tests/test_by_hand.py",
    "docs/client.md": "tests/hairmesh/client/test_page.py",
    "docs/configuration.md": "tests/test_docs_commands.py",
    "docs/containers.md": "tests/deploy/test_docker_real.py",
    "docs/install.md": "tests/test_release_docs.py",
    "docs/kubernetes.md": "tests/deploy/test_kubernetes_page.py",
    "docs/one-machine.md": "tests/deploy/test_systemd.py",
    "docs/operations.md": "tests/test_docs.py",
    "docs/pictures.md": "tests/test_docs.py",
    "docs/releasing.md": "tests/test_release_docs.py",
    "docs/rest.md": "tests/test_rest_page.py",
    "docs/security.md": "tests/test_security_docs.py",
    "docs/stubs.md": "tests/protos/test_stubs.py",
}
"""By page: the test that runs its blocks marked `sh`."""
TYPED_BOOTED: Mapping[str, str] = dict.fromkeys(
    ("docs/install.md", "docs/one-machine.md"), "tests/deploy/test_systemd_booted.py"
)
"""By page: the test that runs its blocks marked `console` too, where systemd has booted."""
UNTYPED: Mapping[tuple[str, str], str] = {
    ("docs/kubernetes.md", "kubectl --namespace hairmesh port-forward"): "wants a cluster",
}
"""By page and beginning of the block: why no test types it."""
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "protos").glob("*.md")})
PAGE_NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def fenced(page: str) -> Iterator[tuple[str, str]]:
    """Language and text of every block."""
    for _, language, text in re.findall(r"^( *)```(\w*)\n(.*?)^\1```$", (ROOT / page).read_text(), re.M | re.S):
        yield language, text


def command_lines(page: str) -> Iterator[str]:
    """Every line of a block, fenced or indented, that calls `hairmesh`; without remarks."""
    text = (ROOT / page).read_text()
    for line in re.findall(r"^(?: {4}|)(?:\$HOUSE/\S+/bin/|\.venv/bin/)?hairmesh ([a-z].*)$", text, re.M):
        yield re.split(r"\s+#|\s[|>&]|&&", line)[0]


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_every_block_is_typed_by_a_test_or_has_a_reason(page: str) -> None:
    for language, text in fenced(page):
        if language not in SHELL:
            continue
        excused = [key for key in UNTYPED if key[0] == page and text.strip().startswith(key[1])]
        assert len(excused) == 1 or page in (TYPED_BOOTED if language == "console" else TYPED), (
            f"who types this?\n{text}"
        )


def test_the_lists_name_what_there_is() -> None:
    for page, test in TYPED.items():
        assert Path(page).name.removesuffix(".md") in (ROOT / test).read_text() or page == "docs/operations.md", test
    for page, test in TYPED_BOOTED.items():
        for begins in (" ".join(text.split()[:2]) for language, text in fenced(page) if language == "console"):
            assert f'"{begins}' in (ROOT / test).read_text(), (page, begins)
    for page, begins in UNTYPED:
        assert any(text.strip().startswith(begins) for _, text in fenced(page)), (page, begins)


@pytest.mark.parametrize("page", [page for page in PAGE_NAMES if any(command_lines(page))])
def test_commands_and_options_are_those_that_there_are(page: str) -> None:
    """Also where nothing types them: in text that is indented, and in remarks."""
    for line in command_lines(page):
        words = shlex.split(re.sub(r"[`…\[\]]", " ", line))
        command: Any = typer.main.get_command(cli.app)
        while words and words[0] in (below := getattr(command, "commands", {})):
            command = below[words.pop(0)]
        assert not getattr(command, "commands", {}), line
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        assert {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)} <= known, line


def test_configuration_page(tmp_path: Path) -> None:
    ((language, block),) = list(fenced("docs/configuration.md"))
    assert language == "sh"
    for name, placeholder in (("edge_config", "change-me"), ("worker_config", "replace-me")):
        example = (ROOT / f"{name}.example.json").read_text()
        (tmp_path / f"{name}.json").write_text(example.replace(placeholder, "our-own-secret"))
    said = run("bash", "-euo", "pipefail", "-c", block, folder=tmp_path, PATH=f"{BIN}:/usr/bin:/bin")
    assert "cooldown_seconds" in said
    assert '"$schema"' in (tmp_path / "edge_config.schema.json").read_text()


def test_first_page_names_targets_that_make_has() -> None:
    targets = set(re.findall(r"^ {4}make (\w+)", (ROOT / "README.md").read_text(), re.M))
    assert {"demo", "test"} <= targets
    for target in targets:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True)
