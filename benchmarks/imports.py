"""What ``import pegboard`` costs on top of a bare interpreter, in alternating runs."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 15


def measure() -> list[dict[str, object]]:
    programs = {"python": "pass", "import pegboard": "import pegboard", "import mcp": "import mcp"}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(RUNS):
        for name, program in programs.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            times[name].append((time.perf_counter() - start) * 1000)
    bare = statistics.median(times["python"])
    return [
        {
            "program": name,
            "median ms": round(statistics.median(taken), 1),
            "more than bare python, ms": round(statistics.median(taken) - bare, 1),
        }
        for name, taken in times.items()
    ]
