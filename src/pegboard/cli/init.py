"""`pegboard init`: write a configuration to begin with, or put Pegboard into a client."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from pegboard.cli.common import DONE, JsonOption, Options, guarded, problem_json
from pegboard.cli.rendering import Printer, plural
from pegboard.core.model.masking import Masker
from pegboard.errors import ConfigError, PegboardError, UsageError

if TYPE_CHECKING:
    from pegboard.config.clients.server_files import ServerFile
    from pegboard.problems import Problem

EXAMPLE = "pegboard init --from ~/.cursor/mcp.json"
TARGET: Final = Path("pegboard.yaml")
BESIDE: Final = Path(".mcp.json")

HEAD: Final = """\
# Pegboard: which tools a language model sees at each step, why, and what that costs.
# Written by `pegboard init`{source}. `pegboard check` says whether it is right, `pegboard schema` helps editors.

# Sessions, switches and the audit trail are kept here; the path is relative to this file.
store: sqlite:///.pegboard/pegboard.db
"""
SERVERS: Final = """
# MCP servers, in the shape that every client uses. Write ${{NAME}} for what should come from the environment.
{servers}"""
TOOLKITS: Final = """
# Tools that are loaded and switched as one.
{toolkits}"""
AGENTS: Final = """
agents:
  default:
    # Every server may be loaded when it is needed. Name those under `tools` that should always be out.
    discoverable: ["*"]
    {toolkits}
    # tools: [{example}]
    # permissions: {{{example}: false}}     # switches by toolkit, plugin or tool
    # lease: {{kind: idle, turns: 5}}     # hang back what was not used for five turns
    # budget: {{tools: 40, tokens: 8000}}
"""
STARTER: Final = """
# MCP servers, in the shape that every client uses. Write ${NAME} for what should come from the environment.
# servers:
#   git: {command: mcp-server-git, args: [--repository, .]}

# Plugins written in Python: a module beside this file, or an installed one. These only read the current folder.
plugins:
  files: {python: pegboard.quickstart.files, category: Filesystem}
  text: {python: pegboard.quickstart.text, category: Search}
  git: {python: pegboard.quickstart.git, category: Git}

# Tools that are loaded and switched as one.
toolkits:
  code:
    description: Search and compare text files, and read the git history
    tools: [text, git]

agents:
  default:
    tools: [files]                # always out
    allowed_toolkits: [code]      # may be loaded when they are needed
    # permissions: {code: false}    # switches by toolkit, plugin or tool
    # lease: {kind: idle, turns: 5}   # hang back what was not used for five turns
    # budget: {tools: 40, tokens: 8000}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Hold what a client's file says, in our own shape."""

    servers: Mapping[str, Any]
    filters: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    problems: tuple[Problem, ...] = ()


def init(
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="A client's file with MCP servers. [default: ./.mcp.json]"),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="PATH", help=f"What to write. [default: {TARGET}]")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file that is there; it is kept as a backup.")
    ] = False,
    install: Annotated[
        str | None,
        typer.Option("--install", metavar="CLIENT", help="Put Pegboard into this client in place of its servers."),
    ] = None,
    uninstall: Annotated[
        str | None, typer.Option("--uninstall", metavar="CLIENT", help="Give this client its servers back.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="With --install or --uninstall: say what would change, and change nothing."),
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Write a pegboard.yaml, or put Pegboard into a client.

    It takes over the MCP servers of a client's configuration where there is one. Clients: claude-code,
    claude-desktop, cursor, vscode, codex, gemini, zed, windsurf.
    """

    async def written(printer: Printer) -> int:
        if install is not None and uninstall is not None:
            raise UsageError("--install and --uninstall exclude each other.")
        if install is not None:
            return _install(printer, install, source, config, force=force, dry_run=dry_run)
        if uninstall is not None:
            return _uninstall(printer, uninstall, source, dry_run=dry_run)
        if dry_run:
            raise UsageError("--dry-run goes with --install or --uninstall.")
        return _write_start(printer, source, config or TARGET, force=force)

    return guarded(Options(as_json=as_json), written)


def _write_start(printer: Printer, source: Path | None, config: Path, *, force: bool) -> int:
    chosen = source if source is not None else BESIDE if BESIDE.is_file() else None
    taken = read_client(chosen) if chosen is not None else None
    text = client_text(taken, chosen.name) if taken and chosen else HEAD.format(source="") + STARTER
    backup = write(config, text, force=force, like=chosen)
    problems = [*(taken.problems if taken else ()), *_problems(config)]
    servers = list(taken.servers) if taken else []
    if printer.as_json:
        printer.document(
            {
                "written": str(config),
                "source": str(chosen) if chosen else None,
                "servers": servers,
                "backup": str(backup) if backup else None,
                "problems": [problem_json(problem) for problem in problems],
            }
        )
        return DONE
    _tell(printer, config, chosen, servers, backup)
    for problem in problems:
        printer.note(f"{problem.severity}: {problem}")
    return DONE


# -- into clients and out of them ------------------------------------------------------------------


def _install(
    printer: Printer, name: str, source: Path | None, config: Path | None, *, force: bool, dry_run: bool
) -> int:
    from pegboard.config.clients import installing
    from pegboard.config.clients.literal_secrets import secrets_in
    from pegboard.config.clients.machine import Machine

    machine = Machine()
    client = installing.client_named(name)
    file = installing.file_of(client, machine, source)
    printer.masker = Masker(secrets_in(dict(file.entries)))
    message: dict[str, Any] = {"client": client.name, "file": file.shown}
    if names := installing.own_names(file, machine):
        used = installing.configuration_in_use(file, machine)
        beside = [other for other in file.entries if other not in names and other not in file.only_its_own()]
        more = f" Beside it stand {', '.join(beside)}: move them into that file by hand." if beside else ""
        told = {**message, "status": "already_installed", "config": str(used), "servers": beside, "backup": None}
        gone = "" if used is None or used.exists() else " That file does not exist: take Pegboard out and begin anew."
        text = f"Pegboard is in {file.shown} already and uses {used}.{gone}{more}"
        return _answer(printer, {**told, "diff": ""}, [text])
    movable = installing.movable(file)
    _refuse_faults(movable)
    taken = _taken(movable)
    servers = installing.inputs_as_variables(dict(taken.servers))
    config = config or installing.home_of_configuration(file, machine)
    kept = config.exists() and not force and _holds(config, servers)
    edit = installing.installation(file, installing.entry_for(file, taken.servers, config))
    backup: Path | None = None
    if not dry_run:
        if not kept:
            _write_moved(replace(taken, servers=servers), file, config, force=force)
        backup = edit.save(backup=True)
    what = f"{config} with {plural(len(servers), 'server')}: {', '.join(servers) or 'none'}"
    lines = [edit.diff(), "", f"Kept {what}." if kept else f"{'Would write' if dry_run else 'Wrote'} {what}."]
    lines += [f"{name} stays where it is: {why}." for name, why in file.only_its_own().items()]
    if dry_run:
        lines.append("Nothing was changed.")
    else:
        lines.append(f"{client.title} starts pegboard now. What was in {file.shown} is kept as {backup}.")
        lines.append(f"Next: restart {client.title}. To undo it: pegboard init --uninstall {client.name}")
    status = "would_install" if dry_run else "installed"
    told = {**message, "status": status, "config": str(config), "servers": list(servers)}
    return _answer(printer, {**told, "backup": str(backup) if backup else None, "diff": edit.diff()}, lines)


def _refuse_faults(file: ServerFile) -> None:
    """Raise ``ConfigError`` where a server is written so that Pegboard could not start with it."""
    from pegboard.config.clients.compiled_servers import WRONG, servers_of
    from pegboard.config.clients.machine import Machine

    wrong = {name: why for name, why in servers_of(file, Machine()).off.items() if why.startswith(WRONG)}
    if wrong:
        listed = "; ".join(f"{name}: {why}" for name, why in wrong.items())
        hint = "Correct it, or take it out, and try again."
        raise ConfigError(f"{file.shown} is left as it is: {listed}.", code="server_invalid", hint=hint)


def _write_moved(taken: Taken, file: ServerFile, config: Path, *, force: bool) -> None:
    """Write the servers of a client into a configuration that is as private as where they were, or more so."""
    personal = file.spot.scope == "user"
    if personal and not config.parent.exists():
        config.parent.mkdir(mode=0o700, parents=True)
    text = client_text(taken, file.shown)
    if personal:  # several clients may keep theirs in one folder
        text = text.replace("/pegboard.db", f"/{config.stem}.db", 1)
    before = write(config, text, force=force, like=file.spot.path, allowed=0o600 if personal else 0o666)
    if errors := [problem for problem in _problems(config) if problem.severity == "error"]:
        if before is None:
            config.unlink()
        else:
            before.replace(config)
        listed = "; ".join(map(str, errors))
        message = f"{config} could not be used, so it and {file.shown} are left as they are: {listed}"
        raise ConfigError(message, problems=errors)


def _holds(config: Path, servers: Mapping[str, Any]) -> bool:
    """Return that a configuration has these servers; raises ``PegboardError`` where it has not."""
    from pegboard.config.clients.machine import Machine
    from pegboard.config.clients.server_files import read

    there = read(config, Machine()).translated().value.get("servers", {})
    other = [name for name in servers if there.get(name) != servers[name]]
    if other:
        message = f"{config} exists already and does not have {', '.join(other)} as the client has."
        hint = "Add --config PATH to write another one, or --force to replace it."
        raise PegboardError(message, code="file_exists", hint=hint)
    return True


def _uninstall(printer: Printer, name: str, source: Path | None, *, dry_run: bool) -> int:
    from pegboard.config.clients import installing
    from pegboard.config.clients.machine import Machine
    from pegboard.config.clients.removing import removal

    machine = Machine()
    client = installing.client_named(name)
    file = installing.file_of(client, machine, source, holding=True)
    used = installing.configuration_in_use(file, machine)
    edit, how, backup = removal(file, machine)
    if how == "restored":
        result = f"{file.shown} is again what it was, byte for byte."
    else:
        result = f"{file.shown} was changed since: Pegboard is taken out, the servers are back, the rest stays."
    if not dry_run:
        edit.save(backup=False)
        if how == "restored":
            backup.unlink()
    lines = [edit.diff(), "", "Nothing was changed. Without --dry-run:" if dry_run else "", result]
    if how == "put_back":
        lines.append(f"What it was before Pegboard is still kept as {backup}.")
    lines += [f"{used} stays as it is."] if used is not None and used.exists() else []
    status = {"restored": "would_restore", "put_back": "would_put_back"}[how] if dry_run else how
    told = {"client": client.name, "file": file.shown, "status": status, "config": str(used)}
    kept = str(backup) if how == "put_back" or dry_run else None
    return _answer(printer, {**told, "backup": kept, "diff": edit.diff()}, [line for line in lines if line])


def _answer(printer: Printer, document: Mapping[str, Any], lines: list[str]) -> int:
    if printer.as_json:
        printer.document(document)
    else:
        for line in lines:
            printer.say(line)
    return DONE


def _tell(printer: Printer, config: Path, chosen: Path | None, servers: list[str], backup: Path | None) -> None:
    if chosen is not None:
        printer.say(
            f"Wrote {config} with {plural(len(servers), 'server')} from {chosen}: {', '.join(servers) or 'none'}."
        )
    else:
        printer.say(f"Wrote {config}, a start with tools that read the current folder.")
    if backup is not None:
        printer.say(f"What was there is kept as {backup}.")
    option = "" if config == TARGET else f" --config {config}"
    printer.say(f"Next: pegboard check{option}, then pegboard surface{option}, then pegboard serve{option}.")


def read_client(path: Path) -> Taken:
    """Return the servers of a client's file; raises ``ConfigError`` where it has none that can be read."""
    from pegboard.config.clients.machine import Machine
    from pegboard.config.clients.server_files import read

    file = read(path, Machine())
    value: Any = file.document.value
    for key in file.root:
        value = value.get(key)
        if value is None:
            hint = 'It should hold {"mcpServers": {"name": {"command": …}}}.'
            raise ConfigError(f"{file.shown}: there are no MCP servers in it.", code="no_servers", hint=hint)
    return _taken(file)


def _taken(file: ServerFile) -> Taken:
    client = file.translated()
    folder = file.spot.folder or file.spot.path.expanduser().absolute().parent
    return Taken(
        servers={str(name): _localised(entry, folder) for name, entry in client.value["servers"].items()},
        filters=client.filters,
        problems=client.problems,
    )


def _localised(value: Any, folder: Path) -> Any:
    """Return a value with the editor's own variables filled in: nobody else knows them."""
    match value:
        case str():
            known = {"workspaceFolder": str(folder), "userHome": str(Path.home()), "pathSeparator": os.sep}
            for name, filled in known.items():
                value = value.replace(f"${{{name}}}", filled)
            return value
        case dict():
            pairs = cast("dict[str, Any]", value)
            return {key: _localised(inner, folder) for key, inner in pairs.items()}
        case list():
            return [_localised(inner, folder) for inner in cast("list[Any]", value)]
        case _:
            return value


def client_text(taken: Taken, source: str) -> str:
    """Return a configuration in which every server may be loaded when it is needed."""
    example = next(iter(taken.servers), "name")
    toolkits = {name: {"tools": [{name: rule}]} for name, rule in taken.filters.items()}
    allowed = f"allowed_toolkits: {_inline(list(toolkits))}" if toolkits else "# allowed_toolkits: []"
    shown = TOOLKITS.format(toolkits=_yaml({"toolkits": toolkits})) if toolkits else ""
    return "".join(
        (
            HEAD.format(source=f" from {source}"),
            SERVERS.format(servers=_yaml({"servers": dict(taken.servers)})),
            shown,
            AGENTS.format(toolkits=allowed, example=_inline(example)),
        )
    )


def _yaml(value: Any) -> str:
    import yaml

    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)


def _inline(value: Any) -> str:
    import yaml

    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("...\n").strip()


def write(path: Path, text: str, *, force: bool, like: Path | None, allowed: int = 0o666) -> Path | None:
    """Write the file, readable by whom ``like`` is, at most ``allowed``; return where a file that was there is kept.

    Raises ``PegboardError`` where there is one already, unless ``force``.
    """
    backup: Path | None = None
    if path.exists() or path.is_symlink():
        if not force:
            hint = "Add --force to replace it, or --config PATH to write another one."
            raise PegboardError(f"{path} exists already and is left as it is.", code="file_exists", hint=hint)
        backup = _free(path)
        shutil.copy2(path, backup)
    with path.open("w" if force else "x", encoding="utf-8") as stream:
        if like is not None:
            path.chmod(like.expanduser().stat().st_mode & allowed)
        stream.write(text)
    return backup


def _free(path: Path) -> Path:
    """Return a name for a backup that no file has."""
    number = 0
    while (found := path.with_name(f"{path.name}.bak{number or ''}")).exists():
        number += 1
    return found


def _problems(path: Path) -> list[Problem]:
    """Return what is to be put right in the file that was written."""
    from pegboard.assembly import registered
    from pegboard.config.inspection import inspect

    return inspect(path, registered=registered())[1]
