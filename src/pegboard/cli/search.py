"""`pegboard search`: what an agent would find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.common import Options, discover, open_session, run
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import on_session
from pegboard.cli.rendering import Given, Printer, TableColumn

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.dialects.names import FoundTool

EXAMPLE = "pegboard search 'read a file' 'commit changes' --limit 3"

COLUMNS = (
    TableColumn("name"),
    TableColumn("kind"),
    TableColumn("plugin"),
    TableColumn("score", "right"),
    TableColumn("loaded"),
    TableColumn("required"),
    TableColumn("description", flexible=True),
)


@on_session
def search(
    options: Options,
    words: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="What is needed; put quotes around each of several things.")
    ],
    limit: Annotated[int, typer.Option("--limit", metavar="COUNT", min=1, max=100, help="How many results.")] = 5,
) -> int:
    """Search the tools that the agent may use."""

    async def searched(board: Pegboard, printer: Printer) -> int:
        on = await open_session(board, options)
        await discover(board, printer, (await on.snapshot()).permissions, known_is_enough=True)
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
            printer.show(f"\nFurther: {', '.join(more)}")
        if found.hint:
            printer.say(f"\n{found.hint}")
        return DONE

    return run(options, searched)


def queries_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return one query per quoted text; plain words are one query together.

    >>> queries_of(["read", "a", "file"]), queries_of(["read a file", "commit"])
    (('read a file',), ('read a file', 'commit'))
    """
    return tuple(words) if any(" " in word.strip() for word in words) else (" ".join(words),)


def _result_json(one: FoundTool) -> dict[str, object]:
    return {
        "name": Given(one.name),
        "kind": one.kind,
        "plugin": Given(one.plugin),
        "description": Given(one.description),
        "score": one.score,
        "loaded": one.loaded,
    }


def _row(one: FoundTool) -> tuple[object, ...]:
    stands = {"callable": "yes", "next_request": "next request", "loadable": "", "unavailable": "unavailable"}
    required, text = Given(", ".join(one.required)), one.reason or Given(one.sentence)
    name, plugin = Given(one.name), Given(one.plugin)
    return name, one.kind, plugin, f"{one.score:.2f}", stands[one.status], required, text
