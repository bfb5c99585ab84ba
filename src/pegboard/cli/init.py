"""`pegboard init`: write a configuration to begin with, or put Pegboard into a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pegboard.cli.common import DONE, Options, guarded, problem_json, warnings_to
from pegboard.cli.options import JsonOption
from pegboard.cli.plain_in_files import Moved, as_moved_before, moved_secrets
from pegboard.cli.rendering import Printer, plural
from pegboard.cli.server_starts import faults_of, start_servers
from pegboard.config.acceptance import accept_text, require_accepted
from pegboard.config.clients import installing
from pegboard.config.clients.client import references_of
from pegboard.config.clients.compiled_servers import WRONG, servers_of
from pegboard.config.clients.generated import client_text, read_client, require_free, starter_text, taken_from, write
from pegboard.config.clients.installing import no_configuration
from pegboard.config.clients.kept_copies import remove_for_client
from pegboard.config.clients.literal_secrets import secrets_in
from pegboard.config.clients.removing import removal
from pegboard.config.clients.server_files import read
from pegboard.config.documents.document import is_mapping
from pegboard.config.inspection import inspect
from pegboard.config.location import Machine
from pegboard.config.schema.fetched import is_fetched
from pegboard.configuration_source import registered
from pegboard.confined_servers import ConfinedServers, confinable, confined
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import EMPTY
from pegboard.errors import ConfigError, PegboardError, UsageError
from pegboard.mcp_extra import require
from pegboard.support import own_folder

if TYPE_CHECKING:
    from pegboard.cli.server_starts import Start
    from pegboard.config.clients.file_edits import Edit
    from pegboard.config.clients.generated import Taken
    from pegboard.config.clients.server_files import ServerFile
    from pegboard.config.schema.configuration import Configuration
    from pegboard.problems import Problem

EXAMPLE = "pegboard init --from ~/.cursor/mcp.json"
TARGET: Final = Path("pegboard.yaml")
BESIDE: Final = Path(".mcp.json")


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
    confine: Annotated[
        bool,
        typer.Option("--confine", help="Confine servers that are fetched when they start (npx, uvx and the like)."),
    ] = False,
    no_check: Annotated[
        bool,
        typer.Option("--no-check", help="With --install: change the client's file without starting its servers first."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="With --install or --uninstall: show what would change, and change nothing."),
    ] = False,
    keyring: Annotated[
        bool | None,
        typer.Option(
            "--keyring/--no-keyring",
            help="Move secrets that stand in plain into the keyring of the system. [default: ask at the terminal]",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Write a pegboard.yaml, or put Pegboard into a client.

    It takes over the MCP servers of a client's configuration where there is one. Clients: claude-code,
    claude-desktop, cursor, vscode, copilot-cli, codex, gemini, zed, windsurf, junie, opencode, goose.
    """
    given = _InitOptions(
        source=source, config=config, force=force, confine=confine, check=not no_check, dry_run=dry_run, keyring=keyring
    )

    async def written(printer: Printer) -> int:
        return await _written(printer, install, uninstall, given)

    return guarded(Options(as_json=as_json), written)


async def _written(printer: Printer, install: str | None, uninstall: str | None, given: _InitOptions) -> int:
    if install is not None and uninstall is not None:
        raise UsageError("--install and --uninstall exclude each other.")
    if install is not None:
        require("`pegboard init --install`")
        return await _install(printer, install, given)
    if not given.check:
        raise UsageError("--no-check goes with --install.")
    if uninstall is not None:
        return _uninstall(printer, uninstall, given.source, dry_run=given.dry_run)
    if given.dry_run:
        raise UsageError("--dry-run goes with --install or --uninstall.")
    return await _write_start(printer, given)


@dataclass(frozen=True, slots=True, kw_only=True)
class _InitOptions:
    """What `init` was given."""

    source: Path | None
    config: Path | None
    force: bool
    confine: bool
    check: bool
    dry_run: bool
    keyring: bool | None


# -- a configuration to begin with -----------------------------------------------------------------


async def _write_start(printer: Printer, given: _InitOptions) -> int:
    config = given.config or TARGET
    chosen = given.source if given.source is not None else BESIDE if BESIDE.is_file() else None
    if chosen is BESIDE:
        require_accepted(BESIDE, exactly=True)  # what is written counts as accepted
    taken = read_client(chosen) if chosen is not None else None
    if taken is not None:
        printer.masker = Masker(secrets_in(dict(taken.servers)))
        require_free(config, force=given.force)
    kept = Moved()
    if taken is not None:
        stays = f"{chosen} still has them in plain."
        kept = await moved_secrets(
            taken.servers, config, keyring=given.keyring, ask=not printer.as_json, stays_in=stays
        )
    held = _held(kept.servers, config, taken.sandboxed if taken else (), given)
    taken = replace(taken, servers=held.servers) if taken else None
    excluded = taken.excluded if taken else EMPTY
    text = client_text(taken, chosen.name) if taken and chosen else starter_text()
    try:
        backup = write(config, text, force=given.force, like=chosen, allowed=_allowed(held.servers))
    except BaseException:
        kept.undo()
        raise
    accept_text(config)
    problems = [*(taken.problems if taken else ()), *_problems(config)]
    servers = list(taken.servers) if taken else []
    if printer.as_json:
        printer.document(
            {
                "written": str(config),
                "source": str(chosen) if chosen else None,
                "servers": servers,
                "confined": held.done,
                "keyring": list(kept.names),
                "staying": [{"name": name, "reason": why} for name, why in excluded.items()],
                "backup": str(backup) if backup else None,
                "problems": [problem_json(problem) for problem in problems],
            }
        )
        return DONE
    excluded_lines = [f"{name} is excluded: {why}." for name, why in excluded.items()]
    _show_start(printer, config, chosen, servers, backup, [*_confined_lines(held), *kept.lines, *excluded_lines])
    for problem in problems:
        printer.note(f"{problem.severity}: {problem}")
    return DONE


def _held(servers: Mapping[str, Any], config: Path, sandboxed: tuple[str, ...], given: _InitOptions) -> ConfinedServers:
    """Return servers as they are written: confined where that is asked for, or their client had them in a sandbox."""
    if given.confine:
        return confined(servers, config, sandboxed=sandboxed)
    return ConfinedServers(servers=servers, sandboxed=sandboxed)


def _confined_lines(held: ConfinedServers) -> list[str]:
    """Return what a person is told of confinement; where nothing is said of it, that it can be asked for."""
    free = [
        n for n, entry in held.servers.items() if is_mapping(entry) and is_fetched(entry) and "confine" not in entry
    ]
    if not free or held.names or held.outside:
        return held.lines
    offer = f"Fetched when they start, and run with all of your rights: {', '.join(free)}. --confine restricts them."
    return [*held.lines, offer]


def _allowed(servers: Mapping[str, Any]) -> int:
    """Return who may at most read a configuration with these servers: its owner alone where a secret may be in it."""
    return 0o600 if secrets_in(dict(servers)) else 0o666


def _show_start(
    printer: Printer, config: Path, chosen: Path | None, servers: list[str], backup: Path | None, notes: list[str]
) -> None:
    if chosen is not None:
        printer.say(
            f"Wrote {config} with {plural(len(servers), 'server')} from {chosen}: {', '.join(servers) or 'none'}."
        )
    else:
        printer.say(f"Wrote {config}, a start with tools that read the current folder.")
    for note in notes:
        printer.say(note)
    if backup is not None:
        printer.say(f"What was there is kept as {backup}.")
    option = "" if config == TARGET else f" --config {config}"
    printer.say(f"Next: pegboard check{option}, then pegboard surface{option}, then pegboard serve{option}.")


def _problems(path: Path) -> list[Problem]:
    """Return what is to be put right in the file that was written."""
    return inspect(path, registered=registered())[1]


# -- into a client ---------------------------------------------------------------------------------


async def _install(printer: Printer, name: str, given: _InitOptions) -> int:
    machine = Machine()
    client = installing.client_named(name)
    own = given.config if given.config is not None else TARGET
    file = confinable(installing.file_of(client, machine, given.source, empty=own.is_file()))
    printer.masker = Masker(secrets_in(dict(file.entries)))
    if installing.own_names(file, machine):
        return _installed_already(printer, file, machine)
    movable = installing.movable(file)
    if not movable.entries:
        _require_servers(own, file)
        if given.config is None:
            require_accepted(own)
        edit = installing.installation(file, installing.entry_for(file, {}, own))
        return await _put_in(printer, _Change(edit=edit, config=own), given)
    _refuse_faults(movable, machine)
    if given.source is None and file.spot.scope == "project" and not given.dry_run:
        require_accepted(file.spot.path, exactly=True)  # its servers are started, and then count as accepted
    taken = taken_from(movable)
    config = given.config or installing.home_of_configuration(file, machine)
    servers: Mapping[str, Any] = installing.inputs_as_variables(dict(taken.servers))
    there = config.exists() and not given.force
    if there and given.config is None and file.spot.scope == "project":
        require_accepted(config)
    if there:
        servers = as_moved_before(servers, config, _servers_of(config, machine))
    held = _held(servers, config, taken.sandboxed, given)
    shared = there and _has(config, held, machine)
    edit = installing.installation(file, installing.entry_for(file, taken.servers, config))
    asked = tuple(name for name, entry in taken.servers.items() if references_of(entry).inputs)
    written = None if shared else replace(taken, servers=servers)
    change = _Change(edit=edit, config=config, written=written, servers=tuple(servers), held=held, asked=asked)
    return await _put_in(printer, change, given)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What an installation changes: ``written`` are the servers of a configuration that is still to be written.

    ``servers`` are those behind Pegboard, ``held`` says how they are confined, ``asked`` are those for which the client
    asks its user something.
    """

    edit: Edit
    config: Path
    written: Taken | None = None
    servers: tuple[str, ...] = ()
    held: ConfinedServers | None = None
    asked: tuple[str, ...] = ()


async def _put_in(printer: Printer, change: _Change, given: _InitOptions) -> int:
    """Start the servers, then write the configuration and put Pegboard into the client's file; report it."""
    file, config = change.edit.file, change.config
    text = None if change.written is None or change.held is None else _text(change.written, change.held, file, config)
    configuration = _usable(config, text, file)
    starts, unchecked = await _checked(printer, change, configuration, given)
    kept, backup = Moved(), None
    if not given.dry_run:
        kept, backup = await _save(printer, change, given)
    verb = "Kept" if change.written is None else "Would write" if given.dry_run else "Wrote"
    held = change.held if change.held is not None and change.written is not None else None
    logins = [start.name for start in starts if start.wants_login]
    diff = change.edit.diff()
    document = {
        **_heading(file),
        "status": "would_install" if given.dry_run else "installed",
        "config": str(config),
        "servers": list(change.servers),
        "confined": held.done if held is not None else [],
        "keyring": list(kept.names),
        "checked": [start.name for start in starts],
        "logins": logins,
        "staying": [{"name": name, "reason": why} for name, why in file.client_only_servers().items()],
        "backup": str(backup) if backup else None,
        "diff": diff,
    }
    servers = change.servers
    listed = f" with {plural(len(servers), 'server')}: {', '.join(servers)}" if servers else " as it is"
    lines = [diff, "", f"{verb} {config}{listed}.", *(_confined_lines(held) if held is not None else ()), *kept.lines]
    lines += [*_login_lines(logins, config), *unchecked]
    return _answer(printer, document, [*lines, *_after_install(file, backup)])


async def _checked(
    printer: Printer, change: _Change, configuration: Configuration, given: _InitOptions
) -> tuple[tuple[Start, ...], list[str]]:
    """Start the servers of a configuration; return what became of each, and what is said of those not started.

    Raises ``ConfigError`` where one does not come up.
    """
    file, title = change.edit.file, change.edit.file.spot.client.title
    specs = {spec.name: spec for spec in configuration.specs.values() if isinstance(spec, ServerSpec)}
    if given.dry_run or not given.check:
        listed = ", ".join(specs)
        return (), [f"Not checked, since none was started: whether {listed} come up."] if listed else []
    asked = [name for name in change.asked if name in specs and specs[name].unavailable]
    with warnings_to(printer):
        starts = await start_servers(configuration, file.spot.folder, printer, leave_out=asked)
    if faults := faults_of(starts):
        count = sum(1 for start in starts if start.fault)
        which = f"{count} of {plural(len(starts), 'server')}"
        message = f"{file.label} is left as it is, since {which} did not come up:\n{faults}\nNothing was changed."
        hint = "Correct that or take the server out, and try again; --no-check does without this check."
        hint += " Without --confine nothing is confined." if given.confine else ""
        raise ConfigError(message, code="server_not_started", hint=hint)
    return starts, [f"{name} was not started: it needs what only {title} asks for." for name in asked]


async def _save(printer: Printer, change: _Change, given: _InitOptions) -> tuple[Moved, Path | None]:
    """Write the configuration, where there is one to write, and the client's file: both, or neither.

    Returns what became of secrets, and where the copy of the client's file is kept.
    """
    config, edit, taken = change.config, change.edit, change.written
    folder = own_folder.beside(config)
    if taken is None:
        backup = edit.save(keep_in=folder)
        accept_text(edit.path)
        return Moved(), backup
    stays = "The copy that is kept for --uninstall still has them in plain."
    before = config.read_bytes() if config.is_file() else None
    kept = await moved_secrets(taken.servers, config, keyring=given.keyring, ask=not printer.as_json, stays_in=stays)
    try:
        held = _held(kept.servers, config, taken.sandboxed, given)
        text = _text(taken, held, edit.file, config)
        _usable(config, text, edit.file)
        _write_moved(text, held.servers, edit.file, config, force=given.force)
        backup = edit.save(keep_in=folder)
    except BaseException:
        if before is None:
            config.unlink(missing_ok=True)
        elif config.read_bytes() != before:
            config.write_bytes(before)
        kept.undo()
        own_folder.remove_unused(folder)
        raise
    accept_text(config)
    accept_text(edit.path)
    return kept, backup


def _usable(config: Path, text: str | None, file: ServerFile) -> Configuration:
    """Return what a configuration says, with this text in place of what is in it, if any.

    Raises ``ConfigError`` where it has a mistake.
    """
    configuration, problems = inspect(config, registered=registered(), text=text)
    if configuration is None:
        errors = [problem for problem in problems if problem.severity == "error"]
        message = f"{config} could not be used, so it and {file.label} are left as they are: "
        raise ConfigError(message + "; ".join(map(str, errors)), problems=errors)
    return configuration


def _login_lines(names: list[str], config: Path) -> list[str]:
    """Return how a person logs in to the servers that want it; a call that needs a login asks for it, too."""
    option = "" if config.absolute() == TARGET.absolute() else f" --config {config}"
    return [f"{name} wants a login: pegboard login {name}{option}" for name in names]


def _require_servers(config: Path, file: ServerFile) -> None:
    """Raise ``ConfigError`` where a client has no server to move, and no configuration is there to give it."""
    if not config.is_file():
        staying = " ".join(f"{name} stays: {why}." for name, why in file.client_only_servers().items())
        message = f"{file.label} has no server that could stand behind Pegboard, and is left as it is."
        raise ConfigError(message, code="no_servers", hint=f"{staying} {no_configuration(file.spot.client)}".strip())


def _heading(file: ServerFile) -> dict[str, Any]:
    return {"client": file.spot.client.name, "file": file.label}


def _after_install(file: ServerFile, backup: Path | None) -> list[str]:
    """Return what follows an installation; without a backup nothing was changed."""
    client = file.spot.client
    lines = [f"{name} stays where it is: {why}." for name, why in file.client_only_servers().items()]
    if backup is None:
        return [*lines, "Nothing was changed."]
    return [
        *lines,
        f"{client.title} starts pegboard now. What was in {file.label} is kept as {backup}.",
        f"Next: restart {client.title}. To undo it: pegboard init --uninstall {client.name}",
    ]


def _installed_already(printer: Printer, file: ServerFile, machine: Machine) -> int:
    names, used = installing.own_names(file, machine), installing.configuration_in_use(file, machine)
    beside = [other for other in file.entries if other not in names and other not in file.client_only_servers()]
    more = f" Beside it stand {', '.join(beside)}: move them into that file by hand." if beside else ""
    gone = "" if used is None or used.exists() else " That file does not exist: take Pegboard out and begin anew."
    text = f"Pegboard is in {file.label} already and uses {used}.{gone}{more}"
    staying = [{"name": name, "reason": why} for name, why in file.client_only_servers().items()]
    found = {
        "status": "already_installed",
        "config": str(used),
        "servers": beside,
        "confined": [],
        "keyring": [],
        "checked": [],
        "logins": [],
    }
    document = {**found, "staying": staying, "backup": None, "diff": ""}
    return _answer(printer, {**_heading(file), **document}, [text])


def _refuse_faults(file: ServerFile, machine: Machine) -> None:
    """Raise ``ConfigError`` where a server is written so that Pegboard could not start with it."""
    wrong = {name: why for name, why in servers_of(file, machine).off.items() if why.startswith(WRONG)}
    if wrong:
        listed = "; ".join(f"{name}: {why}" for name, why in wrong.items())
        hint = "Correct it, or take it out, and try again."
        raise ConfigError(f"{file.label} is left as it is: {listed}.", code="server_invalid", hint=hint)


def _text(taken: Taken, held: ConfinedServers, file: ServerFile, config: Path) -> str:
    """Return the configuration with the servers of a client."""
    text = client_text(replace(taken, servers=held.servers), file.label)
    if file.spot.scope != "user":
        return text
    return text.replace("/pegboard.db", f"/{config.stem}.db", 1)  # several clients may keep theirs in one folder


def _write_moved(text: str, servers: Mapping[str, Any], file: ServerFile, config: Path, *, force: bool) -> None:
    """Write the configuration with a client's servers as private as where they were, or more so."""
    personal = file.spot.scope == "user"
    if personal and not config.parent.exists():
        config.parent.mkdir(mode=0o700, parents=True)
    write(config, text, force=force, like=file.spot.path, allowed=0o600 if personal else _allowed(servers))


def _unconfined(entry: Any) -> Any:
    return {key: value for key, value in entry.items() if key != "confine"} if is_mapping(entry) else entry


def _servers_of(config: Path, machine: Machine) -> Mapping[str, Any]:
    """Return the servers of a configuration of ours."""
    return read(config, machine).translated().value.get("servers", {})


def _has(config: Path, held: ConfinedServers, machine: Machine) -> bool:
    """Return that a configuration has these servers; raises ``PegboardError`` where it has not.

    Those that are to be confined, or were in a sandbox, it has as they are confined, others confined or not.
    """
    there = _servers_of(config, machine)
    other = [
        name
        for name, entry in held.servers.items()
        if (there.get(name) != entry if name in held.done else _unconfined(there.get(name)) != _unconfined(entry))
    ]
    if other:
        message = f"{config} exists already and does not have {', '.join(other)} as the client has."
        hint = "Add --config PATH to write another one, or --force to replace it."
        raise PegboardError(message, code="file_exists", hint=hint)
    return True


# -- and out of it ---------------------------------------------------------------------------------


def _uninstall(printer: Printer, name: str, source: Path | None, *, dry_run: bool) -> int:
    machine = Machine()
    client = installing.client_named(name)
    file = installing.file_of(client, machine, source, holding=True)
    used = installing.configuration_in_use(file, machine)
    stays = [f"{used} stays as it is."] if used is not None and used.exists() else []
    edit, how, backup = removal(file, machine)
    diff = edit.diff()
    if how == "restored":
        result = f"{file.label} is again what it was, byte for byte."
    else:
        result = f"{file.label} was changed since: Pegboard is removed, the servers are back, the rest stays."
        stays.insert(0, f"What it was before Pegboard is still kept as {backup}.")
    if not dry_run:
        edit.save()
        accept_text(edit.path)
        if how == "restored":
            remove_for_client(edit.path)
    document = {
        **_heading(file),
        "status": {"restored": "would_restore", "put_back": "would_put_back"}[how] if dry_run else how,
        "config": str(used),
        "backup": str(backup) if how == "put_back" or dry_run else None,
        "diff": diff,
    }
    lines = [diff, "Nothing was changed. Without --dry-run:" if dry_run else "", result, *stays]
    return _answer(printer, document, [line for line in lines if line])


def _answer(printer: Printer, document: Mapping[str, Any], lines: list[str]) -> int:
    if printer.as_json:
        printer.document(document)
    else:
        for line in lines:
            printer.say(line)
    return DONE
