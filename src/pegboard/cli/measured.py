"""What `pegboard measure` has measured, for people and as JSON: what clients send today, and with Pegboard (F4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pegboard.cli.plain_in_files import json_of, lines_of
from pegboard.cli.rendering import Printer, TableColumn, plural
from pegboard.config.client_files.known import CLIENTS
from pegboard.core.model.known_clients import KNOWN_CLIENTS, KnownClient, ListedServer, Sends
from pegboard.core.model.tools import counted_json

if TYPE_CHECKING:
    from pegboard.config.client_files.server_files import ServerFile

COLUMNS = (
    TableColumn("server"),
    TableColumn("tools", "right"),
    TableColumn("definitions", "right"),
    TableColumn("sent", "right"),
    TableColumn("share", "right"),
    TableColumn("state", flexible=True),
)
CLIENT_COLUMNS = (
    TableColumn("client"),
    TableColumn("sends"),
    TableColumn("today", "right"),
    TableColumn("with Pegboard", "right"),
    TableColumn("saved", "right"),
)
_SENDS: Final[Mapping[Sends, str]] = {
    "definitions": "every definition",
    "names": "the names of tools",
    "servers": "a line on each server",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCost:
    """What the definitions of a server's tools take, and what of it is sent; ``status`` is ok, failed or off."""

    name: str
    tools: int = 0
    tokens: int = 0
    sent: int = 0
    status: str = "ok"
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTokens:
    """How many tools there are, what their definitions take in tokens, and how much is sent with each request."""

    tools: int
    tokens: int
    sent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCost:
    """What a client sends of the servers today, and with Pegboard in front of them."""

    client: KnownClient
    direct: ToolTokens
    instead: ToolTokens

    @property
    def saved(self) -> int:
        """Return how many tokens of each request Pegboard saves; less than 0 where it costs some."""
        return self.direct.sent - self.instead.sent


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersAsListed:
    """The servers as a client lists them, Pegboard as it lists it in their place, and how texts are counted."""

    servers: Sequence[ListedServer]
    instead: ListedServer
    count: Callable[[str], int]

    def cost(self, client: KnownClient) -> ClientCost:
        """Return what the servers cost in a client."""
        return ClientCost(
            client=client, direct=self.amount(client, self.servers), instead=self.amount(client, [self.instead])
        )

    def amount(self, client: KnownClient, servers: Sequence[ListedServer]) -> ToolTokens:
        """Return what a client sends of some servers."""
        tools, texts = client.request(servers)
        everything = [tool for server in servers for tool in server.tools]
        return ToolTokens(
            tools=len(everything),
            tokens=sum(self.count(counted_json(tool)) for tool in everything),
            sent=sum(self.count(counted_json(tool)) for tool in tools) + sum(map(self.count, texts)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMeasurement:
    """What was measured for one client; ``all_clients`` is whether what the others send is shown as well."""

    client: str
    rows: Sequence[ServerCost]
    cost: ClientCost
    all_clients: bool


# -- JSON ------------------------------------------------------------------------------------------


def _document(
    file: ServerFile, measured: ClientMeasurement, every_client: Sequence[ClientCost], window: int
) -> Mapping[str, Any]:
    failed = any(row.status == "failed" for row in measured.rows)
    return {
        "file": file.label,
        "client": measured.client,
        "window": window,
        "servers": [_row_json(row, window) for row in measured.rows],
        **_cost_json(measured.cost, window, failed=failed),
        "clients": [{"client": one.client.name, **_cost_json(one, window, failed=failed)} for one in every_client],
        "plain_secrets": json_of(file),
    }


def _row_json(row: ServerCost, window: int) -> Mapping[str, Any]:
    return {
        "name": row.name,
        "tools": row.tools,
        "tokens": row.tokens,
        "sent": row.sent,
        "share": _share_of_window(row.sent, window),
        "status": row.status,
        "message": row.message,
    }


def _cost_json(cost: ClientCost, window: int, *, failed: bool) -> Mapping[str, Any]:
    client = cost.client
    return {
        "sends": client.sends if client.defers(cost.direct.tools) else "definitions",
        "condition": client.condition,
        "read": {"on": client.read_on, "at": list(client.read_at)},
        "direct": _amount_json(cost.direct, window),
        "pegboard": _amount_json(cost.instead, window),
        "saved": None if failed else cost.saved,
    }


def _amount_json(amount: ToolTokens, window: int) -> Mapping[str, Any]:
    return {
        "tools": amount.tools,
        "tokens": amount.tokens,
        "sent": amount.sent,
        "share": _share_of_window(amount.sent, window),
    }


def _share_of_window(tokens: int, window: int) -> float:
    """Return the part of the window, from 0."""
    return round(tokens / window, 4)


# -- text ------------------------------------------------------------------------------------------


def show(printer: Printer, file: ServerFile, measured: ClientMeasurement, listed: ServersAsListed, window: int) -> None:
    """Print what was measured, as text or JSON."""
    every_client = [listed.cost(client) for client in KNOWN_CLIENTS]
    if printer.as_json:
        printer.document(_document(file, measured, every_client, window))
        return
    printer.heading(f"{file.spot.client.title}: {file.label}")
    printer.table(COLUMNS, [*_table(measured, window)])
    printer.say()
    if measured.all_clients:
        _show_clients(printer, every_client)
    else:
        for line in _verdict_lines(measured.cost, window):
            printer.say(line)
    failed = [row for row in measured.rows if row.status == "failed"]
    if failed:
        printer.say(f"{plural(len(failed), 'server')} could not be measured and are in no figure:")
        for row in failed:
            printer.say(f"  {row.name}: {row.message}")
    for line in lines_of(file):
        printer.say(line)


def _table(measured: ClientMeasurement, window: int) -> Iterator[tuple[str, ...]]:
    yield from (_cells(row, window) for row in measured.rows)
    yield ("",) * len(COLUMNS)
    cost = measured.cost
    for name, amount, message in (("total", cost.direct, "today"), ("with Pegboard", cost.instead, "instead")):
        yield (
            name,
            str(amount.tools),
            f"{amount.tokens:,}",
            f"{amount.sent:,}",
            _percent_of_window(amount.sent, window),
            message,
        )


def _cells(row: ServerCost, window: int) -> tuple[str, ...]:
    state = f"{row.status}: {row.message}" if row.message and row.status != "failed" else row.status
    if row.status != "ok":
        return row.name, "-", "-", "-", "-", state
    return row.name, str(row.tools), f"{row.tokens:,}", f"{row.sent:,}", _percent_of_window(row.sent, window), state


def _verdict_lines(cost: ClientCost, window: int) -> Iterator[str]:
    """Yield what the client sends, what it would send with Pegboard, and what that saves."""
    client, direct, saved = cost.client, cost.direct, cost.saved
    title = CLIENTS[client.name].title
    if not direct.tools:
        yield "There is nothing to save: no tools could be counted."
        return
    defers = client.defers(direct.tools)
    what = _SENDS[client.sends if defers else "definitions"]
    later = "; a definition follows once the model has searched for it" if defers else ""
    yield f"{title} sends {what} with every request: {direct.sent:,} tokens{later}."
    if client.condition and client.sends != "definitions":
        yield f"That holds {client.condition} (read on {client.read_on})."
    if client.most_tools is not None and direct.tools > client.most_tools:
        yield f"It takes {client.most_tools} tools at most, and leaves {direct.tools - client.most_tools} of these out."
    if saved > 0:
        yield (
            f"Pegboard would save {saved:,} tokens of every request, {saved / direct.sent:.0%} of that "
            f"({_percent_of_window(saved, window)} of a window of {window:,}), with every tool still in reach."
        )
    else:
        yield f"Pegboard would save no tokens here: it costs {-saved:,} more."
    if client.defers(cost.instead.tools) and not client.keeps:
        yield (
            f"It defers Pegboard's {cost.instead.tools} tools as well: {cost.instead.tokens:,} tokens, "
            "once the model has searched for them."
        )


def _show_clients(printer: Printer, costs: Sequence[ClientCost]) -> None:
    """Print what each client sends, and when that was read."""
    rows = [
        (
            CLIENTS[cost.client.name].title,
            _SENDS[cost.client.sends if cost.client.defers(cost.direct.tools) else "definitions"],
            f"{cost.direct.sent:,}",
            f"{cost.instead.sent:,}",
            f"{cost.saved:,}" if cost.saved > 0 else f"none, {-cost.saved:,} more",
        )
        for cost in costs
    ]
    printer.table(CLIENT_COLUMNS, rows)
    printer.say()
    for cost in costs:
        if cost.client.condition:
            printer.say(f"{CLIENTS[cost.client.name].title}: {cost.client.condition} (read on {cost.client.read_on}).")


def _percent_of_window(tokens: int, window: int) -> str:
    return f"{tokens / window:.1%}"
