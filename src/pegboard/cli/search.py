"""`pegboard search`: what an agent would find."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.common import DONE, LONGEST_WAIT, Options, discover, open_session, run
from pegboard.cli.options import on_session
from pegboard.cli.rendering import Column, Printer

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.board.snapshot import Snapshot
    from pegboard.dialects.names import FoundTool

POLL_SECONDS = 0.05
QUIET_WAIT = 2.0
"""How long it waits for the transformer without saying so, in seconds."""
EXAMPLE = "pegboard search 'read a file' 'commit changes' --limit 3"

COLUMNS = (
    Column("name"),
    Column("kind"),
    Column("plugin"),
    Column("score", "right"),
    Column("loaded"),
    Column("required"),
    Column("description", flexible=True),
)


@on_session
def search(
    options: Options,
    words: Annotated[
        list[str], typer.Argument(metavar="QUERY...", help="What is needed; put quotes around each of several things.")
    ],
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many results.")] = 5,
) -> int:
    """Search the tools that the agent may use."""

    async def searched(board: Pegboard, printer: Printer) -> int:
        on = await open_session(board, options)
        await discover(board, printer, (await on.snapshot()).permissions)
        if board.configuration.transformer is not None:
            await _transformed(board, printer, await on.snapshot())
        found = await on.search(*queries_of(words), limit=limit)
        if printer.as_json:
            results = [_result_json(one) for one in found.results]
            printer.document({"query": "; ".join(found.query), "results": results, "hint": found.hint})
            return DONE
        if found.results:
            printer.table(COLUMNS, [_row(one) for one in found.results])
        else:
            printer.say("Nothing fits.")
        if more := (*found.further, *found.siblings):
            printer.say(f"\nFurther: {', '.join(more)}")
        if found.hint:
            printer.say(f"\n{found.hint}")
        return DONE

    return run(options, searched)


async def _transformed(board: Pegboard, printer: Printer, snapshot: Snapshot) -> None:
    """Wait for the transformer to read what may be found; a search by itself never does."""
    from pegboard.core.surface.searchable import searchable

    await board.services.ranker.prepare(searchable(snapshot.permissions, snapshot.state.loadout))
    if not await _read_within(board, QUIET_WAIT):
        with printer.working("The transformer reads the tools", lasting=True):
            await _read_within(board, LONGEST_WAIT)
    if reading := board.transformer_reading:
        read, wanted = reading
        printer.note(
            f"pegboard: the transformer has read {read} of {wanted} tools, so this search goes by words and the table"
            " alone; the next one goes on from there."
        )


async def _read_within(board: Pegboard, seconds: float) -> bool:
    for _ in range(round(seconds / POLL_SECONDS)):
        if board.transformer_reading is None:
            break
        await asyncio.sleep(POLL_SECONDS)
    return board.transformer_reading is None


def queries_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return one query per quoted text; plain words are one query together.

    >>> queries_of(["read", "a", "file"]), queries_of(["read a file", "commit"])
    (('read a file',), ('read a file', 'commit'))
    """
    return tuple(words) if any(" " in word.strip() for word in words) else (" ".join(words),)


def _result_json(one: FoundTool) -> dict[str, object]:
    return {
        "name": one.name,
        "kind": one.kind,
        "plugin": one.plugin,
        "description": one.description,
        "score": one.score,
        "loaded": one.loaded,
    }


def _row(one: FoundTool) -> tuple[str, ...]:
    stands = {"callable": "yes", "next_request": "next request", "loadable": "", "unavailable": "unavailable"}
    required, text = ", ".join(one.required), one.reason or one.sentence
    return one.name, one.kind, one.plugin, f"{one.score:.2f}", stands[one.status], required, text
