"""What tokens cost at the prices of the configuration, exact: no price is known that no one wrote down (F4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from pegboard.core.model.agents import Agent
from pegboard.core.model.prices import PLACES, Prices, Tokens, amount, cost
from pegboard.operators.masked import Name, Verbatim
from pegboard.ports import Counts

MoneyPart = Literal["lists", "arguments", "results", "total", "saved"]

ASSUMED: Final = (
    "At the prices that the configuration has now. Lists are input; where a host keeps a prompt cache, the first"
    " request with a list writes it and those after it read it. Arguments are output. A result is input once, with"
    " the next request; the conversation around it is not counted."
)
"""What the amounts stand on, in one line for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """What tokens cost in one currency, as decimal numbers in texts.

    Attributes:
        currency: the code that the configuration gives.
        lists: the tools, hints and texts that models were sent.
        arguments: what they wrote to call.
        results: what they were answered.
        total: all three.
        saved: what listing everything would have cost more; less where it is negative.
    """

    currency: str
    lists: Verbatim
    arguments: Verbatim
    results: Verbatim
    total: Verbatim
    saved: Verbatim


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWithoutPrices:
    """An agent whose tokens have no price, and the model of `models:` whose prices would count."""

    agent: Name
    model: Name


class AgentCosts:
    """Adds up what counts of agents cost; ``agents`` are those that there are now."""

    __slots__ = ("_agents", "_sums", "without")

    def __init__(self, agents: Mapping[str, Agent]) -> None:
        self._agents = agents
        self._sums: dict[str, list[int]] = {}
        self.without = 0
        """How many tokens have no price."""

    def add(self, agent: str, counts: Counts) -> None:
        """Add what an agent came to."""
        known = self._agents.get(agent)
        prices = known.prices if known is not None else None
        if prices is None:
            self.without += counts.tokens + counts.arguments + counts.results
            return
        sums = self._sums.setdefault(prices.currency, [0, 0, 0, 0])
        for at, one in enumerate(costs_of(counts, prices)):
            sums[at] += one

    def money(self) -> tuple[Money, ...]:
        """Return what it came to, the currencies in order."""
        return tuple(
            Money(
                currency=currency,
                lists=amount(lists),
                arguments=amount(arguments),
                results=amount(results),
                total=amount(lists + arguments + results),
                saved=amount(saved),
            )
            for currency, (lists, arguments, results, saved) in sorted(self._sums.items())
        )

    def total(self) -> int:
        """Return what it came to, all currencies as one, to put rows in order."""
        return sum(lists + arguments + results for lists, arguments, results, _ in self._sums.values())


def costs_of(counts: Counts, prices: Prices) -> tuple[int, int, int, int]:
    """Return what lists, arguments and results cost, and what was saved; see :func:`cost`."""
    sent = Tokens(input=counts.tokens - counts.written - counts.cached, cached=counts.cached, written=counts.written)
    saved = Tokens(
        input=counts.saved - counts.saved_written - counts.saved_cached,
        cached=counts.saved_cached,
        written=counts.saved_written,
    )
    return (
        cost(sent, prices),
        cost(Tokens(output=counts.arguments), prices),
        cost(Tokens(input=counts.results), prices),
        cost(saved, prices),
    )


def price_text(money: Iterable[Money], part: MoneyPart = "total") -> str:
    """Return amounts for people; nothing where there are none.

    >>> one = Money(currency="USD", lists="1234.5", arguments="0", results="0.004", total="1234.504", saved="-2")
    >>> price_text([one]), price_text([one], "results"), price_text([one], "saved"), price_text([one], "arguments")
    ('USD 1,234.50', 'USD 0.0040', '-USD 2.00', 'USD 0.00')
    """
    return ", ".join(_price(one.currency, Decimal(getattr(one, part))) for one in money)


def _price(currency: str, value: Decimal) -> str:
    places = 2 if not value or abs(value) >= Decimal("0.1") else max(2, 1 - value.adjusted())
    return f"{'-' if value < 0 else ''}{currency} {abs(value):,.{min(places, PLACES)}f}"


def without_prices(agents: Mapping[str, Agent], names: Iterable[str]) -> tuple[AgentWithoutPrices, ...]:
    """Return which of some agents there are that have no prices, in order."""
    found = [agents[name] for name in sorted(set(names)) if name in agents]
    return tuple(AgentWithoutPrices(agent=one.name, model=one.model or "default") for one in found if not one.prices)
