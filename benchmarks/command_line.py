"""What a command of a coding agent costs with the daemon running: processor time, in alternating runs.

``python -m benchmarks command_line [--runs N] [--clients N]``. Beside it stands an interpreter that imports what any
client of a socket needs. ``--clients`` starts so many commands at once instead, and says how they were answered.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

SERVER = Path(__file__).resolve().parents[1] / "tests" / "servers" / "plain_server.py"
BARE = "python -c 'import json, socket'"
COMMANDS = {
    "pegboard call, loaded": ("call", "plain__echo", "text=hi"),
    "pegboard search": ("search", "say it again"),
    "pegboard call --help": ("call", "plain__echo", "--help"),
}
RUNS = 15


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks command_line", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--clients", type=int, default=0)
    given = parser.parse_args(arguments)
    with world() as env:
        if given.clients:
            print(at_once(given.clients, env))
        else:
            print(table(given.runs, env))
    return 0


@contextlib.contextmanager
def world() -> Generator[Mapping[str, str]]:
    """Yield the environment of a user with one configuration, whose tool is loaded and whose daemon runs."""
    with tempfile.TemporaryDirectory() as name:
        user, folder = Path(name), Path(name, "project")
        folder.mkdir()
        (user / "run").mkdir(mode=0o700)
        env = {variable: value for variable, value in os.environ.items() if variable != "PEGBOARD_DAEMON"}
        for variable, part in {"HOME": "home", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config"}.items():
            (user / part).mkdir()
            env[variable] = str(user / part)
        env |= {"XDG_RUNTIME_DIR": str(user / "run"), "XDG_CACHE_HOME": str(user / "cache")}
        (folder / "pegboard.yaml").write_text(
            f"servers: {{plain: {{command: {sys.executable}, args: [{SERVER}]}}}}\n"
            "agents: {default: {dialect: pegboard, discoverable: [plain]}}\n"
        )
        accept = "from pathlib import Path; from pegboard.config.acceptance import accept_text as accept"
        accept += "; accept(Path('pegboard.yaml'))"
        subprocess.run([sys.executable, "-c", accept], cwd=folder, env=env, check=True)
        env["BENCHMARK_FOLDER"] = str(folder)
        subprocess.run([program(), *COMMANDS["pegboard call, loaded"]], cwd=folder, env=env, check=True, **QUIET)
        try:
            yield env
        finally:
            subprocess.run([program(), "daemon", "stop"], cwd=folder, env=env, check=False, **QUIET)


QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def program() -> str:
    return str(Path(sys.executable).with_name("pegboard"))


def table(runs: int, env: Mapping[str, str]) -> str:
    """Return the processor time of each command, in milliseconds."""
    lines = {BARE: [sys.executable, "-c", "import json, socket"]}
    lines |= {name: [program(), *words] for name, words in COMMANDS.items()}
    taken: dict[str, list[float]] = {name: [] for name in lines}
    for _ in range(runs):
        for name, line in lines.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(line, cwd=env["BENCHMARK_FOLDER"], env=env, check=True, **QUIET)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            taken[name].append(used * 1000)
    bare = statistics.median(taken[BARE])
    rows = [
        f"| `{name}` | {statistics.median(each):.0f} | {min(each):.0f} | {statistics.median(each) / bare:.1f} |"
        for name, each in taken.items()
    ]
    return "\n".join(["| processor time, ms | median | best | of the first |", "|---|---|---|---|", *rows])


def at_once(count: int, env: Mapping[str, str]) -> str:
    """Start so many commands at once, and return how many gave their own answer, which exit codes, and how long."""
    began = time.monotonic()
    running = [
        subprocess.Popen(
            [program(), "call", "plain__echo", f"text={number}"],
            cwd=env["BENCHMARK_FOLDER"], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for number in range(count)
    ]  # fmt: skip
    answers = [process.communicate()[0] for process in running]
    seconds = time.monotonic() - began
    right = sum(answer == f"{number}\n" for number, answer in enumerate(answers))
    codes = Counter(process.returncode for process in running)
    return f"{count} commands at once: {right} had their own answer, exit codes {dict(codes)}, {seconds:.1f} s"
