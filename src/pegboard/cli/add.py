"""`pegboard add`: a server for the agents of a configuration (G12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pegboard.cli.common import Options, run_guarded, system_user
from pegboard.cli.edited_configuration import EditedConfiguration, opened_configuration, user_configuration
from pegboard.cli.exit_codes import DONE
from pegboard.cli.given_server import entry_of, require_name, runs_line, started_once, tools_of
from pegboard.cli.options import JsonOption
from pegboard.cli.person import require_operator
from pegboard.cli.plain_in_files import SecretsMove, moved_secrets
from pegboard.cli.rendering import Printer, plural
from pegboard.cli.server_starts import Start
from pegboard.cli.written_servers import confined_lines, held_servers
from pegboard.config.clients.literal_secrets import secrets_in
from pegboard.config.clients.merging import with_server
from pegboard.core.model.masking import Masker
from pegboard.mcp_extra import require

EXAMPLE = "pegboard add git -- uvx mcp-server-git"


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the server.")],
    target: Annotated[
        list[str], typer.Argument(metavar="URL|-- COMMAND", help="Its address, or its command after `--`.")
    ],
    env: Annotated[
        list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="An environment variable for it.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="An HTTP header for its address.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="Only this agent gets it. [default: every agent]")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="PATH", help="The configuration. [default: that of your clients]")
    ] = None,
    confine: Annotated[
        bool, typer.Option("--confine", help="Confine it if it is a package that is fetched at start (npx, uvx).")
    ] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="Add it without starting it first.")] = False,
    keyring: Annotated[
        bool | None,
        typer.Option("--keyring/--no-keyring", help="Keep its secrets in the keyring. [default: ask at the terminal]"),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Add a server for all of your clients."""
    path = config or user_configuration()

    async def add_to_file(printer: Printer) -> int:
        require_name(name)
        entry = entry_of(target, env or (), header or ())
        require("`pegboard add`")
        printer.masker = Masker(secrets_in({name: entry}))
        held = held_servers({name: entry}, path, (), confine=confine)
        file = opened_configuration(path)
        text = with_server(file.text, name, held.servers[name], agent=agent, file=path.name)
        file.usable(text)
        question, about = f"Add {name} to {path}?", [printer.masker.text(runs_line(entry))]
        by = await require_operator(file.tokens, "configure", question, about=about) or system_user()
        start = None if no_check else await started_once(printer, file, text, name, fails="added")
        kept = await moved_secrets(held.servers, path, keyring=keyring, ask=not as_json, stays_in="")
        try:
            final = with_server(file.text, name, kept.servers[name], agent=agent, file=path.name)
            await file.save(final, by=by, reason=f"added {name}")
        except BaseException:
            kept.undo()
            raise
        return _report_addition(printer, file, name, start, [*confined_lines(held), *kept.lines], kept)

    return run_guarded(Options(as_json=as_json), add_to_file)


def _report_addition(
    printer: Printer, file: EditedConfiguration, name: str, start: Start | None, lines: Sequence[str], kept: SecretsMove
) -> int:
    agents = file.agents_with(name)
    document: Mapping[str, Any] = {
        "name": name,
        "config": str(file.path),
        "agents": agents,
        "tools": tools_of(start),
        "needs_login": start is not None and start.wants_login,
        "keyring": list(kept.names),
    }
    if printer.as_json:
        printer.document(document)
        return DONE
    tools = "" if start is None or start.wants_login else f", with {plural(start.tools, 'tool')}"
    printer.say(f"Added {name} to {file.path}{tools}, for {', '.join(agents)}.")
    for line in lines:
        printer.say(line)
    if start is None:
        printer.say(f"{name} was not started, so it was not checked that it works.")
    elif start.wants_login:
        printer.say(f"{name} requires a login: pegboard login {name} --config {file.path}")
    return DONE
