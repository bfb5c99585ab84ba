"""Put Pegboard into a client in place of its servers: what `pegboard init --install` does (G12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pegboard.cli.client_answers import answer, heading_of, left_as_it_is, save_client_file, staying_json
from pegboard.cli.common import system_user, warnings_to
from pegboard.cli.edited_configuration import restore_text, saved_edit, user_configuration
from pegboard.cli.plain_in_files import SecretsMove, filled_in, moved_secrets
from pegboard.cli.rendering import Printer, plural
from pegboard.cli.server_starts import StartPair, as_client_starts, compare_starts
from pegboard.cli.written_servers import confined_lines, held_servers, install_packages, may_read
from pegboard.config.acceptance import accept_text, accept_written_text, require_accepted
from pegboard.config.client_files.client import references_of
from pegboard.config.clients import installing
from pegboard.config.clients.claude_rules import claude_rules, deny_in_filters
from pegboard.config.clients.compiled_servers import WRONG, servers_of
from pegboard.config.clients.generated import ServersToTake, servers_to_take, write
from pegboard.config.clients.installing import file_before_pegboard, no_configuration
from pegboard.config.clients.literal_secrets import secrets_in
from pegboard.config.clients.merging import DEFAULT, MergedServers, merge_servers
from pegboard.config.inspection import inspect
from pegboard.config.location import Machine
from pegboard.config.saving import create_whole, read_whole
from pegboard.configuration_source import registered_plugins
from pegboard.confined_servers import ConfinedServers, confinable
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import EMPTY
from pegboard.errors import ConfigError
from pegboard.support import own_folder

if TYPE_CHECKING:
    from pegboard.cli.server_starts import Start
    from pegboard.config.client_files.client import ClientScope, McpClient
    from pegboard.config.client_files.server_files import ServerFile
    from pegboard.config.clients.claude_rules import ClaudeRule
    from pegboard.config.clients.compiled_servers import CompiledServers
    from pegboard.config.clients.file_edits import ClientFileEdit
    from pegboard.config.saving import ReadFile
    from pegboard.config.schema.configuration import Configuration

_TRIES: Final = 10
"""How often a configuration is merged again that others change meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallOptions:
    """What `init --install` was given."""

    source: Path | None = None
    config: Path | None = None
    scope: ClientScope | None = None
    force: bool = False
    confine: bool = False
    check: bool = True
    dry_run: bool = False
    keyring: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Installation:
    """One installation.

    Attributes:
        file: the client's file with the servers that it had, or has beside Pegboard.
        now: the client's file as it was read, ``data`` what was in it byte for byte, None where it is not there.
        config: our configuration.
        taken: the servers that move.
        merged: what the configuration gets for them.
        held: how they are confined.
        staying: the servers that stay with the client, each with the reason.
        rules: what the permission rules of Claude Code become.
        current: the agent of the client where Pegboard is in its file already, else None.
    """

    file: ServerFile
    now: ServerFile
    data: bytes | None = field(repr=False)
    config: Path
    taken: ServersToTake
    merged: MergedServers = field(default_factory=MergedServers)
    held: ConfinedServers = field(default_factory=ConfinedServers)
    staying: Mapping[str, str] = field(default=EMPTY)
    rules: tuple[ClaudeRule, ...] = ()
    current: str | None = None

    @property
    def shared(self) -> bool:
        """Return whether the configuration is that of the user, which clients with other servers join."""
        return self.config.absolute() == user_configuration().absolute()


async def install(printer: Printer, name: str, given: InstallOptions) -> int:
    """Put Pegboard into a client; report it, and return the exit code."""
    machine = Machine()
    client = installing.client_named(name)
    _require_scope(client, given.scope)
    own = _existing_configuration(given, machine)
    empty = None if own is None else _scope_of_existing(own, client, machine)
    now = confinable(installing.file_of(client, machine, given.source, scope=given.scope, empty=empty))
    data = _data_of(now)
    printer.masker = Masker(secrets_in(dict(now.entries)))
    again = bool(installing.own_names(now, machine))
    movable = installing.movable(now, machine)
    if not movable.entries:
        if again:
            return _installed_already(printer, now, machine)
        return await _give_existing(printer, now, own, given)
    wrong = _unusable_servers(movable, machine)
    movable = installing.without_servers(movable, wrong)
    if given.source is None and now.spot.scope == "project" and not given.dry_run:
        require_accepted(now.spot.path, exactly=True)  # its servers are started, and then count as accepted
    config = _configuration_of(now, machine, given, again=again)
    if given.config is None and now.spot.scope == "project" and config.exists() and not given.force:
        require_accepted(config)
    before = file_before_pegboard(now, machine) if again else now
    plan = _Installation(
        file=before,
        now=now,
        data=data,
        config=config,
        taken=servers_to_take(movable, beside=_is_beside(config, now)),
        staying={**now.client_only_servers(), **wrong},
        current=installing.agent_in_use(now, machine) if again else None,
    )
    return await _install_checked(printer, _with_rules(plan, machine), movable, given, machine)


def _data_of(file: ServerFile) -> bytes | None:
    """Return what is in a client's file, None where it is not there."""
    path = file.spot.path.expanduser()
    return path.read_bytes() if path.exists() else None


def _require_scope(client: McpClient, scope: ClientScope | None) -> None:
    """Raise ``UsageError`` where a client has no servers of a scope."""
    known = installing.scopes_of(client)
    if scope is not None and scope not in known:
        from pegboard.errors import UsageError

        raise UsageError(f"{client.title} has no scope '{scope}'.", hint=f"It has: {', '.join(known)}.")


def _existing_configuration(given: InstallOptions, machine: Machine) -> Path | None:
    """Return the configuration that a client without servers is given, None where there is none."""
    places = [given.config] if given.config is not None else [
        Path(installing.CONFIGURATION),
        machine.configuration / installing.CONFIGURATION,
    ]  # fmt: skip
    return next((path for path in places if path.is_file()), None)


def _scope_of_existing(own: Path, client: McpClient, machine: Machine) -> ClientScope:
    """Return into which file of a client a configuration belongs: that of a project into the project's."""
    project = own.absolute().parent == machine.folder.absolute()
    return "project" if project and "project" in installing.scopes_of(client) else "user"


def _configuration_of(file: ServerFile, machine: Machine, given: InstallOptions, *, again: bool) -> Path:
    used = installing.configuration_in_use(file, machine) if again else None
    return given.config or used or installing.home_of_configuration(file, machine)


def _is_beside(config: Path, file: ServerFile) -> bool:
    """Return whether a configuration lies in the folder of the project whose file it is for."""
    folder = file.spot.folder if file.spot.scope == "project" else None
    return folder is not None and config.absolute().parent == folder.absolute()


def _with_rules(plan: _Installation, machine: Machine) -> _Installation:
    """Return an installation with the permission rules of Claude Code: what they deny is not granted."""
    spot = plan.file.spot
    if spot.client.name != "claude-code":
        return plan
    rules = claude_rules(plan.taken.servers, machine, spot.scope, spot.folder or machine.folder)
    whole = {
        rule.server: f"{rule.text} in {rule.file} denies all of its tools"
        for rule in rules
        if rule.kind == "deny" and rule.every_tool
    }
    taken = _without_servers(plan.taken, whole)
    taken = replace(taken, filters=deny_in_filters(rules, taken.filters))
    named = tuple(rule for rule in rules if rule.server not in whole)
    return replace(plan, taken=taken, staying={**plan.staying, **whole}, rules=named)


def _without_servers(taken: ServersToTake, names: Mapping[str, str]) -> ServersToTake:
    return replace(
        taken,
        servers={name: entry for name, entry in taken.servers.items() if name not in names},
        filters={name: rule for name, rule in taken.filters.items() if name not in names},
        in_view=tuple(name for name in taken.in_view if name not in names),
    )


# -- merged and checked ----------------------------------------------------------------------------


def _text_of(config: Path, given: InstallOptions) -> str:
    """Return what is in a configuration; nothing where there is none, or it is to be replaced."""
    return read_whole(config).text if config.exists() and not given.force else ""


def _merge_into(plan: _Installation, text: str, given: InstallOptions) -> _Installation:
    """Return an installation with what a configuration with this text gets for it."""
    servers = installing.inputs_as_variables(dict(plan.taken.servers))
    held = held_servers(servers, plan.config, plan.taken.sandboxed, confine=given.confine)
    found = merge_servers(
        text,
        replace(plan.taken, servers=held.servers),
        file=plan.config.name,
        source=plan.now.label,
        own=installing.own_agent(plan.now),
        current=plan.current,
        shared=plan.shared,
        resolve=filled_in(plan.config),
    )
    return replace(plan, merged=found, held=held)


def _new_text(plan: _Installation, text: str, servers: Mapping[str, Any]) -> str:
    return plan.merged.text(text, servers, file=plan.config.name, shared=plan.shared)


async def _install_checked(
    printer: Printer, plan: _Installation, movable: ServerFile, given: InstallOptions, machine: Machine
) -> int:
    """Start the servers in both ways, then write the configuration and put Pegboard into the file; report it."""
    plan = _merge_into(plan, _text_of(plan.config, given), given)
    configuration = _usable(plan, _new_text(plan, _text_of(plan.config, given), plan.merged.added))
    _edit(plan)  # a file that cannot be rewritten is refused before anything is started
    compiled = servers_of(movable, machine)
    starts, unchecked = await _check_servers(printer, plan, compiled, configuration, given)
    faults = {start.name: start.fault for start in starts if start.fault}
    if faults:
        taken = _without_servers(plan.taken, faults)
        if not taken.servers:
            raise _none_moves(plan, starts, given)
        plan = replace(plan, taken=taken, staying={**plan.staying, **faults})
        plan = _merge_into(plan, _text_of(plan.config, given), given)
    if given.dry_run:
        done = _InstallationResult(plan=plan, edit=_edit(plan), starts=starts, unchecked=unchecked)
    else:
        plan, edit, kept, backup = await _save(printer, plan, given)
        done = _InstallationResult(plan=plan, edit=edit, starts=starts, unchecked=unchecked, kept=kept, backup=backup)
    return _report(printer, done, given, machine)


def _entry(plan: _Installation) -> dict[str, Any]:
    """Return Pegboard as a server of the client."""
    return installing.entry_for(plan.now, plan.taken.servers, plan.config, plan.merged.agent)


def _edit(plan: _Installation) -> ClientFileEdit:
    """Return the change of the client's file."""
    edit = installing.installation(plan.file, _entry(plan), set(plan.staying))
    return replace(edit, file=plan.now, data=plan.data, before=None if plan.current is None else plan.file.text)


async def _check_servers(
    printer: Printer,
    plan: _Installation,
    compiled: CompiledServers,
    configuration: Configuration,
    given: InstallOptions,
) -> tuple[tuple[Start, ...], list[str]]:
    """Start servers in both ways; return what became of each, and what is reported of those that were not started."""
    title = plan.now.spot.client.title
    specs = {
        name: spec
        for name, own in plan.merged.names.items()
        if isinstance(spec := configuration.specs.get(own), ServerSpec)
    }
    if given.dry_run or not given.check:
        listed = ", ".join(specs)
        installed = [] if given.dry_run else [*install_packages(specs[name] for name in specs)]
        unchecked = [f"None was started, so it was not checked that {listed} work."] if listed else []
        return (), [*unchecked, *installed]
    inputs = [name for name, entry in plan.taken.servers.items() if references_of(entry).inputs and name in specs]
    asked = [name for name in inputs if specs[name].unavailable]
    by_client = {**compiled.specs, **{name: specs[name] for name in inputs}}
    pairs = [
        StartPair(
            name=name,
            as_client=as_client_starts(by_client[name]) if name in by_client else compiled.off.get(name, ""),
            through=spec,
        )
        for name, spec in specs.items()
        if name not in asked
    ]
    with warnings_to(printer):
        starts = await compare_starts(pairs, configuration, plan.now.spot.folder, printer, title)
    return starts, [f"{name} was not started: it needs what only {title} asks for." for name in asked]


def _none_moves(plan: _Installation, starts: tuple[Start, ...], given: InstallOptions) -> ConfigError:
    lines = "\n".join(f"  {start.name}: {start.fault}" for start in starts if start.fault)
    message = (
        f"{plan.now.label} is left as it is, because none of its servers can be moved:\n{lines}\nNothing was changed."
    )
    hint = "Correct that and run it again, or skip this check with --no-check."
    hint += " Without --confine nothing is confined." if given.confine else ""
    return ConfigError(message, code="server_not_started", hint=hint)


def _usable(plan: _Installation, text: str) -> Configuration:
    """Return what a configuration with this text says; raises ``ConfigError`` where it has a mistake."""
    configuration, problems = inspect(plan.config, registered=registered_plugins(), text=text)
    if configuration is None:
        errors = [problem for problem in problems if problem.severity == "error"]
        message = f"{plan.config} could not be used, so it and {plan.now.label} are left as they are: "
        raise ConfigError(message + "; ".join(map(str, errors)), problems=errors)
    return configuration


def _unusable_servers(file: ServerFile, machine: Machine) -> dict[str, str]:
    """Return the servers that Pegboard could not have as they are written; raises ``ConfigError`` where all are."""
    wrong = {name: why for name, why in servers_of(file, machine).off.items() if why.startswith(WRONG)}
    if wrong and wrong.keys() == file.entries.keys():
        listed = "; ".join(f"{name}: {why}" for name, why in wrong.items())
        hint = "Correct it or remove it, and try again."
        raise ConfigError(f"{file.label} is left as it is: {listed}.", code="server_invalid", hint=hint)
    return wrong


# -- saved -----------------------------------------------------------------------------------------


class _ChangedMeanwhileError(Exception):
    """The configuration was changed while it was merged."""


async def _save(
    printer: Printer, plan: _Installation, given: InstallOptions
) -> tuple[_Installation, ClientFileEdit, SecretsMove, Path | None]:
    """Write the configuration, where it changes, and the client's file: both, or neither.

    Another installation may change the configuration meanwhile: it is merged with what is in it then.
    """
    for _ in range(_TRIES):
        with suppress(_ChangedMeanwhileError), left_as_it_is(str(plan.config), plan.now.label):
            return await _save_once(printer, plan, given)
    message = (
        f"{plan.config} was changed {_TRIES} times in the meantime, so it and {plan.now.label} are left as they are."
    )
    raise ConfigError(message, code="file_changed", hint="Try again.")


async def _save_once(
    printer: Printer, plan: _Installation, given: InstallOptions
) -> tuple[_Installation, ClientFileEdit, SecretsMove, Path | None]:
    """Do it once; raises :class:`_ChangedMeanwhileError` where the configuration was changed meanwhile."""
    config, folder = plan.config, own_folder.folder_of(plan.config)
    there = read_whole(config) if config.exists() else None
    text = "" if there is None or given.force else there.text
    plan = _merge_into(plan, text, given)
    edit = _edit(plan)
    if not plan.merged.changes:
        return plan, edit, SecretsMove(servers=plan.merged.added), save_client_file(edit, keep_in=folder)
    stays = "The copy that is kept for --uninstall still contains them in plain text."
    added, ask = plan.merged.added, not printer.as_json
    kept = await moved_secrets(added, config, keyring=given.keyring, ask=ask, stays_in=stays)
    written: str | None = None
    try:
        new = _new_text(plan, text, kept.servers)
        _usable(plan, new)
        with edit.stage_files(keep_in=folder) as put:
            written = await _write(plan, new, there, kept.servers, given)
            accept_text(config)
            with accept_written_text(edit.path, edit.text):
                backup = put()
    except BaseException:
        if written is not None:
            restore_text(config, None if there is None else there.text, written)
        kept.undo()
        own_folder.remove_unused(folder)
        raise
    return plan, edit, kept, backup


async def _write(
    plan: _Installation, text: str, there: ReadFile | None, servers: Mapping[str, Any], given: InstallOptions
) -> str:
    """Write the configuration, and return the digest of what is in it now."""
    config, personal = plan.config, plan.now.spot.scope != "project"
    if there is not None and given.force:
        write(config, text, force=True, like=plan.now.spot.path, allowed=0o600 if personal else may_read(servers))
        return read_whole(config).digest
    try:
        if there is not None:
            reason = f"installed for {plan.now.label}"
            return await saved_edit(config, text, expected=there.digest, by=system_user(), reason=reason)
        if personal and not config.parent.exists():
            config.parent.mkdir(mode=0o700, parents=True)
        mode = plan.now.spot.path.expanduser().stat().st_mode if plan.now.spot.path.exists() else 0o644
        return create_whole(config, text, mode=mode & (0o600 if personal else may_read(servers)))
    except FileExistsError:
        raise _ChangedMeanwhileError from None
    except ConfigError as error:
        if error.code == "file_changed":
            raise _ChangedMeanwhileError from None
        raise


# -- reported --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _InstallationResult:
    """What an installation came to."""

    plan: _Installation
    edit: ClientFileEdit
    starts: tuple[Start, ...] = ()
    unchecked: Sequence[str] = ()
    kept: SecretsMove = field(default_factory=SecretsMove)
    backup: Path | None = None


def _report(printer: Printer, done: _InstallationResult, given: InstallOptions, machine: Machine) -> int:
    plan, found = done.plan, done.plan.merged
    added = {name for name, own in found.names.items() if own in found.added}
    held = replace(
        plan.held,
        servers={name: entry for name, entry in plan.held.servers.items() if name in added},
        names=tuple(name for name in plan.held.names if name in added),
        sandboxed=tuple(name for name in plan.held.sandboxed if name in added),
        outside=tuple(name for name in plan.held.outside if name in added),
    )
    logins = [found.names[start.name] for start in done.starts if start.wants_login]
    diff = done.edit.diff()
    document = {
        **heading_of(plan.now),
        "scope": plan.now.spot.scope,
        "status": "would_install" if given.dry_run else "installed",
        "config": str(plan.config),
        "agent": found.agent,
        "servers": [found.names[name] for name in plan.taken.servers],
        "confined": held.done,
        "keyring": list(done.kept.names),
        "checked": [start.name for start in done.starts],
        "logins": logins,
        "staying": staying_json(plan.staying),
        "rules": [{"rule": rule.text, "file": rule.file, "text": rule.line} for rule in plan.rules],
        "backup": str(done.backup) if done.backup else None,
        "diff": diff,
    }
    lines = [diff, "", *_written_lines(plan, given), *confined_lines(held), *done.kept.lines]
    lines += [*_login_lines(logins, plan.config), *done.unchecked, *(rule.line for rule in plan.rules)]
    lines += [f"{name} stays where it is: {why.rstrip('.')}." for name, why in plan.staying.items()]
    if any(start.fault for start in done.starts):
        lines.append(f"Run it again once that is corrected: pegboard init --install {plan.now.spot.client.name}")
    return answer(printer, document, [*lines, *_other_scopes(plan, machine), *_lines_after_install(done)])


def _written_lines(plan: _Installation, given: InstallOptions) -> list[str]:
    found, config = plan.merged, plan.config
    listed = ", ".join(found.names[name] for name in plan.taken.servers)
    count = plural(len(plan.taken.servers), "server")
    agent = f" Its agent is '{found.agent}'." if found.agent != DEFAULT else ""
    if not found.changes:
        return [f"Kept {config} with {count}: {listed}.{agent}"]
    if found.whole is not None:
        return [f"{'Would write' if given.dry_run else 'Wrote'} {config} with {count}: {listed}.{agent}"]
    verb = "Would add" if given.dry_run else "Added"
    there = [own for own in found.names.values() if own not in found.added]
    lines = [f"{verb} to {config}: {', '.join(found.added) or f'the agent {found.agent}'}.{agent}"]
    return [*lines, *([f"It had already: {', '.join(there)}."] if there else [])]


def _login_lines(names: Sequence[str], config: Path) -> list[str]:
    """Return how a person logs in to the servers that want it; a call that needs a login asks for it, too."""
    option = "" if config.absolute() == Path(installing.CONFIGURATION).absolute() else f" --config {config}"
    return [f"{name} requires a login: pegboard login {name}{option}" for name in names]


def _other_scopes(plan: _Installation, machine: Machine) -> list[str]:
    """Return what is reported of servers that the client has in other scopes: they are left alone."""
    client, lines = plan.now.spot.client, list[str]()
    if len(installing.scopes_of(client)) < 2 or plan.current is not None:
        return []
    for file in installing.files_of(client, machine):
        if file.spot.scope != plan.now.spot.scope and (left := installing.movable(file, machine).entries):
            option = f"pegboard init --install {client.name} --scope {file.spot.scope}"
            lines.append(f"Left alone in {file.label} ({file.spot.scope}): {', '.join(left)}. To move them: {option}")
    return lines


def _lines_after_install(done: _InstallationResult) -> list[str]:
    """Return what follows an installation; without a backup nothing was changed."""
    file, backup = done.plan.now, done.backup
    client = file.spot.client
    if backup is None:
        return ["Nothing was changed."]
    needed = installing.needed_by_others(file, _entry(done.plan))
    return [
        *([needed] if needed else []),
        f"{client.title} starts pegboard now. What was in {file.label} is kept as {backup}.",
        f"Next: restart {client.title}. To undo it: pegboard init --uninstall {client.name}",
    ]


# -- without servers to move -----------------------------------------------------------------------


async def _give_existing(printer: Printer, file: ServerFile, own: Path | None, given: InstallOptions) -> int:
    """Give a client that has no server to move the configuration that is there."""
    if own is None:
        staying = " ".join(f"{name} stays: {why}." for name, why in file.client_only_servers().items())
        message = f"{file.label} has no server that Pegboard could start, so it was not changed."
        raise ConfigError(message, code="no_servers", hint=f"{staying} {no_configuration(file.spot.client)}".strip())
    if given.config is None:
        require_accepted(own)
    plan = _Installation(
        file=file,
        now=file,
        data=_data_of(file),
        config=own,
        taken=ServersToTake(servers={}),
        staying=dict(file.client_only_servers()),
    )
    _usable(plan, read_whole(own).text)
    edit, backup = _edit(plan), None
    if not given.dry_run:
        backup = save_client_file(edit, keep_in=own_folder.folder_of(own))
    done = _InstallationResult(plan=plan, edit=edit, backup=backup)
    return _report(printer, done, given, Machine())


def _installed_already(printer: Printer, file: ServerFile, machine: Machine) -> int:
    used = installing.configuration_in_use(file, machine)
    gone = (
        ""
        if used is None or used.exists()
        else " That file does not exist: remove Pegboard with --uninstall and start again."
    )
    text = f"Pegboard is already in {file.label} and uses {used}.{gone}"
    document = {
        **heading_of(file),
        "scope": file.spot.scope,
        "status": "already_installed",
        "config": str(used),
        "agent": installing.agent_in_use(file, machine),
        **{part: [] for part in ("servers", "confined", "keyring", "checked", "logins")},
        "staying": staying_json(file.client_only_servers()),
        "rules": [],
        "backup": None,
        "diff": "",
    }
    return answer(printer, document, [text])
