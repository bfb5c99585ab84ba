"""What each tool, server and toolkit came to: calls, failures, tokens and money (F4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pegboard.board.services import Services
from pegboard.core.model.agents import World
from pegboard.operators.masked import Name, mask_value, shown_names
from pegboard.operators.money import AgentCosts, Money
from pegboard.ports import CountFilter, CountRecord, Counts
from pegboard.ports.counts import DAY, NO_COUNTS, OTHER, start_of

FigureUnit = Literal["toolkit", "server", "tool"]
"""What a row stands for."""
_RAN: Final = ("ok", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFigures:
    """What came of a tool, server or toolkit.

    Attributes:
        name: its name; of a tool its id, nothing for what was too rare to be told apart.
        calls: the calls that ran.
        errors: how many of them failed.
        arguments: the tokens that models wrote to call it.
        results: the tokens of its answers.
        listed: the tokens of its tools in a list that has all of them; None where they are not known.
        money: what arguments and results cost.
        unpriced: how many of these tokens have no price.
    """

    name: Name
    calls: int
    errors: int
    arguments: int
    results: int
    listed: int | None
    money: tuple[Money, ...] = ()
    unpriced: int = 0


async def tool_figures(
    services: Services,
    unit: FigureUnit,
    *,
    days: int,
    agents: frozenset[str] | None = None,
    clock: Callable[[], float] = time.time,
) -> tuple[ToolFigures, ...]:
    """Return the figures of some days, today among them, what cost most first; raises ``StoreError``.

    A tool that is in several toolkits counts in each.
    """
    await services.billing.flush()
    until = start_of(DAY, clock()) + DAY.seconds
    of = CountFilter(agents=agents)
    by = ("agent", "server", "tool", "outcome")
    sums = await services.store.sums(DAY, since=until - days * DAY.seconds, until=until, by=by, of=of)
    groups = _FigureGroups(services, unit)
    found: dict[str, _FigureSum] = {}
    for record in sums.records:
        if record.server and record.outcome in _RAN:
            for name in groups.groups_of(record):
                found.setdefault(name, _FigureSum(services)).add(record)
    rows = [one.row(name, groups.tokens_listed(name)) for name, one in found.items()]
    order = sorted(rows, key=lambda row: (-found[row.name].till.total(), -(row.arguments + row.results), -row.calls))
    return mask_value(tuple(order), await shown_names(services))


class _FigureSum:
    """What the records of one row come to."""

    def __init__(self, services: Services) -> None:
        self.till = AgentCosts(services.world.agents)
        self._counts: Counts = NO_COUNTS
        self._errors = 0

    def add(self, record: CountRecord) -> None:
        self._counts = self._counts.plus(record.counts)
        self._errors += record.counts.calls if record.outcome == "error" else 0
        self.till.add(record.agent, record.counts)

    def row(self, name: str, listed: int | None) -> ToolFigures:
        return ToolFigures(
            name=name,
            calls=self._counts.calls,
            errors=self._errors,
            arguments=self._counts.arguments,
            results=self._counts.results,
            listed=listed,
            money=self.till.money(),
            unpriced=self.till.without,
        )


class _FigureGroups:
    """To which rows a record belongs, and what their tools take in a list."""

    def __init__(self, services: Services, unit: FigureUnit) -> None:
        self._services = services
        self._unit: FigureUnit = unit
        self._toolkits = _toolkits_by_tool(services.world) if unit == "toolkit" else {}

    def groups_of(self, record: CountRecord) -> Iterable[str]:
        rare = OTHER in (record.server, record.tool)
        match self._unit:
            case "server":
                return ("" if record.server == OTHER else record.server,)
            case "tool":
                return ("" if rare else record.tool,)
            case "toolkit":
                return self._toolkits.get(record.tool, ("",))

    def tokens_listed(self, name: str) -> int | None:
        world, prices = self._services.world, self._services.prices
        match self._unit:
            case "tool":
                tool = world.catalog.by_id(name)
                return prices((tool,)) if tool is not None else None
            case "server":
                plugin = world.catalog.plugins.get(name)
                return prices(plugin.tools) if plugin is not None and plugin.tools else None
            case "toolkit":
                toolkit = world.toolkits.get(name)
                entries = toolkit.entries(world.catalog) if toolkit is not None else ()
                tools = tuple({tool.id: tool for entry in entries for tool in entry.tools}.values())
                return prices(tools) if tools else None


def _toolkits_by_tool(world: World) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for name, tool_id in _members(world):
        found.setdefault(tool_id, []).append(name)
    return {tool_id: tuple(names) for tool_id, names in found.items()}


def _members(world: World) -> Iterator[tuple[str, str]]:
    for name, toolkit in world.toolkits.items():
        for tool_id in dict.fromkeys(tool.id for entry in toolkit.entries(world.catalog) for tool in entry.tools):
            yield name, tool_id
