"""`pegboard permissions …`: the switches of agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pegboard.board.permissions import grants_more
from pegboard.board.switch_actions import apply_plan, plan_switch
from pegboard.cli.common import Options, chosen_agent, discover, require_agent, run, system_user
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import AgentOption, ByOption, ConfigOption, JsonOption
from pegboard.cli.person import require_operator
from pegboard.cli.rendering import Printer, TableColumn, UnmaskedText
from pegboard.core.access.switches import switchable
from pegboard.core.model.naming import some_of
from pegboard.errors import UsageError

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.core.model.tools import JsonObject
    from pegboard.core.principals.bearer_tokens import Right

_VALUES = {"true": True, "false": False, "unset": None}
_QUESTIONS = {"true": "Switch '{}' on", "unset": "Take the stored switch of '{}' back"}


def show(
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent.")] = None,
    panel: Annotated[
        bool, typer.Option("--panel", help="With --json: everything that can be switched, instead of the switches set.")
    ] = False,
    principal: Annotated[
        str | None, typer.Option("--principal", metavar="P", help="With the switches of this principal.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Show everything that can be switched, and why it is so."""

    async def print_switches(board: Pegboard, printer: Printer) -> int:
        require_agent(board, agent)
        if printer.as_json and not panel:
            switches = await board.permissions.show(principal)
            printer.document({name: own for name, own in switches.items() if agent in (None, name)})
            return DONE
        await discover(board, printer, start=False)
        panels = await _panels(board, agent, principal)
        if any(row["kind"] == "unknown" for part in panels.values() for row in part):
            await discover(board, printer, start=False, registered=True)
            panels = await _panels(board, agent, principal)
        if printer.as_json:
            printer.document(UnmaskedText(panels))  # masked already, but for names
        elif rows := [line for name, part in panels.items() for row in part for line in _lines(name, row)]:
            printer.table(_COLUMNS, rows)
        else:
            printer.say("Nothing can be switched.")
        return DONE

    return run(Options(config=config, agent=agent, as_json=as_json), print_switches)


async def _panels(board: Pegboard, agent: str | None, principal: str | None) -> dict[str, tuple[JsonObject, ...]]:
    """Return the panel of one agent, or of all."""
    names = [name for name in board.world.agents if agent in (None, name)]
    return {name: await board.permissions.panel(name, principal) for name in names}


_COLUMNS = (
    *(TableColumn(name) for name in ("agent", "kind", "name", "default", "switch", "now")),
    TableColumn("why", flexible=True),
)


def _lines(agent: str, row: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the lines of a row of the panel: its own, then those of its members."""
    name, label = row["name"], row["label"]
    name = name if f"__{name}".endswith(f"__{label}") else f"{name} ({label})"
    why = row["reason"]["text"]
    if row.get("unavailable"):
        why = f"{why} It is not available: {row['unavailable']}"
    yield (agent, row["kind"], name, *(_STATES[row[column]] for column in ("default", "switch", "on")), why)
    for member in row.get("members", ()):
        yield from _lines(agent, member)


_STATES = {True: "on", False: "off", None: ""}


def set_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A toolkit, plugin or tool.")],
    value: Annotated[
        Literal["true", "false", "unset"],
        typer.Argument(metavar="true|false|unset", help="on, off, or unset (as the file says)."),
    ],
    config: ConfigOption = None,
    agent: AgentOption = None,
    principal: Annotated[
        str | None,
        typer.Option("--principal", metavar="P", help="Only for this principal, in addition to the agent's own."),
    ] = None,
    all_agents: Annotated[
        bool, typer.Option("--all-agents", help="For every agent that is configured: all of them, or none.")
    ] = False,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> int:
    """Switch a toolkit, plugin or tool on or off."""

    async def set_switch(board: Pegboard, printer: Printer) -> int:
        if all_agents and (agent is not None or principal is not None):
            raise UsageError("`--all-agents` sets every agent, for all principals.", hint="Give it alone.")
        chosen = None if all_agents else chosen_agent(board, agent)
        await discover(board, printer)
        if not switchable(board.world, name):
            await discover(board, printer, registered=True)
        decided_by = by if by is not None else system_user()
        whose = "every agent" if chosen is None else f"agent '{chosen}'"
        whose += f" and principal '{principal}'" if principal is not None else ""
        if value != "false":
            question = f"{_QUESTIONS[value].format(name)} for {whose}?"
            names = list(board.world.agents) if chosen is None else [chosen]
            grants = [
                one
                for one in names
                if await grants_more(board.services, one, name, _VALUES[value], principal=principal)
            ]
            about = [f"The file does not grant '{name}' to {some_of(grants)}."] if grants else []
            right: Right = "configure" if grants else "switch"
            tokens = board.configuration.tokens
            decided_by = await require_operator(tokens, right, question, about=about, agent=chosen) or decided_by
        if chosen is None:
            return await _set_for_all(board, printer, name, _VALUES[value], by=decided_by)
        await board.permissions.set(chosen, name, _VALUES[value], by=decided_by, principal=principal, may_grant=True)
        switches = dict((await board.permissions.show(principal)).get(chosen, {}))
        if printer.as_json:
            printer.document({chosen: switches})
        else:
            now = {True: "on", False: "off", None: "not set"}[switches.get(name)]
            printer.say(f"'{name}' is {now} for {whose}.")
        return DONE

    return run(Options(config=config, agent=agent, as_json=as_json), set_switch)


async def _set_for_all(board: Pegboard, printer: Printer, name: str, value: bool | None, *, by: str) -> int:
    """Set a switch for every agent, in one transaction, and print what is in force."""
    plan = await plan_switch(board.services, list(board.world.agents), name, value)
    action = await apply_plan(board.services, plan, by=by)
    changed = len({one.agent for one in action.changes})
    count = f"{len(plan.agents)} {'agent' if len(plan.agents) == 1 else 'agents'}"
    if printer.as_json:
        printer.document(await board.permissions.show())
    else:
        now = {True: "on", False: "off", None: "not set"}[value]
        mark = f" Its records say 'together {action.mark}'." if changed else ""
        printer.say(f"'{name}' is {now} for all {count}; {changed} changed.{mark}")
    return DONE


COMMANDS: dict[str, tuple[Callable[..., int], str]] = {
    "show": (show, "pegboard permissions show --agent assistant"),
    "set": (set_, "pegboard permissions set research false --agent assistant"),
}
