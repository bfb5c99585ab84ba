"""`pegboard update`: change a server of a configuration (G12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pegboard.cli.common import Options, run_guarded, system_user
from pegboard.cli.edited_configuration import EditedConfiguration, opened_configuration, user_configuration
from pegboard.cli.exit_codes import DONE
from pegboard.cli.given_server import changed_entry, runs_line, started_once, tools_of
from pegboard.cli.options import JsonOption
from pegboard.cli.person import require_operator
from pegboard.cli.plain_in_files import SecretsMove, moved_secrets
from pegboard.cli.rendering import Printer, plural
from pegboard.cli.server_starts import Start
from pegboard.config.clients.literal_secrets import secrets_in
from pegboard.config.documents.value_edits import with_value
from pegboard.config.schema.fetched import is_fetched
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.mcp_extra import require
from pegboard.sources.confinement import found_program

EXAMPLE = "pegboard update git -- uvx mcp-server-git==2026.10.1"


def update(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the server.")],
    target: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL | -- COMMAND…", help="Its new address, or its command after `--`."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="An environment variable for it; NAME= removes it."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="'NAME: VALUE'", help="An HTTP header for its address; 'NAME:' removes it."),
    ] = None,
    description: Annotated[
        str | None, typer.Option("--description", metavar="TEXT", help="What it is for; an empty text removes it.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="PATH", help="The configuration. [default: that of your clients]")
    ] = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Change it without starting it first.")] = False,
    keyring: Annotated[
        bool | None,
        typer.Option("--keyring/--no-keyring", help="Keep its secrets in the keyring. [default: ask at the terminal]"),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Change a server of all of your clients."""
    path = config or user_configuration()

    async def update_file(printer: Printer) -> int:
        file = opened_configuration(path)
        old = file.server(name)
        says = bool(target or env or header) or description is not None
        newest = not says and _is_confined_package(old)
        entry = old if newest else changed_entry(old, target or (), env or (), header or (), description)
        require("`pegboard update`")
        printer.masker = Masker(secrets_in({name: old}) | secrets_in({name: entry}))
        text = with_value(file.text, ("servers", name), entry, file=path.name)
        file.usable(text)
        start, by = None, system_user()
        if newest or any(old.get(key) != entry.get(key) for key in {*old, *entry} - {"description"}):
            question = f"Install the newest version of {name}?" if newest else f"Change {name} in {path}?"
            about = [printer.masker.text(runs_line(entry))]
            by = await require_operator(file.tokens, "configure", question, about=about) or by
            start = None if no_check and not newest else await started_once(printer, file, text, name, fails="changed")
        kept = await moved_secrets({name: entry}, path, keyring=keyring, ask=not as_json, stays_in="")
        changed = kept.servers[name] != old
        if changed:
            try:
                final = with_value(file.text, ("servers", name), kept.servers[name], file=path.name)
                await file.save(final, by=by, reason=f"changed {name}")
            except BaseException:
                kept.undo()
                raise
        return _report_update(printer, file, name, start, kept, changed=changed)

    return run_guarded(Options(as_json=as_json), update_file)


def _is_confined_package(entry: Mapping[str, Any]) -> bool:
    """Return whether a server is confined, and a package of a runner: which version of it runs is decided here."""
    return bool(entry.get("confine")) and is_fetched(entry)


def _version(file: EditedConfiguration, name: str) -> str:
    """Return which version of the package of a confined server is installed, or nothing."""
    spec = file.usable(file.text).specs.get(name)
    if not isinstance(spec, ServerSpec) or spec.confine is None:
        return ""
    found = found_program(spec.command or "", spec.args, scripts=spec.confine.scripts)
    return "" if found is None else found.version


def _report_update(
    printer: Printer, file: EditedConfiguration, name: str, start: Start | None, kept: SecretsMove, *, changed: bool
) -> int:
    agents: Sequence[str] = file.agents_with(name)
    version = _version(file, name)
    document: Mapping[str, Any] = {
        "name": name,
        "config": str(file.path),
        "changed": changed,
        "version": version,
        "agents": agents,
        "tools": tools_of(start),
        "needs_login": start is not None and start.wants_login,
        "keyring": list(kept.names),
    }
    if printer.as_json:
        printer.document(document)
        return DONE
    tools = tools_of(start)
    has = "" if tools is None else f", which has {plural(tools, 'tool')}"
    printer.say(f"{'Changed' if changed else 'Left as it is:'} {name} in {file.path}{has}.")
    if version:
        printer.say(f"Its package is installed in version {version}.")
    for line in kept.lines:
        printer.say(line)
    if start is not None and start.wants_login:
        printer.say(f"{name} requires a login: pegboard login {name} --config {file.path}")
    return DONE
