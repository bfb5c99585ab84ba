"""How much memory processes have."""

from __future__ import annotations

import os
from contextlib import suppress


class ProcessMemory:
    """The resident memory of the processes that run now, in bytes; of none where the system does not say."""

    def __init__(self) -> None:
        self._own: dict[int, int] = {}
        self._children: dict[int, list[int]] = {}
        with suppress(OSError):
            for name in os.listdir("/proc"):  # noqa: PTH208
                if name.isdigit():
                    with suppress(OSError, ValueError, IndexError):
                        self._note(int(name))

    def _note(self, pid: int) -> None:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()  # from the third one on
        self._own[pid] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        self._children.setdefault(int(fields[1]), []).append(pid)

    def of(self, pid: int | None) -> int | None:
        """Return the memory of one process; None where it is not known."""
        return None if pid is None else self._own.get(pid)

    def with_children(self, pid: int | None) -> int | None:
        """Return the memory of a process and of all that it started; None where it is not known."""
        own = self.of(pid)
        if own is None or pid is None:
            return None
        return own + sum(self.with_children(child) or 0 for child in self._children.get(pid, ()))
