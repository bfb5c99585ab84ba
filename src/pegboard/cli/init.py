"""`pegboard init`: write a configuration to begin with, or put Pegboard into a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pegboard.cli.common import DONE, Options, guarded, problem_json
from pegboard.cli.options import JsonOption
from pegboard.cli.rendering import Printer, plural
from pegboard.config.documents.document import is_mapping
from pegboard.core.model.masking import Masker
from pegboard.core.model.tools import EMPTY
from pegboard.errors import ConfigError, PegboardError, UsageError
from pegboard.mcp_extra import require

if TYPE_CHECKING:
    from pegboard.cli.plain_in_files import Moved
    from pegboard.config.clients.file_edits import Edit
    from pegboard.config.clients.generated import Taken
    from pegboard.config.clients.server_files import ServerFile
    from pegboard.config.location import Machine
    from pegboard.confined_servers import Confined
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
    probe: Annotated[
        bool,
        typer.Option(
            "--probe/--no-probe",
            help="With --install: ask remote servers whether they want a login, to say so.",
        ),
    ] = True,
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

    async def written(printer: Printer) -> int:
        if install is not None and uninstall is not None:
            raise UsageError("--install and --uninstall exclude each other.")
        if install is not None:
            require("`pegboard init --install`")
            given = _Given(source=source, config=config, force=force, probe=probe, dry_run=dry_run, keyring=keyring)
            return await _install(printer, install, given)
        if uninstall is not None:
            return _uninstall(printer, uninstall, source, dry_run=dry_run)
        if dry_run:
            raise UsageError("--dry-run goes with --install or --uninstall.")
        return await _write_start(printer, source, config or TARGET, force=force, keyring=keyring)

    return guarded(Options(as_json=as_json), written)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What `init --install` was given."""

    source: Path | None
    config: Path | None
    force: bool
    probe: bool
    dry_run: bool
    keyring: bool | None


# -- a configuration to begin with -----------------------------------------------------------------


async def _write_start(
    printer: Printer, source: Path | None, config: Path, *, force: bool, keyring: bool | None
) -> int:
    from pegboard.cli.plain_in_files import Moved, moved_into_keyring
    from pegboard.config.clients.generated import client_text, read_client, require_free, starter_text, write
    from pegboard.config.clients.literal_secrets import secrets_in
    from pegboard.confined_servers import Confined, confined

    chosen = source if source is not None else BESIDE if BESIDE.is_file() else None
    taken = read_client(chosen) if chosen is not None else None
    if taken is not None:
        printer.masker = Masker(secrets_in(dict(taken.servers)))
        require_free(config, force=force)
    kept = (
        Moved()
        if taken is None
        else await moved_into_keyring(
            taken.servers, wanted=keyring, ask=not printer.as_json, stays_in=f"{chosen} still has them in plain."
        )
    )
    held = confined(kept.servers, config, sandboxed=taken.sandboxed) if taken else Confined()
    taken = replace(taken, servers=held.servers) if taken else None
    excluded = taken.excluded if taken else EMPTY
    text = client_text(taken, chosen.name) if taken and chosen else starter_text()
    try:
        backup = write(config, text, force=force, like=chosen)
    except BaseException:
        kept.undo()
        raise
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
    notes = [*held.lines, *kept.lines, *(f"{name} is excluded: {why}." for name, why in excluded.items())]
    _show_start(printer, config, chosen, servers, backup, notes)
    for problem in problems:
        printer.note(f"{problem.severity}: {problem}")
    return DONE


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
    from pegboard.config.inspection import inspect
    from pegboard.configuration_source import registered

    return inspect(path, registered=registered())[1]


# -- into a client ---------------------------------------------------------------------------------


async def _install(printer: Printer, name: str, given: _Given) -> int:
    from pegboard.cli.plain_in_files import Moved, as_moved_before, moved_into_keyring
    from pegboard.config.clients import installing
    from pegboard.config.clients.generated import taken_from
    from pegboard.config.clients.literal_secrets import secrets_in
    from pegboard.config.location import Machine
    from pegboard.confined_servers import Confined, confinable, confined

    machine = Machine()
    client = installing.client_named(name)
    own = given.config if given.config is not None else TARGET
    file = confinable(installing.file_of(client, machine, given.source, empty=own.is_file()))
    printer.masker = Masker(secrets_in(dict(file.entries)))
    if given.probe:
        file = await _asked_for_logins(printer, file, machine)
    if installing.own_names(file, machine):
        return _installed_already(printer, file, machine)
    movable = installing.movable(file)
    if not movable.entries:
        _require_configuration(own, file)
        edit = installing.installation(file, installing.entry_for(file, {}, own))
        return _put_in(printer, edit, Confined(), Moved(), own, "Kept", dry_run=given.dry_run)
    _refuse_faults(movable, machine)
    taken = taken_from(movable)
    config = given.config or installing.home_of_configuration(file, machine)
    servers: Mapping[str, Any] = installing.inputs_as_variables(dict(taken.servers))
    there = config.exists() and not given.force
    if there:
        servers = as_moved_before(servers, _servers_of(config, machine))
    shared = there and _has(config, confined(servers, config, sandboxed=taken.sandboxed), machine)
    edit = installing.installation(file, installing.entry_for(file, taken.servers, config))
    kept = Moved(servers=servers)
    if not shared and not given.dry_run:
        stays = "The copy that is kept for --uninstall still has them in plain."
        kept = await moved_into_keyring(servers, wanted=given.keyring, ask=not printer.as_json, stays_in=stays)
    moved = confined(kept.servers, config, sandboxed=taken.sandboxed)
    verb = "Kept" if shared else "Would write" if given.dry_run else "Wrote"
    if not shared and not given.dry_run:
        try:
            _write_moved(replace(taken, servers=moved.servers), file, config, force=given.force)
        except BaseException:
            kept.undo()
            raise
    return _put_in(printer, edit, moved, kept, config, verb, dry_run=given.dry_run)


def _put_in(
    printer: Printer, edit: Edit, moved: Confined, kept: Moved, config: Path, verb: str, *, dry_run: bool
) -> int:
    """Put Pegboard with a configuration into a client's file in place of these servers, and report it."""
    file = edit.file
    backup = None if dry_run else edit.save(backup=True)
    diff = edit.diff()
    servers = list(moved.servers)
    moved = replace(moved, names=(), sandboxed=(), outside=()) if verb == "Kept" else moved
    logins = [name for name in servers if name in file.logins]
    document = {
        **_heading(file),
        "status": "would_install" if dry_run else "installed",
        "config": str(config),
        "servers": servers,
        "confined": moved.done,
        "keyring": list(kept.names),
        "logins": logins,
        "staying": [{"name": name, "reason": why} for name, why in file.only_its_own().items()],
        "backup": str(backup) if backup else None,
        "diff": diff,
    }
    listed = f" with {plural(len(servers), 'server')}: {', '.join(servers)}" if servers else " as it is"
    lines = [diff, "", f"{verb} {config}{listed}.", *moved.lines, *kept.lines, *_login_lines(logins, config)]
    return _answer(printer, document, [*lines, *_after_install(file, backup)])


async def _asked_for_logins(printer: Printer, file: ServerFile, machine: Machine) -> ServerFile:
    """Return a file with those remote servers marked that want a login; they are asked, all at once and briefly."""
    import asyncio

    from pegboard.config.clients import installing
    from pegboard.config.clients.compiled_servers import servers_of
    from pegboard.sources.mcp.login.challenge import may_log_in
    from pegboard.sources.mcp.transports.logins import demands_login

    movable, own = installing.movable(file), installing.own_names(file, machine)
    others = {name: entry for name, entry in movable.entries.items() if name not in own}
    specs = servers_of(replace(movable, entries=others), machine).specs.values()
    specs = [spec for spec in specs if not spec.references and may_log_in(spec)]
    if not specs:
        return file
    names = [spec.name for spec in specs]
    printer.note(f"Asking {', '.join(names)} whether a login is needed (--no-probe asks nobody) …")
    answers = dict(zip(names, await asyncio.gather(*(demands_login(spec) for spec in specs)), strict=True))
    if silent := [name for name, answer in answers.items() if answer is None]:
        printer.note(f"No answer from {', '.join(silent)}: whether a login is needed is not known.")
    return replace(file, logins=frozenset(name for name, answer in answers.items() if answer))


def _login_lines(names: list[str], config: Path) -> list[str]:
    """Return how a person logs in to the servers that want it; a call that needs a login asks for it, too."""
    option = "" if config.absolute() == TARGET.absolute() else f" --config {config}"
    return [f"{name} wants a login: pegboard login {name}{option}" for name in names]


def _require_configuration(config: Path, file: ServerFile) -> None:
    """Raise ``ConfigError`` where a client has no server to move, and no configuration that can be used is there."""
    from pegboard.config.clients.installing import no_configuration

    if not config.is_file():
        staying = " ".join(f"{name} stays: {why}." for name, why in file.only_its_own().items())
        message = f"{file.label} has no server that could stand behind Pegboard, and is left as it is."
        raise ConfigError(message, code="no_servers", hint=f"{staying} {no_configuration(file.spot.client)}".strip())
    if errors := [problem for problem in _problems(config) if problem.severity == "error"]:
        raise ConfigError(f"{config} cannot be used: {'; '.join(map(str, errors))}", problems=errors)


def _heading(file: ServerFile) -> dict[str, Any]:
    return {"client": file.spot.client.name, "file": file.label}


def _after_install(file: ServerFile, backup: Path | None) -> list[str]:
    """Return what follows an installation; without a backup nothing was changed."""
    client = file.spot.client
    lines = [f"{name} stays where it is: {why}." for name, why in file.only_its_own().items()]
    if backup is None:
        return [*lines, "Nothing was changed."]
    return [
        *lines,
        f"{client.title} starts pegboard now. What was in {file.label} is kept as {backup}.",
        f"Next: restart {client.title}. To undo it: pegboard init --uninstall {client.name}",
    ]


def _installed_already(printer: Printer, file: ServerFile, machine: Machine) -> int:
    from pegboard.config.clients import installing

    names, used = installing.own_names(file, machine), installing.configuration_in_use(file, machine)
    beside = [other for other in file.entries if other not in names and other not in file.only_its_own()]
    more = f" Beside it stand {', '.join(beside)}: move them into that file by hand." if beside else ""
    gone = "" if used is None or used.exists() else " That file does not exist: take Pegboard out and begin anew."
    text = f"Pegboard is in {file.label} already and uses {used}.{gone}{more}"
    staying = [{"name": name, "reason": why} for name, why in file.only_its_own().items()]
    found = {
        "status": "already_installed",
        "config": str(used),
        "servers": beside,
        "confined": [],
        "keyring": [],
        "logins": [],
    }
    document = {**found, "staying": staying, "backup": None, "diff": ""}
    return _answer(printer, {**_heading(file), **document}, [text])


def _refuse_faults(file: ServerFile, machine: Machine) -> None:
    """Raise ``ConfigError`` where a server is written so that Pegboard could not start with it."""
    from pegboard.config.clients.compiled_servers import WRONG, servers_of

    wrong = {name: why for name, why in servers_of(file, machine).off.items() if why.startswith(WRONG)}
    if wrong:
        listed = "; ".join(f"{name}: {why}" for name, why in wrong.items())
        hint = "Correct it, or take it out, and try again."
        raise ConfigError(f"{file.label} is left as it is: {listed}.", code="server_invalid", hint=hint)


def _write_moved(taken: Taken, file: ServerFile, config: Path, *, force: bool) -> None:
    """Write the servers of a client into a configuration that is as private as where they were, or more so."""
    from pegboard.config.clients.generated import client_text, write

    personal = file.spot.scope == "user"
    if personal and not config.parent.exists():
        config.parent.mkdir(mode=0o700, parents=True)
    text = client_text(taken, file.label)
    if personal:  # several clients may keep theirs in one folder
        text = text.replace("/pegboard.db", f"/{config.stem}.db", 1)
    before = write(config, text, force=force, like=file.spot.path, allowed=0o600 if personal else 0o666)
    if errors := [problem for problem in _problems(config) if problem.severity == "error"]:
        if before is None:
            config.unlink()
        else:
            before.replace(config)
        listed = "; ".join(map(str, errors))
        message = f"{config} could not be used, so it and {file.label} are left as they are: {listed}"
        raise ConfigError(message, problems=errors)


def _unconfined(entry: Any) -> Any:
    return {key: value for key, value in entry.items() if key != "confine"} if is_mapping(entry) else entry


def _servers_of(config: Path, machine: Machine) -> Mapping[str, Any]:
    """Return the servers of a configuration of ours."""
    from pegboard.config.clients.server_files import read

    return read(config, machine).translated().value.get("servers", {})


def _has(config: Path, moved: Confined, machine: Machine) -> bool:
    """Return that a configuration has these servers; raises ``PegboardError`` where it has not.

    Those that were in a sandbox it has as they are confined, others confined or not.
    """
    there = _servers_of(config, machine)
    other = [
        name
        for name, entry in moved.servers.items()
        if (there.get(name) != entry if name in moved.sandboxed else _unconfined(there.get(name)) != _unconfined(entry))
    ]
    if other:
        message = f"{config} exists already and does not have {', '.join(other)} as the client has."
        hint = "Add --config PATH to write another one, or --force to replace it."
        raise PegboardError(message, code="file_exists", hint=hint)
    return True


# -- and out of it ---------------------------------------------------------------------------------


def _uninstall(printer: Printer, name: str, source: Path | None, *, dry_run: bool) -> int:
    from pegboard.config.clients import installing
    from pegboard.config.clients.removing import removal
    from pegboard.config.location import Machine

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
        edit.save(backup=False)
        if how == "restored":
            backup.unlink()
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
