"""The consoles that run for this user: one file for each, by which `pegboard console` finds it."""

from __future__ import annotations

import json
import os
import socket
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pegboard.support import user_folders

FOLDER: Final = "serving"
PATIENCE: Final = 5.0
"""For how long a gateway may take to answer, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningConsole:
    """A console that is served; whoever has the ``secret`` may ask it for a one-time code.

    ``hides_codes``: something that its gateway starts is confined, and could use a code that it reads somewhere.
    """

    url: str
    configuration: str
    pid: int
    started_at: str
    secret: str = field(repr=False)
    hides_codes: bool = False

    @property
    def port(self) -> int:
        """Return the port of its address."""
        return urlsplit(self.url).port or 80

    def save(self) -> Path:
        """Write it where only this user can read it, and return the file; raises ``OSError``."""
        file = user_folders.state() / FOLDER / f"{self.port}-{self.pid}.json"
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.unlink(missing_ok=True)  # of an earlier process with this number
        with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as stream:
            json.dump(asdict(self), stream)
        return file

    def runs(self) -> bool:
        """Return whether its process lives and listens."""
        return _is_process_alive(self.pid) and _is_listening(self.url)


def running_consoles() -> list[RunningConsole]:
    """Return the consoles that run for this user, by port; the files of those that do not are removed."""
    found: list[RunningConsole] = []
    for file in (user_folders.state() / FOLDER).glob("*.json"):
        console = _read_console_file(file)
        if console is None:
            continue
        if console.runs():
            found.append(console)
        else:
            with suppress(OSError):
                file.unlink()
    return sorted(found, key=lambda console: (console.port, console.pid))


def _read_console_file(file: Path) -> RunningConsole | None:
    """Return the console of a file, or None where that is damaged, being written or of someone else."""
    try:
        with file.open("rb") as stream:
            status = os.fstat(stream.fileno())
            if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077):
                return None
            console = _console(json.load(stream))
            return console if console is not None and console.port else None
    except (OSError, ValueError):
        return None


def _console(content: Any) -> RunningConsole | None:
    match content:
        case {
            "url": str() as url,
            "configuration": str() as configuration,
            "pid": int() as pid,
            "started_at": str() as started_at,
            "secret": str() as secret,
        }:
            given = {"url": url, "configuration": configuration, "started_at": started_at, "secret": secret}
            return RunningConsole(**given, pid=pid, hides_codes=content.get("hides_codes") is True)
        case _:
            return None


def _is_process_alive(pid: int) -> bool:
    """Return whether a process lives; on Windows asking would end it."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _is_listening(url: str) -> bool:
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 80), timeout=PATIENCE).close()
    except TimeoutError:
        return True  # it has no time just now
    except OSError:
        return False
    return True
