"""`pegboard search`: what an agent would find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pegboard.cli.common import Options, discover, open_session, run
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import with_session_options
from pegboard.cli.rendering import Printer, UnmaskedText
from pegboard.core.model.naming import one_line

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.dialects.names import FoundTool

LONGEST_TEXT: Final = 300
EXAMPLE = "pegboard search 'read a file' 'commit changes' --limit 3"


@with_session_options
def search(
    options: Options,
    words: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="What you need. Put quotes around each of several needs.")
    ],
    limit: Annotated[int, typer.Option("--limit", metavar="COUNT", min=1, max=100, help="How many results.")] = 5,
) -> int:
    """Search the tools that the agent may use."""

    async def print_hits(board: Pegboard, printer: Printer) -> int:
        on = await open_session(board, options)
        await discover(board, printer, (await on.snapshot()).permissions, known_is_enough=True)
        found = await on.search(*queries_of(words), limit=limit)
        if printer.as_json:
            results = [_result_json(one) for one in found.results]
            printer.document({"query": "; ".join(found.query), "results": results, "hint": found.hint})
            return DONE
        for one in found.results:
            printer.show(_line(one))
        if not found.results:
            printer.say("Nothing fits.")
        if more := (*found.further, *found.siblings):
            printer.show(f"Further: {', '.join(more)}")
        if any(one.kind == "tool" for one in found.results):
            printer.say("The arguments of a tool: pegboard call NAME --help")
        return DONE

    return run(options, print_hits)


def queries_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return one query per quoted text; plain words are one query together.

    >>> queries_of(["read", "a", "file"]), queries_of(["read a file", "commit"])
    (('read a file',), ('read a file', 'commit'))
    """
    return tuple(words) if any(" " in word.strip() for word in words) else (" ".join(words),)


def _result_json(one: FoundTool) -> dict[str, object]:
    return {
        "name": UnmaskedText(one.name),
        "kind": one.kind,
        "plugin": UnmaskedText(one.plugin),
        "description": UnmaskedText(one.description),
        "score": one.score,
        "loaded": one.loaded,
    }


def _line(one: FoundTool) -> str:
    """Return a result in one line: its name with what it requires, whether it can run, and what it does."""
    required = f"({', '.join(one.required)})" if one.kind == "tool" else f" ({one.kind})"
    why = f"unavailable: {one.reason}" if one.status == "unavailable" else one.reason or one.sentence
    return f"{one.name}{required}  {one_line(why, limit=LONGEST_TEXT)}"
