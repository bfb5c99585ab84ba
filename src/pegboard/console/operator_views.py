"""What each operator works with: all of the board, or the part of its catalog that belongs to their agents (G2)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from pegboard.console.context import Context
from pegboard.console.entry.operator_access import Operator
from pegboard.errors import StoreError
from pegboard.operators.seen_catalog import services_of_agents

MOST: Final = 16
"""For how many different sets of agents a part of the catalog is kept; the one not asked for longest gives way."""


class OperatorViews:
    """The contexts of one console, by the agents that an operator sees."""

    def __init__(self, whole: Context, counted: Callable[[], object]) -> None:
        self._whole = whole
        self._counted = counted
        self._of_agents: OrderedDict[frozenset[str], Context] = OrderedDict()

    async def context_of(self, operator: Operator) -> Context:
        """Return the context of an operator."""
        agents = operator.agents
        if agents is None:
            return self._whole
        known = self._of_agents.pop(agents, None)
        if known is None:
            services = services_of_agents(self._whole.services, agents)
            subjects = self._whole.subjects.with_services(services, self._counted)
            known = replace(self._whole, services=services, subjects=subjects)
        self._of_agents[agents] = known
        with suppress(StoreError):  # as for operators of every agent: the pages that read the store say so
            await known.services.compiler.refresh()
        if len(self._of_agents) > MOST:
            _, oldest = self._of_agents.popitem(last=False)
            await oldest.subjects.aclose_catalog()
        return known

    async def aclose(self) -> None:
        """End what is computed for them."""
        for one in self._of_agents.values():
            await one.subjects.aclose_catalog()
