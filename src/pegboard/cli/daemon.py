"""`pegboard daemon`: the process that serves stdio clients and commands of this user."""

from __future__ import annotations

import heapq
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pegboard.cli.common import Options, run_guarded
from pegboard.cli.exit_codes import DONE, UNAVAILABLE
from pegboard.cli.options import JsonOption
from pegboard.cli.rendering import Printer, TableColumn, plural
from pegboard.config.saving import write_whole
from pegboard.daemon import service_files
from pegboard.errors import PegboardError, UsageError
from pegboard.support.version import __version__
from pegboard.thin.address import NoFolderError, address_of
from pegboard.thin.connect import NoDaemonError, ask_all, connect

LAST_LINES: Final = 40
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")


def _run_guarded(action: Callable[[Printer], int], *, as_json: bool) -> int:
    async def run_action(printer: Printer) -> int:
        return action(printer)

    return run_guarded(Options(as_json=as_json), run_action)


def _ask_daemon(kind: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what every daemon of this user answers, and why others do not."""
    try:
        return ask_all(kind)
    except NoDaemonError as error:
        raise PegboardError(f"There is no daemon: {error}.", code="server_failed") from error


def _require_answers(problems: list[str]) -> None:
    if problems:
        raise PegboardError(f"A daemon does not answer: {'; '.join(problems)}.", code="server_failed")


def status(as_json: JsonOption = False) -> int:
    """Show what the daemon does: clients, servers, memory, who uses what; exit 6 where none runs."""

    def print_status(printer: Printer) -> int:
        found, problems = _ask_daemon("status")
        found.sort(key=lambda one: one.get("since", 0.0))
        if printer.as_json:
            printer.document({"running": bool(found), "processes": found, "problems": problems})
            return DONE if found else UNAVAILABLE
        for problem in problems:
            printer.note(f"pegboard: A daemon does not answer: {problem}.")
        if not found and not problems:
            printer.say("No daemon runs: the next client or command starts one.")
        for number, one in enumerate(found):
            if number:
                printer.say("")
            _print_status(printer, one)
        return DONE if found else UNAVAILABLE

    return _run_guarded(print_status, as_json=as_json)


def _print_status(printer: Printer, found: Mapping[str, Any]) -> None:
    """Show one process: what it is, its clients, and the servers of each configuration with who called them."""
    if found.get("version") != __version__:  # its answer may have another shape
        printer.say(f"Process {found.get('pid')}, version {found.get('version')}.")
        return
    memory = f", {_mebibytes(found['memory'])}" if found["memory"] else ""
    printer.say(f"Process {found['pid']}, version {found['version']}, {_describe_age(found['since'])}{memory}.")
    clients: list[dict[str, Any]] = found["clients"]
    printer.say(f"{plural(len(clients), 'client')}.")
    if clients:
        columns = [
            TableColumn("client"),
            TableColumn("agent"),
            TableColumn("process"),
            TableColumn("memory"),
            TableColumn("folder", flexible=True),
            TableColumn("age"),
        ]
        rows = [
            (
                _name(one),
                one["agent"],
                one["pid"] or "",
                _mebibytes(one["memory"]),
                one["folder"],
                _describe_age(one["since"]),
            )
            for one in clients
        ]
        printer.table(columns, rows)
    for board in found["boards"]:
        printer.say(f"{board['configuration']}: {plural(board['clients'], 'client')}.")
        users = [one for one in clients if one["configuration"] == board["configuration"]]
        names = ("server", "state", "process", "memory", "for", "in flight", "called by")
        rows = [
            (
                *(one["name"], one["state"], one["pid"] or "", _mebibytes(one["memory"]), one["scope"]),
                *(one["in_flight"], ", ".join(_calls(users, one["name"]))),
            )
            for one in board["servers"]
        ]
        if rows:
            printer.table([TableColumn(name, flexible=name == "called by") for name in names], rows)


def _name(client: Mapping[str, Any]) -> str:
    return client["client"] or client["kind"]


def _calls(clients: list[dict[str, Any]], server: str) -> list[str]:
    """Return who has called a server, each with its agent and how often."""
    return [
        f"{_name(one)} ({one['agent']}): {one['calls'][server]}" if one["agent"] else _name(one)
        for one in clients
        if server in one["calls"]
    ]


def _mebibytes(memory: int | None) -> str:
    return "" if memory is None else f"{memory / 2**20:.0f} MiB"


def _describe_age(since: float) -> str:
    seconds = max(0, int(time.time() - since))
    if seconds < 60:
        return f"for {seconds} s"
    return f"for {seconds // 60} min" if seconds < 7200 else f"for {seconds // 3600} h"


def stop(as_json: JsonOption = False) -> int:
    """End the daemon and its servers; what needs it next starts another one."""

    def stop_daemon(printer: Printer) -> int:
        found, problems = _ask_daemon("stop")
        _require_answers(problems)
        if printer.as_json:
            printer.document({"stopped": bool(found)})
        else:
            printer.say("The daemon has ended." if found else "No daemon runs.")
        return DONE

    return _run_guarded(stop_daemon, as_json=as_json)


def restart(as_json: JsonOption = False) -> int:
    """End the daemon and start another one; clients go on with that."""

    def restart_daemon(printer: Printer) -> int:
        problems = _ask_daemon("stop")[1]
        try:
            connection = connect("status")
            connection.socket.close()
        except NoDaemonError as error:
            raise PegboardError(f"The daemon did not start: {error}.", code="server_failed") from error
        if printer.as_json:
            _require_answers(problems)
            printer.document({"running": True, "pid": connection.answer["pid"]})
        else:
            printer.say(f"The daemon runs: process {connection.answer['pid']}.")
            _require_answers(problems)
        return DONE

    return _run_guarded(restart_daemon, as_json=as_json)


def logs(
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="COUNT", min=1, help="How many of the newest lines.")
    ] = LAST_LINES,
    as_json: JsonOption = False,
) -> int:
    """Print the newest lines of the daemon's log."""

    def print_logs(printer: Printer) -> int:
        try:
            folder = Path(address_of().folder)
        except NoFolderError as error:
            raise PegboardError(f"There is no folder for a daemon: {error}.", code="server_failed") from error
        files = sorted(folder.glob("*.log"))
        newest = [line for _, line in heapq.merge(*map(_dated_lines, files), key=itemgetter(0))][-lines:]
        if printer.as_json:
            printer.document({"logs": [str(file) for file in files], "lines": newest})
            return DONE
        for line in newest:
            printer.say(line)
        printer.note(f"pegboard: {folder}/*.log")
        return DONE

    return _run_guarded(print_logs, as_json=as_json)


def _dated_lines(log: Path) -> list[tuple[str, str]]:
    """Return the lines of a log and of the older one beside it, each with when it was written."""
    found: list[tuple[str, str]] = []
    date = ""
    for file in (log.with_suffix(".log.1"), log):
        for line in file.read_text("utf-8", "replace").splitlines() if file.is_file() else ():
            if (dated := _DATE.match(line)) is not None:  # else it goes on with what is before it
                date = dated[0]
            found.append((date, line))
    return found


def install(
    shows: Annotated[bool, typer.Option("--print", help="Print the file, and write nothing.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Let the system start the daemon with your session: a unit of systemd, or an agent of launchd."""

    def install_service(printer: Printer) -> int:
        file, text = _service()
        if shows:
            if printer.as_json:
                printer.document({"file": str(file), "text": text})
            else:
                printer.say(text.rstrip("\n"))
            return DONE
        _require_ours(file)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, text.encode(), like=0o600)
        except OSError as error:
            why = error.strerror or str(error)
            raise PegboardError(f"{file} cannot be written: {why}.", code="server_failed") from error
        return _notify_system(printer, file, service_files.start_commands(file), f"{file} is written")

    return _run_guarded(install_service, as_json=as_json)


def uninstall(as_json: JsonOption = False) -> int:
    """Undo `pegboard daemon install`: clients start the daemon themselves again."""

    def remove_service(printer: Printer) -> int:
        file, _ = _service()
        if not file.exists():
            if printer.as_json:
                printer.document({"file": str(file), "removed": False, "left": []})
            else:
                printer.say(f"There is no {file}.")
            return DONE
        _require_ours(file)
        code = _notify_system(printer, file, service_files.stop_commands(file), f"{file} is removed")
        file.unlink(missing_ok=True)
        return code

    return _run_guarded(remove_service, as_json=as_json)


def _service() -> tuple[Path, str]:
    try:
        return service_files.service_file(os.environ), service_files.service_text(address_of(), os.environ)
    except NoFolderError as error:
        raise PegboardError(f"There is no folder for a daemon: {error}.", code="server_failed") from error


def _require_ours(file: Path) -> None:
    if file.exists() and service_files.MARK not in file.read_text("utf-8", "replace"):
        raise UsageError(f"{file} was not written by this command.", hint="Move it away first.")


def _notify_system(printer: Printer, file: Path, commands: list[list[str]], done: str) -> int:
    """Let the system know of a change; what it does not take is printed for a person to do."""
    left = next((commands[number:] for number, command in enumerate(commands) if not _run_program(command)), [])
    texts = [shlex.join(command) for command in left]
    if printer.as_json:
        printer.document({"file": str(file), "left": texts})
        return DONE
    printer.say(f"{done}.")
    if texts:
        printer.say("The system did not accept it. Do this yourself:")
        for text in texts:
            printer.say(f"  {text}")
    return DONE


def _run_program(command: list[str]) -> bool:
    program = shutil.which(command[0])
    if program is None:
        return False
    try:
        return subprocess.run([program, *command[1:]], capture_output=True, timeout=30, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


COMMANDS = {
    "status": (status, "pegboard daemon status --json"),
    "stop": (stop, "pegboard daemon stop"),
    "restart": (restart, "pegboard daemon restart"),
    "logs": (logs, "pegboard daemon logs -n 100"),
    "install": (install, "pegboard daemon install --print"),
    "uninstall": (uninstall, "pegboard daemon uninstall"),
}
