"""A command that the daemon runs for this process: one round trip. Standard library only."""

from __future__ import annotations

import os
import sys
from binascii import a2b_base64, b2a_base64

from pegboard.thin.connect import NoDaemonError, connect, switched_off
from pegboard.thin.files import is_file, write_private
from pegboard.thin.wire import ALONE, WireError, message_of

TYPE_CHECKING = False  # see the package `pegboard`
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final

    from pegboard.thin.connect import DaemonConnection
    from pegboard.thin.wire import Message

FAILED: Final = 1
UNAVAILABLE: Final = 6
MOST_INPUT: Final = 32 * 1024 * 1024
"""How many bytes standard input may have."""
_READING: Final = ("search", "tools", "explain", "approvals")
"""The commands that may be run once more where the daemon has ended: nothing is changed by them."""
_CHANGING: Final = ("call", "load", "unload")


def run_in_daemon(arguments: Sequence[str], token: str, agrees: Callable[[list[str]], int]) -> int | None:
    """Run a command in the daemon and return its exit code, or None where this process is to run it.

    Args:
        arguments: the command line.
        token: the token of an operator, or empty.
        agrees: asks the person at the terminal; 0 where they agree, else the exit code.
    """
    if not _is_for_daemon(arguments) or switched_off():
        return None
    request = _request(arguments)
    if token:
        request["token"] = token
    code = _run_in_daemon(arguments, request)
    if not isinstance(code, list):
        return code
    refused = agrees(code)
    if refused:
        return refused
    code = _run_in_daemon(arguments, {**request, "agreed": True})
    return UNAVAILABLE if isinstance(code, list) else code


def _run_in_daemon(arguments: Sequence[str], request: Message) -> int | list[str] | None:
    """Return the exit code, what a person has to agree to first, or None where this process is to run the command."""
    try:
        connection = connect("command", request)
    except NoDaemonError as error:
        if error.code != ALONE:
            print(f"pegboard: this command runs without the daemon: {error}.", file=sys.stderr)  # noqa: T201
        return None
    try:
        code = _relay_output(connection)
    except (OSError, WireError, KeyError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        code = None
    finally:
        connection.socket.close()
    if code is None and arguments[0] in _CHANGING:
        print(  # noqa: T201
            "pegboard: the daemon ended before it answered; the command may have been done. "
            "`pegboard audit` shows it; the next command starts another daemon.",
            file=sys.stderr,
        )
        return UNAVAILABLE
    return code


def _is_for_daemon(arguments: Sequence[str]) -> bool:
    """Return whether the daemon runs a command: none that asks a person, and no help but that of a tool."""
    if arguments[:1] == ["approvals"]:
        known = arguments[1:2] == ["list"]
    else:
        known = arguments[:1] != [] and arguments[0] in (*_READING, *_CHANGING)
    helps = any(word in ("--help", "-h") for word in arguments)
    return known and not (helps and (arguments[0] != "call" or len(arguments) < 3))


def _request(arguments: Sequence[str]) -> Message:
    asked: Message = {"argv": list(arguments), "file": is_file(sys.stdout), "columns": None}
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        asked["columns"] = _columns()
    if arguments[0] == "call" and "-" in arguments:
        asked["stdin"] = b2a_base64(sys.stdin.buffer.read(MOST_INPUT + 1), newline=False).decode()
    if (config := _config(arguments)) is not None:
        asked["config"] = config
    return asked


def _columns() -> int:
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _config(arguments: Sequence[str]) -> str | None:
    """Return the configuration that is named, the last one where there are several, as the command line takes it."""
    found = None
    for number, word in enumerate(arguments):
        if word == "--":
            break
        if word == "--config" and number + 1 < len(arguments):
            found = arguments[number + 1]
        elif word.startswith("--config="):
            found = word.partition("=")[2]
    return found


def _relay_output(connection: DaemonConnection) -> int | list[str] | None:
    """Print what the daemon sends as it comes, and return the exit code, or what a person has to agree to.

    None where the daemon ends before that.
    """
    failed = False
    while line := connection.lines.read():
        message = message_of(line)
        if "exit" in message:
            return FAILED if failed else int(message["exit"])
        if "ask" in message:
            return [str(each) for each in message["ask"]]
        if "save" in message:
            failed = not _save_file(message) or failed
            continue
        stream = sys.stdout if "out" in message else sys.stderr
        stream.write(message["out"] if "out" in message else message["err"])
        stream.flush()
    return None


def _save_file(message: Message) -> bool:
    """Write a file with the rights of this process, not with those of the daemon; return whether it is written."""
    try:
        write_private(message["save"], a2b_base64(message["data"]))
    except OSError as error:
        reason = error.strerror or str(error)
        print(  # noqa: T201
            f"pegboard: The tool has run, and its result was not written: {message['save']}: {reason}.", file=sys.stderr
        )
        return False
    return True
