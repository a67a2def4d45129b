"""Several hosts on this machine: network namespaces with addresses of their own, and a switch between them that a test
holds in its hand.

Each host has one interface whose cable (a TAP device) ends in this process. The switch is a few lines of the test's own
event loop: it carries every frame after `delay_s`, or lets it vanish without a word where `cut` says so, in one
direction or in both; so do a dead cable, a filter with a wrong rule, a route that leads back another way. Nobody hears
a RST, a FIN or an ICMP message. It needs no program of the system but `nsenter`, and the right to make namespaces.

All of it vanishes with the process.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import shutil
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Self

import pytest

NETWORK = "10.77.0"
"""Its first three bytes; /24."""
_CLONE_NEWNET = 0x40000000
_TUNSETIFF, _TAP, _NO_HEADER = 0x400454CA, 0x0002, 0x1000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _UP = 0x8913, 0x8914, 1
_SIOCSIFADDR, _SIOCSIFNETMASK = 0x8916, 0x891C
_INTERFACE = b"eth0"
_FRAME_BYTES = 2048
"""More than Ethernet's 1514."""
_GROUP_BIT = 1
"""Of the first byte of an address that means several hosts."""

_libc = ctypes.CDLL(None, use_errno=True)


class NoNamespacesError(Exception):
    """This machine, or this user, may not make them; the message says why."""


def _enter(namespace: int) -> None:
    """Have this thread live there from now on."""
    if _libc.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _here() -> int:
    """A descriptor of the namespace of this thread."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _set_up(name: bytes, address: str = "") -> None:
    """Bring an interface of this namespace up, and give it an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for request, value in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, "255.255.255.0")) if address else ():
            packed = struct.pack("16sHH4s8x", name, socket.AF_INET, 0, socket.inet_aton(value))
            fcntl.ioctl(any_socket, request, packed)
        (flags,) = struct.unpack_from("16xH", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sH14x", name, 0)))
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", name, flags | _UP))


class Host:
    """One of them. What `run` names runs there; so does what a thread does inside `entered`."""

    def __init__(self, number: int) -> None:
        """Raises `NoNamespacesError`."""
        self.address = f"{NETWORK}.{number}"
        home = _here()
        try:
            if _libc.unshare(_CLONE_NEWNET) != 0:
                reason = os.strerror(ctypes.get_errno())
                raise NoNamespacesError(f"network namespaces cannot be made here: {reason}")
            try:
                self._namespace = _here()
                self.cable = self._plug_in()
            finally:
                _enter(home)
        finally:
            os.close(home)

    def _plug_in(self) -> int:
        """The interface of the namespace that this thread is in; our end of its cable."""
        try:
            cable = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            os.close(self._namespace)
            raise NoNamespacesError(f"/dev/net/tun cannot be used here: {error.strerror}") from error
        fcntl.ioctl(cable, _TUNSETIFF, struct.pack("16sH22x", _INTERFACE, _TAP | _NO_HEADER))
        _set_up(b"lo")
        _set_up(_INTERFACE, self.address)
        return cable

    def __repr__(self) -> str:
        """Its address."""
        return f"<Host {self.address}>"

    def run(self, *program: str) -> list[str]:
        """The command that runs `program` there."""
        nsenter = shutil.which("nsenter")
        assert nsenter is not None, "util-linux is part of every Linux"
        return [nsenter, f"--net=/proc/{os.getpid()}/fd/{self._namespace}", *program]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Inside, this thread and what it starts live there."""
        home = _here()
        _enter(self._namespace)
        try:
            yield
        finally:
            _enter(home)
            os.close(home)

    def close(self) -> None:
        """It is gone once nothing runs there any more."""
        os.close(self.cable)
        os.close(self._namespace)


class Network:
    """Hosts and the switch between them, inside `with`, on the running event loop."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        """From every host to every other one, in s: half of a round trip."""
        self.carried = 0
        """Frames so far."""
        self._hosts: list[Host] = []
        self._at: dict[bytes, Host] = {}
        """By hardware address, as it was last heard."""
        self._cuts: set[tuple[Host, Host]] = set()
        self._loop = asyncio.get_running_loop()
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        """Nobody is there yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """All hosts go."""
        self._closing.close()
        self._hosts.clear()

    def host(self) -> Host:
        """Another one; skips the test where the machine refuses."""
        try:
            host = Host(len(self._hosts) + 1)
        except NoNamespacesError as refused:
            pytest.skip(str(refused))
        self._closing.callback(host.close)
        self._hosts.append(host)
        self._loop.add_reader(host.cable, self._read, host)
        self._closing.callback(self._loop.remove_reader, host.cable)
        return host

    def cut(self, sender: Host, receiver: Host) -> None:
        """From now on nothing that `sender` says reaches `receiver`; the other direction stays as it is."""
        self._cuts.add((sender, receiver))

    def mend(self, sender: Host, receiver: Host) -> None:
        """It does again."""
        self._cuts.discard((sender, receiver))

    def go_dark(self, host: Host) -> None:
        """Nobody hears of it any more, nor it of anybody: power or switch port gone."""
        for other in self._hosts:
            if other is not host:
                self._cuts |= {(host, other), (other, host)}

    def _read(self, sender: Host) -> None:
        """Carry the next frame; with several waiting the loop comes back at once."""
        try:
            frame = os.read(sender.cable, _FRAME_BYTES)
        except BlockingIOError:
            return
        to, source = frame[:6], frame[6:12]
        self._at[source] = sender
        known = None if to[0] & _GROUP_BIT else self._at.get(to)
        receivers: Sequence[Host] = self._hosts if known is None else (known,)
        for receiver in receivers:
            if receiver is not sender and (sender, receiver) not in self._cuts:
                self.carried += 1
                if self.delay_s:
                    self._loop.call_later(self.delay_s, self._deliver, receiver, frame)
                else:
                    self._deliver(receiver, frame)

    def _deliver(self, receiver: Host, frame: bytes) -> None:
        if receiver in self._hosts:
            try:
                os.write(receiver.cable, frame)
            except BlockingIOError:
                return  # its queue is full: the frame is lost, as on any switch; TCP sends it again
