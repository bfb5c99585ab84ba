"""What the launcher costs: a program that ends at once, started by itself and confined, in turn."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any

from pegboard.core.model.specs import Confinement
from pegboard.sources.confinement import available, confined_command, policy_for

PROGRAM = "/bin/true"
RUNS = 40


def measure() -> list[dict[str, Any]]:
    """Return the medians in milliseconds; the parts of a confined start besides."""
    if reason := available():
        return [{"unavailable": reason}]
    with tempfile.TemporaryDirectory() as folder:
        confinement = Confinement(folder=folder)

        def planned() -> tuple[str, tuple[str, ...], dict[str, str]]:
            policy = policy_for(confinement, name="bench", command=PROGRAM, env=os.environ, temporary=folder)
            return confined_command(PROGRAM, (), os.environ, policy)

        command, args, env = planned()
        ways: dict[str, Callable[[], object]] = {
            "plan_ms": planned,
            "unconfined_start_ms": lambda: subprocess.run([PROGRAM], check=True),
            "confined_start_ms": lambda: subprocess.run([command, *args], env=env, check=True),
            "interpreter_ms": lambda: subprocess.run([command, "-I", "-S", "-c", ""], check=True),
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(RUNS):
            for name, way in ways.items():
                begun = time.perf_counter()
                way()
                taken[name].append((time.perf_counter() - begun) * 1000)
    found: dict[str, Any] = {name: round(sorted(times)[RUNS // 2], 2) for name, times in taken.items()}
    return [{**found, "policy_bytes": len(args[3])}]
