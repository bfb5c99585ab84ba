"""`pegboard daemon run`: the process that thin clients start. It has no help: people use the commands beside it."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.cli.daemon_commands import run_command
from pegboard.daemon.process import serve_as_daemon


def run_daemon(arguments: Sequence[str]) -> int:
    """Be the daemon, and return its exit code."""
    return serve_as_daemon(arguments, run_command)
