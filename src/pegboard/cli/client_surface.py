"""`pegboard surface --client`: the list that a client gets, as it gets it, and what it sends its model of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.cli.common import Options, chosen_agent, discover, report, run
from pegboard.cli.exit_codes import DONE
from pegboard.cli.rendering import Printer, TableColumn, UnmaskedText, plural
from pegboard.config.client_files.known import CLIENTS, spots_of_client
from pegboard.config.client_files.server_files import read_client_file
from pegboard.config.clients.compiled_servers import own_argument, own_configuration
from pegboard.config.clients.installing import client_named
from pegboard.config.location import Machine
from pegboard.core.model.delivery import GATEWAY_HANDSHAKE
from pegboard.core.model.known_clients import KnownClient, ListedServer, known_client
from pegboard.core.model.naming import some_of
from pegboard.core.model.tools import counted_json
from pegboard.core.state.requirements import unknown_plugins
from pegboard.core.surface.direct_lists import direct_servers, own_server
from pegboard.errors import PegboardError

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.board import Session

COLUMNS = (TableColumn("name"), TableColumn("plugin"), TableColumn("lease"), TableColumn("tokens", "right"))
_NO_SESSION = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientList:
    """What a client gets, and what it sends of it and of the servers themselves, in tokens; None is not known."""

    tools: Sequence[Mapping[str, Any]]
    rows: Sequence[Mapping[str, Any]]
    instructions: str
    sent: int
    direct: int | None
    unknown: Sequence[str]


def show_client_surface(options: Options, name: str) -> int:
    """Show the list that a client gets of the configuration and the agent that stand in its own file."""
    try:
        client, known = client_named(name), known_client(name)
        named = options.config is not None and options.agent is not None
        found = None if named else _entry_of(name, Machine())
    except PegboardError as error:
        return report(error, Printer(as_json=options.as_json))
    if found is not None:
        config, agent = found
        options = replace(options, config=options.config or config, agent=options.agent or agent)

    async def print_surface(board: Pegboard, printer: Printer) -> int:
        session = await _session(board, options, known)
        await discover(board, printer, (await session.snapshot()).permissions)
        listed = await _list_of(board, session, known)
        if printer.as_json:
            printer.document(_json(session, known, listed))
        else:
            _print_surface(printer, session, client.title, known, listed)
        return DONE

    return run(options, print_surface)


def _entry_of(name: str, machine: Machine) -> tuple[Path, str | None] | None:
    """Return the configuration and the agent with which a client's own file starts Pegboard, if it does."""
    for spot in spots_of_client(CLIENTS[name], machine):
        if not spot.path.is_file():
            continue
        for entry in read_client_file(spot.path, machine, spot=spot).entries.values():
            if (path := own_configuration(entry, machine, spot.folder)) is not None:
                return path, own_argument(entry, "--agent") or None
    return None


async def _session(board: Pegboard, options: Options, known: KnownClient) -> Session:
    """Return the session that the client has in this folder, on a host of its kind (G1)."""
    from pegboard.board.session_info import open_sub_app
    from pegboard.gateway.protocol.board_port import Caller
    from pegboard.gateway.stdio.run import folder_digest

    agent = chosen_agent(board, options.agent)
    declared = known.declared[0] if known.declared else ""
    caller = Caller(agent=agent, folder=folder_digest(Path.cwd()), declared=declared)
    return await board.session(
        agent=agent,
        session_id=options.session if options.session != _NO_SESSION else caller.usual_session,
        principal=options.principal,
        host=replace(GATEWAY_HANDSHAKE, client=known),
        sub_app=open_sub_app(board.world, agent, options.sub_app),
    )


async def _list_of(board: Pegboard, session: Session, known: KnownClient) -> ClientList:
    from pegboard.gateway.protocol.convert import tools_of

    surface = await session.surface()
    instructions = await session.instructions()
    permissions = (await session.snapshot()).permissions
    own = own_server(tuple(out.tool for out in surface.tools), instructions)
    unknown = unknown_plugins(permissions)
    rows = [
        {
            "name": UnmaskedText(out.tool.wire),
            "plugin": UnmaskedText(out.tool.plugin),
            "lease": str(out.until),
            "tokens": board.services.prices([out.tool]),
        }
        for out in surface.tools
    ]
    return ClientList(
        tools=tools_of(surface, modern=False),
        rows=rows,
        instructions=instructions,
        sent=_tokens_of_servers(board, known, [own]),
        direct=None if unknown else _tokens_of_servers(board, known, direct_servers(permissions)),
        unknown=unknown,
    )


def _tokens_of_servers(board: Pegboard, known: KnownClient, servers: Sequence[ListedServer]) -> int:
    """Return the tokens that the client sends of some servers with each request."""
    count = board.services.counter.count
    tools, texts = known.request(servers)
    return sum(count(counted_json(tool)) for tool in tools) + sum(map(count, texts))


def _json(session: Session, known: KnownClient, listed: ClientList) -> Mapping[str, Any]:
    return {
        "client": known.name,
        "agent": session.key.agent,
        "session": session.key.session,
        "tools": UnmaskedText([dict(tool) for tool in listed.tools]),
        "instructions": UnmaskedText(listed.instructions),
        "sends": known.sends if known.defers(len(listed.tools)) else "definitions",
        "tokens": {
            "definitions": sum(row["tokens"] for row in listed.rows),
            "sent": listed.sent,
            "direct": listed.direct,
            "saved": None if listed.direct is None else listed.direct - listed.sent,
            "unknown": list(listed.unknown),
        },
    }


def _print_surface(printer: Printer, session: Session, title: str, known: KnownClient, listed: ClientList) -> None:
    printer.heading(f"{title}: agent '{session.key.agent}', session '{session.key.session}'")
    printer.table(
        COLUMNS,
        [[UnmaskedText(row["name"]), UnmaskedText(row["plugin"]), row["lease"], row["tokens"]] for row in listed.rows],
    )
    for tool in listed.tools:
        if tool["name"] in {row["name"] for row in listed.rows if row["lease"] == "always"} and tool.get("description"):
            printer.say()
            printer.heading(str(tool["name"]))
            printer.show(str(tool["description"]))
    printer.say()
    printer.heading("Instructions")
    printer.show(listed.instructions)
    printer.say(f"\n{_totals(title, known, listed)}")


def _totals(title: str, known: KnownClient, listed: ClientList) -> str:
    """Return one sentence on what the client sends of the list, and what it would send without Pegboard."""
    deferred = "" if not known.defers(len(listed.tools)) or known.keeps else ", and defers the definitions"
    message = f"{plural(len(listed.tools), 'tool')}; {title} sends {listed.sent:,} tokens of it{deferred}."
    if listed.direct is None:
        return f"{message} The saving is unknown, because the tools of {some_of(listed.unknown)} are not known yet."
    saved = listed.direct - listed.sent
    verdict = f"saved {saved:,}" if saved > 0 else f"Pegboard saves no tokens here, it costs {-saved:,} more"
    return f"{message} Without Pegboard it would send {listed.direct:,}: {verdict}."
