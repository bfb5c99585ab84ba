"""`pegboard measure`: what any MCP client sends its model of its servers today, and with Pegboard in front of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pegboard.assembly import trial
from pegboard.cli.common import Options, run_guarded, warnings_to
from pegboard.cli.exit_codes import DONE, FAILED, UNAVAILABLE
from pegboard.cli.measured import ClientMeasurement, ServerCost, ServersAsListed, show
from pegboard.cli.options import JsonOption
from pegboard.cli.rendering import Printer, plural
from pegboard.config.acceptance import require_accepted
from pegboard.config.client_files.known import CLIENTS, PEGBOARD, every_spot
from pegboard.config.client_files.server_files import read_client_file, read_standard_input
from pegboard.config.clients.compiled_servers import own_configuration, servers_of
from pegboard.config.clients.installing import client_named
from pegboard.config.location import Machine
from pegboard.core.access.extensions import not_passed, not_passed_text
from pegboard.core.model.delivery import GATEWAY
from pegboard.core.model.known_clients import ANY_CLIENT, ListedServer, known_client
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import counted_json
from pegboard.errors import ConfigError, UsageError
from pegboard.mcp_extra import require
from pegboard.stores.sql import MemoryStore

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.config.client_files.server_files import ServerFile
    from pegboard.config.clients.compiled_servers import CompiledServers
    from pegboard.sources.mcp import McpSource

EXAMPLE = "pegboard measure ~/.cursor/mcp.json"
WINDOW: Final = 200_000
PATIENCE: Final = 200.0
"""How long a server is waited for that may take its own time to start, in seconds: it may be installed first."""
SPAWNS: Final = 4
EVERY_CLIENT: Final = "all"


def measure(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A client's configuration; - for standard input. [default: the first found, here, then in your home]",
        ),
    ] = None,
    client: Annotated[
        str | None,
        typer.Option("--client", metavar="NAME", help="Of which client, or all. [default: whose file it is]"),
    ] = None,
    window: Annotated[int, typer.Option("--window", metavar="TOKENS", help="The model's context window.")] = WINDOW,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", help="How long a start may take. [default: each server's own]"),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", metavar="TOKENS", min=0, help="Exit with 1 where more is sent with every request."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Measure what MCP servers cost in every request today."""

    async def measure_file(printer: Printer) -> int:
        if window < 1 or (timeout is not None and not timeout > 0):
            raise UsageError("--window and --timeout must be more than 0.")
        require("`pegboard measure`")
        if client not in (None, EVERY_CLIENT):
            client_named(client)
        machine = Machine()
        chosen, others = _find_file(machine) if file is None else (_read_named_file(file, machine), [])
        _require_accepted(chosen, machine, named=file is not None)
        servers = servers_of(chosen, machine)
        printer.masker = masker = Masker(servers.secrets)
        if not servers.specs and not servers.off:
            raise _no_servers_error(chosen)
        with warnings_to(printer):
            async with _open_bench(servers, masker, timeout) as bench:
                rows = await _rows(bench, servers, printer)
                listed = await _list_servers(bench.board, servers)
                found = _measured_for_client(rows, listed, client or chosen.spot.client.name)
                show(printer, chosen, found, listed, window)
        for other in others:
            printer.note(f"pegboard: also found: {other.spot.client.title}, {other.label}")
        for name in chosen.elsewhere:
            printer.note(f"pegboard: not counted: the servers of the project {name}; measure them in that folder.")
        if not any(row.status == "ok" for row in rows):
            return UNAVAILABLE
        return _check_budget(_tokens_per_request(found, chosen, machine), budget, printer)

    return run_guarded(Options(as_json=as_json), measure_file)


def _tokens_per_request(measured: ClientMeasurement, file: ServerFile, machine: Machine) -> int:
    """Return the tokens of every request as the file is now: through Pegboard where it is Pegboard's, or names it."""
    entries, folder = file.entries.values(), file.spot.folder
    through = file.spot.client == PEGBOARD or any(own_configuration(one, machine, folder) for one in entries)
    return measured.cost.instead.sent if through else measured.cost.direct.sent


def _check_budget(sent: int, budget: int | None, printer: Printer) -> int:
    """Return the exit code, and report where more is sent than the budget allows."""
    if budget is None or sent <= budget:
        return DONE
    printer.note(f"pegboard: {sent:,} tokens are sent with every request, more than the {budget:,} of --budget.")
    return FAILED


def _read_named_file(path: Path, machine: Machine) -> ServerFile:
    return read_standard_input(machine) if str(path) == "-" else read_client_file(path, machine)


def _require_accepted(chosen: ServerFile, machine: Machine, *, named: bool) -> None:
    """Raise ``NotAcceptedError`` where what would be started was found in this folder and is not accepted (P11)."""
    if not named and chosen.spot.scope == "project":
        require_accepted(chosen.spot.path, exactly=True)
    folder = chosen.spot.folder
    for behind in (own_configuration(entry, machine, folder) for entry in chosen.entries.values()):
        if behind is not None and behind.parent == machine.folder and behind.is_file():
            require_accepted(behind, exactly=True)


def _no_servers_error(file: ServerFile) -> ConfigError:
    root = ".".join(file.root)
    elsewhere = f" Projects in it that have some: {', '.join(file.elsewhere)}." if file.elsewhere else ""
    hint = f'{file.spot.client.title} keeps them under "{root}".{elsewhere}'
    return ConfigError(f"{file.label}: there are no MCP servers in it.", code="no_servers", hint=hint)


def _find_file(machine: Machine) -> tuple[ServerFile, list[ServerFile]]:
    """Return the first configuration that has servers, and the others; raises ``ConfigError``."""
    found: list[ServerFile] = []
    broken: list[ConfigError] = []
    for spot in every_spot(machine):
        if not spot.path.is_file():
            continue
        try:
            file = read_client_file(spot.path, machine, spot=spot)
        except ConfigError as error:
            broken.append(error)
            continue
        if file.entries:
            found.append(file)
    if not found:
        if broken:
            raise broken[0]
        hint = "Name the file: pegboard measure FILE."
        raise ConfigError("No MCP client's configuration with servers was found.", code="no_servers", hint=hint)
    return found[0], found[1:]


# -- measuring -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBoard:
    """A board in front of the servers, their source, and those that are being stopped."""

    board: Board
    upstreams: McpSource
    stopping: list[asyncio.Task[None]] = field(default_factory=list["asyncio.Task[None]"])


@asynccontextmanager
async def _open_bench(servers: CompiledServers, masker: Masker, timeout: float | None) -> AsyncGenerator[MeasuredBoard]:
    """Open a board that keeps everything in memory; leave no server behind."""
    from pegboard.sources.mcp import McpSource

    upstreams = McpSource(
        mask=masker.text,
        learn=masker.learn,
        spawns=SPAWNS,
        start_timeout=timeout,
        patience=PATIENCE,
        asks=False,
        store=MemoryStore(),  # with one it is known what wants a login
    )
    board = trial((upstreams,), masker)
    bench = MeasuredBoard(board=board, upstreams=upstreams)
    specs = {
        name: replace(spec, timeout=min(spec.timeout, spec.timeout if timeout is None else timeout))
        for name, spec in servers.specs.items()
    }
    try:
        await board.adopt(servers.world(), specs, masker=masker)
        yield bench
    finally:
        await asyncio.gather(*bench.stopping)
        await board.aclose()


async def _rows(bench: MeasuredBoard, servers: CompiledServers, printer: Printer) -> list[ServerCost]:
    """Start every server, stop each once it has answered, and return what each sends; those that are off last."""
    board = bench.board
    waiting, total = dict(board.services.loader.specs), len(servers.specs)

    async def measure_server(name: str) -> ServerCost:
        await board.ready(name)
        del waiting[name]
        pending = [spec for spec in waiting.values() if isinstance(spec, ServerSpec)]
        bench.stopping.append(asyncio.create_task(bench.upstreams.retain(pending)))
        await counting
        row = _row(board, servers, name)
        message = plural(row.tools, "tool") if row.status == "ok" else "failed"
        printer.note(f"pegboard: {total - len(waiting)} of {total} servers asked; {name}: {message}")
        return row

    if total:
        printer.note(f"pegboard: starting {plural(total, 'server')}: {', '.join(servers.specs)}")
    # The vocabulary takes as long to read as a server to start.
    counting = asyncio.create_task(asyncio.to_thread(board.services.counter.count, ""))
    started = await asyncio.gather(*(measure_server(name) for name in servers.specs))
    return [*started, *(ServerCost(name=name, status="off", message=f"{why}.") for name, why in servers.off.items())]


def _row(board: Board, servers: CompiledServers, name: str) -> ServerCost:
    plugin = board.world.catalog.plugins[name]
    if fault := plugin.variant("").unavailable:
        return ServerCost(name=name, status="failed", message=fault)
    count = board.services.counter.count
    shown = [tool for tool in plugin.tools if servers.lets_through(name, tool.name)]
    notes: list[str] = []
    if hidden := len(plugin.tools) - len(shown):
        notes.append(f"hidden by the client: {plural(hidden, 'tool')}")
    if lost := not_passed(plugin.declares):
        notes.append(not_passed_text(lost))
    if guessed := servers.guessed.get(name):
        notes.append(f"measured with a placeholder for {', '.join(guessed)}")
    return ServerCost(
        name=name,
        tools=len(shown),
        tokens=sum(count(counted_json(replace(tool, wire=tool.name))) for tool in shown),
        message=f"{'; '.join(notes)}." if notes else "",
    )


async def _list_servers(board: Board, servers: CompiledServers) -> ServersAsListed:
    """Return the servers that have answered, and what a gateway in front of these lists."""
    session = await board.session(session_id="measure", host=GATEWAY)
    surface = await session.surface(loaded=False)
    instead = ListedServer(
        name="pegboard",
        tools=[out.tool for out in surface.tools],
        instructions=await session.instructions(),
        in_view=True,
    )
    names = [name for name in servers.specs if not board.world.catalog.plugins[name].variant("").unavailable]
    return ServersAsListed(
        servers=[_some_paths(board, servers, name) for name in names],
        instead=instead,
        count=board.services.counter.count,
    )


def _some_paths(board: Board, servers: CompiledServers, name: str) -> ListedServer:
    plugin = board.world.catalog.plugins[name]
    shown = [replace(tool, wire=tool.name) for tool in plugin.tools if servers.lets_through(name, tool.name)]
    return ListedServer(name=name, tools=shown, instructions=plugin.instructions, in_view=name in servers.in_view)


def _measured_for_client(rows: Sequence[ServerCost], listed: ServersAsListed, client: str) -> ClientMeasurement:
    """Return what each server costs in a client, and what all of them do; for all clients as in one not known."""
    known = known_client(client)
    own = {server.name: server for server in listed.servers}
    # The number of all tools decides whether a client defers: each server counts as it does among the others.
    alone = replace(known, from_tools=0) if known.defers(sum(len(one.tools) for one in own.values())) else ANY_CLIENT
    costed = [replace(row, sent=listed.amount(alone, [own[row.name]]).sent) if row.name in own else row for row in rows]
    return ClientMeasurement(client=client, rows=costed, cost=listed.cost(known), all_clients=client not in CLIENTS)
