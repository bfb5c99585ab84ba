"""`pegboard pins …`: what servers' tools were when they were first seen, and what has changed since (A4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.common import DONE, Options, run, system_user
from pegboard.cli.options import ByOption, ConfigOption, JsonOption
from pegboard.cli.person import NotAgreedError, require_operator
from pegboard.cli.rendering import Column, Printer, plural
from pegboard.errors import UsageError

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.operators.pins import PinView

NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Servers, and tools as plugin/tool or by their names.")
]
COLUMNS = (*map(Column, ("name", "server", "status", "accepted by")), Column("more", flexible=True))
STATES = {"pinned": "as pinned", "changed": "changed, waits", "new": "new, waits", "gone": "not listed"}
ASKED_ABOUT = 50
"""Of how many tools a person is shown the differences before they are asked."""


def list_(
    names: NamesArgument = None,
    waiting: Annotated[bool, typer.Option("--waiting", help="Only what waits for a person.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show the tools of servers, whether they are as pinned, and what waits for a person."""

    async def printed(board: Pegboard, printer: Printer) -> int:
        from pegboard.operators.pins import OperatorPins

        found = await OperatorPins(board.services).listed(*names or (), waiting=waiting)
        if printer.as_json:
            printer.document([_row_json(one) for one in found])
        elif found:
            printer.table(COLUMNS, [_row(one) for one in found])
        else:
            printer.say("Nothing waits for a person." if waiting else "No server has been seen yet.")
        return DONE

    return run(Options(config=config, as_json=as_json), printed)


def show(names: NamesArgument = None, config: ConfigOption = None, as_json: JsonOption = False) -> int:
    """Show how tools differ from what is pinned; without a name, of everything that waits for a person."""

    async def printed(board: Pegboard, printer: Printer) -> int:
        from pegboard.operators.pins import OperatorPins

        found = await OperatorPins(board.services).shown(*names or (), waiting=not names)
        if printer.as_json:
            printer.document([_json(one) for one in found])
            return DONE
        for one in found:
            for line in _lines(one):
                printer.say(line)
        if not found:
            printer.say("Nothing waits for a person.")
        return DONE

    return run(Options(config=config, as_json=as_json), printed)


def accept(
    names: NamesArgument = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything that waits.")] = False,
    by: ByOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Let tools count as their servers list them now; they can be used from the next request on.

    You are shown how they differ and asked at the terminal, unless PEGBOARD_OPERATOR_TOKEN has a token with the right
    `configure`. Where a server is named, the pins of tools that it does not list any more go too.
    """

    async def done(board: Pegboard, printer: Printer) -> int:
        if bool(names) == everything:
            raise UsageError("Name tools or servers, or write --all.", hint="`pegboard pins list` has their names.")
        return answered(await accepted(board, printer, tuple(names or ()), by=by), printer)

    return run(Options(config=config, as_json=as_json), done)


async def accepted(board: Pegboard, printer: Printer, names: Sequence[str], *, by: str | None) -> Sequence[PinView]:
    """Return what was accepted: what a person was shown, and nothing else.

    Raises:
        NotAgreedError: no person or operator agreed.
    """
    from pegboard.operators.pins import OperatorPins

    pins = OperatorPins(board.services)
    found = [one for one in await pins.shown(*names) if one.waits or one.status == "gone"]
    if not found:
        return ()
    about = [line for one in found[:ASKED_ABOUT] for line in _lines(one)]
    if len(found) > ASKED_ABOUT:
        about.append(f"and {len(found) - ASKED_ABOUT:,} more tools: `pegboard pins show` has all of it.")
    question = f"Let {plural(len(found), 'tool')} count as {'it is' if len(found) == 1 else 'they are'} now?"
    try:
        owner = await require_operator(board.configuration.tokens, "configure", question, about=about)
    except NotAgreedError as refused:
        if refused.code == "needs_operator" and not printer.as_json:
            for one in found[:ASKED_ABOUT]:
                printer.note(f"waits: '{one.name}' of server '{one.plugin}': {STATES[one.status]}")
        raise
    await pins.accept(found, by=owner or by or system_user())
    return found


def answered(found: Sequence[PinView], printer: Printer) -> int:
    """Print what was accepted."""
    if printer.as_json:
        printer.document([_row_json(one) for one in found])
        return DONE
    for one in found:
        what = "its pin is gone" if one.status == "gone" else "it counts as it is now"
        printer.say(f"accepted: '{one.name}' of server '{one.plugin}': {what}.")
    if not found:
        printer.say("There is nothing to accept.")
    return DONE


def _row(one: PinView) -> tuple[str, ...]:
    claims = " and ".join(CLAIMS[claim] for claim in one.claims)
    return one.name, one.plugin, STATES[one.status], one.by, f"says only now that it {claims}" if claims else ""


def _lines(one: PinView) -> list[str]:
    """Return all that a person reads of one tool before they decide."""
    lines = [f"'{one.name}' of server '{one.plugin}': {STATES[one.status]}"]
    lines += [f"  It says only now that it {CLAIMS[claim]}." for claim in one.claims]
    lines += [f"  {line}" for line in one.diff.splitlines()]
    lines += [f"  ! {found.text} ({found.place}): {found.excerpt}" for found in one.findings]
    return lines


def _json(one: PinView) -> dict[str, Any]:
    changes = [{"path": c.path, "kind": c.kind, "before": c.before, "after": c.after} for c in one.changes]
    found = [{"code": f.code, "text": f.text, "place": f.place, "excerpt": f.excerpt} for f in one.findings]
    more = {"description": one.description, "changes": changes, "more": one.more, "findings": found}
    return {**_row_json(one), **more}


CLAIMS = {"read_only": "only reads", "harmless": "destroys nothing"}


def _row_json(one: PinView) -> dict[str, Any]:
    return {
        "plugin": one.plugin,
        "tool": one.tool,
        "name": one.name,
        "status": one.status,
        "waits": one.waits,
        "by": one.by,
        "claims": list(one.claims),
        "digest": one.digest,
    }


COMMANDS: dict[str, tuple[Callable[..., int], str]] = {
    "list": (list_, "pegboard pins list --waiting"),
    "show": (show, "pegboard pins show crm/send_message"),
    "accept": (accept, "pegboard pins accept crm/send_message"),
}
