"""What operators see and do, over every session and agent of a board."""

from __future__ import annotations

from pegboard.board.services import Services
from pegboard.board.views.operators.finding import SearchAnswer, find
from pegboard.board.views.operators.tool_explanations import OperatorExplanation, explain
from pegboard.board.views.operators.whole_catalog import WholeCatalog


class Operations:
    """What operators see and do, for adapters; each subject has a file of its own beside this one."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._whole = WholeCatalog(services)

    async def search(
        self, agent: str, query: str, *, principal: str = "local", session: str = "", limit: int = 20
    ) -> SearchAnswer:
        """Return what answers a text while somebody types: what the agent's model would find, and what else there is.

        It leaves no trace: nothing is remembered, recorded, loaded, started or asked.

        Args:
            agent: the agent's name.
            query: what was typed: a need in words, or a name.
            principal: whose session it is.
            session: its id; nothing is a new one.
            limit: how many hits there are at most, up to 100.

        Raises:
            UsageError: the query is no text, or the limit is below one.
            UnknownAgentError: there is no such agent.
            StoreError: the stored state cannot be read.
        """
        return await find(self._services, self._whole, agent, query, principal=principal, session=session, limit=limit)

    async def explain(
        self, agent: str, name: str, *, principal: str = "local", session: str = "", sub_app: str | None = None
    ) -> OperatorExplanation:
        """Return the four predicates for a name, the chain of reasons, and what would make it callable (F5).

        Where the name is not known, whatever can be asked is asked first.

        Args:
            agent: the agent's name.
            name: a tool or plugin; one that does not exist is explained, too.
            principal: whose session it is.
            session: its id; nothing is a new one.
            sub_app: what the session was opened with.

        Raises:
            UnknownAgentError: there is no such agent.
            StoreError: the stored state cannot be read.
        """
        return await explain(self._services, agent, name, principal=principal, session=session, sub_app=sub_app)
