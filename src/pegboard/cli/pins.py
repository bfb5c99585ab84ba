"""`pegboard pins …`: what servers' tools were when they were first seen, and what has changed since (A4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.common import Options, run
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import ByOption, ConfigOption, JsonOption
from pegboard.cli.pin_answers import accept_pins, lines, print_accepted, row, row_json, whole_json, with_shown_names
from pegboard.cli.rendering import Printer, TableColumn
from pegboard.errors import UsageError
from pegboard.operators.pins import OperatorPins

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard

NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Servers, and tools as plugin/tool or by their names.")
]
COLUMNS = (*map(TableColumn, ("name", "server", "status", "accepted by")), TableColumn("more", flexible=True))


def list_(
    names: NamesArgument = None,
    waiting: Annotated[bool, typer.Option("--waiting", help="Only what waits for a person.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show the tools of servers, and which of them changed."""

    async def print_pins(board: Pegboard, printer: Printer) -> int:
        found = await with_shown_names(
            board.services, await OperatorPins(board.services).listed(*names or (), waiting=waiting)
        )
        if printer.as_json:
            printer.document([row_json(one) for one in found])
        elif found:
            printer.table(COLUMNS, [row(one) for one in found])
        else:
            printer.say("Nothing waits for a person." if waiting else "No server has been seen yet.")
        return DONE

    return run(Options(config=config, as_json=as_json), print_pins)


def show(names: NamesArgument = None, config: ConfigOption = None, as_json: JsonOption = False) -> int:
    """Show how tools differ from what was accepted."""

    async def print_definitions(board: Pegboard, printer: Printer) -> int:
        found = await with_shown_names(
            board.services, await OperatorPins(board.services).shown(*names or (), waiting=not names)
        )
        if printer.as_json:
            printer.document([whole_json(one) for one in found])
            return DONE
        for one in found:
            for line in lines(one):
                printer.say(line)
        if not found:
            printer.say("Nothing waits for a person.")
        return DONE

    return run(Options(config=config, as_json=as_json), print_definitions)


def accept(
    names: NamesArgument = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything that waits.")] = False,
    confirm: Annotated[
        list[str] | None,
        typer.Option("--confirm", metavar="NAME", help="With a token: the name of a tool that has warnings."),
    ] = None,
    by: ByOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Accept tools as their servers list them now."""

    async def accept_named(board: Pegboard, printer: Printer) -> int:
        if bool(names) == everything:
            raise UsageError("Name tools or servers, or write --all.", hint="`pegboard pins list` has their names.")
        tokens = board.configuration.tokens
        chosen, typed = tuple(names or ()), tuple(confirm or ())
        return print_accepted(
            await accept_pins(board.services, tokens, printer, chosen, by=by, confirmed=typed), printer
        )

    return run(Options(config=config, as_json=as_json), accept_named)


COMMANDS: dict[str, tuple[Callable[..., int], str]] = {
    "list": (list_, "pegboard pins list --waiting"),
    "show": (show, "pegboard pins show crm/send_message"),
    "accept": (accept, "pegboard pins accept crm/send_message"),
}
