"""`pegboard daemon run`: the process that thin clients start. It has no help: people use the commands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegboard.cli.exit_codes import USAGE
from pegboard.daemon.process import run

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.daemon.requests import CommandOutput, Front


def run_daemon(arguments: Sequence[str]) -> int:
    """Be the daemon, and return its exit code."""
    return run(arguments, _run_command)


async def _run_command(front: Front, board: Pegboard, output: CommandOutput) -> int:  # noqa: ARG001
    """Run a command of a thin client."""
    await output.err(f"pegboard: the daemon runs no commands yet: {front.fields.get('argv')}\n")
    return USAGE
