"""The restart command: run without a shell, with a time limit, its end told in words."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from hairmesh.watch.target import TargetError

OUTPUT_BYTES = 2_000
"""So much of the end of its output is told."""


@dataclass(frozen=True, slots=True)
class Restart:
    """How it went."""

    good: bool
    words: str
    output: str


def parse_command(text: str) -> list[str]:
    """Program and arguments, split as a shell would and run without one; raises `TargetError`."""
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise TargetError(f"--restart-cmd: {error}") from None
    if not command:
        raise TargetError("--restart-cmd is empty")
    if shutil.which(command[0]) is None:
        raise TargetError(f"--restart-cmd: no program {command[0]}; for shell syntax write: sh -c '…'")
    return command


async def run(command: Sequence[str], *, timeout_s: float, without: frozenset[str]) -> Restart:
    """Run `command` for at most `timeout_s`. Names in `without` are not in its environment."""
    environment = {name: value for name, value in os.environ.items() if name not in without}
    # Into a file, not a pipe: a server that the command leaves running holds its end open for ever.
    with tempfile.TemporaryFile() as output:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,  # whatever it starts is killed with it, and a Ctrl-C is for us
            )
        except OSError as error:
            return Restart(good=False, words=f"restart command could not start: {error.strerror}", output="")
        try:
            async with asyncio.timeout(timeout_s):
                status = await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            return Restart(good=False, words=f"restart command killed after {timeout_s:.0f} s", output=_tail(output))
        words = "restart command done" if status == 0 else f"restart command failed: status {status}"
        return Restart(good=status == 0, words=words, output=_tail(output))


def _tail(output: IO[bytes]) -> str:
    output.seek(max(0, output.seek(0, os.SEEK_END) - OUTPUT_BYTES))
    return output.read().decode(errors="replace").strip()
