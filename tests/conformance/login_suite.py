"""Run the logins of MCP's conformance suite against a client: `python tests/conformance/login_suite.py sdk|pegboard`.

The suite starts a server and an authorization server for each scenario, and a client with the server's address. Printed
is each scenario with what of it passed, and what did not with the reason.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
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
            line = [node, str(SUITE), "client", "--command", command, "--output-dir", folder, *RUNS[run]]
            subprocess.run(line, capture_output=True, timeout=300, check=False)
            found = sorted(Path(folder).rglob("checks.json"))
            assert found, f"the suite did not run: {shlex.join(line)}"
            for path in found:
                scenario = scenario_of(path.parent.relative_to(folder))
                if scenario.startswith("auth/"):
                    yield judged(run, scenario, path)


def scenario_of(folder: Path) -> str:
    """Return the scenario whose results are in a folder; its name ends with when it ran."""
    return str(folder).partition("-20")[0] if "auth/20" not in str(folder) else str(folder)[:-25]


def judged(run: str, scenario: str, path: Path) -> Verdict:
    """Return what the checks of a scenario say."""
    checks = json.loads(path.read_text("utf-8"))
    problems = tuple(
        f"{check['id']}: {check.get('errorMessage') or check['description']}"
        for check in checks
        if check["status"] in ("FAILURE", "WARNING")
    )
    return Verdict(run=run, scenario=scenario, passed=sum(c["status"] == "SUCCESS" for c in checks), problems=problems)


def main() -> int:
    """Print what the suite says of a client; returns whether anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("--run", action="append", choices=RUNS, help="only these; all by default")
    asked = parser.parse_args()
    said = list(verdicts(asked.client, asked.run or tuple(RUNS)))
    print(*said, sep="\n")
    failed = sum(bool(verdict.problems) for verdict in said)
    print(f"{len(said) - failed} of {len(said)} scenarios passed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
