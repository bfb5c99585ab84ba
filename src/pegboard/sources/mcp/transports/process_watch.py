"""Another process that ends what this one has started, once this one has ended in any way."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

_CODE: Final = """
import os, signal, sys
running = set()
for line in sys.stdin:
    number = int(line)
    running.add(number) if number > 0 else running.discard(-number)
for number in running:
    try:
        os.killpg(number, signal.SIGKILL)
    except OSError:
        pass
"""


class ProcessWatch:
    """A watch over servers that were started in process groups of their own; it outlives a kill of this process.

    Where a system has no process groups, nothing is watched.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def add(self, pid: int) -> None:
        """End a process and its children once this process has ended."""
        self._write(pid)

    def remove(self, pid: int) -> None:
        """Leave a process alone from now on: it has ended."""
        self._write(-pid)

    def __enter__(self) -> Self:
        if sys.platform != "win32":
            command = [sys.executable, "-I", "-S", "-c", _CODE]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
            self._process.wait()

    def _write(self, number: int) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # it was killed; what it watched is stopped by this process
                self._process.stdin.write(f"{number}\n".encode())
