"""`pegboard tools`: every tool there is, or every tool that an agent may use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pegboard.cli.common import Options, discover, require_agent, run
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import ConfigOption, JsonOption
from pegboard.cli.rendering import Printer, TableColumn, UnmaskedText, plural
from pegboard.core.model.tools import HELD
from pegboard.core.state.name_conflicts import name_conflicts
from pegboard.core.surface.explanations import STALE
from pegboard.core.surface.hints import purpose_of

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.core.access.permissions import CompiledPermissions
    from pegboard.core.model.tools import Plugin, Tool
    from pegboard.core.surface.hints import Purpose

_PURPOSE_CHARACTERS: Final = 160
EXAMPLE = "pegboard tools --agent assistant"
COLUMNS = (
    TableColumn("name"),
    TableColumn("plugin"),
    TableColumn("category"),
    TableColumn("tokens", "right"),
    TableColumn("available"),
    TableColumn("description", flexible=True),
)


def tools(
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only what this agent may use.")] = None,
    as_json: JsonOption = False,
) -> int:
    """List every tool, or all that an agent may use."""

    async def print_tools(board: Pegboard, printer: Printer) -> int:
        require_agent(board, agent)
        session = await board.session(agent=agent) if agent is not None else None
        permissions = (await session.snapshot()).permissions if session is not None else None
        await discover(board, printer, permissions, known_is_enough=True)
        permissions = (await session.snapshot()).permissions if session is not None else None
        rows = [row for plugin in board.world.catalog.plugins.values() for row in _rows(board, plugin, permissions)]
        if printer.as_json:
            printer.document(rows)
        elif not rows:
            printer.say("There are no tools." if agent is None else f"Agent '{agent}' may use no tool.")
        else:
            if printer.for_people:
                printer.table(COLUMNS, [_cells(row) for row in rows])
            else:
                _show_lines(rows, printer)
            total = sum(row["tokens"] for row in rows)
            printer.say(f"\n{plural(sum(row['tokens'] > 0 for row in rows), 'tool')}, {total} tokens.")
            if stale := ", ".join(
                dict.fromkeys(str(row["plugin"]) for row in rows if row["available"] and row["reason"])
            ):
                printer.say(f"Shown as before their code changed, because they have not answered yet: {stale}.")
            for line in _plugins_described_by_names(rows):
                printer.say(line)
        return DONE

    return run(Options(config=config, agent=agent, as_json=as_json), print_tools)


def _show_lines(rows: list[dict[str, Any]], printer: Printer) -> None:
    """Show what a program reads, which pays for each character: a line for each plugin, and for what cannot run."""
    for plugin in dict.fromkeys(str(row["plugin"]) for row in rows):
        own = [row for row in rows if str(row["plugin"]) == plugin]
        if names := ", ".join(str(row["name"]) for row in own if row["available"]):
            category = f" ({own[0]['category']})" if own[0]["category"] else ""
            printer.show(f"{plugin}{category}: {names}")
        for row in own:
            if not row["available"]:
                kind = "not available" if row["available"] is False else "not known yet"
                printer.say(f"{row['name']}: {kind}. {row['reason']}")


def _rows(board: Pegboard, plugin: Plugin, permissions: CompiledPermissions | None) -> list[dict[str, Any]]:
    """Return one row per tool; a plugin without known tools has one of its own, by which it can be loaded."""
    usable = [tool for tool in plugin.tools if permissions is None or permissions.permits(tool)]
    purpose = purpose_of(plugin, usable)
    return [{**row, "purpose": _purpose_json(purpose)} for row in _rows_of_tools(board, plugin, permissions)]


def _rows_of_tools(board: Pegboard, plugin: Plugin, permissions: CompiledPermissions | None) -> list[dict[str, Any]]:
    if not (plugin.tools or plugin.unreviewed.new or plugin.excluded):
        if permissions is not None and not permissions.grants_unseen(plugin):
            return []
        row = _row(plugin, plugin.name, plugin.description, 0, plugin.unavailable or _why_unseen(board, plugin))
        unasked = not plugin.unavailable and not any(variant.known for variant in plugin.variants.values())
        return [{**row, "available": None} if unasked else row]
    rows = [
        _row(plugin, tool.wire, tool.description, board.services.prices([tool]), *_why_not(plugin, tool, permissions))
        for tool in plugin.tools
        if permissions is None or permissions.permits(tool)
    ]
    wire_of = board.world.catalog.wire_of
    if permissions is None or permissions.may_have_tools_of(plugin):
        rows += [_row(plugin, wire_of(plugin, name), "", 0, HELD) for name in plugin.unreviewed.new]
        rows += [
            _row(plugin, wire_of(plugin, name), "", 0, f"It is excluded: {reason}.")
            for name, reason in plugin.excluded.items()
        ]
    return rows


def _purpose_json(purpose: Purpose) -> dict[str, Any]:
    """Return what a plugin is for as its line in hints says it where there is room, and who says so."""
    return {"text": UnmaskedText(purpose.cut_to(_PURPOSE_CHARACTERS)), "by": purpose.described_by}


def _plugins_described_by_names(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line on each plugin of which only the names of its tools say what it is for."""
    derived = {str(row["plugin"]): row["purpose"]["text"] for row in rows if row["purpose"]["by"] == "tools"}
    if derived:
        yield "\nDescribed from their tools; `description:` in the file replaces that:"
        yield from (f"  {name}: {text}" for name, text in derived.items())


def _row(plugin: Plugin, name: str, description: str, tokens: int, fault: str, stale: str = "") -> dict[str, Any]:
    return {
        "name": UnmaskedText(name),
        "plugin": UnmaskedText(plugin.name),
        "category": plugin.category,
        "description": UnmaskedText(description),
        "tokens": tokens,
        "available": not fault,
        "reason": fault or stale,
    }


def _why_not(plugin: Plugin, tool: Tool, permissions: CompiledPermissions | None) -> tuple[str, str]:
    """Return why a tool cannot run (its own reason, or that of every variant that has it), and why it may be old."""
    holding = [
        variant for variant in plugin.variants.values() if variant.tools is not None and tool.name in variant.tools
    ]
    fault = plugin.unavailable if holding and all(variant.unavailable for variant in holding) else ""
    if permissions is not None and not fault:
        clashes = (one for one in name_conflicts(permissions) if one.second.id == tool.id)
        fault = next((f"{one.text} {one.fix}" for one in clashes), "")
    return tool.unavailable or fault, STALE if any(variant.stale for variant in holding) else ""


def _why_unseen(board: Pegboard, plugin: Plugin) -> str:
    from pegboard.board.catalog.loader import PluginRequest

    if any(variant.known for variant in plugin.variants.values()):
        return "It offers no tools."
    if line := board.services.loader.line_being_imported(PluginRequest(plugin=plugin.name)):
        return f"Its code is still being imported: {line}."
    load = f"pegboard session load {plugin.name}"
    return f"Its tools are not known before it has been loaded once ({load}), or all have: pegboard check --probe"


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    available = {True: "yes", False: "no", None: "not known"}[row["available"]]
    message = row["description"] if row["available"] else row["reason"]
    return row["name"], row["plugin"], row["category"] or "", str(row["tokens"]), available, message
