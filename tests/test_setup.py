"""Set-up's question whether there is anything to install. The whole of it runs in CI's fresh clone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READ = ("requirements.lock", "pyproject.toml", "hairmesh/__init__.py", "protos/pyproject.toml", "scripts/installed.py")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Another checkout, as far as the question goes."""
    for name in READ:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def ask(checkout: Path, question: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(checkout / "scripts" / "installed.py"), question]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_nothing_to_install_where_every_pin_is_there(checkout: Path) -> None:
    assert ask(checkout, "packages").returncode == 0


def test_a_changed_pin_is_named(checkout: Path) -> None:
    lock = checkout / "requirements.lock"
    lock.write_text(lock.read_text() + "nobody-has-this==1.0\n")
    answer = ask(checkout, "packages")
    assert answer.returncode == 1
    assert "nobody-has-this==1.0" in answer.stdout


def test_an_install_from_another_checkout_is_not_this_one(checkout: Path) -> None:
    assert ask(checkout, "project").returncode == 1


def test_wrong_usage_is_told(checkout: Path) -> None:
    answer = ask(checkout, "everything")
    assert answer.returncode == 2
    assert "installed.py packages" in answer.stderr


def test_scripts_are_valid_shell() -> None:
    for script in sorted((ROOT / "scripts").glob("*.sh")):
        assert subprocess.run(["bash", "-n", script], check=False).returncode == 0, script
