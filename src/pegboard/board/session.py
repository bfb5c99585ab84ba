"""Session: one conversation of one agent and one principal."""

from __future__ import annotations

import logging
import time
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pegboard.board import calls, views
from pegboard.board.calls.approvals import Approvals
from pegboard.board.discover import discover_loaded
from pegboard.board.meta_tools import meta_tools_by_name
from pegboard.board.observability.conversations import Request
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo, agent_of, child_of
from pegboard.board.snapshot import Snapshot, known_if_unchanged, read_snapshot, read_start
from pegboard.board.views.check_input import (
    check_texts,
    checked_choice,
    checked_share,
    checked_turn,
)
from pegboard.board.views.search import checked_search, note_search, search
from pegboard.board.views.shown_to_model import (
    RequestCounter,
    ShownToModel,
    loading_all_fits,
    loading_all_is_cheaper,
    next_wire_list,
)
from pegboard.board.views.surface import checked_message, instructions, surface, surface_to_come
from pegboard.core.access.names import find_called
from pegboard.core.access.permissions import delegates
from pegboard.core.model.agents import Agent
from pegboard.core.model.delivery import Host
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.call_plans import CallAnswer, CallDecision, decision_of
from pegboard.core.state.commands import Command, EndTurn, Fallback, Load, MarkTurn, Outcome, SetLoadout, Unload
from pegboard.core.surface.surfaces import Surface, SurfaceChanges, changes_between
from pegboard.dialects.names import Found, activation_of
from pegboard.dialects.pegboard import KEEP
from pegboard.errors import StoreError, UsageError, board_closed
from pegboard.ports import Client, Progress, SessionKey
from pegboard.support.tracing import tracing

if TYPE_CHECKING:
    from pegboard.board.calls.commands import TurnMessage
    from pegboard.core.surface.explanations import Explanation
    from pegboard.core.surface.run_cost import RunCost

    Called = tuple[Snapshot, CallAnswer, bool]
    """The session after a call, its answer, and whether the next request has other tools."""

log = logging.getLogger("pegboard")


class Session:
    """One conversation: what its model sees, loads and calls.

    Every request reads the stored state once and stores what it changed at once; any number of objects, in any
    process, may stand for the same session. An object keeps what its newest surface and wire list bind calls by,
    and whether everything pays for its host's cache.
    """

    def __init__(self, services: Services, info: SessionInfo) -> None:
        self.approvals = Approvals(services)
        self._services = services
        self._info = info
        self._newest: Snapshot | None = None
        self._planned = False
        self._shown = ShownToModel()
        self._given: Surface | None = None
        self._given_tools: tuple[Tool, ...] = ()
        self._ranked: TurnMessage | None = None
        self._requests = RequestCounter(services)

    @property
    def key(self) -> SessionKey:
        """Return principal, agent and session id."""
        return self._info.key

    @property
    def info(self) -> SessionInfo:
        """Return which session this is, for adapters."""
        return self._info

    @property
    def agent(self) -> Agent:
        """Return the agent's profile as it is configured now.

        Raises:
            UnknownAgentError: the agent is no longer configured.
        """
        return agent_of(self._services.world, self.key.agent)

    @property
    def host(self) -> Host:
        """Return what the host can do with a change of tools; a host whose cache has grown sets it again."""
        return self._info.host

    @host.setter
    def host(self, host: Host) -> None:
        self._info = replace(self._info, host=host, chosen=True)

    def adopt_host(self, host: Host) -> Host:
        """Take a host where no one has given one, for adapters (D4).

        Args:
            host: what the adapter can do with a change of tools, for the model at hand.

        Returns:
            The host that counts. Loads that take effect with the next request join the list then as before, unless
            the adapter reveals them.

        Raises:
            UnknownAgentError: the agent is no longer configured.
        """
        later = activation_of(self._services.dialects, self.agent) == "next_request"
        if not self._info.chosen and self._info.host != host and (host.reveals or not later):
            self._info = replace(self._info, host=host)
        return self._info.host

    async def snapshot(self) -> Snapshot:
        """Return the session as it is stored now: what it may, its leases and turn; for adapters and diagnostics.

        Raises:
            StoreError: the stored state cannot be read.
            UnknownAgentError: the agent is no longer configured.
        """
        return await self._read_snapshot()

    def known_tool(self, name: str) -> Tool | None:
        """Return the permitted tool or meta-tool that a call of this name means as of the last request, or None.

        Nothing is waited for or read (P9).

        Args:
            name: the wire name that the model wrote.
        """
        services, info, newest = self._services, self._info, self._newest
        if newest is None and info.parent is not None:
            return None
        permissions = services.compiler.permissions(info, newest.narrowed_above if newest is not None else ())
        state = newest.stored if newest is not None else info.start
        return meta_tools_by_name(services, info, permissions, state).get(name) or find_called(
            permissions, name, active_tools(permissions, state)
        )

    async def runs_unasked(self, name: str) -> bool:
        """Return whether a call of this name was decided before and needs no approval, which still holds (A1, P4).

        Where it was not, :meth:`decide` says so.

        Args:
            name: the wire name that the model wrote.

        Raises:
            StoreError: the stored state cannot be read.
            UnknownAgentError: the agent is no longer configured.
        """
        snapshot = await self._read_snapshot()
        decided = snapshot.decided.get(name)
        if decided is None or decided.permissions is not snapshot.permissions:
            return False
        return decided.rules is None and decided.stored == snapshot.stored

    # -- what a model or a host asks for ---------------------------------------------------------

    async def surface(self, *, message: str | None = None, loaded: bool = True) -> Surface:
        """Return what goes to the model at this step (F1).

        Args:
            message: the newest user message: the context of searches until the next one, what focus rules go by, and
                what is loaded ahead of being asked for where the agent anticipates (S5); a focus binds calls until the
                next surface (F3).
            loaded: False returns the part that no load changes, fixed for an agent and principal (G4).

        Returns:
            Tools in order, hints, suffix, policy, focus; its tokens are counted when they are asked for.

        Raises:
            UsageError: the message is no text.
            StoreError: the stored state cannot be read.
            UnknownAgentError: the agent is no longer configured.
        """
        message = checked_message(message)
        snapshot = await self._prepare_snapshot(start=not loaded)
        if message:
            self._info.conversation.add_message(self._services.masker.value(message), snapshot.state.turn)
        if loaded and message is not None:
            snapshot, self._ranked = await calls.commands.anticipate(self._services, snapshot, message, self._ranked)
        shown = await surface(self._services, snapshot, message, loaded=loaded)
        if self._given is not shown:
            self._given, self._given_tools = shown, tuple([one.tool for one in shown.tools])
        tools = self._given_tools
        if loaded:
            focus = None if shown.focus is None else frozenset(shown.focus["allowed_tools"])
            if focus != self._shown.focus or tools != self._shown.surface:
                self._shown = replace(self._shown, focus=focus, surface=tools)
        self._requests.count_surface(snapshot, shown, tools, message)
        return shown

    async def changes(self) -> SurfaceChanges:
        """Return what would join and leave the tools of the next request, compared with the newest ``surface``.

        Nothing of it counts as shown: asked again, the answer is the same until a surface is made.

        Raises:
            StoreError: the stored state cannot be read.
            UnknownAgentError: the agent is no longer configured.
        """
        coming = await surface_to_come(self._services, await self._prepare_snapshot())
        return changes_between(self._shown.surface, coming)

    async def wire(self, *, revealed: Iterable[str] = ()) -> tuple[Tool, ...]:
        """Return the tool list for the next request of a host that sends one (D3).

        It is the surface, and behind a warm cache also what lapsed as long as keeping it is cheaper; a call of
        such a tool renews its lease and runs.

        Args:
            revealed: the wire names of what the history reveals, for a host that reveals (``native``): as long as it is
                permitted it stays, since taking its definition away would change the history.

        Raises:
            StoreError: the stored state cannot be read.
            UnknownAgentError: the agent is no longer configured.
        """
        snapshot = await self._prepare_snapshot()
        shown = await surface(self._services, snapshot, None, loaded=True)
        self._shown = next_wire_list(self._services, snapshot, replace(self._shown, focus=None), shown, revealed)
        self._requests.count_wire_list(snapshot, shown, self._shown.wire_list)
        return self._shown.wire_list

    async def instructions(self) -> str:
        """Return what a client is to read once: how to find more tools, and the initial policy (F2, T6).

        Raises:
            StoreError: the stored state cannot be read.
            UnknownAgentError: the agent is no longer configured.
        """
        return await instructions(self._services, await self._prepare_snapshot(start=True))

    async def load(self, *names: str, keep: str | None = None) -> Outcome:
        """Load toolkits, plugins or tools (S10).

        Args:
            names: each is answered for itself; exact, else the only one that differs in case.
            keep: turn, idle or session; None takes the agent's default (S5).

        Returns:
            The outcome; a refusal is an item with a status and a message, not an exception.

        Raises:
            UsageError: ``keep`` is none of the three, or a name is no text.
            StoreError: the stored state cannot be read or written.
            UnknownAgentError: the agent is no longer configured.
        """
        until = None if keep is None else KEEP[checked_choice("keep", keep, KEEP)]
        return await self._run_command(Load(names=names, until=until))

    async def unload(self, *names: str) -> Outcome:
        """Unload toolkits, plugins or tools; what is sticky or not loaded is refused or reported (S10).

        Args:
            names: each is answered for itself; exact, else the only one that differs in case.

        Returns:
            The outcome; a refusal is an item with a status and a message, not an exception.

        Raises:
            StoreError: the stored state cannot be read or written.
            UnknownAgentError: the agent is no longer configured.
        """
        return await self._run_command(Unload(names=names))

    async def fallback(self) -> Outcome:
        """Load everything permitted for this turn, within the budget (S8).

        Returns:
            The outcome; a refusal is an item with a status and a message, not an exception.

        Raises:
            StoreError: the stored state cannot be read or written.
            UnknownAgentError: the agent is no longer configured.
        """
        return await self._run_command(Fallback())

    async def _run_command(self, command: Command) -> Outcome:
        calls.commands.check_names(command)
        with self._info.conversation.requests.start() as request:
            snapshot = await self._with_planned_start(await self._read_snapshot())
            snapshot, outcome = await calls.commands.run_command(self._services, snapshot, command, request)
            await request.let_others_start()
        self._note_shown(snapshot, request)
        return outcome

    async def use_loadout(self, name: str | None) -> Outcome:
        """Narrow the session to a loadout at once, essentials and meta-tools apart; None narrows nothing (L7).

        Args:
            name: the loadout, or None.

        Returns:
            The outcome; a refusal is an item with a status and a message, not an exception.

        Raises:
            StoreError: the stored state cannot be read or written.
            UnknownAgentError: the agent is no longer configured.
        """
        if name is not None:
            check_texts(name=name)
        return (
            await calls.commands.apply_command(self._services, await self._read_snapshot(), SetLoadout(loadout=name))
        )[1]

    async def child(self, kind: str, *, agent: str | None = None) -> Session:
        """Return a session for a subagent (L8): it has at most what this one may, now and later (P8).

        Args:
            kind: explore, task, plan, review or general; another one counts as the smallest.
            agent: the profile that it works with, by default this session's. One that this session's agent lists in
                ``may_delegate`` has its own permissions, whatever the kind.

        Returns:
            A session with an id of its own, of which nothing is stored before something changes.

        Raises:
            UsageError: it would be more than three levels deep, or kind or agent are no texts.
            UnknownAgentError: there is no such agent.
            StoreError: the stored state cannot be read.
        """
        check_texts(kind=kind, **({} if agent is None else {"agent": agent}))
        known = delegates((await self._read_snapshot()).permissions)
        return Session(self._services, child_of(self._info, self._services.world, kind, agent, delegates=known))

    async def end_turn(self, *, turn: int | None = None) -> Outcome:
        """End the turn: the counter grows, leases that lapse go (S6, S7).

        Args:
            turn: the number of the turn that begins, by a host that derives it, as :func:`turn_of_messages` does; one
                that is not greater than the current changes nothing. None is the next one.

        Returns:
            What lapsed, and the new turn.

        Raises:
            UsageError: the turn is no whole number up to a billion.
            StoreError: the stored state cannot be read or written.
            UnknownAgentError: the agent is no longer configured.
        """
        outcome = await calls.commands.end_turn(
            self._services, await self._read_snapshot(), EndTurn(turn=checked_turn(turn))
        )
        self._requests.end_run()
        return outcome

    async def mark_turn(self, label: str) -> Outcome:
        """Note a client's turn label; another one than before ends the turn (G3).

        Args:
            label: any text that is the same for the whole of a turn.

        Returns:
            What lapsed, and the turn.

        Raises:
            StoreError: the stored state cannot be read or written.
            UnknownAgentError: the agent is no longer configured.
        """
        check_texts(label=label)
        return await calls.commands.end_turn(self._services, await self._read_snapshot(), MarkTurn(label=label))

    async def search(self, *queries: str, limit: int = 5, context: Sequence[str] | None = None) -> Found:
        """Return the permitted tools that answer these needs best (P3).

        Args:
            queries: one short line per thing needed.
            limit: how many results there are at most.
            context: what the user wrote before, the newest last; None takes the messages that surfaces were made for.

        Returns:
            Tools, best first, and how to go on.

        Raises:
            UsageError: a query is no text, the limit is below one, or the context is no list of texts.
            StoreError: the stored state cannot be read.
            UnknownAgentError: the agent is no longer configured.
        """
        needs = checked_search(queries, limit, context)
        snapshot, found = await search(self._services, await self._read_snapshot(), needs)
        note_search(self._services, snapshot, needs, found)
        return found

    async def run_cost(self, *, read: int | None = None, of: int | None = None) -> RunCost:
        """Return what the tools of the newest run came to under a prompt cache, and other ways beside it (F4).

        A run begins with the first request after :meth:`end_turn`, and has the requests of this object, each with the
        tools that ``surface`` or ``wire`` gave it. They are counted now. The gateway's sessions have none.

        Args:
            read: the input tokens of the run that the provider read from its cache, where it says so.
            of: all input tokens of the run. Without both, the share is predicted.

        Raises:
            UsageError: only one of both is given, or ``read`` is more than ``of``.
        """
        return await views.run_costs.cost_of_run(self._services, self._requests.run, checked_share(read, of))

    async def explain(self, name: str) -> Explanation:
        """Return the four predicates for a tool or plugin, and the chain of reasons (F5).

        Args:
            name: a tool or plugin; one that does not exist is explained, too.

        Raises:
            StoreError: the stored state cannot be read.
            UnknownAgentError: the agent is no longer configured.
        """
        check_texts(name=name)
        return (await views.explain.explain_name(self._services, await self._prepare_snapshot(), name))[1]

    async def call(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        progress: Progress | None = None,
        request_meta: JsonObject | None = None,
        client: Client | None = None,
        arrived: float | None = None,
        waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
        call_id: str | None = None,
    ) -> CallAnswer:
        """Call a tool or a meta-tool as the model does; refusals are answers, not exceptions.

        Args:
            name: the wire name that the model wrote.
            arguments: validated against the tool's schema before anything runs (X2).
            progress: takes what the tool reports: progress, total, message.
            request_meta: the request's ``_meta`` for an upstream.
            client: takes what an upstream asks and reports during the call; without one it is refused.
            arrived: when the call came (``time.monotonic()``); what binds it is what was stored by then (P4).
            waiting: entered while the client is asked for an approval.
            call_id: what the provider of the model names the call, for its span.

        Returns:
            The answer: its status, and the result for the model.

        Raises:
            StoreError: the stored state cannot be read or written.
            UnknownAgentError: the agent is no longer configured.
            UsageError: the board is closed, or was before the call ended; or the name is no text, or the arguments
                are no mapping.
        """
        if type(name) is not str or type(arguments) is not dict:
            _check_call(name, arguments)
        given: JsonObject = {} if arguments is None else arguments
        meta = request_meta or EMPTY
        if tracing.tracer(arrived) is None:
            return (await self._call(name, given, progress, meta, client, arrived, waiting))[1]
        call = partial(self._call, name, given, progress, meta, client, arrived, waiting)
        return await self._trace_call(name, given, call_id, None, call)

    async def _call(
        self,
        name: str,
        arguments: JsonObject,
        progress: Progress | None,
        meta: JsonObject,
        client: Client | None,
        arrived: float | None,
        waiting: Callable[[], AbstractContextManager[object]],
    ) -> Called:
        with self._info.conversation.requests.start(arrived) as request:
            try:
                services, newest = self._checked_services(), self._newest
                snapshot = known_if_unchanged(services, self._info, arrived, newest) or await self._read_snapshot(
                    arrived
                )
                call = calls.call_request.CallRequest(
                    services=services,
                    name=name,
                    arguments=arguments,
                    shown=self._shown,
                    request=request,
                    progress=progress,
                    client=client,
                    meta=meta,
                    waiting=waiting,
                    came=time.monotonic() if arrived is None else arrived,
                )
                self._requests.count_call(snapshot, request)
                if (tool := snapshot.meta_tools.get(name)) is None:
                    snapshot, answered = await calls.pipeline.run_call(call, snapshot)
                else:
                    snapshot, answered = await calls.meta_call.call_meta_tool(
                        call, await self._with_planned_start(snapshot), tool
                    )
                self._requests.note_answer(answered, meta=tool is not None)
                services.metrics.texts_of_call(
                    self._info.key, arguments, answered, meta=tool is not None, sent=call.sent
                )
                changed = bool(snapshot.unloaded or request.brought)
                if changed:
                    self._note_shown(snapshot, request)
                if request.brought:
                    await request.let_others_start()
            except StoreError:
                if self._services.loader.closed:
                    raise board_closed() from None
                raise
            return snapshot, answered.encodable(), changed

    async def _trace_call(
        self,
        name: str,
        arguments: JsonObject | None,
        call_id: str | None,
        approval: str | None,
        call: Callable[[], Awaitable[Called]],
    ) -> CallAnswer:
        """Return the answer of a call, within a span where the process traces."""
        tracer = tracing.tracer()
        if tracer is None:
            return (await call())[1]
        from pegboard.board.observability.spans import SpanStart, run_in_span

        start = SpanStart(
            key=self._info.key,
            name=name,
            arguments=arguments,
            call_id=call_id,
            approval=approval,
            masker=self._services.masker,
        )
        return await run_in_span(tracer, start, call)

    async def decide(self, name: str, arguments: JsonObject | None = None, *, ask: bool = False) -> CallDecision:
        """Return what a call would come to, decided as :meth:`call` decides it: nothing is loaded, run or recorded.

        Args:
            name: the wire name that the model wrote.
            arguments: those of the call.
            ask: whether a person is asked who has to approve the call and was not asked yet (A3), which is recorded;
                the decision has the approval then.

        Returns:
            Whether it runs, needs an approval or is refused; with the answer that the call would have.

        Raises:
            StoreError: the stored state cannot be read, or written with ``ask``.
            UnknownAgentError: the agent is no longer configured.
            UsageError: the board is closed; or the name is no text, or the arguments are no mapping.
        """
        _check_call(name, arguments)

        snapshot = await self._read_snapshot()
        call = calls.call_request.CallRequest(
            services=self._services,
            name=name,
            arguments=arguments if arguments is not None else {},
            shown=self._shown,
            request=self._info.conversation.requests.start(),
            deciding=True,
            asks=ask,
        )
        tool = snapshot.meta_tools.get(name)
        if tool is None:
            return decision_of(await calls.pipeline.decide(call, snapshot))
        return decision_of(await calls.meta_call.decide_meta_call(call, await self._with_planned_start(snapshot), tool))

    async def resume(self, approval_id: str, *, result: object = None, call_id: str | None = None) -> CallAnswer:
        """Go on with a call that waits for a person (A3): it runs once, if it was allowed and nothing has changed.

        Args:
            approval_id: the ``approval.id`` of its answer, or the ``login.id`` of one that waits for a login (G11),
                which is that of this waiting call alone.
            result: what the call came to, where it is run elsewhere (T13): text, JSON, or a ``CallResult``.
            call_id: what the provider of the model names the call, for its span.

        Returns:
            The answer of the call; ``needs_approval`` or ``needs_login`` again as long as no one has decided or logged
            in, and ``refused`` once it has run.

        Raises:
            StoreError: the stored state cannot be read or written.
            UnknownAgentError: the agent is no longer configured.
            UsageError: a result is given for a call that runs here.
        """
        check_texts(approval_id=approval_id)

        async def resume_call() -> Called:
            snapshot = await self._read_snapshot()
            answered = await calls.resuming.resume(self._services, snapshot, self._shown, approval_id, result)
            self._services.metrics.texts_of_call(self.key, None, answered, meta=False)
            return snapshot, answered.encodable(), False

        return await self._trace_call("", None, call_id, approval_id, resume_call)

    def report_rejected(self, subject: str, reason: str) -> None:
        """Report that a provider of models does not take a tool or a form: one line in the log, and an event.

        Args:
            subject: ``tool:`` or ``form:``, and its name.
            reason: as the provider states it.
        """
        key, text = self.key, self._services.masker.text(reason)
        log.warning("%s was rejected by the model provider and is not sent to it: %s", subject, text)
        about = {"principal": key.principal, "agent": key.agent, "session": key.session}
        self._services.events.emit("rejected", {**about, "subject": subject, "reason": text})

    def report_adapted(self, tool: Tool, changes: Sequence[str]) -> None:
        """Report once how a tool is changed for a provider of models: one line in the log, and an event.

        Args:
            tool: as the session has it.
            changes: what is different for the provider; nothing is reported without any.
        """
        known = self._info.conversation.adapted
        if not changes or known.get(tool.wire) == tool:
            return
        known[tool.wire] = tool
        key, text = self.key, "; ".join(changes)
        log.warning("tool:%s was changed for the model provider, which would reject it: %s", tool.wire, text)
        about = {"principal": key.principal, "agent": key.agent, "session": key.session}
        self._services.events.emit("adapted", {**about, "subject": f"tool:{tool.wire}", "reason": text})

    async def fit_list(self, room: int) -> bool:
        """Leave out of the list what a provider's limit has no place for; the model finds and calls it all the same.

        What is loaded from the start is shortened from its end: the rest counts as what may be loaded (D4). It is
        reported once: a line in the log, and an event.

        Args:
            room: how many tools of the session a request has place for.

        Returns:
            Whether the list is shorter now.

        Raises:
            StoreError: the stored state cannot be read.
            UnknownAgentError: the agent is no longer configured.
        """
        snapshot = await self._prepare_snapshot()
        fitting = views.list_limit.with_room(self._services, snapshot, room)
        if fitting is None:
            return False
        self._info, self._shown = fitting, replace(self._shown, wire_list=())
        if snapshot.info.constraints.most_at_start is None:
            views.list_limit.report(self._services, snapshot, await self._prepare_snapshot())
        return True

    # -- how its requests read the session: once, and what is loaded has been seen (S2, P4)

    async def _read_snapshot(self, since: float | None = None, *, start: bool = False) -> Snapshot:
        """Return the session as of ``since``, or of now; the one that is known where nothing has changed.

        With ``start`` it is as if nothing had been stored of it.
        """
        services = self._checked_services()
        if start:
            return await read_start(services, self._info)
        self._newest = snapshot = await read_snapshot(services, self._info, since, known=self._newest)
        return snapshot

    def _checked_services(self) -> Services:
        """Return the services; raises ``UsageError`` where the board is closed or works in another loop."""
        services = self._services
        if services.loader.closed:
            raise board_closed()
        if services.loop.current is not get_running_loop():
            services.loop.check()
        return services

    async def _prepare_snapshot(self, *, start: bool = False) -> Snapshot:
        """Return the session once what is loaded has been seen; with ``start`` as if nothing had been stored."""
        snapshot = await self._read_snapshot(start=start)
        seen = await discover_loaded(self._services, snapshot)
        if seen is not snapshot:
            seen = await self._read_snapshot(start=start)
        return await self._with_planned_start(seen, start=start)

    async def _with_planned_start(self, snapshot: Snapshot, *, start: bool = False) -> Snapshot:
        """Return the session with everything loaded from the start where that is cheapest (F4).

        It is decided once, and again where the catalog has outgrown the budget since (S9).
        """
        info = snapshot.info
        outgrown = info.constraints.everything and not loading_all_fits(self._services, snapshot)
        if info.host.cache is None or (self._planned and not outgrown):
            return snapshot
        self._planned = True
        everything = loading_all_is_cheaper(self._services, await discover_loaded(self._services, snapshot))
        if everything is info.constraints.everything:
            return snapshot
        self._info = replace(self._info, constraints=replace(info.constraints, everything=everything))
        return await self._read_snapshot(start=start)

    def _note_shown(self, snapshot: Snapshot, request: Request) -> None:
        """Note what no list of tools keeps after a request, and what its answer has (D1, D3)."""
        if snapshot.unloaded or (request.brought and "result" in self._info.host.delivery):
            self._shown = self._shown.after(snapshot, request)


def _check_call(name: object, arguments: object) -> None:
    """Raise ``UsageError`` for a call whose name is no text, or whose arguments are no mapping."""
    if not isinstance(name, str):
        check_texts(name=name)
    if arguments is not None and not isinstance(arguments, Mapping):
        hint = "Give a dictionary: session.call('add', {'a': 1})."
        raise UsageError(f"`arguments` are of the type '{type(arguments).__name__}', not a mapping.", hint=hint)
