"""What importing costs, and what a start of the gateway takes until its first answers, in alternating runs.

``import pegboard`` is meant to cost little more than a bare interpreter, and the first answers over stdio at most
0.35 of what ``import mcp`` takes: shares are those of the best runs.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial

from benchmarks.first_answers import over_http, over_stdio, over_stdio_uncached, prepared

RUNS = 15
PROGRAMS = {"python": "pass", "import pegboard": "import pegboard", "import mcp": "import mcp"}


def measure() -> list[dict[str, object]]:
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        env = prepared(folder)
        ways: list[Callable[[], dict[str, float]]] = [partial(ran, name, program) for name, program in PROGRAMS.items()]
        for _ in range(RUNS):
            starts = [partial(start, folder, env) for start in (over_stdio, over_stdio_uncached, over_http)]
            for way in (*ways, *starts):
                for name, taken in way().items():
                    times.setdefault(name, []).append(taken)
    bare, sdk = statistics.median(times["python"]), min(times["import mcp"])
    return [
        {
            "program": name,
            "median ms": round(statistics.median(taken), 1),
            "more than bare python, ms": round(statistics.median(taken) - bare, 1),
            "best ms": round(min(taken), 1),
            "of import mcp, best": round(min(taken) / sdk, 2),
        }
        for name, taken in times.items()
    ]


def ran(name: str, program: str) -> dict[str, float]:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return {name: (time.perf_counter() - start) * 1000}
