"""What ``pegboard check`` takes for 200 toolkits with 5,000 members, as a person runs it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 5
TOOLKITS, MEMBERS = 200, 25


KINDS = {
    "servers": ("servers", "command: no-such-server"),
    "Python, imported": ("plugins", "python: json"),
}
"""Where plugins are from: servers are not started by a check, Python plugins are imported."""


def configuration(kind: str) -> str:
    section, origin = KINDS[kind]
    lines = [f"{section}:"]
    lines += [f"  p{i}: {{{origin}, prefix: p{i}}}" for i in range(MEMBERS * 8)]
    lines += ["toolkits:"]
    for kit in range(TOOLKITS):
        members = ", ".join(f"p{(kit * 7 + i) % (MEMBERS * 8)}" for i in range(MEMBERS))
        lines += [f"  kit{kit}: {{description: Toolkit number {kit}, tools: [{members}]}}"]
    allowed = ", ".join(f"kit{i}" for i in range(TOOLKITS))
    lines += ["agents:", f"  default: {{dialect: pegboard, allowed_toolkits: [{allowed}]}}"]
    return "\n".join(lines) + "\n"


def measure() -> list[dict[str, object]]:
    return [row(kind) for kind in KINDS]


def row(kind: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pegboard.yaml"
        path.write_text(configuration(kind))
        command = [sys.executable, "-m", "pegboard", "check", "--config", str(path)]
        times: list[float] = []
        for _ in range(RUNS):
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - start)
    seconds = round(statistics.median(times), 2)
    return {"plugins": f"200 {kind}", "toolkits": TOOLKITS, "members": TOOLKITS * MEMBERS, "median s": seconds}
