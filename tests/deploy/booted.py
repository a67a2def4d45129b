"""A machine of its own, booted by systemd as its first process, and another one beside it: Debian in nspawn.

All of it hangs on one process that dies with this one: root, network and the other machine are namespaces and go with
it. Nothing of this machine is changed but one control group, which `close` takes away.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil
import pytest

from vision.models import default_cache_dir

PROGRAMS: Final = ("debootstrap", "systemd-nspawn", "nsenter", "ip")
RELEASE: Final = "bookworm"
PACKAGES: Final = (
    *("systemd", "systemd-sysv", "dbus", "nginx", "curl", "openssl", "ca-certificates", "procps"),
    *("python3-venv", "libgl1", "libegl1", "libgles2", "libglib2.0-0"),  # docs/install.md
)
NAME: Final = "face.example"
ADDRESS: Final = "10.0.0.10"
"""Of the machine; that is also its name for the other one."""
OTHERS: Final = ("10.0.0.1", "10.0.0.3")
"""Of the other one: the first is among the edges that the page lets in, the second is nobody's."""
PATIENCE_S: Final = 120.0
"""For anything awaited: a busy machine is no reason to fail."""

_DONE = "-- that block did well --"
_CLEAN = ("env", "-i", "HOME=/root", "TERM=dumb", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
# In namespaces, for the folder $1 over the Debian $2. systemd sees cgroups v2 alone, whatever this machine has: what it
# needs for IPAddressAllow= and DeviceAllow= is there: bpf(), and the right to attach it.
_BOOT = f"""
set -eu
mount --make-rprivate /
mkdir -p "$1"/upper "$1"/work "$1"/root
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
mount --bind "$1/hosts" /etc/hosts
ip netns add other
ip link set lo up
ip link add other type veth peer name eth0 netns other
ip address add {ADDRESS}/24 dev other
ip link set other up
ip -n other link set lo up
{"".join(f"ip -n other address add {each}/24 dev eth0{chr(10)}" for each in OTHERS)}
ip -n other link set eth0 up
exec systemd-nspawn --quiet --boot --directory="$1/root" --machine=hairmesh --register=no --keep-unit \
    --notify-ready=yes --console=pipe --resolv-conf=off --timezone=off --link-journal=no \
    --capability=CAP_NET_ADMIN --system-call-filter=bpf
"""


def skip_where_it_cannot() -> None:
    """Skip the test where such a machine cannot be."""
    if os.geteuid() != 0:
        pytest.skip("a machine of its own takes root")
    for name in PROGRAMS:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not here: apt-get install debootstrap systemd-container")
    tried = subprocess.run(["unshare", "--mount", "--net", "--cgroup", "true"], capture_output=True, check=False)
    if tried.returncode != 0 or _control_groups() is None:
        pytest.skip("this machine lets nobody make namespaces, or has no cgroups v2")


def _control_groups() -> Path | None:
    """Where cgroups v2 are: alone, or beside the older ones."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(place)
    return None


def debian() -> Path:
    """A Debian with what the pages expect of one, made once and kept beside the models; for reading only."""
    key = hashlib.sha256(" ".join((RELEASE, *PACKAGES)).encode()).hexdigest()[:12]
    place = default_cache_dir().parent / f"debian-{RELEASE}-{key}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / "debian.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            half = Path(tempfile.mkdtemp(dir=place.parent, prefix="debian-half-"))
            command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", RELEASE, str(half)]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                shutil.rmtree(half)
                pytest.skip(f"Debian could not be had: {made.stdout[-500:]}")
            half.chmod(0o755)
            half.rename(place)
    return place


class Machine:
    """The booted machine; `close` leaves nothing of it."""

    def __init__(self, base: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="hairmesh-booted-"))
        self.root = self._folder / "upper"
        """What is written there is in the machine's `/` when it boots."""
        self.root.mkdir()
        self.root.chmod(0o755)
        self._base = base
        groups = _control_groups()
        assert groups is not None
        self._group = groups / self._folder.name
        self._held: subprocess.Popen[bytes] | None = None
        self._nspawn = 0
        self._enter: list[str] = []
        self._shell: Shell | None = None

    def boot(self) -> None:
        """Returns when systemd has started what it starts by itself."""
        (self._folder / "hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {NAME}\n")
        self._group.mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
            notices.bind(str(self._folder / "notices"))
            notices.settimeout(1)
            self._held = self._hold()
            ends = time.monotonic() + PATIENCE_S
            said = ""
            while "READY=1" not in said.splitlines():
                console = (self._folder / "console").read_text(errors="replace")[-4000:]
                assert self._held.poll() is None, console
                assert time.monotonic() < ends, console
                with suppress(TimeoutError):
                    said = notices.recv(4096).decode()
        (nspawn,) = psutil.Process(self._held.pid).children()
        self._nspawn = nspawn.pid
        (leader,) = nspawn.children()
        self._enter = ["nsenter", f"--target={leader.pid}", "--all", "setpriv", "--pdeathsig", "KILL", *_CLEAN]
        self._shell = Shell([*self._enter, "bash"])

    def _hold(self) -> subprocess.Popen[bytes]:
        """Start what holds all of it, in the control group."""
        enter = f'echo $$ > "{self._group}/cgroup.procs"; exec "$@"'
        kinds = ("--mount", "--net", "--cgroup", "--pid", "--fork", "--kill-child")
        with (self._folder / "console").open("wb") as console:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "hairmesh.tether", str(os.getpid()), "/bin/bash", "-c", enter, "-"),
                    *("unshare", *kinds, "bash", "-c", _BOOT, "-", str(self._folder), str(self._base)),
                ],
                env={**os.environ, "NOTIFY_SOCKET": str(self._folder / "notices")},
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )

    def type(self, block: str) -> str:
        """What root types into one and the same shell, which stops at the first line that fails; what is said."""
        assert self._shell is not None
        return self._shell.type(block)

    def run(self, *command: str) -> str:
        """Standard output of a command of root's, which must do well."""
        done = subprocess.run([*self._enter, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stdout[-4000:], done.stderr[-4000:])
        return done.stdout

    def process(self, *command: str) -> subprocess.Popen[str]:
        """A command that goes on, with its output to read; it dies with this process."""
        tether = (sys.executable, "-m", "hairmesh.tether", str(os.getpid()), shutil.which(self._enter[0]) or "")
        return subprocess.Popen([*tether, *self._enter[1:], *command], stdout=subprocess.PIPE, text=True)

    def elsewhere(self, *command: str) -> list[str]:
        """That command as one of the other machine, with the files of this one."""
        return ["nsenter", f"--target={self._nspawn}", "--mount", "ip", "netns", "exec", "other", *command]

    def close(self) -> None:
        """Switch it off at once, and take away what it was."""
        if self._shell is not None:
            self._shell.close()
        if self._held is not None:
            self._held.kill()
            self._held.wait()
        if self._group.exists():
            _end(self._group)
        shutil.rmtree(self._folder)


class Shell:
    """A bash that is told one block after the other, and dies with this process."""

    def __init__(self, command: Sequence[str]) -> None:
        theirs, ours = os.pipe()
        tether = (sys.executable, "-m", "hairmesh.tether", str(os.getpid()), shutil.which(command[0]) or "")
        self._process = subprocess.Popen(
            [*tether, *command[1:], "-euo", "pipefail", f"/dev/fd/{theirs}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs],
            text=True,
        )
        os.close(theirs)
        self._typing = os.fdopen(ours, "w")

    def type(self, block: str) -> str:
        """What it says until it is done; fails with that when a line fails."""
        assert self._process.stdout is not None
        self._typing.write(f"{block}\necho; echo '{_DONE}'\n")
        self._typing.flush()
        said: list[str] = []
        for line in self._process.stdout:
            if line == f"{_DONE}\n":
                return "".join(said)
            said.append(line)
        raise AssertionError(f"{block}\n--- said ---\n{''.join(said)[-6000:]}")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        with suppress(BrokenPipeError):
            self._typing.close()


def _end(group: Path) -> None:
    """Kill what is in a control group, and take it away when it is empty."""
    (group / "cgroup.kill").write_text("1")
    with (group / "cgroup.events").open() as events:
        changed = select.poll()
        changed.register(events, select.POLLPRI)
        ends = time.monotonic() + PATIENCE_S
        while "populated 1" in events.read() and time.monotonic() < ends:
            changed.poll(1000)
            events.seek(0)
    for each in sorted((each for each in group.rglob("*") if each.is_dir()), reverse=True):
        each.rmdir()
    group.rmdir()
