"""`pegboard surface`: what goes to the model now, and what it costs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.common import Options, discover, open_session, run
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import with_session_options
from pegboard.cli.rendering import Printer, TableColumn, UnmaskedText, plural
from pegboard.core.model.naming import some_of

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.core.state.active_tools import LoadedTool
    from pegboard.core.surface.surfaces import Surface

EXAMPLE = "pegboard surface --agent assistant --session thread-42"
COLUMNS = (
    TableColumn("name"),
    TableColumn("plugin"),
    TableColumn("lease"),
    TableColumn("reason"),
    TableColumn("tokens", "right"),
)


@with_session_options
def surface(
    options: Options,
    message: Annotated[
        str | None,
        typer.Option(
            "--message",
            metavar="TEXT",
            help="The user's message: focus rules read it, and the tools it needs are loaded in advance.",
        ),
    ] = None,
    client: Annotated[
        str | None,
        typer.Option("--client", metavar="NAME", help="Show the list that this MCP client gets in this folder."),
    ] = None,
) -> int:
    """Show what is sent to the model now, and what it costs."""
    if client is not None:
        from pegboard.cli.client_surface import show_client_surface

        return show_client_surface(options, client)

    async def print_surface(board: Pegboard, printer: Printer) -> int:
        on = await open_session(board, options)
        await discover(board, printer, (await on.snapshot()).permissions, known_is_enough=True)
        found = await on.surface(message=message)
        rows = [_row(board, out) for out in found.tools]
        if printer.as_json:
            printer.document(_surface_json(found, rows))
        else:
            _print_found(found, rows, printer)
        return DONE

    return run(options, print_surface)


def _row(board: Pegboard, out: LoadedTool) -> dict[str, Any]:
    return {
        "name": UnmaskedText(out.tool.wire),
        "plugin": UnmaskedText(out.tool.plugin),
        "lease": str(out.until),
        "reason": out.because[0].value,
        "tokens": board.services.prices([out.tool]),
    }


def _surface_json(found: Surface, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "agent": found.agent,
        "session": found.session,
        "turn": found.turn,
        "tools": rows,
        "hints": UnmaskedText(found.hints),
        "suffix": UnmaskedText(found.suffix),
        "policy": UnmaskedText(found.policy),
        "focus": UnmaskedText(found.focus),
        "tokens": asdict(found.tokens),
        "missing": [asdict(item) for item in found.missing],
    }


def _print_found(found: Surface, rows: list[dict[str, Any]], printer: Printer) -> None:
    printer.heading(f"Agent '{found.agent}', session '{found.session}', turn {found.turn}")
    if rows:
        printer.table(COLUMNS, [list(row.values()) for row in rows])
    else:
        printer.say("No tool is loaded.")
    for title, text in (("Hints", "\n".join(found.hints)), ("Suffix", found.suffix), ("Policy", found.policy)):
        if text:
            printer.say()
            printer.heading(title)
            printer.show(text)
    if found.focus is not None:
        printer.say()
        printer.heading("Focus")
        printer.say(", ".join(f"{key}: {value}" for key, value in found.focus.items()))
    if found.missing:
        printer.say()
        printer.heading("Missing")
        for item in found.missing:
            printer.say(f"{item.plugin}: {item.reason}")
    printer.say(f"\n{totals(found)}")


def totals(found: Surface) -> str:
    """Return one sentence on what the surface costs, and what it saves."""
    costs = found.tokens
    message = f"{plural(len(found.tools), 'tool')}, {costs.total} tokens (tools {costs.tools}, text {costs.text})."
    if costs.saved is None:
        return f"{message} The saving is unknown, because the tools of {some_of(costs.unknown)} are not known yet."
    everything = f"Everything that the agent may use would cost {costs.catalog}"
    if costs.saved > 0:
        share = round(100 * costs.saved / costs.catalog) if costs.catalog else 0
        return f"{message} {everything}: saved {costs.saved} ({share}%)."
    if costs.saved < 0:
        return f"{message} {everything}, without meta-tools and hints: loading all of it is cheaper."
    return message
