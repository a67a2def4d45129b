"""Watches the configuration file for changed passwords, in a thread that may hang with the file system."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import structlog

from worker.passwords import Passwords
from worker.settings import Settings, SettingsError, parse, permissions_warning, read

LIVE = frozenset({"accept_passwords"})
"""Keys of the file whose changes are in force at the next look; all others wait for the next start."""

log = structlog.stdlib.get_logger("worker.reload")


class PasswordReload:
    """Reads the file every `poll_s`; what changed in it besides the passwords needs a restart, and the log says so."""

    def __init__(
        self,
        path: Path,
        environ: Mapping[str, str],
        passwords: Passwords,
        present: Settings,
        *,
        listen: str | None = None,
        poll_s: float,
    ) -> None:
        self._path = path
        self._environ = environ
        self._passwords = passwords
        self._present = present
        self._listen = listen
        self._poll_s = poll_s
        self._seen: tuple[str, str] | None = None
        """The text that was judged last, and why there was none."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="config-reload", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more; does not wait."""
        self._stop.set()

    def look(self) -> None:
        """Apply the file if it changed. A broken one changes nothing and is reported once."""
        text, problem = self._read()
        if (text, problem) == self._seen:
            return
        first, self._seen = self._seen is None, (text, problem)
        try:
            if not problem:
                self._apply(parse(text, self._environ, listen=self._listen, origin=str(self._path)))
                if not first and (warning := permissions_warning(self._path)):  # the start warned of the first one
                    log.warning("config_permissions", problem=warning)
        except SettingsError as error:
            problem = str(error)
        except Exception as error:  # a fault of ours does not end the watching
            log.exception("config_look_failed")
            problem = type(error).__name__
        if problem:
            log.warning("config_not_applied", problem=problem, advice="the passwords read before stay valid")

    def _read(self) -> tuple[str, str]:
        """Its text, and why there is none."""
        try:
            return read(self._path), ""
        except SettingsError as error:
            return "", str(error)
        except Exception as error:  # noqa: BLE001  (told like any other, once)
            return "", f"{self._path}: cannot be read: {type(error).__name__}"

    def _apply(self, changed: Settings) -> None:
        if changed.accept_passwords != self._present.accept_passwords:
            self._passwords.replace(changed.accept_passwords)
            log.warning("passwords_changed", count=len(changed.accept_passwords))
        others = [
            key
            for key in Settings.model_fields
            if key not in LIVE and getattr(changed, key) != getattr(self._present, key)
        ]
        if others:
            log.warning("config_change_needs_restart", keys=others)
        self._present = changed

    def _run(self) -> None:
        while not self._stop.wait(self._poll_s):
            self.look()
