"""What a command of a coding agent costs with the daemon running: processor time, in alternating runs.

``python -m benchmarks command_line [--runs N] [--clients N]``. Beside it stands an interpreter that imports what any
client of a socket needs. ``--clients`` starts so many commands at once instead, and says how they were answered.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.own_daemon import PROGRAM, SMALL_SERVER, OwnUser, own_user

BARE = "python -c 'import json, socket'"
COMMANDS = {
    "pegboard call, loaded": ("call", "small__say", "word=hi"),
    "pegboard search": ("search", "say it"),
    "pegboard call --help": ("call", "small__say", "--help"),
}
RUNS = 15


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks command_line", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--clients", type=int, default=0)
    given = parser.parse_args(arguments)
    with own_user(configuration) as user:
        ran = user.run(*COMMANDS["pegboard call, loaded"])
        if ran.returncode:
            print(ran.stderr)
            return 1
        print(at_once(given.clients, user) if given.clients else table(given.runs, user))
    return 0


def configuration(folder: Path) -> Mapping[str, Any]:
    """Return a configuration with one server."""
    return {
        "servers": {"small": {"command": sys.executable, "args": [str(SMALL_SERVER), str(folder / "said")]}},
        "agents": {"default": {"dialect": "pegboard", "discoverable": ["small"]}},
    }


def table(runs: int, user: OwnUser) -> str:
    """Return the processor time of each command, in milliseconds."""
    lines = {BARE: [sys.executable, "-c", "import json, socket"]}
    lines |= {name: [PROGRAM, *words] for name, words in COMMANDS.items()}
    taken: dict[str, list[float]] = {name: [] for name in lines}
    for _ in range(runs):
        for name, line in lines.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(line, cwd=user.folder, env=user.env, check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            taken[name].append(used * 1000)
    bare = statistics.median(taken[BARE])
    rows = [
        f"| `{name}` | {statistics.median(each):.0f} | {min(each):.0f} | {statistics.median(each) / bare:.1f} |"
        for name, each in taken.items()
    ]
    return "\n".join(["| processor time, ms | median | best | of the first |", "|---|---|---|---|", *rows])


def at_once(count: int, user: OwnUser) -> str:
    """Start so many commands at once, and return how many were answered and did what they were to do, and how long."""
    began = time.monotonic()
    running = [
        subprocess.Popen(
            [PROGRAM, "call", "small__say", f"word={number}"],
            cwd=user.folder, env=user.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for number in range(count)
    ]  # fmt: skip
    answers = [process.communicate()[0] for process in running]
    seconds = time.monotonic() - began
    said = Counter((user.folder / "said").read_text().split())
    right = sum(answer == "said\n" and said[str(number)] == 1 for number, answer in enumerate(answers))
    codes = Counter(process.returncode for process in running)
    return f"{count} commands at once: {right} answered and done once, exit codes {dict(codes)}, {seconds:.1f} s"
