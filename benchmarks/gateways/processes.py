"""Children of the benchmark: started in groups of their own, measured and stopped by their ids (Linux)."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")


def parents() -> dict[int, int]:
    """Return the parent of every process."""
    found: dict[int, int] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                rest = (entry / "stat").read_text().rpartition(")")[2].split()
                if rest[0] != "Z":
                    found[int(entry.name)] = int(rest[1])
    return found


def tree(root: int) -> list[int]:
    """Return a process that runs and all below it."""
    children: dict[int, list[int]] = {}
    known = parents()
    for child, parent in known.items():
        children.setdefault(parent, []).append(child)
    found, waiting = [], [root] if root in known else []
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found


def command(pid: int) -> str:
    """Return the command line of a process, or nothing where it has gone."""
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def matching(root: int, mark: str) -> list[int]:
    """Return the processes below another whose command line has a mark in it."""
    return [pid for pid in tree(root) if pid != root and mark in command(pid)]


def memory(root: int, without: Iterable[str]) -> float:
    """Return the resident MiB of a process and those below it, less those whose command line has a mark."""
    left = set(tree(root))
    for mark in without:
        for pid in matching(root, mark):
            left -= set(tree(pid))
    return sum(resident(pid) for pid in left)


def resident(pid: int) -> float:
    """Return the resident MiB of one process."""
    with contextlib.suppress(OSError, ValueError):
        return int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE / 2**20
    return 0.0


def descriptors(pid: int) -> int:
    """Return how many files and sockets a process holds open."""
    return sum(1 for _ in (PROC / str(pid) / "fd").iterdir())


def alive(pids: Iterable[int], of: dict[int, str] | None = None) -> list[int]:
    """Return those that still run; ``of`` holds their command lines, so that a reused id does not count."""
    running = parents()
    return [pid for pid in pids if pid in running and (of is None or command(pid) == of.get(pid))]


def stop(root: int, grace: float = 5.0) -> list[int]:
    """Ask a process to end, then end it and all below it; returns those it left behind."""
    below = {pid: command(pid) for pid in tree(root)}
    with contextlib.suppress(ProcessLookupError):
        os.kill(root, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while alive(below, below) and time.monotonic() < deadline:
        time.sleep(0.02)
    left = alive(below, below)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(root, signal.SIGKILL)
    return [pid for pid in left if pid != root]
