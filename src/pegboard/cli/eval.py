"""`pegboard eval CASES`: for how many of one's own requests search finds the tool that is meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pegboard.board.views.search import checked_search
from pegboard.board.views.search import search as search_session
from pegboard.cli.common import Options, discover, open_session, run
from pegboard.cli.exit_codes import DONE, FAILED
from pegboard.cli.options import with_session_options
from pegboard.cli.rendering import Printer, TableColumn, UnmaskedText, plural
from pegboard.config.search_cases import search_cases
from pegboard.core.model.naming import did_you_mean
from pegboard.errors import ConfigError
from pegboard.problems import Problem

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.board import Session
    from pegboard.config.search_cases import SearchCase
    from pegboard.core.surface.explanations import Explanation

EXAMPLE = "pegboard eval requests.yaml --found 0.9"
AMONG: Final = 5
COLUMNS = (
    TableColumn("request", flexible=True),
    TableColumn("tool"),
    TableColumn("place", "right"),
    TableColumn("found instead", flexible=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedCase:
    """What search answered to a case: the names in their order, and the place of the first right one from 1, or 0."""

    case: SearchCase
    found: Sequence[str]
    place: int


@with_session_options
def evaluate(
    options: Options,
    cases: Annotated[
        Path, typer.Argument(metavar="CASES", help="A YAML or JSON file of requests, each with its tool.")
    ],
    found: Annotated[
        float,
        typer.Option("--found", metavar="SHARE", min=0.0, max=1.0, help="Exit with 1 where less than this is found."),
    ] = 0.0,
) -> int:
    """Measure how often search finds the right tool."""

    async def evaluate_cases(board: Pegboard, printer: Printer) -> int:
        listed = search_cases(cases)
        on = await open_session(board, options)
        await discover(board, printer, (await on.snapshot()).permissions)
        await _require_known(on, listed)
        answers = [await _search_case(board, on, case) for case in listed]
        within = sum(1 for answer in answers if answer.place)
        enough = within >= found * len(answers)
        if printer.as_json:
            printer.document(_document(answers, found, enough=enough))
        else:
            _print_answers(answers, found, printer, enough=enough)
        return DONE if enough else FAILED

    return run(options, evaluate_cases)


async def _require_known(on: Session, cases: Sequence[SearchCase]) -> None:
    """Raise where a case names a tool that the agent cannot use: that would count against the search."""
    snapshot = await on.snapshot()
    permissions = snapshot.permissions
    plugins = permissions.world.catalog.plugins.values()
    names = [tool.wire for plugin in plugins for tool in plugin.tools if permissions.permits(tool)]
    problems: list[Problem] = []
    for case in cases:
        for name in case.tools:
            if not (await on.explain(name)).permitted:
                hint = did_you_mean(name, names) or "`pegboard tools` lists what the agent may use."
                message = f"the agent '{on.key.agent}' has no tool '{name[:100]}'."
                problems.append(
                    Problem(severity="error", code="bad_value", message=message, hint=hint, place=case.place)
                )
    if problems:
        raise ConfigError("\n".join(map(str, problems)), problems=problems)


async def _search_case(board: Pegboard, on: Session, case: SearchCase) -> EvaluatedCase:
    """Search as the model would, in a conversation without a past; the search is not recorded."""
    needs = checked_search([case.request], AMONG, ())
    _, result = await search_session(board.services, await on.snapshot(), needs)
    names = [one.name for one in result.results if one.kind == "tool"]
    right = {name for tool in case.tools for name in _searchable_names(await on.explain(tool))}
    return EvaluatedCase(case=case, found=names, place=next((n for n, name in enumerate(names, 1) if name in right), 0))


def _searchable_names(explained: Explanation) -> tuple[str, str]:
    """Return the names by which a search may give a tool: its wire name, or its id where that is shared."""
    return explained.tool, explained.id


def _document(answers: Sequence[EvaluatedCase], required: float, *, enough: bool) -> dict[str, Any]:
    return {
        "cases": len(answers),
        "found": _share_found(answers, AMONG),
        "first": _share_found(answers, 1),
        "required": required,
        "ok": enough,
        "results": [
            {
                "request": answer.case.request,
                "tools": list(answer.case.tools),
                "place": answer.place or None,
                "found": [UnmaskedText(name) for name in answer.found],
            }
            for answer in answers
        ],
    }


def _print_answers(answers: Sequence[EvaluatedCase], required: float, printer: Printer, *, enough: bool) -> None:
    others = [answer for answer in answers if answer.place != 1]
    if others:
        rows = [
            (answer.case.request, " or ".join(answer.case.tools), str(answer.place or "-"), ", ".join(answer.found[:3]))
            for answer in others
        ]
        printer.table(COLUMNS, rows)
        printer.say()
    first, within = _share_found(answers, 1), _share_found(answers, AMONG)
    printer.say(
        f"{plural(len(answers), 'request')}: the tool is the first result of {first:.0%}, "
        f"and among the first {AMONG} of {within:.0%}."
    )
    if not enough:
        printer.note(f"pegboard: less than the {required:.0%} that --found asks for.")


def _share_found(answers: Sequence[EvaluatedCase], among: int) -> float:
    return sum(1 for answer in answers if 0 < answer.place <= among) / len(answers)


COMMANDS = {"eval": (evaluate, EXAMPLE)}
