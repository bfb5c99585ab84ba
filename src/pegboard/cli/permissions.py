"""`pegboard permissions …`: the switches of agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pegboard.cli.common import DONE, Options, bring_in, chosen_agent, run
from pegboard.cli.options import AgentOption, ConfigOption, JsonOption
from pegboard.cli.rendering import Column, Printer
from pegboard.errors import UnknownAgentError

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard

_VALUES = {"true": True, "false": False, "unset": None}


def show(
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Show the switches in force.

    What was set at run time replaces what the file says.
    """

    async def printed(board: Pegboard, printer: Printer) -> int:
        if agent is not None:
            _require(board, agent)
        switches = {name: own for name, own in (await board.permissions.show()).items() if agent in (None, name)}
        if printer.as_json:
            printer.document(switches)
            return DONE
        rows = [(name, subject, "on" if on else "off") for name, own in switches.items() for subject, on in own.items()]
        if rows:
            printer.table([Column("agent"), Column("name"), Column("switch")], rows)
        else:
            printer.say("No switch is set; what is granted is on.")
        return DONE

    return run(Options(config=config, agent=agent, as_json=as_json), printed)


def set_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A toolkit, plugin or tool.")],
    value: Annotated[
        Literal["true", "false", "unset"],
        typer.Argument(metavar="true|false|unset", help="unset goes back to the file."),
    ],
    config: ConfigOption = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> int:
    """Switch a toolkit, plugin or tool on or off.

    It counts at once, in every session of the agent.
    """

    async def done(board: Pegboard, printer: Printer) -> int:
        chosen = chosen_agent(board, agent)
        _require(board, chosen)
        await bring_in(board, printer)
        await board.permissions.set(chosen, name, _VALUES[value])
        switches = dict((await board.permissions.show()).get(chosen, {}))
        if printer.as_json:
            printer.document({chosen: switches})
        else:
            now = {True: "on", False: "off", None: "not set"}[switches.get(name)]
            printer.say(f"'{name}' is {now} for agent '{chosen}'.")
        return DONE

    return run(Options(config=config, agent=agent, as_json=as_json), done)


def _require(board: Pegboard, agent: str) -> None:
    if agent not in board.world.agents:
        hint = f"There are: {', '.join(board.world.agents)}."
        raise UnknownAgentError(f"There is no agent '{agent}'.", hint=hint)


COMMANDS: dict[str, tuple[Callable[..., int], str]] = {
    "show": (show, "pegboard permissions show --agent assistant"),
    "set": (set_, "pegboard permissions set research false --agent assistant"),
}
