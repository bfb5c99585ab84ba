"""The command ``pegboard``; importing this package costs nothing."""

from __future__ import annotations

import gc
import os
import sys

from pegboard.cli.operator_token import take_token, taken_token

TYPE_CHECKING = False  # see the package `pegboard`
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: one of `pegboard.cli.exit_codes`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _tolerate_any_text()
    take_token()
    try:
        code = _run_command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _close_stdout()
        return 1
    return code


def _run_command(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        from pegboard.support.version import full_version

        print(f"pegboard {full_version()}")  # noqa: T201
        return 0
    if arguments[:2] == ["daemon", "run"]:
        from pegboard.cli.daemon_process import run_daemon

        return run_daemon(arguments[2:])
    if arguments[:1] == ["serve"]:
        gc.disable()  # nothing that the start makes is garbage; once it runs, or ends, it is collected again
        from pegboard.cli.serve_options import plain_options, served_by_daemon

        options = plain_options(arguments[1:])
        if options is not None:
            code = served_by_daemon(options, os.environ)
            if code is not None:
                return code
            from pegboard.cli.serving import serve_alone
            from pegboard.sources.stdout import reserved_stdout

            with reserved_stdout():
                return serve_alone(options)
        gc.enable()
    if arguments and arguments[0] in ("call", "search", "tools", "load", "unload", "explain", "approvals"):
        from pegboard.thin.command import run_in_daemon

        code = run_in_daemon(arguments, taken_token(), _ask_agreement)
        if code is not None:
            return code
    gc.set_threshold(20_000, 20, 20)  # what is imported is no garbage, and looking for some takes time at each start
    from pegboard.cli.command_line import run

    return run(arguments)


def _ask_agreement(lines: list[str]) -> int:
    """Ask the person at the terminal; return 0 where they agree, else the exit code."""
    from pegboard.cli.command_identity import agreed_at_terminal

    return agreed_at_terminal(lines)


def _tolerate_any_text() -> None:
    """Let output in an encoding that lacks a character show an escape instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _close_stdout() -> None:
    """Keep the interpreter from complaining at exit that no one reads any longer."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
