"""`pegboard call TOOL NAME=VALUE…`: find, load, check, ask, run and print, in one step."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from pegboard.cli import caller
from pegboard.cli.call_results import ResultOutput, show_answer
from pegboard.cli.command_identity import require_own_identity
from pegboard.cli.common import Options, action_raising, discover, open_session, run, run_guarded
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import with_session_options
from pegboard.cli.rendering import Printer, UnmaskedText
from pegboard.cli.tool_arguments import decode_input, from_words
from pegboard.cli.tool_help import help_of
from pegboard.core.access.read_only import is_destructive
from pegboard.core.model.tools import EMPTY
from pegboard.core.state.call_plans import CallAnswer, answer
from pegboard.errors import UsageError

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.board import Session
    from pegboard.core.model.tools import Tool

EXAMPLE = "pegboard call fetch__fetch url=https://example.com"
CONTEXT_SETTINGS = {"ignore_unknown_options": True, "help_option_names": []}
"""Options that the command does not have are arguments of the tool, and so is the help."""
GLANCE: Final = 0.3
"""How often an approval is looked at while its decision is waited for, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """What is called, and how: ``wait`` is for how many seconds a person's decision is waited for."""

    tool: str
    words: tuple[str, ...]
    read: str | None
    load: bool
    wait: float


@with_session_options
def call(
    options: Options,
    context: typer.Context,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The name of the tool.")] = "",
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE",
            help="Its arguments: NAME=VALUE, NAME:=JSON, --NAME VALUE, one JSON object, or - for standard input.",
        ),
    ] = None,
    load: Annotated[bool, typer.Option("--load", help="Load it and run it, even if it may destroy something.")] = False,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="SECONDS|forever", help="Wait for the approval that the call needs."),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="PATH", help="Write the result to a file; - prints all of it.")
    ] = None,
    help_: Annotated[
        bool, typer.Option("--help", "-h", help="Show this message, or after a TOOL its arguments.")
    ] = False,
) -> int:
    """Run one tool as the agent would."""
    if not tool:
        if help_:
            Printer(as_json=False).say(context.get_help())
            return DONE
        return run_guarded(
            options, action_raising(UsageError("Missing argument 'TOOL'.", hint="See 'pegboard call --help'."))
        )
    if help_:
        return run(options, lambda board, printer: _print_tool_help(board, printer, options, tool))
    try:
        given = tuple(words or ())
        read = decode_input(caller.read_input()) if given == ("-",) else None
        called = CommandCall(tool=tool, words=given, read=read, load=load, wait=_seconds(wait))
    except UsageError as error:
        return run_guarded(options, action_raising(error))
    return run(
        options, lambda board, printer: _run_call(board, printer, options, called, ResultOutput(to=out)), calls=True
    )


async def _run_call(
    board: Pegboard, printer: Printer, options: Options, given: CommandCall, output: ResultOutput
) -> int:
    if caller.CALLER.get() is None:
        board.services.awaiting_login.by_command = True  # this process ends with the call
    require_own_identity(board, options)
    on = await open_session(board, options)
    tool = await _find_tool(board, printer, on, given.tool)
    arguments = from_words(given.words, EMPTY if tool is None else tool.input_schema, tool=given.tool, read=given.read)

    async def progress(done: float, total: float | None, message: str | None) -> None:
        of = f"/{total:g}" if total is not None else ""
        printer.note(f"{done:g}{of} {message or ''}".rstrip())

    async def call_once() -> CallAnswer:
        return await on.call(given.tool, arguments, progress=progress)

    with printer.working(f"Calling {given.tool}"):
        answered = await call_once()
        if answered.status == "not_loaded":
            if given.load and answered.reason:  # a call does not load it: it is loaded by its name
                await on.load(given.tool)
            if given.load or _continues_after_load(on, answered):
                answered = await call_once()
        if answered.status == "needs_approval" and given.wait > 0:
            answered = await _wait_for_decision(board, printer, answered, given.wait) or await call_once()
    return show_answer(answered, printer, output)


def _continues_after_load(on: Session, answered: CallAnswer) -> bool:
    """Return whether a call that has just loaded its tool goes on: whoever types it has chosen the tool (X1: safe)."""
    tool = answered.tool
    return not answered.reason and tool is not None and on.agent.unloaded_call == "safe" and not is_destructive(tool)


async def _find_tool(board: Pegboard, printer: Printer, on: Session, name: str) -> Tool | None:
    """Return the tool that a name means, None where there is none that the agent may use."""
    await discover(board, printer, (await on.snapshot()).permissions, about=[name])
    await on.snapshot()
    if (found := on.known_tool(name)) is None:
        await on.decide(name, {})  # looks also into a plugin that has not been asked for its tools
        found = on.known_tool(name)
    return found


async def _print_tool_help(board: Pegboard, printer: Printer, options: Options, name: str) -> int:
    """Print what a tool takes."""
    on = await open_session(board, options)
    tool = await _find_tool(board, printer, on, name)
    if tool is None:
        decided = (await on.decide(name, {})).answer or answer("not_found", f"Tool '{name[:100]}' was not found.")
        return show_answer(decided, printer, ResultOutput())
    if printer.as_json:
        described = {"name": tool.wire, "description": tool.description, "input_schema": tool.input_schema}
        printer.document(UnmaskedText(described))
    else:
        printer.show(help_of(tool))
    return DONE


async def _wait_for_decision(board: Pegboard, printer: Printer, waits: CallAnswer, seconds: float) -> CallAnswer | None:
    """Wait until a person has decided about a call; return the answer that it has where no one did, else None."""
    approval, store = cast("Any", waits.approval), board.services.store
    printer.note(f"pegboard: {waits.message}\npegboard: approval {approval.id}")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        known = await store.approval(approval.id)
        if known is None or known.as_of(store.clock()).status != "waiting":
            return None
        await asyncio.sleep(min(GLANCE, max(until - time.monotonic(), 0)))
    return waits


def _seconds(text: str | None) -> float:
    if text is None:
        return 0.0
    if text == "forever":
        return math.inf
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise UsageError(f"--wait {text[:40]} is no time.", hint="Give a number of seconds, or forever.")
    return seconds
