"""Runs a program under what a unit file allows its processes: `python -m tests.deploy.sandbox UNIT PROGRAM ARGUMENT…`.

Without systemd as the first process, as far as the kernel lets anybody bind themselves: system calls, address families,
memory that is both written and executed. What systemd does with namespaces and control groups is left out.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_ALLOW, _EPERM = 0x7FFF0000, 0x00050000 | errno.EPERM
_EQUAL = 4
_PR_SET_MDWE, _PR_MDWE_REFUSE_EXEC_GAIN = 65, 1


class Comparison(ctypes.Structure):
    """libseccomp's `struct scmp_arg_cmp`."""

    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


def values(unit: str, key: str) -> list[str]:
    """What stands behind each line of that key."""
    return re.findall(rf"^{key}=(.*)$", unit, re.MULTILINE)


def groups() -> dict[str, list[str]]:
    """systemd's names for sets of system calls."""
    listing = subprocess.run(["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True).stdout
    found: dict[str, list[str]] = {}
    for line in listing.splitlines():
        if line.startswith("@"):
            members = found[line] = []
        elif line.strip() and not line.strip().startswith("#") and line.startswith(" "):
            members.append(line.strip())
    return found


def members(name: str, known: dict[str, list[str]]) -> Iterator[str]:
    """All system calls that a name stands for."""
    for each in known.get(name, []):
        yield from members(each, known) if each.startswith("@") else (each,)


def allowed(unit: str) -> set[str]:
    """System calls that the unit allows."""
    known, calls = groups(), set[str]()
    for line in values(unit, "SystemCallFilter"):
        named = {call for name in line.lstrip("~").split() for call in members(name, known)}
        calls = calls - named if line.startswith("~") else calls | named
    return calls


def confine(unit: str) -> None:
    """Bind this process, and all that it becomes; raises `OSError` where this kernel cannot."""
    seccomp = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    seccomp.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(seccomp.seccomp_init(_EPERM))
    families = [int(getattr(socket, name)) for name in values(unit, "RestrictAddressFamilies")[0].split()]
    for name in allowed(unit):
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number < 0:  # of another processor
            continue
        for comparison in (
            [(Comparison * 1)(Comparison(0, _EQUAL, family, 0)) for family in families] if name == "socket" else [None]
        ):
            count = 0 if comparison is None else 1
            seccomp.seccomp_rule_add_array(rules, _ALLOW, number, count, comparison)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    if values(unit, "MemoryDenyWriteExecute") == ["yes"] and libc.prctl(
        _PR_SET_MDWE, _PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0
    ):
        raise OSError(ctypes.get_errno(), "this kernel denies no memory")
    if problem := seccomp.seccomp_load(rules):
        raise OSError(-problem, "no system call filter")


if __name__ == "__main__":
    confine(Path(sys.argv[1]).read_text())
    os.execv(sys.argv[2], sys.argv[2:])
