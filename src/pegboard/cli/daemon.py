"""`pegboard daemon`: the process that serves stdio clients and commands of this user."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pegboard.cli.common import Options, guarded
from pegboard.cli.exit_codes import DONE, UNAVAILABLE
from pegboard.cli.options import JsonOption
from pegboard.cli.rendering import Printer, TableColumn, plural
from pegboard.config.saving import write_whole
from pegboard.daemon import service_files
from pegboard.errors import PegboardError, UsageError
from pegboard.thin.address import NoFolderError, address_of
from pegboard.thin.connect import NOT_RUNNING, NoDaemonError, connect

LAST_LINES: Final = 40


def _guarded(action: Callable[[Printer], int], *, as_json: bool) -> int:
    async def done(printer: Printer) -> int:
        return action(printer)

    return guarded(Options(as_json=as_json), done)


def _asked(kind: str) -> dict[str, Any] | None:
    """Return what the daemon that runs answers; None where none runs."""
    try:
        connection = connect(kind, starts=False)
    except NoDaemonError as error:
        if error.code == NOT_RUNNING:
            return None
        raise PegboardError(f"The daemon does not answer: {error}.", code="server_failed") from error
    with connection.socket:
        return json.loads(connection.lines.read() or b"{}")


def status(as_json: JsonOption = False) -> int:
    """Show the daemon: its clients, boards, servers and memory; exit 6 where none runs."""

    def shown(printer: Printer) -> int:
        found = _asked("status")
        if found is None:
            if printer.as_json:
                printer.document({"running": False})
            else:
                printer.say("No daemon runs: the next client or command starts one.")
            return UNAVAILABLE
        if printer.as_json:
            printer.document({"running": True, **found})
        else:
            _show(printer, found)
        return DONE

    return _guarded(shown, as_json=as_json)


def _show(printer: Printer, found: Mapping[str, Any]) -> None:
    memory = f", {found['memory'] / 2**20:.0f} MiB" if found["memory"] else ""
    printer.say(f"Process {found['pid']}, version {found['version']}, {_age(found['since'])}{memory}.")
    clients: list[dict[str, Any]] = found["clients"]
    printer.say(f"{plural(len(clients), 'client')}.")
    if clients:
        columns = [
            TableColumn("client"),
            TableColumn("agent"),
            TableColumn("folder", flexible=True),
            TableColumn("age"),
        ]
        printer.table(columns, [[c["client"] or c["kind"], c["agent"], c["folder"], _age(c["since"])] for c in clients])
    for board in found["boards"]:
        printer.say(f"{board['configuration']}: {plural(board['clients'], 'client')}.")
        rows = [[s["name"], s["state"], s["pid"] or "", s["scope"], s["in_flight"]] for s in board["servers"]]
        if rows:
            names = ("server", "state", "process", "for", "in flight")
            printer.table([TableColumn(name, flexible=name == "for") for name in names], rows)


def _age(since: float) -> str:
    seconds = max(0, int(time.time() - since))
    if seconds < 60:
        return f"for {seconds} s"
    return f"for {seconds // 60} min" if seconds < 7200 else f"for {seconds // 3600} h"


def stop(as_json: JsonOption = False) -> int:
    """End the daemon and its servers; what needs it next starts another one."""

    def ended(printer: Printer) -> int:
        found = _asked("stop")
        if printer.as_json:
            printer.document({"stopped": found is not None})
        else:
            printer.say("No daemon runs." if found is None else "The daemon has ended.")
        return DONE

    return _guarded(ended, as_json=as_json)


def restart(as_json: JsonOption = False) -> int:
    """End the daemon and start another one; clients go on with that."""

    def started(printer: Printer) -> int:
        _asked("stop")
        try:
            with (connection := connect("status")).socket:
                found = json.loads(connection.lines.read() or b"{}")
        except NoDaemonError as error:
            raise PegboardError(f"The daemon did not start: {error}.", code="server_failed") from error
        if printer.as_json:
            printer.document({"running": True, **found})
        else:
            printer.say(f"The daemon runs: process {found.get('pid')}.")
        return DONE

    return _guarded(started, as_json=as_json)


def logs(
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="COUNT", min=1, help="How many of the newest lines.")
    ] = LAST_LINES,
    as_json: JsonOption = False,
) -> int:
    """Print the newest lines of the daemon's log."""

    def printed(printer: Printer) -> int:
        try:
            file = Path(address_of().log)
        except NoFolderError as error:
            raise PegboardError(f"There is no folder for a daemon: {error}.", code="server_failed") from error
        texts = [one.read_text("utf-8", "replace") for one in (Path(f"{file}.1"), file) if one.is_file()]
        newest = "".join(texts).splitlines()[-lines:]
        if printer.as_json:
            printer.document({"log": str(file), "lines": newest})
            return DONE
        for line in newest:
            printer.say(line)
        printer.note(f"pegboard: {file}")
        return DONE

    return _guarded(printed, as_json=as_json)


def install(
    shows: Annotated[bool, typer.Option("--print", help="Print the file, and write nothing.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Let the system start the daemon with your session: a unit of systemd, or an agent of launchd."""

    def installed(printer: Printer) -> int:
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
        return _told_system(printer, file, service_files.start_commands(file), f"{file} is written")

    return _guarded(installed, as_json=as_json)


def uninstall(as_json: JsonOption = False) -> int:
    """Undo `pegboard daemon install`: clients start the daemon themselves again."""

    def removed(printer: Printer) -> int:
        file, _ = _service()
        if not file.exists():
            if printer.as_json:
                printer.document({"file": str(file), "removed": False, "left": []})
            else:
                printer.say(f"There is no {file}.")
            return DONE
        _require_ours(file)
        code = _told_system(printer, file, service_files.stop_commands(file), f"{file} is removed")
        file.unlink(missing_ok=True)
        return code

    return _guarded(removed, as_json=as_json)


def _service() -> tuple[Path, str]:
    try:
        return service_files.service_file(os.environ), service_files.service_text(address_of(), os.environ)
    except NoFolderError as error:
        raise PegboardError(f"There is no folder for a daemon: {error}.", code="server_failed") from error


def _require_ours(file: Path) -> None:
    if file.exists() and service_files.MARK not in file.read_text("utf-8", "replace"):
        raise UsageError(f"{file} was not written by this command.", hint="Move it away first.")


def _told_system(printer: Printer, file: Path, commands: list[list[str]], done: str) -> int:
    """Let the system know of a change; what it does not take is printed for a person to do."""
    left = next((commands[number:] for number, command in enumerate(commands) if not _ran(command)), [])
    texts = [shlex.join(command) for command in left]
    if printer.as_json:
        printer.document({"file": str(file), "left": texts})
        return DONE
    printer.say(f"{done}.")
    if texts:
        printer.say("The system did not take it; do this yourself:")
        for text in texts:
            printer.say(f"  {text}")
    return DONE


def _ran(command: list[str]) -> bool:
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
