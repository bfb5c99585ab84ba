"""Run the logins of MCP's conformance suite: `python tests/conformance/login_suite.py [sdk] [pegboard]`.

The suite starts a server and an authorization server for each scenario, and a client with the server's address. Printed
is each scenario with what of it passed, and what did not with the reason; for two clients, both beside each other.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sdk_servers import sdk_command

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SUITE = ROOT / ".node" / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
CLIENTS = {"sdk": HERE / "sdk_client.py", "pegboard": HERE / "pegboard_client.py"}
RUNS: dict[str, tuple[str, ...]] = {
    "2025-11-25": ("--suite", "auth"),
    "2026-07-28": ("--suite", "auth", "--spec-version", "2026-07-28"),
    "2026-07-28-new": ("--suite", "draft"),
    "2025-03-26": ("--suite", "backcompat"),
    "extensions": ("--suite", "extensions"),
}
PATIENCE = ("--timeout", "60000")
SUMMARY = re.compile(r"^([✓✗]) (auth/\S+): ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    run: str
    scenario: str
    passed: int
    problems: tuple[str, ...]

    def __str__(self) -> str:
        mark = "failed" if self.problems else "passed"
        lines = [f"{mark}  {self.run:16} {self.scenario} ({self.passed} checks passed)"]
        return "\n".join([*lines, *(f"        {problem}" for problem in self.problems)])


def verdicts(client: str, runs: Sequence[str] = tuple(RUNS)) -> Iterator[Verdict]:
    """Yield what the suite says of a client, scenario by scenario."""
    command = shlex.join(sdk_command(str(CLIENTS[client])))
    node = os.environ.get("PEGBOARD_NODE") or str(ROOT / ".node" / "node")
    for run in runs:
        with tempfile.TemporaryDirectory() as folder:
            line = [node, str(SUITE), "client", "--command", command, "--output-dir", folder, *PATIENCE, *RUNS[run]]
            ended = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
            marks = {scenario: mark for mark, scenario in SUMMARY.findall(ended.stdout)}
            assert marks, f"the suite did not run: {ended.stdout[-500:]} {ended.stderr[-500:]}"
            for scenario, mark in marks.items():
                (results,) = Path(folder).glob(f"{scenario}-{'[0-9]' * 4}-*")
                yield judged(run, scenario, results, well=mark == "✓")


def judged(run: str, scenario: str, results: Path, *, well: bool) -> Verdict:
    """Return what the checks of a scenario say, and how its client ended where that is not well."""
    checks = json.loads((results / "checks.json").read_text("utf-8"))
    problems = [
        f"{check['id']}: {check.get('errorMessage') or check['description']}"
        for check in checks
        if check["status"] in ("FAILURE", "WARNING")
    ]
    if not well and not problems:
        said = (results / "stderr.txt").read_text("utf-8").strip().splitlines()
        problems.append(f"the client ended badly: {said[-1] if said else 'it said nothing'}")
    passed = sum(check["status"] == "SUCCESS" for check in checks)
    return Verdict(run=run, scenario=scenario, passed=passed, problems=tuple(problems))


def main() -> int:
    """Print what the suite says of each client; returns whether anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("clients", nargs="+", choices=CLIENTS)
    parser.add_argument("--run", action="append", choices=RUNS, help="only these; all by default")
    asked = parser.parse_args()
    said = {client: list(verdicts(client, asked.run or tuple(RUNS))) for client in asked.clients}
    if len(said) > 1:
        print("\n".join(beside(said)))
    else:
        print(*said[asked.clients[0]], sep="\n")
    for client, found in said.items():
        print(f"{client}: {sum(not verdict.problems for verdict in found)} of {len(found)} scenarios passed")
    return int(any(verdict.problems for found in said.values() for verdict in found))


def beside(said: Mapping[str, Sequence[Verdict]]) -> Iterator[str]:
    """Yield the lines of a table: a scenario, and how many checks each client passed, or that it failed."""
    yield f"{'':64}" + "".join(f"{client:>12}" for client in said)
    for row in zip(*said.values(), strict=True):
        marks = [f"{'failed' if verdict.problems else verdict.passed:>12}" for verdict in row]
        yield f"{row[0].run:16}{row[0].scenario:48}" + "".join(marks)


if __name__ == "__main__":
    sys.exit(main())
