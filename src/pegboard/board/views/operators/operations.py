"""What operators see and do, over every session and agent of a board."""

from __future__ import annotations

from pegboard.board.services import Services
from pegboard.board.views.operators import deletion, session_list, session_overview
from pegboard.board.views.operators.preview import SwitchPreview, preview
from pegboard.board.views.operators.session_list import SessionPage
from pegboard.board.views.operators.session_overview import SessionOverview
from pegboard.ports import SessionKey


class Operations:
    """What operators see and do, for adapters; each subject has a file of its own beside this one."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def preview(self, agent: str, name: str, value: bool | None) -> SwitchPreview:
        """Return what a switch would change, for the agent and in every session of it; nothing is changed (P2, P4).

        Args:
            agent: the agent's name.
            name: a toolkit, plugin or tool.
            value: True, False, or None to take the stored switch back.

        Raises:
            UnknownAgentError: there is no such agent.
            UsageError: the name means nothing known, or the value is no boolean.
            StoreError: sessions or switches cannot be read.
        """
        return await preview(self._services, agent, name, value)

    async def sessions(
        self,
        *,
        agent: str | None = None,
        principal: str | None = None,
        query: str = "",
        offset: int = 0,
        limit: int = 50,
    ) -> SessionPage:
        """Return a page of the sessions that are stored or had a surface in this process, the newest change first.

        Args:
            agent: only those of this agent.
            principal: only those of this one.
            query: words that all stand in principal, agent or id, in any case.
            offset: how many are passed over.
            limit: how many there are at most.

        Raises:
            StoreError: they cannot be read.
        """
        return await session_list.list_sessions(
            self._services, agent=agent, principal=principal, query=query, offset=offset, limit=limit
        )

    async def session(self, principal: str, agent: str, session: str) -> SessionOverview | None:
        """Return one session, or None where nothing is known of it; it starts nothing and stores nothing.

        Args:
            principal: whose it is.
            agent: the agent's name.
            session: its id.

        Raises:
            StoreError: it cannot be read.
        """
        key = SessionKey(principal=principal, agent=agent, session=session)
        return await session_overview.overview(self._services, key)

    async def delete_session(self, key: SessionKey, *, by: str) -> bool:
        """Return whether there was something to delete of a session; the next use of its name begins anew (X4).

        Args:
            key: whose session, of which agent, under which id.
            by: who deletes it, for the audit trail.

        Raises:
            StoreError: it cannot be deleted.
        """
        return await deletion.delete_session(self._services, key, by)
