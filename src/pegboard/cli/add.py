"""`pegboard add`: a server for the agents of a configuration (G12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pegboard.cli.common import DONE, Options, guarded, system_user, warnings_to
from pegboard.cli.edited_configuration import EditedConfiguration, opened_configuration, user_configuration
from pegboard.cli.options import JsonOption
from pegboard.cli.person import require_operator
from pegboard.cli.plain_in_files import Moved, moved_secrets
from pegboard.cli.rendering import Printer, plural
from pegboard.cli.server_starts import Start, StartPair, compare_starts
from pegboard.cli.written_servers import confined_lines, held_servers
from pegboard.config.clients.literal_secrets import secrets_in
from pegboard.config.clients.merging import with_server
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ConfigError, UsageError
from pegboard.mcp_extra import require

EXAMPLE = "pegboard add git -- uvx mcp-server-git"
_WEB: Final = ("http://", "https://")


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the server.")],
    target: Annotated[
        list[str], typer.Argument(metavar="URL | -- COMMAND…", help="Its address, or what starts it, behind `--`.")
    ],
    env: Annotated[list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="A variable of its.")] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="A header of its address.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="Only this agent gets it. [default: every agent]")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="PATH", help="The configuration. [default: that of your clients]")
    ] = None,
    confine: Annotated[bool, typer.Option("--confine", help="Confine it, where it is fetched when it starts.")] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="Add it without starting it first.")] = False,
    keyring: Annotated[
        bool | None,
        typer.Option("--keyring/--no-keyring", help="Keep its secrets in the keyring. [default: ask at the terminal]"),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Add a server for all of your clients.

    It is started once and asked for its tools. Adding one is a person's to decide: you are asked at the terminal.
    """
    path = config or user_configuration()

    async def added(printer: Printer) -> int:
        entry = _entry(target, env or (), header or ())
        require("`pegboard add`")
        printer.masker = Masker(secrets_in({name: entry}))
        held = held_servers({name: entry}, path, (), confine=confine)
        file = opened_configuration(path)
        text = with_server(file.text, name, held.servers[name], agent=agent, file=path.name)
        file.usable(text)
        start = None if no_check else await _started(printer, file, text, name)
        about = [f"It runs: {' '.join(target)}" if "command" in entry else f"It is at {target[0]}"]
        question = f"Add {name} to {path}?"
        by = await require_operator(file.tokens, "configure", question, about=about) or system_user()
        kept = await moved_secrets(held.servers, path, keyring=keyring, ask=not as_json, stays_in="")
        try:
            final = with_server(file.text, name, kept.servers[name], agent=agent, file=path.name)
            await file.save(final, by=by, reason=f"added {name}")
        except BaseException:
            kept.undo()
            raise
        return _reported(printer, file, name, start, [*confined_lines(held), *kept.lines], kept)

    return guarded(Options(as_json=as_json), added)


def _entry(target: Sequence[str], env: Sequence[str], headers: Sequence[str]) -> dict[str, Any]:
    """Return the server that the arguments describe; raises ``UsageError`` where they describe none."""
    if len(target) == 1 and target[0].startswith(_WEB):
        if env:
            raise UsageError("--env is for a command; an address has --header.")
        pairs = dict(_pair(text, ":", "--header 'NAME: VALUE'") for text in headers)
        return {"url": target[0], **({"headers": pairs} if pairs else {})}
    if headers:
        raise UsageError("--header is for an address; a command has --env.")
    command, *args = target
    pairs = dict(_pair(text, "=", "--env NAME=VALUE") for text in env)
    return {"command": command, **({"args": args} if args else {}), **({"env": pairs} if pairs else {})}


def _pair(text: str, sign: str, form: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise UsageError(f"Write {form}.")
    return name.strip(), value.strip() if sign == ":" else value


async def _started(printer: Printer, file: EditedConfiguration, text: str, name: str) -> Start:
    """Start the server once; raises ``ConfigError`` where it does not come up."""
    configuration = file.usable(text)
    spec = configuration.specs[name]
    assert isinstance(spec, ServerSpec)
    with warnings_to(printer):
        pair = StartPair(name=name, as_client=None, through=spec)
        (start,) = await compare_starts([pair], configuration, None, printer, "")
    if start.fault:
        raise ConfigError(
            f"{name} is not added, since it does not come up: {start.fault}",
            code="server_not_started",
            hint="Correct that, and try again; --no-check does without this check.",
        )
    return start


def _reported(
    printer: Printer, file: EditedConfiguration, name: str, start: Start | None, lines: Sequence[str], kept: Moved
) -> int:
    agents = file.agents_with(name)
    document: Mapping[str, Any] = {
        "name": name,
        "config": str(file.path),
        "agents": agents,
        "tools": None if start is None or start.wants_login else start.tools,
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
        printer.say(f"Not checked, since it was not started: whether {name} comes up.")
    elif start.wants_login:
        printer.say(f"{name} wants a login: pegboard login {name} --config {file.path}")
    return DONE
