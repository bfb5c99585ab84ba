"""`pegboard measure`: what the servers of any MCP client cost with every request today."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pegboard.assembly import trial
from pegboard.cli.common import DONE, REFUSED, Options, guarded, warnings_to
from pegboard.cli.options import JsonOption
from pegboard.cli.plain_in_files import json_of, lines_of
from pegboard.cli.rendering import Printer, TableColumn, plural
from pegboard.config.acceptance import require_accepted
from pegboard.config.clients.compiled_servers import own_configuration, servers_of
from pegboard.config.clients.known import every_spot
from pegboard.config.clients.server_files import read, read_standard_input
from pegboard.config.location import Machine
from pegboard.core.model.delivery import GATEWAY
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import serialised
from pegboard.errors import ConfigError, UsageError
from pegboard.mcp_extra import require
from pegboard.stores.sql import MemoryStore

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.config.clients.compiled_servers import CompiledServers
    from pegboard.config.clients.server_files import ServerFile
    from pegboard.sources.mcp import McpSource

EXAMPLE = "pegboard measure ~/.cursor/mcp.json"
WINDOW: Final = 200_000
TIMEOUT: Final = 30.0
"""How long a server may take to start, and then to list its tools, in seconds."""
SPAWNS: Final = 4
COLUMNS = (
    TableColumn("server"),
    TableColumn("tools", "right"),
    TableColumn("tokens", "right"),
    TableColumn("share", "right"),
    TableColumn("state", flexible=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCost:
    """What one server puts into every request; ``status`` is ok, failed or off."""

    name: str
    tools: int = 0
    tokens: int = 0
    status: str = "ok"
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """How many tools, and tokens of their schemas, go into every request."""

    tools: int
    tokens: int


def measure(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="A client's configuration; - for standard input. [default: the first found, here, then in your home]",
        ),
    ] = None,
    window: Annotated[int, typer.Option("--window", metavar="TOKENS", help="The model's context window.")] = WINDOW,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="How long a server may take to start.")
    ] = TIMEOUT,
    as_json: JsonOption = False,
) -> int:
    """Measure what MCP servers cost in every request today.

    It starts them, counts the tokens of their tools and shows what Pegboard would send instead.
    Nothing is written and nothing is changed.
    """

    async def measured(printer: Printer) -> int:
        if window < 1 or not timeout > 0:
            raise UsageError("--window and --timeout must be more than 0.")
        require("`pegboard measure`")
        machine = Machine()
        chosen, others = _found(machine) if file is None else (_named(file, machine), [])
        _require_accepted(chosen, machine, named=file is not None)
        servers = servers_of(chosen, machine)
        printer.masker = masker = Masker(servers.secrets)
        if not servers.specs and not servers.off:
            raise _nothing(chosen)
        with warnings_to(printer):
            async with _opened(servers, masker, timeout) as bench:
                rows = await _rows(bench, servers, printer)
                instead = await _instead(bench.board)
                _show(printer, chosen, rows, instead, window=window)
        for other in others:
            printer.note(f"pegboard: also found: {other.spot.client.title}, {other.label}")
        for name in chosen.elsewhere:
            printer.note(f"pegboard: not counted: the servers of the project {name}; measure them in that folder.")
        return DONE if any(row.status == "ok" for row in rows) else REFUSED

    return guarded(Options(as_json=as_json), measured)


def _named(path: Path, machine: Machine) -> ServerFile:
    return read_standard_input(machine) if str(path) == "-" else read(path, machine)


def _require_accepted(chosen: ServerFile, machine: Machine, *, named: bool) -> None:
    """Raise ``NotAcceptedError`` where what would be started was found in this folder and is not accepted (P11)."""
    if not named and chosen.spot.scope == "project":
        require_accepted(chosen.spot.path, exactly=True)
    for behind in (own_configuration(entry, machine) for entry in chosen.entries.values()):
        if behind is not None and behind.parent == machine.folder and behind.is_file():
            require_accepted(behind, exactly=True)


def _nothing(file: ServerFile) -> ConfigError:
    root = ".".join(file.root)
    elsewhere = f" Projects in it that have some: {', '.join(file.elsewhere)}." if file.elsewhere else ""
    hint = f'{file.spot.client.title} keeps them under "{root}".{elsewhere}'
    return ConfigError(f"{file.label}: there are no MCP servers in it.", code="no_servers", hint=hint)


def _found(machine: Machine) -> tuple[ServerFile, list[ServerFile]]:
    """Return the first configuration that has servers, and the others; raises ``ConfigError``."""
    found: list[ServerFile] = []
    broken: list[ConfigError] = []
    for spot in every_spot(machine):
        if not spot.path.is_file():
            continue
        try:
            file = read(spot.path, machine, spot=spot)
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
class Bench:
    """A board in front of the servers, their source, and those that are being stopped."""

    board: Board
    upstreams: McpSource
    stopping: list[asyncio.Task[None]] = field(default_factory=list["asyncio.Task[None]"])


@asynccontextmanager
async def _opened(servers: CompiledServers, masker: Masker, timeout: float) -> AsyncGenerator[Bench]:
    """Open a board that keeps everything in memory; leave no server behind."""
    from pegboard.sources.mcp import McpSource

    upstreams = McpSource(
        mask=masker.text,
        learn=masker.learn,
        spawns=SPAWNS,
        start_timeout=timeout,
        asks=False,
        store=MemoryStore(),  # with one it is known what wants a login
    )
    board = trial((upstreams,), masker)
    bench = Bench(board=board, upstreams=upstreams)
    specs = {name: replace(spec, timeout=min(spec.timeout, timeout)) for name, spec in servers.specs.items()}
    try:
        await board.adopt(servers.world(), specs, masker=masker)
        yield bench
    finally:
        await asyncio.gather(*bench.stopping)
        await board.aclose()


async def _rows(bench: Bench, servers: CompiledServers, printer: Printer) -> list[ServerCost]:
    """Start every server, stop each once it has answered, and return what each sends; those that are off last."""
    board = bench.board
    waiting, total = dict(board.services.loader.specs), len(servers.specs)

    async def one(name: str) -> ServerCost:
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
    started = await asyncio.gather(*(one(name) for name in servers.specs))
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
    if guessed := servers.guessed.get(name):
        notes.append(f"measured with a placeholder for {', '.join(guessed)}")
    return ServerCost(
        name=name,
        tools=len(shown),
        tokens=sum(count(serialised(replace(tool, wire=tool.name))) for tool in shown),
        message=f"{'; '.join(notes)}." if notes else "",
    )


async def _instead(board: Board) -> Amount:
    """Return what a gateway in front of these servers lists, its instructions included."""
    session = await board.session(session_id="measure", host=GATEWAY)
    surface = await session.surface(loaded=False)
    tools = [out.tool for out in surface.tools]
    text = board.services.counter.count(await session.instructions())
    return Amount(tools=len(tools), tokens=board.services.prices(tools) + text)


# -- showing ---------------------------------------------------------------------------------------


def _show(printer: Printer, file: ServerFile, rows: Sequence[ServerCost], instead: Amount, *, window: int) -> None:
    direct = Amount(tools=sum(row.tools for row in rows), tokens=sum(row.tokens for row in rows))
    saved = direct.tokens - instead.tokens
    failed = [row for row in rows if row.status == "failed"]
    if printer.as_json:
        printer.document(
            {
                "file": file.label,
                "client": file.spot.client.name,
                "window": window,
                "servers": [_row_json(row, window) for row in rows],
                "direct": _amount_json(direct, window),
                "pegboard": _amount_json(instead, window),
                "saved": None if failed else saved,
                "plain_secrets": json_of(file),
            }
        )
        return
    printer.heading(f"{file.spot.client.title}: {file.label}")
    cells = [_cells(row, window) for row in rows]
    sums = (("total", direct, "sent with every request"), ("with Pegboard", instead, "instead"))
    total, front = (
        (name, str(amount.tools), f"{amount.tokens:,}", _percent(amount.tokens, window), message)
        for name, amount, message in sums
    )
    printer.table(COLUMNS, [*cells, ("", "", "", "", ""), total, front])
    printer.say()
    printer.say(_verdict(direct, saved, window))
    if failed:
        printer.say(f"{plural(len(failed), 'server')} could not be measured, and count in no figure:")
        for row in failed:
            printer.say(f"  {row.name}: {row.message}")
    for line in lines_of(file):
        printer.say(line)


def _verdict(direct: Amount, saved: int, window: int) -> str:
    if not direct.tools:
        return "There is nothing to save: no tools could be counted."
    if saved <= 0:
        return "These servers are small: Pegboard would save no tokens here."
    rate = f"{saved / direct.tokens:.0%}"
    return (
        f"Pegboard would save {saved:,} tokens of every request, {rate} of what the tools take "
        f"({_percent(saved, window)} of a window of {window:,}), with every tool still in reach."
    )


def _cells(row: ServerCost, window: int) -> tuple[str, ...]:
    state = f"{row.status}: {row.message}" if row.message and row.status != "failed" else row.status
    if row.status != "ok":
        return row.name, "-", "-", "-", state
    return row.name, str(row.tools), f"{row.tokens:,}", _percent(row.tokens, window), state


def _percent(tokens: int, window: int) -> str:
    return f"{tokens / window:.1%}"


def _row_json(row: ServerCost, window: int) -> Mapping[str, Any]:
    return {
        "name": row.name,
        "tools": row.tools,
        "tokens": row.tokens,
        "share": _share(row.tokens, window),
        "status": row.status,
        "message": row.message,
    }


def _amount_json(amount: Amount, window: int) -> Mapping[str, Any]:
    return {"tools": amount.tools, "tokens": amount.tokens, "share": _share(amount.tokens, window)}


def _share(tokens: int, window: int) -> float:
    """Return the part of the window, from 0."""
    return round(tokens / window, 4)
