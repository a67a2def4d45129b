"""`hairmesh serve`: workers and an edge on this machine until interrupted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from hairmesh.child import Child, StackError, console_script
from hairmesh.client import MEASURE_ROUTE
from hairmesh.client.plain import Client
from hairmesh.demo_inputs import studio_portrait
from hairmesh.stack import FolderInUseError, Stack, ends_on_signals, write_private
from hairmesh.wire import ANALYZE_SERVICE, TOKEN_KEY

CHECK_S = 0.5
RESTART_AFTER_S = 10.0
"""Long enough to see in the pool what a worker that is gone looks like."""


def run(out: Path, *, workers: int, tls: bool = False) -> int:
    """Serve until interrupted, with files in `out`; the exit status. `tls`: everything is encrypted."""
    console = Console(highlight=False)
    try:
        with ends_on_signals(), Service(out, workers=workers, tls=tls, console=console) as service:
            service.run()
    except KeyboardInterrupt:
        console.print("\nserve: stopped")
        return 0
    except StackError as error:
        Console(stderr=True, highlight=False).print(f"serve: {error}", soft_wrap=True, markup=False)
        return 1
    return 0


class Service:
    """A stack with the files that tell scripts and people how to reach it."""

    def __init__(self, out: Path, *, workers: int, tls: bool, console: Console) -> None:
        self._out = out
        self._console = console
        self._contact = out / "serve.json"
        self._stack = Stack(out / "serve", workers=workers, tls=tls)
        self._grpc_header = self._stack.folder / "grpc_header.local.txt"
        self._portrait = out / "portrait.jpg"

    def run(self) -> None:
        """Start everything and watch it; ends with `KeyboardInterrupt`, or `StackError` when the edge is gone."""
        try:
            self._stack.start()
        except FolderInUseError as error:
            raise StackError(f"{error}{_who_runs(self._contact)}") from error
        self._contact.unlink(missing_ok=True)  # of one that was killed: nobody is to find it while this one starts
        with (
            self._console.status("workers load their models …"),
            Client(self._stack.url, authority=self._stack.authority) as client,
        ):
            self._stack.wait_online(client, len(self._stack.workers))
        self._portrait.write_bytes(studio_portrait())
        write_private(self._grpc_header, f"{TOKEN_KEY}: {self._stack.token}\n")
        self._write_contact()
        self._greet()
        keeper = Keeper(self._stack.workers, self._say)
        while True:
            self._stack.edge.check_running()
            if keeper.look(time.monotonic()):
                self._write_contact()
            time.sleep(CHECK_S)

    def _write_contact(self) -> None:
        write_private(self._contact, json.dumps(self._contact_details(), indent=2) + "\n")

    def _contact_details(self) -> dict[str, object]:
        return {
            **({"authority": str(self._stack.authority)} if self._stack.authority else {}),
            "url": self._stack.url,
            "token": self._stack.token,
            "admin_token": self._stack.admin_token,
            "edge_pid": self._stack.edge.pid,
            "workers": [
                {"address": worker.address, "pid": worker.process and worker.process.pid}
                for worker in self._stack.workers
            ],
        }

    def _greet(self) -> None:
        url, worker = self._stack.url, self._stack.workers[0]
        workers = ", ".join(f"{worker.address} (pid {worker.pid})" for worker in self._stack.workers)
        photo = _short(self._portrait)
        self._say(f"edge      {url} (pid {self._stack.edge.pid}): /docs, /monitor, /health")
        self._say(f"console   {url}/console, by the admin_token in {_short(self._contact)}")
        self._say(f"workers   {workers}")
        self._say(f"files     {_short(self._contact)} for scripts, logs in {_short(self._stack.folder)}/*.log")
        self._say(f"pool      {_short(console_script('hairmesh'))} status --out {_short(self._out)}")
        self._say("\nMeasure a photo over REST (this one is of a synthetic person):\n")
        certs, trust, both, scheme = self._stack.certs, "", "", "http"
        if certs:
            trust, scheme = f"--cacert {_short(certs / 'ca.pem')} ", "https"
            both = f"{trust}--cert {_short(certs / 'client.pem')} --key {_short(certs / 'client.key')} "
        self._say(f"  curl {trust}-H 'Accept-Language: en' -F image=@{photo} {url}{MEASURE_ROUTE}")
        self._say("\nThe same straight from a worker over gRPC; schema by reflection, password from a private file:\n")
        self._say(
            f"""  (printf '{{"annotate":false,"photo":{{"data":"'; base64 -w0 {photo}; printf '"}}}}') |\n"""
            f"    {_short(console_script('buf'))} curl --protocol grpc -H @{_short(self._grpc_header)} "
            f"{both}--reflect-header '*' -d @- {scheme}://{worker.address}/{ANALYZE_SERVICE}/Measure"
        )
        self._say("\nCtrl-C stops everything and removes pictures and passwords.")

    def _say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, markup=False)

    def __enter__(self) -> Service:
        """This service; nothing is started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything and remove what told how to reach it."""
        if self._stack.has_folder:  # else they are of the one that runs
            self._contact.unlink(missing_ok=True)
            self._grpc_header.unlink(missing_ok=True)
        for complaint in self._stack.stop():
            self._say(f"serve: {complaint}")


class Keeper:
    """Starts workers again that have ended: as children of this process they end with it, however they were started."""

    def __init__(self, workers: Sequence[Child], say: Callable[[str], None]) -> None:
        self._workers = workers
        self._say = say
        self._due_s: dict[str, float] = {}
        """By the name of a worker that is down: when it is to be started, monotonic."""

    def look(self, now_s: float) -> bool:
        """Once more; whether one ended or was started since."""
        changed = False
        for worker in self._workers:
            if worker.has_ended():
                worker.process = None
                self._due_s[worker.name] = now_s + RESTART_AFTER_S
                self._say(f"{worker.name} ({worker.address}) is gone; it is started again in {RESTART_AFTER_S:.0f} s")
            elif self._due_s.get(worker.name, now_s + 1) <= now_s:
                del self._due_s[worker.name]
                worker.start()
                self._say(f"{worker.name} ({worker.address}) is started again (pid {worker.pid})")
            else:
                continue
            changed = True
        return changed


def _who_runs(contact: Path) -> str:
    """What the one that runs has written of itself; empty where there is nothing yet, or nothing whole."""
    try:
        told = json.loads(contact.read_text())
        return f" ({contact} names {told['url']}, edge pid {told['edge_pid']})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _short(path: Path) -> str:
    """Relative to the working directory where it lies below it: lines to copy stay short."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
