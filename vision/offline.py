"""Keeps a library that would phone home off the network.

MediaPipe's native part sends usage statistics to its maker, from threads of its own, and knows no switch for it. Photos
are not in them, but a program that handles patients' faces has no such conversations: the thread that makes the
detector, and with it every thread that descends from it, may not open sockets (a seccomp filter, Linux).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import threading
from collections.abc import Callable
from typing import TypeVar

from vision.errors import ModelError

T = TypeVar("T")

_MACHINES = {
    # machine: AUDIT_ARCH of <linux/audit.h>, number of the socket system call
    "x86_64": (0xC000003E, 41),
    "aarch64": (0xC00000B7, 198),
}
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # opcodes of classic BPF
_NUMBER_AT, _ARCH_AT = 0, 4  # offsets in struct seccomp_data
_ALLOW, _FAIL_WITH = 0x7FFF0000, 0x00050000


def run_offline(make: Callable[[], T]) -> T:
    """Call `make` in a thread that cannot open sockets, nor can any thread it starts; its answer or its exception.

    Raises `ModelError` where the system offers no way to do so.
    """
    answers: list[T] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            _forbid_sockets()
            answers.append(make())
        except BaseException as failure:  # noqa: BLE001  (raised again by the caller's thread)
            failures.append(failure)

    thread = threading.Thread(target=body, name="offline")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return answers[0]


def _forbid_sockets() -> None:
    """For the calling thread and those it will start: `socket` fails with EACCES. There is no way back."""
    machine = platform.machine()
    if platform.system() != "Linux" or machine not in _MACHINES:
        raise ModelError(f"the landmark model cannot be kept off the network on {platform.system()} {machine}")
    architecture, socket_call = _MACHINES[machine]
    program = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            # opcode, instructions to skip if equal, if not, operand
            (_LOAD_WORD, 0, 0, _ARCH_AT),
            (_JUMP_IF_EQUAL, 0, 2, architecture),
            (_LOAD_WORD, 0, 0, _NUMBER_AT),
            (_JUMP_IF_EQUAL, 1, 0, socket_call),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _FAIL_WITH | errno.EACCES),
        )
    )
    instructions = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(instructions)))
    libc = ctypes.CDLL(None, use_errno=True)
    for option, *values in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(header), 0, 0),
    ):
        if libc.prctl(option, *map(ctypes.c_ulong, values)) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise ModelError(f"the landmark model cannot be kept off the network: seccomp is refused ({reason})")
