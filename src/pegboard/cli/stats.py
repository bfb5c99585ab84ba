"""`pegboard stats`: what went on, and which tools, agents and servers were busiest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from pegboard.cli.common import Options, run
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import ConfigOption, JsonOption
from pegboard.cli.rendering import Printer, TableColumn, plural
from pegboard.errors import UsageError
from pegboard.operators.money import price_text
from pegboard.operators.usage import UsageQuery, UsageReader

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.operators.usage import Usage, UsageRow

EXAMPLE = "pegboard stats --since 7d --by agent"
By = Literal["tool", "agent", "server"]
COLUMNS = ("calls", "failed", "refused", "asked", "p50", "p95")
_SECONDS: Final = {"h": 3_600, "d": 86_400, "w": 7 * 86_400}
_LONGEST: Final = 400 * 86_400


def stats(
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="How far back: 1h, 2d, 3w.")] = "7d",
    by: Annotated[By, typer.Option("--by", metavar="tool|agent|server", help="What each row stands for.")] = "tool",
    limit: Annotated[
        int, typer.Option("--limit", metavar="COUNT", min=1, help="How many rows, the busiest first.")
    ] = 20,
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Show how often each tool was called, and how often it failed."""

    async def print_stats(board: Pegboard, printer: Printer) -> int:
        query = UsageQuery(seconds=_seconds(since), agent=agent, limit=limit)
        found = await UsageReader(board.services).usage(query)
        if printer.as_json:
            from dataclasses import asdict

            printer.document(asdict(found))
        else:
            _print(found, by, printer)
        return DONE

    return run(Options(config=config, as_json=as_json), print_stats)


def _seconds(text: str) -> int:
    match = re.fullmatch(r"([1-9][0-9]{0,5})([hdw])", text)
    if match is None or (seconds := int(match[1]) * _SECONDS[match[2]]) > _LONGEST:
        raise UsageError(
            f"'{text}' is not a duration.",
            hint="--since takes hours, days or weeks such as 1h, 2d or 3w; 400 days at most.",
        )
    return seconds


def _print(found: Usage, by: By, printer: Printer) -> None:
    rows = {"tool": found.tools, "agent": found.agents, "server": found.servers}[by]
    more = {"tool": found.more_tools, "agent": found.more_agents, "server": found.more_servers}[by]
    if not rows:
        printer.say("Nothing was called.")
    else:
        names = (*COLUMNS, "cost") if found.money else COLUMNS
        columns = (TableColumn(by, flexible=True), *(TableColumn(name, "right") for name in names))
        costs = [(price_text(row.money),) if found.money else () for row in rows]
        printer.table(columns, [(*_cells(row), *cost) for row, cost in zip(rows, costs, strict=True)])
    if more:
        printer.note(f"{plural(more, by)} more {'is' if more == 1 else 'are'} not listed: --limit lists more.")
    totals = found.totals
    if totals.lists:
        printer.say(f"{totals.tokens:,} tokens of tools sent, {totals.saved:,} saved.")
    if totals.arguments or totals.results:
        estimated = f", {totals.estimated:,} of these an estimate" if totals.estimated else ""
        printer.note(f"{totals.arguments:,} tokens of arguments, {totals.results:,} of results{estimated}.")
    if found.money:
        saved = price_text(found.money, "saved")
        printer.note(f"All of it cost {price_text(found.money)}; listing every tool would have cost {saved} more.")
        printer.note(found.assumed)
    if found.damaged:
        printer.note(f"{plural(found.damaged, 'row')} of the store cannot be read.")


def _cells(row: UsageRow) -> tuple[str, ...]:
    name = "others, too rare to be listed" if row.name == "*" else row.name
    counts = (row.calls, row.errors, row.refused, row.waits)
    return (name, *(f"{count:,}" for count in counts), _milliseconds(row.p50), _milliseconds(row.p95))


def _milliseconds(value: float | None) -> str:
    """Return a duration in two digits, since the counts tell it within 5% and no better.

    >>> _milliseconds(6532.1), _milliseconds(957.73), _milliseconds(3.26), _milliseconds(None)
    ('6,500 ms', '960 ms', '3.3 ms', '')
    """
    if value is None:
        return ""
    shown = float(f"{value:.2g}")
    return f"{shown:,.1f} ms" if shown < 10 else f"{shown:,.0f} ms"
