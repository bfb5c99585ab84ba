"""Run conversations with each adapter against providers that cache, and print what they cost."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from benchmarks.bill.adapters import MODELS, Adapter, adapters
from benchmarks.bill.cache import ANSWER, LEAST, OUTPUT, READ, WRITE, Cost
from benchmarks.bill.clients import quick_clients
from benchmarks.bill.conversations import Turn, hundred, system_text, ten
from benchmarks.bill.langchain_agents import langchain_agents
from benchmarks.bill.loops import loops
from benchmarks.bill.model import Habit, ScriptedModel
from benchmarks.bill.provider import Provider
from benchmarks.bill.requests_read import FORMS, KINDS, Form
from benchmarks.bill.sdk_agents import sdk_agents
from benchmarks.bill.tool_search import RULE, ToolSearch
from benchmarks.bill.toolkits import read, write
from pegboard.tokens import OfflineTokenCounter

RULES = 216
"""Rules of system text that take 8,000 tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One conversation of one adapter with one provider: what it took, in plain input tokens."""

    conversation: str
    form: Form
    system: int
    adapter: str
    calls: int
    at_once: int
    breaks: int
    read: float
    bill: float
    parts: Mapping[str, float]
    """The bill of each kind of block, and of what the model answers."""
    ratio: float | None = None


async def measure(
    adapter: Adapter,
    form: Form,
    turns: Sequence[Turn],
    system: str,
    habit: Habit,
    count: Callable[[str], int],
    search: ToolSearch,
) -> tuple[Provider, ScriptedModel]:
    """Return the provider after a conversation, and its model."""
    model = ScriptedModel(habit)
    with Provider(form, model, count, search) as provider:
        async with adapter.talk(form, provider.url, system) as say:
            for turn in turns:
                model.begin(turn)
                await say(turn.message)
    return provider, model


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks bill", description=__doc__)
    parser.add_argument("--habit", choices=("loads", "searches"), default="loads", help="what the model does")
    parser.add_argument("--form", choices=FORMS, action="append", help="only this form")
    parser.add_argument(
        "--adapter", action="append", help="only the adapters with these names, and what they are beside"
    )
    parser.add_argument("--turns", choices=("ten", "hundred"), action="append", help="only this conversation")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--slow-clients", action="store_true", help="the clients do all that they do")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, nullcontext() if options.slow_clients else quick_clients():
        cells = asyncio.run(_cells(Path(folder), options))
    if options.json:
        print(json.dumps([asdict(cell) for cell in cells], indent=2))
        return 0
    _print(cells, options.habit)
    return 0


async def _cells(folder: Path, options: argparse.Namespace) -> list[Cell]:
    toolkits, count = read(), OfflineTokenCounter().count
    config = write(toolkits, folder)
    known = (
        *adapters(toolkits, config),
        *langchain_agents(toolkits, config),
        *sdk_agents(toolkits, config),
        *loops(toolkits, config),
    )
    wanted = [one for one in known if not options.adapter or one.name in options.adapter]
    names = {name for one in wanted for name in (one.name, one.beside)}
    measured = [one for one in known if one.name in names]
    talks = {"ten": ten(toolkits), "hundred": hundred(toolkits)}
    cells: list[Cell] = []
    for conversation, form, rules in product(options.turns or talks, options.form or FORMS, (0, RULES)):
        system, bills = system_text(rules), dict[str, float]()
        for adapter in (one for one in measured if form in one.forms):
            print(f"{conversation} {form} {adapter.name} …", file=sys.stderr)
            provider, model = await measure(
                adapter, form, talks[conversation], system, options.habit, count, ToolSearch(toolkits)
            )
            read_share = sum(one.read for one in provider.costs) / sum(one.total for one in provider.costs)
            bill = bills[adapter.name] = sum(one.bill for one in provider.costs)
            cells.append(
                Cell(
                    conversation=conversation,
                    form=form,
                    system=count(system),
                    adapter=adapter.name,
                    calls=len(provider.costs),
                    at_once=model.at_once,
                    breaks=provider.breaks,
                    read=read_share,
                    bill=bill,
                    parts=_parts(provider.costs),
                    ratio=bill / bills[adapter.beside] if adapter.beside else None,
                )
            )
    return cells


def _parts(costs: Sequence[Cost]) -> dict[str, float]:
    """Return what a conversation's blocks cost by their kind, and the answers of its model."""
    parts: dict[str, float] = {kind: sum(cost.by_kind[kind] for cost in costs) for kind in KINDS}
    return {**parts, "answers": float(len(costs) * ANSWER * OUTPUT)}


def _print(cells: Sequence[Cell], habit: Habit) -> None:
    models = ", ".join(f"{form}: {model}" for form, model in MODELS.items())
    prices = (
        f"Reads {READ}, writes {WRITE['anthropic']} (OpenAI {WRITE['chat']}), {ANSWER} tokens an answer at {OUTPUT}"
    )
    print(f"\n## bill\n\n{prices}, cached from {LEAST} tokens on; the bill is in thousands of plain input tokens.")
    print(f"Models: {models}. Where its tool is not visible the model {habit}.\n")
    if any(cell.adapter.startswith(("loop", "LangChain", "OpenAI")) for cell in cells):
        print(f"{RULE}\n")
    heads = (
        "turns",
        "form",
        "system",
        "adapter",
        "calls",
        "at once",
        "breaks",
        "from cache",
        "bill",
        "of it",
        "ratio",
    )
    print(f"| {' | '.join(heads)} |")
    print("|" + "---|" * len(heads))
    for cell in cells:
        ratio = "" if cell.ratio is None else f"{cell.ratio:.2f}"
        numbers = f"{cell.calls} | {cell.at_once} | {cell.breaks} | {cell.read:.0%} | {cell.bill / 1000:.1f}"
        parts = ", ".join(f"{name} {part / 1000:.1f}" for name, part in cell.parts.items())
        print(f"| {cell.conversation} | {cell.form} | {cell.system} | {cell.adapter} | {numbers} | {parts} | {ratio} |")
    print()
    for name in dict.fromkeys(cell.adapter for cell in cells if cell.ratio is not None):
        mine = [cell for cell in cells if cell.adapter == name and cell.ratio is not None]
        ratios = [cell.ratio for cell in mine if cell.ratio is not None]
        breaks = max(cell.breaks for cell in mine)
        calls = sum(cell.calls for cell in mine)
        print(
            f"{name}: {statistics.mean(ratios):.2f} in the mean, {max(ratios):.2f} at worst; "
            f"{calls} model calls, at most {breaks} breaks in a conversation"
        )
