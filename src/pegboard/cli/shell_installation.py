"""Tell coding agents with a shell of Pegboard: what `pegboard init --install cli` and `--uninstall cli` do."""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pegboard.cli.client_answers import answer
from pegboard.cli.command_identity import AGENT
from pegboard.cli.common import system_user
from pegboard.cli.edited_configuration import opened_configuration, user_configuration
from pegboard.config.clients.shell_instructions import (
    InstructionFile,
    InstructionScope,
    files_of,
    instructions,
    text_with_instructions,
    text_without_instructions,
    with_agent,
    without_agent,
)
from pegboard.config.location import CLIENT_FILE, Machine, find
from pegboard.errors import ConfigError
from pegboard.support.installed import in_cache, lasting_command

if TYPE_CHECKING:
    from pegboard.cli.rendering import Printer

NAME: Final = "cli"
"""How `--install` and `--uninstall` name it."""
_FROM_CLIENT: Final = f"Run `pegboard init --from {CLIENT_FILE}`, then this again."


async def install_for_shell(printer: Printer, config: Path | None, scope: str | None, *, dry_run: bool) -> int:
    """Write the agent of the command line into the configuration, and the instructions where agents read them."""
    machine = Machine()
    program = _program(_scope_for(scope, machine))
    path, named = _configuration(config, scope, machine)
    if not path.exists():
        message = f"{path} does not exist, so there are no tools for an agent."
        beside = (machine.folder / CLIENT_FILE).is_file()
        hint = _FROM_CLIENT if beside else "`pegboard init` writes one, or name one with --config."
        raise ConfigError(message, code="not_installed", hint=hint)
    if path.name == CLIENT_FILE:
        message = f"{path} is a client's file, which has no agents, so nothing was changed."
        raise ConfigError(message, code="not_editable", hint=_FROM_CLIENT)
    edited = opened_configuration(path)
    text, agent = with_agent(edited.text, AGENT, file=path.name)
    edited.usable(text)
    files = _files(machine, _scope_for(scope, machine))
    lines = instructions(text, agent, file=path.name, program=program, config=named)
    written = {file: text_with_instructions(file, lines) for file in files}
    diffs = [_diff(file.path, new) for file, new in written.items()]
    if not dry_run:
        if text != edited.text:
            await edited.save(text, by=system_user(), reason=f"agent '{AGENT}' for the command line")
        for file, new in written.items():
            file.path.parent.mkdir(parents=True, exist_ok=True)
            file.path.write_text(new, "utf-8")
    status = "would_install" if dry_run else "installed"
    done = [f"Agent '{agent}' of {path} is used by the command line.", *_lines(files, "names it")]
    shown = [*diffs, "Nothing was changed. Without --dry-run:"] if dry_run else []
    return _print_installation(printer, status, path, agent, diffs, [*shown, *done], files)


async def uninstall_for_shell(printer: Printer, config: Path | None, scope: str | None, *, dry_run: bool) -> int:
    """Take the instructions and the agent of the command line out again."""
    machine = Machine()
    path, _ = _configuration(config, scope, machine)
    found = {
        file: rest
        for file in files_of(machine, _scope_for(scope, machine))
        if (rest := text_without_instructions(file)) is not None
    }
    if not found:
        raise ConfigError("No instructions of a coding agent here name Pegboard.", code="not_installed")
    diffs = [_diff(file.path, rest) for file, rest in found.items()]
    if not dry_run:
        if path.exists():
            edited = opened_configuration(path)
            text = without_agent(edited.text, AGENT, file=path.name)
            if text != edited.text:
                await edited.save(text, by=system_user(), reason=f"agent '{AGENT}' taken out")
        for file, rest in found.items():
            _write_rest(file, rest)
    status = "would_remove" if dry_run else "removed"
    shown = [*diffs, "Nothing was changed. Without --dry-run:"] if dry_run else []
    lines = [*shown, *_lines([*found], "no longer mentions Pegboard")]
    return _print_installation(printer, status, path, AGENT, diffs, lines, [*found])


def _write_rest(file: InstructionFile, rest: str) -> None:
    if rest.strip():
        file.path.write_text(rest, "utf-8")
        return
    file.path.unlink()
    if file.whole:
        file.path.parent.rmdir()


def _scope_for(scope: str | None, machine: Machine) -> InstructionScope:
    if scope is not None:
        return "user" if scope == "user" else "project"
    return "project" if find(machine.folder) is not None else "user"


def _configuration(config: Path | None, scope: str | None, machine: Machine) -> tuple[Path, str]:
    """Return the configuration, and how a command line names it: not at all where it is that of the folder."""
    if config is not None:
        return config, str(config.absolute())
    if _scope_for(scope, machine) == "project":
        return find(machine.folder) or machine.folder / "pegboard.yaml", ""
    own = user_configuration()
    return own, str(own)


def _files(machine: Machine, scope: InstructionScope) -> list[InstructionFile]:
    if files := files_of(machine, scope):
        return files
    message = f"No coding agent was found: {machine.home} has no .claude, .codex or .gemini."
    raise ConfigError(message, code="not_installed", hint="Run it in a project, for the file AGENTS.md there.")


def _program(scope: InstructionScope) -> str:
    """Return how an agent starts the command: an installed one, since one by uvx takes seconds each time."""
    found = shutil.which("pegboard")
    if found is not None and not in_cache(Path(found)):
        return "pegboard"
    command = lasting_command() or []
    if scope == "user" and len(command) == 1:
        return command[0]
    message = "No 'pegboard' is installed that a shell would find, so no coding agent could run it."
    raise ConfigError(message, code="not_lasting", hint="Run `uv tool install pegboard`, then this again.")


def _diff(path: Path, new: str) -> str:
    old = path.read_text("utf-8") if path.is_file() else ""
    name = str(path)
    return "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, name)).rstrip("\n")


def _lines(files: list[InstructionFile], what: str) -> list[str]:
    return [f"{file.agent}: {file.path} {what}." for file in files]


def _print_installation(
    printer: Printer,
    status: str,
    path: Path,
    agent: str,
    diffs: list[str],
    lines: list[str],
    files: list[InstructionFile],
) -> int:
    document: dict[str, Any] = {
        "client": NAME,
        "status": status,
        "config": str(path),
        "agent": agent,
        "files": [str(file.path) for file in files],
        "diff": "\n".join(diffs),
    }
    return answer(printer, document, lines)
