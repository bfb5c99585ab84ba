"""A user with a home, a configuration and a daemon of their own, for benchmarks of what goes through the daemon."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SMALL_SERVER: Final = Path(__file__).resolve().parent / "servers" / "small.py"
PROGRAM: Final = str(Path(sys.executable).with_name("pegboard"))
DAEMON: Final = b"daemon\0run"
PROXY: Final = b"serve\0--stdio"
_ACCEPT: Final = (
    "from pathlib import Path; from pegboard.config.acceptance import accept_text; accept_text(Path('pegboard.yaml'))"
)
_LIMIT: Final = 60.0
"""How long the processes may take to end, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnUser:
    """A user: ``folder`` is the project with the configuration, ``env`` the environment of everything they start."""

    folder: Path
    env: dict[str, str]

    @property
    def config(self) -> Path:
        return self.folder / "pegboard.yaml"

    def run(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command in the project."""
        options = {"env": self.env, "stdin": subprocess.DEVNULL, **options}
        return subprocess.run(
            [PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, check=False, **options
        )

    def processes(self, part: bytes) -> list[int]:
        """Return the processes of this user that run a command with a part."""
        mark, found = f"XDG_RUNTIME_DIR={self.env['XDG_RUNTIME_DIR']}\0".encode(), list[int]()
        for one in Path("/proc").iterdir():
            with suppress(OSError):
                runs = one.name.isdigit() and part in (one / "cmdline").read_bytes()
                if runs and mark in (one / "environ").read_bytes() + b"\0":
                    found.append(int(one.name))
        return found

    def end(self) -> None:
        """End the daemon, and wait until it is gone with its servers."""
        for pid in self.processes(DAEMON):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        limit = time.monotonic() + _LIMIT
        while self.processes(b"") and time.monotonic() < limit:
            time.sleep(0.05)


@contextmanager
def own_user(content: Callable[[Path], Mapping[str, Any]], **variables: str) -> Iterator[OwnUser]:
    """Yield a user whose project has a configuration that is accepted; ``content`` returns it for the folder."""
    with tempfile.TemporaryDirectory(prefix="b-") as name:
        user = Path(name)
        env = {key: value for key, value in os.environ.items() if key not in ("PEGBOARD_DAEMON", "COLUMNS")}
        places = {"HOME": "home", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}
        for variable, part in {**places, "XDG_RUNTIME_DIR": "run"}.items():
            (user / part).mkdir(mode=0o700)
            env[variable] = str(user / part)
        env |= variables
        made = OwnUser(folder=user / "project", env=env)
        made.folder.mkdir()
        made.config.write_text(json.dumps(content(made.folder)))
        subprocess.run([sys.executable, "-c", _ACCEPT], cwd=made.folder, env=env, check=True)
        try:
            yield made
        finally:
            made.end()
