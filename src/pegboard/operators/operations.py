"""What operators see and do, over every session and agent of a board."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date

from pegboard.board.services import Services
from pegboard.core.access.pauses import Pauses, pauses_of
from pegboard.core.access.permissions import LOCAL
from pegboard.core.model.tools import JsonObject
from pegboard.operators import (
    audit,
    calls,
    explain,
    search,
    sent,
    servers,
    sessions,
    switch_preview,
    switches,
    together,
    trying,
)
from pegboard.operators.approvals import OperatorApprovals
from pegboard.operators.attention import Attention, HookFault, Situation, attention
from pegboard.operators.audit import AuditLine, AuditPage, AuditQuery
from pegboard.operators.bill import Bill, BillQuery, BillReader, BillUnit
from pegboard.operators.calls import CallOverview, Sees
from pegboard.operators.configuration import ConfigurationState, without_lines
from pegboard.operators.counting import CatalogCounting
from pegboard.operators.explain import OperatorExplanation
from pegboard.operators.known_problems import KnownProblems
from pegboard.operators.logins import OperatorLogins
from pegboard.operators.matrix import MatrixReader
from pegboard.operators.pins import OperatorPins, waiting
from pegboard.operators.schema_fields import FieldProblem
from pegboard.operators.search import AgentPermission, CommonAnswer, SearchAnswer, WholeCatalog
from pegboard.operators.sent import SentToModel
from pegboard.operators.server_usage import ServerUsage, server_usage
from pegboard.operators.servers import ServerState, ServerTool
from pegboard.operators.sessions import SessionOverview, SessionPage
from pegboard.operators.switch_preview import ParsedLeases, SwitchPreview
from pegboard.operators.switches import GroupKind, PanelPage, PanelTexts
from pegboard.operators.timeline import LINES, Timeline, timeline
from pegboard.operators.together import ActionDone, Together, TogetherPreview
from pegboard.operators.trying import ToolForm, ToolTrial
from pegboard.operators.usage import Usage, UsageQuery, UsageReader
from pegboard.ports import PrintedLine, SessionKey


class Operations:
    """What operators see and do, for adapters; each subject has a file of its own beside this one.

    Args:
        services: the services of the board.
        counted: called when something is known that somebody had to go without: the tokens of all tools, what is wrong.
    """

    def __init__(self, services: Services, counted: Callable[[], object] = lambda: None) -> None:
        self._services = services
        self._counting = CatalogCounting(services, counted)
        self._problems = KnownProblems(services, counted)
        self._whole = WholeCatalog(services)
        self._panel_texts = PanelTexts()
        self._parsed = ParsedLeases()
        self._usage = UsageReader(services)
        self._bills = BillReader(services)
        self.approvals = OperatorApprovals(services)
        self.pins = OperatorPins(services)
        self.logins = OperatorLogins(services)
        self.matrix = MatrixReader(services).matrix

    async def aclose(self) -> None:
        """End what goes on beside what was asked for; a search that waits for it says ``indexing``."""
        await self._usage.aclose()
        await self._bills.aclose()
        await self._whole.aclose()
        await self._problems.aclose()
        await self._counting.aclose()

    async def bill(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        agent: str | None = None,
        agents: frozenset[str] | None = None,
        principal: str | None = None,
        session: str | None = None,
        by: BillUnit = "day",
        limit: int = 400,
        step_hours: int | None = None,
        kept: float = 0.0,
    ) -> Bill:
        """Return what models were sent and did (F4).

        Args:
            since: the first day (UTC); None is the oldest that is kept.
            until: the last day; None is today.
            agent: only what this one came to.
            agents: nothing of others than these.
            principal: only what was done for this one.
            session: only what was done in this one.
            by: what a row stands for.
            limit: how many rows there are at most; the others are summed up.
            step_hours: how many hours a step of the curve has; None is days.
            kept: an answer to the same of so many seconds ago is enough; of up to a minute ago while one is read.

        Raises:
            StoreError: it cannot be read.
        """
        query = BillQuery(
            by=by,
            since=since,
            until=until,
            principal=principal,
            agent=agent,
            agents=agents,
            session=session,
            limit=limit,
            step_hours=step_hours,
        )
        return await self._bills.bill(query, kept)

    async def usage(self, query: UsageQuery) -> Usage:
        """Return what went on in the last so many seconds: curves, and what was busiest (F4).

        Args:
            query: how far back, and of which agents.

        Raises:
            StoreError: it cannot be read.
        """
        return await self._usage.usage(query)

    async def audit(self, query: AuditQuery) -> AuditPage:
        """Return a page of the audit trail (X4).

        Args:
            query: which records, and which page of them.

        Raises:
            StoreError: it cannot be read.
        """
        return await audit.audit(self._services, query)

    async def call(self, number: int, sees: Sees) -> CallOverview:
        """Return one call: what it was given and answered, its times, what came before and after it (X4).

        Args:
            number: that of its record.
            sees: whether the operator sees an agent.

        Raises:
            UsageError: there is none of this number, not any more, or the operator does not see its agent.
            StoreError: it cannot be read.
        """
        return await calls.call(self._services, number, sees)

    async def call_again(self, number: int, sees: Sees, *, by: str) -> ToolTrial:
        """Make a call once more as its agent, for the operator as the principal, and return what came of it.

        Args:
            number: that of its record.
            sees: whether the operator sees an agent.
            by: who calls.

        Raises:
            UsageError: there is no such call, or its arguments are not kept as they were.
            UnknownAgentError: its agent is not configured any more.
            StoreError: something cannot be read or stored.
        """
        return await calls.call_again(self._services, number, sees, by=by)

    async def timeline(self, key: SessionKey, *, before: int | None = None, limit: int = LINES) -> Timeline:
        """Return what happened in a session, turn by turn, the newest first (X4).

        Args:
            key: whose session, of which agent, under which id.
            before: the cursor of a part, for what is older.
            limit: how many records there are at most.

        Raises:
            StoreError: it cannot be read.
        """
        return await timeline(self._services, key, before=before, limit=limit)

    def export(self, query: AuditQuery) -> AsyncIterator[tuple[AuditLine, ...]]:
        """Return an iterator over all records that are wanted in small parts, newest first.

        Args:
            query: which records; its ``limit`` and ``after`` do not count.
        """
        return audit.export(self._services, query)

    async def configuration(self, read: ConfigurationState) -> ConfigurationState:
        """Return the newest reading of the configuration, with what is wrong as far as plugins are known.

        Args:
            read: what became of that reading.

        Returns:
            It with ``of_plugins``; nothing is started, imported or counted for it.

        Raises:
            StoreError: the stored switches cannot be read.
        """
        return replace(read, of_plugins=without_lines(await self._problems.now(), self._services.masker))

    async def attention(
        self,
        read: ConfigurationState,
        edits: Sequence[str],
        *,
        agents: frozenset[str] | None = None,
        hooks: Sequence[HookFault] = (),
        limit: int = 50,
    ) -> Attention:
        """Return what needs a person, the most urgent first (F5).

        Args:
            read: what became of the newest reading of the configuration.
            edits: what of it waits to be accepted, as texts.
            agents: nothing of others than these, nor of what all agents share; None is everything.
            hooks: the hooks that do not take messages.
            limit: how many items there are at most.

        Raises:
            StoreError: approvals or switches cannot be read.
        """
        bounded = (name for name, agent in self._services.world.agents.items() if agent.budget)
        if agents is None or not agents.isdisjoint(bounded):
            read = await self.configuration(read)
        situation = Situation(
            services=self._services,
            read=read,
            edits=edits,
            budgets=self._problems.budgets,
            agents=agents,
            hooks=hooks,
        )
        return await attention(situation, limit=limit)

    def troubled(self) -> int:
        """Return how many servers and plugins need somebody to look.

        Returns:
            The number; nothing is started or read for it.
        """
        return servers.troubled(self._services)

    def waiting_tools(self) -> int:
        """Return how many tools of servers wait for a person, since they changed or are new.

        Returns:
            The number; nothing is started or read for it.
        """
        return waiting(self._services)

    async def servers(self) -> tuple[ServerState, ...]:
        """Return the state of every server and plugin of the configuration, in its order.

        Returns:
            Their states; nothing is started for them.

        Raises:
            StoreError: the stored switches cannot be read.
        """
        return await servers.servers(self._services, self._counting)

    async def server_usage(self) -> tuple[ServerUsage, ...]:
        """Return what came of every server and plugin that was called in the last 24 hours, the busiest first.

        Raises:
            StoreError: it cannot be read.
        """
        return await server_usage(self._services)

    async def server(self, name: str) -> ServerState:
        """Return the state of one server or plugin.

        Args:
            name: its name in the configuration.

        Returns:
            Its state; nothing is started for it.

        Raises:
            UsageError: there is none of this name.
            StoreError: the stored switches cannot be read.
        """
        return await servers.server(self._services, name)

    async def server_tools(self, name: str, *, offset: int = 0, limit: int = 50) -> tuple[ServerTool, ...]:
        """Return some of the tools of a server or plugin, with what each costs.

        Args:
            name: its name in the configuration.
            offset: how many come before.
            limit: how many there are at most.

        Raises:
            UsageError: there is none of this name.
        """
        return await servers.server_tools(self._services, name, offset, limit)

    async def server_log(self, name: str) -> tuple[PrintedLine, ...]:
        """Return what a server printed, the newest last, also of its processes that have ended.

        Args:
            name: its name in the configuration.

        Returns:
            At most 200 lines and 64 KiB of each connection; none of a plugin that runs in this process.

        Raises:
            UsageError: there is none of this name.
        """
        return await servers.server_log(self._services, name)

    async def restart(self, name: str, *, by: str = LOCAL) -> ServerState:
        """Start a server anew and ask for its tools again; calls under way fail as where it dies.

        A plugin of this process is asked again where it cannot run.

        Args:
            name: its name in the configuration.
            by: who wants it, for the audit trail.

        Returns:
            Its state once that is known; a server that takes longer than 5 s is still starting.

        Raises:
            UsageError: there is none of this name, it runs in this process and works, or ``by`` is no short text.
            ToolUnavailableError: it cannot be started as it is configured.
            StoreError: it cannot be written down, and nothing was restarted.
        """
        return await servers.restart(self._services, name, by)

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
        return await search.find(
            self._services, self._whole, agent, query, principal=principal, session=session, limit=limit
        )

    async def search_all(self, agents: Sequence[str], query: str, *, limit: int = 20) -> CommonAnswer:
        """Return what answers a text of all that there is, and how many of these agents may use each; without a trace.

        Args:
            agents: the names of the agents that count.
            query: what was typed: a need in words, or a name.
            limit: how many hits there are at most, up to 100, beside what the text names.

        Raises:
            UsageError: the query is no text, or the limit is below one.
            UnknownAgentError: there is no such agent.
            StoreError: the stored switches cannot be read.
        """
        return await search.find_for_all(self._services, self._whole, agents, query, limit=limit)

    def unasked(self) -> tuple[str, ...]:
        """Return the names of the plugins that were not asked for their tools yet: nothing of them is found."""
        return servers.unasked(self._services)

    async def ask(self) -> tuple[str, ...]:
        """Ask every plugin for its tools that was not asked yet, and start its server where it has one.

        Returns:
            The names of those that have not answered in time; they are asked on.
        """
        return await servers.ask(self._services)

    async def who_may_use(self, agents: Sequence[str], name: str) -> tuple[AgentPermission, ...]:
        """Return of each of these agents whether it may use something, and what would permit it.

        Args:
            agents: the names of the agents.
            name: a tool, plugin or toolkit.

        Returns:
            One for each agent; none where nothing that is known has this name.

        Raises:
            UnknownAgentError: there is no such agent.
            StoreError: the stored switches cannot be read.
        """
        return await search.who_may_use(self._services, agents, name)

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
        return await explain.explain(self._services, agent, name, principal=principal, session=session, sub_app=sub_app)

    async def panel(
        self, agent: str, *, query: str = "", offset: int = 0, limit: int = 50, permitted_first: bool = False
    ) -> PanelPage:
        """Return a page of what can be switched of an agent: toolkits, then plugins with what stands in none (P2, T6).

        Plugins written in Python are asked for their tools first; servers are not started.

        Args:
            agent: the agent's name.
            query: words that all stand in a row's label, name or description, or in those of one of its members.
            offset: how many rows are passed over.
            limit: how many there are at most.
            permitted_first: whether what the agent may use comes first.

        Raises:
            UnknownAgentError: there is no such agent.
            StoreError: the stored switches cannot be read.
        """
        return await switches.panel_page(
            self._services,
            self._panel_texts,
            self._counting,
            agent,
            query=query,
            offset=offset,
            limit=limit,
            permitted_first=permitted_first,
        )

    async def panel_members(
        self, agent: str, kind: GroupKind, name: str, *, query: str = "", offset: int = 0, limit: int = 100
    ) -> PanelPage:
        """Return a page of what stands in a toolkit, or in a plugin and in no toolkit.

        Args:
            agent: the agent's name.
            kind: which kind of row it is.
            name: its name; where there is no such row, there are no members.
            query: words that all stand in a member's label, name or description.
            offset: how many are passed over.
            limit: how many there are at most.

        Raises:
            UnknownAgentError: there is no such agent.
            StoreError: the stored switches cannot be read.
        """
        return await switches.member_page(
            self._services, self._panel_texts, agent, kind, name, query=query, offset=offset, limit=limit
        )

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
        return await switch_preview.preview(self._services, self._parsed, agent, name, value)

    async def pauses(self) -> Mapping[str, Pauses]:
        """Return what is paused, by agent.

        Raises:
            StoreError: it cannot be read.
        """
        stored = await self._services.store.all_switches()
        return {agent: pauses_of(stored.get(agent, {})) for agent in self._services.world.agents}

    async def preview_together(self, wanted: Together) -> TogetherPreview:
        """Return what a switch or pause of several agents would change, summed over them; nothing is changed (P2, P4).

        Args:
            wanted: what would be set, and for whom.

        Raises:
            UnknownAgentError: there is no such agent.
            UsageError: the name means nothing known.
            StoreError: sessions or switches cannot be read.
        """
        return await together.preview_together(self._services, self._parsed, wanted)

    async def set_together(self, wanted: Together, *, by: str, seen: str | None = None, may_grant: bool) -> ActionDone:
        """Set a switch or pause for several agents, all or none, in one transaction (P2, P4, X4).

        Args:
            wanted: what is set, and for whom.
            by: who sets it, for the audit trail.
            seen: that of the preview that whoever decides was shown; None is any.
            may_grant: whether who sets it has the right to grant what the file does not.

        Raises:
            UnknownAgentError: there is no such agent.
            UsageError: the name means nothing known; ``switch_changed`` where somebody else was first;
                ``right_required`` where it may not grant.
            StoreError: it cannot be stored.
        """
        return await together.set_together(self._services, wanted, by=by, seen=seen, may_grant=may_grant)

    async def undo_together(
        self, mark: str, *, by: str, agents: frozenset[str] | None = None, may_grant: bool
    ) -> ActionDone:
        """Restore what stood before switches were set together, if all of it still is as it was set.

        Args:
            mark: that of the action.
            by: who takes it back, for the audit trail.
            agents: those that the operator sees; None is every one.
            may_grant: whether who takes it back has the right to grant what the file does not.

        Raises:
            UsageError: no such action is kept; ``switch_changed`` where one of its switches was set meanwhile;
                ``right_required`` where it may not grant.
            StoreError: it cannot be stored.
        """
        return await together.undo_together(self._services, mark, by=by, agents=agents, may_grant=may_grant)

    async def sessions(
        self,
        *,
        agent: str | None = None,
        agents: frozenset[str] | None = None,
        principal: str | None = None,
        query: str = "",
        offset: int = 0,
        limit: int = 50,
    ) -> SessionPage:
        """Return a page of the sessions that are stored or had a surface in this process, the newest change first.

        Args:
            agent: only those of this agent.
            agents: none of others than these.
            principal: only those of this one.
            query: words that all stand in principal, agent or id, in any case.
            offset: how many are passed over.
            limit: how many there are at most.

        Raises:
            StoreError: they cannot be read.
        """
        return await sessions.list_sessions(
            self._services,
            self._counting,
            agent=agent,
            agents=agents,
            principal=principal,
            query=query,
            offset=offset,
            limit=limit,
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
        return await sessions.overview(self._services, self._counting, key)

    async def sent_to_model(self, key: SessionKey, step: int | None = None) -> SentToModel | None:
        """Return what the model of a session is sent next or was sent, or None where nothing is known of it (F1, F2).

        Args:
            key: whose session, of which agent, under which id.
            step: the number of a list that it was sent; None is what it is sent next.

        Returns:
            Tools and texts as they are sent, what each costs, and what differs from the list before, of this process;
            nothing of it counts as sent.

        Raises:
            StoreError: it cannot be read.
            UsageError: that list is not kept.
        """
        return await sent.sent_to_model(self._services, key, step)

    async def tool_form(self, agent: str, name: str) -> ToolForm:
        """Return what is filled in to call a tool as an agent, as far as the tool is known.

        Args:
            agent: the agent's name.
            name: the wire name of the tool.

        Raises:
            UnknownAgentError: there is no such agent.
            StoreError: the key of names cannot be read.
        """
        return await trying.tool_form(self._services, agent, name)

    async def form_problems(self, name: str, given: JsonObject) -> tuple[FieldProblem, ...]:
        """Return what is wrong with arguments of a tool, each with the one that it is about.

        Args:
            name: the wire name of the tool.
            given: the arguments.

        Raises:
            StoreError: the key of names cannot be read.
        """
        return await trying.form_problems(self._services, name, given)

    async def try_tool(self, agent: str, name: str, arguments: JsonObject, *, by: str, session: str = "") -> ToolTrial:
        """Call a tool as an agent in a session of its own, and return what came of it (X1, X2, X4).

        Args:
            agent: the agent's name.
            name: the wire name of the tool.
            arguments: those of the call.
            by: who calls, for whom it runs.
            session: that of an answer that waited for an approval; nothing is a new one.

        Raises:
            UnknownAgentError: there is no such agent.
            UsageError: the session is none of this kind, or the board is closed.
            StoreError: something cannot be read or stored.
        """
        return await trying.try_tool(self._services, agent, name, arguments, by=by, session=session)

    async def delete_session(self, key: SessionKey, *, by: str) -> bool:
        """Return whether there was something to delete of a session; the next use of its name begins anew (X4).

        A request in flight is not stopped: what it changes afterwards is stored as of a new session.

        Args:
            key: whose session, of which agent, under which id.
            by: who deletes it, for the audit trail.

        Raises:
            StoreError: it cannot be deleted.
        """
        return await sessions.delete_session(self._services, key, by)
