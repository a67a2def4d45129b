"""A machine that has Docker: Debian 13 with its own packages of engine, buildx and Compose, in namespaces of its own.

Its file system, processes and network (bridges and filter rules among them) are not this machine's, and the way out of
it is a mere program (slirp4netns), which changes nothing here either. Its first process ends when what it reads ends,
so that with this process all of it goes: daemon, containers, mounts. What stays is the folder.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil
import pytest

from tests.deploy import debian

RELEASE: Final = "trixie"
PACKAGES: Final = (
    *("docker.io", "docker-cli", "docker-buildx", "docker-compose"),
    *("ca-certificates", "curl", "iproute2", "iptables", "procps", "slirp4netns", "sudo"),
)
PATIENCE_S: Final = 180.0
"""For what should take moments, on a busy machine."""
_GROUPS = Path("/sys/fs/cgroup")
_CLEAN = ("env", "-i", "HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "bash", "-euo", "pipefail", "-c")
_FIRST_PROCESS = """
# A mere chroot would not do: what enters a container later (a health check) would find itself outside.
mount --bind "$1" "$1"
cd "$1"
mkdir -p outside
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs tmpfs run
mount --rbind /sys/fs/cgroup mnt
pivot_root . outside
umount --lazy /outside
cd /
ip netns add docker
ip -n docker link set lo up
slirp4netns --configure --mtu=65520 --disable-host-loopback --netns-type=path /run/netns/docker tap0 \\
    >/var/log/slirp4netns.log 2>&1 &
nsenter --net=/run/netns/docker mount -t sysfs sysfs /sys
mount --move /mnt /sys/fs/cgroup
nsenter --net=/run/netns/docker dockerd --cgroup-parent="/$2" >/var/log/dockerd.log 2>&1 &
daemon=$!
until docker info >/dev/null 2>&1; do
    kill -0 $daemon
    sleep 0.2
done
echo up
exec cat
"""


class Machine:
    """It runs inside `with`; `root` is its `/`."""

    def __init__(self, root: Path) -> None:
        """Raises what `debian.install` does."""
        self.root = root
        debian.install(RELEASE, root, *PACKAGES)
        (root / "etc" / "resolv.conf").write_text("nameserver 10.0.2.3\n")  # slirp4netns asks this machine's

    def __enter__(self) -> Self:
        """Its Docker answers."""
        self._group = f"hairmesh-{os.getpid()}"
        (self.root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        self._first = subprocess.Popen(
            [*apart, "sh", "-euc", _FIRST_PROCESS, "sh", str(self.root), self._group],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._first.stdout is not None
        if self._first.stdout.readline() != "up\n":
            raise AssertionError(self._end() + self._log())
        (init,) = psutil.Process(self._first.pid).children()
        (daemon,) = (each for each in init.children(recursive=True) if each.name() == "dockerd")
        self._enter = ["nsenter", f"--target={daemon.pid}", "--mount", "--net", "--pid", *_CLEAN]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Everything in it is killed, and nothing of it mounted or known to the kernel any more."""
        self._end()
        for group in _GROUPS.glob(f"**/{self._group}"):
            for below, _, _ in os.walk(group, topdown=False):
                Path(below).rmdir()

    def _end(self) -> str:
        """What it said of its own end."""
        _, said = self._first.communicate(timeout=PATIENCE_S)
        return said

    def _log(self) -> str:
        logs = (self.root / "var" / "log" / f"{program}.log" for program in ("slirp4netns", "dockerd"))
        return "".join(log.read_text()[-3000:] for log in logs if log.exists())

    def start(self, script: str, folder: str = "/") -> subprocess.Popen[str]:
        """A shell that runs it there and stops at what fails; its output can be read."""
        command = [*self._enter, f"cd {folder}\n{script}"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, script: str, folder: str = "/") -> str:
        """Its standard output; fails with all that it said."""
        done = subprocess.run([*self._enter, f"cd {folder}\n{script}"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout.strip()

    def refuses(self, script: str) -> str:
        """What it says when it fails, as it has to."""
        done = subprocess.run([*self._enter, script], capture_output=True, text=True, check=False)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def until(self, script: str, wanted: Callable[[str], bool]) -> str:
        """What it says as soon as that is what was wanted."""
        ends_s = time.monotonic() + PATIENCE_S
        while not wanted(said := self.run(script)):
            assert time.monotonic() < ends_s, said
            time.sleep(0.1)
        return said


def skip_where_it_cannot() -> None:
    """Skip the test where such a machine cannot be."""
    debian.skip_without("debootstrap", package="debootstrap")
    for needed in (["unshare", "--mount", "--net", "--pid", "--fork", "true"], ["test", "-c", "/dev/net/tun"]):
        if subprocess.run(needed, capture_output=True, check=False).returncode != 0:
            pytest.skip(f"this machine may not do `{' '.join(needed)}`")
