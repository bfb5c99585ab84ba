"""Describe plugins where packages are missing, in a process of its own, with a copy of it for each of several plugins.

Importing Agno for each would take long.
"""

import asyncio
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pegboard.errors import ToolUnavailableError
from pegboard.sources.agno import AgnoSource
from pegboard.sources.registry import registered_plugins

SAID = "said: "
"""In front of each answer: what Agno logs is on the same output."""


def leave_out(packages: list[str]) -> None:
    """Let packages be neither imported nor found."""
    known = importlib.metadata.distribution

    def distribution(distribution_name: str) -> importlib.metadata.Distribution:
        if distribution_name in packages:
            raise importlib.metadata.PackageNotFoundError(distribution_name)
        return known(distribution_name)

    for name in packages:
        sys.modules[name] = None  # type: ignore[assignment]
    importlib.metadata.distribution = distribution


async def said(plugin: str, overrides: dict[str, Any]) -> list[str]:
    """Return the hint of the error, or why each tool is left out."""
    try:
        found = await AgnoSource().describe(registered_plugins()[plugin], overrides)
    except ToolUnavailableError as error:
        return [error.hint]
    return [f"{name}: {reason}" for name, reason in found.excluded.items()]


def main() -> None:
    """Print a line of JSON for each [packages, plugin, overrides] of the list at standard input."""
    for number, (packages, plugin, overrides) in sorted(
        enumerate(json.load(sys.stdin)), key=lambda asked: "agno" not in asked[1][0]
    ):
        if "agno" not in packages:
            import agno.tools  # noqa: F401
        if (child := os.fork()) == 0:
            leave_out(packages)
            print(SAID + json.dumps([number, asyncio.run(said(plugin, overrides))]), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, (packages, plugin)


def said_without(asked: Sequence[tuple[list[str], str, dict[str, Any]]], folder: Path) -> list[list[str]]:
    """Return what is said of each plugin where packages are missing, in a folder."""
    given = {"input": json.dumps(asked), "capture_output": True, "text": True, "cwd": folder, "timeout": 120}
    ran = subprocess.run([sys.executable, __file__], check=True, **given)
    answers = dict(json.loads(line[len(SAID) :]) for line in ran.stdout.splitlines() if line.startswith(SAID))
    return [answers[number] for number in range(len(asked))]


if __name__ == "__main__":
    main()
