"""Board: agents over one world, one store and the sources that bring plugins in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pegboard.board import calls
from pegboard.board.calls.approvals import Approvals
from pegboard.board.catalog.availability import Availability
from pegboard.board.catalog.loader import IN_PROCESS, CatalogLoader, PluginRequest
from pegboard.board.catalog.own_files import OwnFilesGuard
from pegboard.board.catalog.permission_compiler import PermissionCompiler
from pegboard.board.catalog.pins import DefinitionPins
from pegboard.board.catalog.prices import ToolPrices
from pegboard.board.catalog.registries import Loadouts, Toolkits
from pegboard.board.discover import discover_every
from pegboard.board.observability.audit import EventSubscribers, Recorder
from pegboard.board.observability.bill import Billing
from pegboard.board.observability.conversations import Conversation, Conversations, RememberedUse
from pegboard.board.observability.metrics import SessionMetrics
from pegboard.board.permissions import Permissions
from pegboard.board.pins import Pins
from pegboard.board.resources.aggregator import ResourceAggregator
from pegboard.board.services import PendingSecretArguments, Services
from pegboard.board.session import Session
from pegboard.board.session_info import Delegation, LiveSessions, SessionInfo, agent_of
from pegboard.board.views.check_input import check_host, check_texts, checked_scope
from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.agents import Agent, WorkerScope, World
from pegboard.core.model.delivery import LIBRARY, Host, without_native
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.masking import Masker
from pegboard.core.model.model_hosts import host_for
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.requirements import unknown_plugins, usable
from pegboard.dialects.names import Dialect, activation_of
from pegboard.errors import UsageError, agent_required
from pegboard.ports import ArgumentValidator, FocusRules, HookRunner, Ranker, SessionKey, Source, Store, TokenCounter
from pegboard.ports.store_health import LosableStore, StoreHealth
from pegboard.support.tasks import BackgroundTasks

RunChild = Callable[[Session, str], Awaitable[str]]
"""A function that runs a task in a child session and returns its answer."""
if TYPE_CHECKING:
    from pegboard.board.calls.scheduled_runs import ScheduledRuns
    from pegboard.ports.schedules import DueSchedule

RunScheduled: TypeAlias = "Callable[[Session, DueSchedule], Awaitable[object]]"
"""A function that does in a session what was planned there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardAdapters:
    """The adapters that a board works with; assembly picks them."""

    store: Store
    sources: Sequence[Source]
    ranker: Ranker
    counter: TokenCounter
    validator: ArgumentValidator
    dialects: Mapping[str, Dialect]
    focus: FocusRules | None = None
    hooks: HookRunner | None = None


class Board:
    """Agents over one world: it hands out sessions.

    ``permissions`` sets switches at run time, ``approvals`` answers calls that wait for a person, ``pins`` has what
    servers' tools were when they were first seen. ``services`` and
    ``resources`` are for adapters: the gateway and the command.
    """

    def __init__(self, parts: BoardAdapters, *, masker: Masker, env: Mapping[str, str]) -> None:
        events, metrics, prices = EventSubscribers(), SessionMetrics(), ToolPrices(parts.counter.count)
        recorder = Recorder(parts.store, metrics, events, masker)
        pins = DefinitionPins(parts.store, recorder)
        loader = CatalogLoader(
            parts.sources, parts.store, pins=pins, masker=masker, env=env, changed=self._catalog_changed
        )
        self.services = Services(
            store=parts.store,
            ranker=parts.ranker,
            counter=parts.counter,
            validator=parts.validator,
            dialects=parts.dialects,
            focus=parts.focus,
            hooks=parts.hooks,
            availability=Availability(loader, parts.hooks, self._availability_changed),
            compiler=PermissionCompiler(parts.store, pins),
            loader=loader,
            pins=pins,
            events=events,
            recorder=recorder,
            metrics=metrics,
            billing=Billing(
                metrics,
                parts.store,
                prices,
                parts.counter.count,
                self._plugin_of,
                rendered=recorder.render_text,
                count_apart=getattr(parts.counter, "count_apart", None),
            ),
            conversations=Conversations(),
            uses=RememberedUse(parts.store),
            prices=prices,
            unkept=PendingSecretArguments(),
            own_files=OwnFilesGuard(),
            delegation=Delegation(),
            live=LiveSessions(),
        )
        self._tasks = BackgroundTasks()
        if isinstance(parts.store, LosableStore):
            parts.store.on_health(self._store_health_changed)
        self.permissions = Permissions(self.services)
        self.approvals = Approvals(self.services)
        self.pins = Pins(self.services)
        self._run_child: RunChild | None = None
        self._scheduled: ScheduledRuns | None = None
        self._run_scheduled: RunScheduled | None = None
        self.toolkits = Toolkits(lambda: self.world.toolkits, self._add_toolkit)
        self.loadouts = Loadouts(lambda: self.world.loadouts, self._add_loadout)
        self.resources = ResourceAggregator(self.services, parts.sources)

    @property
    def world(self) -> World:
        """Return everything configured and known now; replaced whole on every change."""
        return self.services.world

    @property
    def on_delegate(self) -> RunChild | None:
        """Return what runs a task that an agent delegates, or None.

        It is set to ``async (child: Session, task: str) -> str``: it runs the task in the child session and returns
        what the model that delegated it reads. Without it ``delegate`` is unavailable.
        """
        return self._run_child

    @on_delegate.setter
    def on_delegate(self, run: RunChild | None) -> None:
        self._run_child = run

        async def run_child(child: SessionInfo, task: str) -> object:
            assert run is not None
            return await run(Session(self.services, child), task)

        self.services.delegation.run = run_child if run is not None else None

    @property
    def on_schedule(self) -> RunScheduled | None:
        """Return what runs a schedule of an agent that is due, or None.

        It is set to ``async (session: Session, due: DueSchedule) -> object`` while a loop runs: it does what was
        planned, in the session in which it was planned, with what its owner may now. Without it no schedule runs.
        """
        return self._run_scheduled

    @on_schedule.setter
    def on_schedule(self, run: RunScheduled | None) -> None:
        self._run_scheduled = run

        async def run_due(due: DueSchedule) -> object:
            assert run is not None
            return await run(await self._session_of(due), due)

        if self._scheduled is None:
            if run is None:
                return
            self._scheduled = calls.scheduled_runs.ScheduledRuns(self.services, self._permissions_of)
        self._scheduled.set_run(run_due if run is not None else None)

    async def _session_of(self, due: DueSchedule) -> Session:
        return await self.session(agent=due.agent, session_id=due.session or due.id, principal=due.principal)

    async def _permissions_of(self, due: DueSchedule) -> CompiledPermissions:
        return (await (await self._session_of(due)).snapshot()).permissions

    async def adopt(self, world: World, specs: Mapping[str, PluginSpec], *, masker: Masker) -> None:
        """Take over a configuration whole.

        Args:
            world: agents, toolkits and all else, without a catalog.
            specs: how each plugin is brought in.
            masker: what hides the configuration's secrets.
        """
        services = self.services
        services.loop.check()
        services.recorder.masker = services.loader.masker = masker
        await services.loader.adopt(specs, world)
        services.compiler.adopt(replace(world, catalog=services.loader.catalog))
        services.events.emit("configuration_changed", {})

    def _join(self, world: World, specs: Mapping[str, PluginSpec]) -> None:
        """Take over a configuration that only adds to the one in use; the next request of every session has it.

        Args:
            world: agents, toolkits and all else, without a catalog.
            specs: how each plugin is brought in.
        """
        services = self.services
        services.loader.join(specs, world)
        services.compiler.adopt(replace(world, catalog=services.loader.catalog))
        services.events.emit("configuration_changed", {})

    def _add_toolkit(self, toolkit: Mapping[str, Any]) -> None:
        raise UsageError(f"There is no configuration that '{toolkit.get('name', '')}' could join.")

    def _add_loadout(self, loadout: Loadout) -> None:
        raise UsageError(f"There is no configuration that '{loadout.name}' could join.")

    def _availability_changed(self, plugin: str) -> None:
        self.services.events.emit("catalog_changed", {"plugin": plugin})

    def _catalog_changed(self, plugins: Iterable[str]) -> None:
        services = self.services
        services.compiler.adopt(replace(services.world, catalog=services.loader.catalog))
        for plugin in plugins:
            services.events.emit("catalog_changed", {"plugin": plugin})

    def _plugin_of(self, tool_id: str) -> str | None:
        tool = self.world.catalog.by_id(tool_id)
        return tool.plugin if tool is not None else None

    def _store_health_changed(self, health: StoreHealth) -> None:
        if not health.reachable:
            self.services.events.emit("store_lost", {"why": health.why, "until": health.until})
            return
        self.services.events.emit("store_back", {})
        if self.services.unstored_uses:
            self._tasks.start(calls.commands.store_uses(self.services))

    def on(self, event: str, callback: Callable[[Mapping[str, Any]], object]) -> Callable[[], None]:
        """Call back at every such event.

        Args:
            event: loaded, unloaded, evicted, loadout_changed, denied, called, turn_ended, catalog_changed,
                configuration_changed, configuration_refused, permissions_changed, pins_changed, approval_asked,
                approval_decided, approval_used, rejected, adapted, store_lost or store_back.
            callback: takes the record of the event; one that raises is logged and stops no one else.

        Returns:
            The function that ends it.

        Raises:
            UsageError: there is no such event.
        """
        return self.services.events.on(event, callback)

    def metrics(self) -> list[dict[str, Any]]:
        """Return what every session did since the board was opened, and the tokens that it saves now (F4).

        Returns:
            A record for each session, plain JSON.
        """
        services = self.services
        return services.metrics.report(services.prices, services.counter.count, self._all_tools)

    def _all_tools(self, agent: str) -> Sequence[Tool] | None:
        """Return everything that an agent may use; None where some of it is unknown, or the agent is gone (F4)."""
        if agent not in self.world.agents:
            return None
        permissions = self.services.compiler.permissions_of_agent(agent)
        return None if unknown_plugins(permissions) else usable(permissions)

    def agent(self, name: str | None) -> Agent:
        """Return an agent's profile.

        Args:
            name: the agent; None is ``default``, else the only one.

        Raises:
            UnknownAgentError: there is no such agent.
            UsageError: none is named, and there is no default.
        """
        chosen = name if name is not None else self.world.default_agent()
        if chosen is None:
            raise agent_required(self.world.agents)
        return agent_of(self.world, chosen)

    async def session(
        self,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        principal: str = "local",
        host: Host | None = None,
        sub_app: str | None = None,
        worker_scope: WorkerScope | None = None,
        client: str = "",
    ) -> Session:
        """Return a session; nothing is stored before something changes.

        Args:
            agent: the profile; None is ``default``, else the only one.
            session_id: whose state it is, with principal and agent; without one there are static and initial tools
                only (S4).
            principal: whose session it is.
            host: what the caller can do with a change of tools (D1); None takes it from the agent's ``model:`` where
                that is known, and leaves it to adapters (D4).
            sub_app: the tools of this sub-app are static ones besides; a host may open any of them (T9).
            worker_scope: narrows the agent's scope for this session (P5).
            client: names the connected client, for plugins with ``instance: client`` (G9); where it is "" the session
                stands for it.

        Returns:
            The session; any number of objects may stand for the same one.

        Raises:
            UnknownAgentError: there is no such agent.
            UsageError: there is no such sub-app or scope, or a value is of a wrong type.
        """
        texts = {"agent": agent, "session_id": session_id, "sub_app": sub_app}
        check_texts(principal=principal, client=client, **{n: text for n, text in texts.items() if text is not None})
        check_host(host)
        scope = checked_scope(worker_scope)
        profile = self.agent(agent)
        if sub_app is not None and sub_app not in self.world.sub_apps:
            hint = did_you_mean(sub_app, self.world.sub_apps)
            raise UsageError(
                f"There is no sub-app '{one_line(sub_app, limit=100)}'.", code="unknown_sub_app", hint=hint
            )
        key = SessionKey(principal=principal, agent=profile.name, session=session_id or "")
        info = SessionInfo(
            key=key,
            stable=session_id is not None,
            host=self._host_of(profile) if host is None else host,
            chosen=host is not None,
            constraints=SessionConstraints(sub_app=sub_app, worker_scope=scope),
            conversation=self.services.conversations.conversation_of(key) if session_id is not None else Conversation(),
            client=client,
        )
        return Session(self.services, info)

    def _host_of(self, agent: Agent) -> Host:
        """Return the host of a session that no one gave one, who may reveal nothing in a history (D4).

        What joins the list with the next request as it is does so whatever the model (D2).
        """
        if not agent.provider_model or activation_of(self.services.dialects, agent) == "next_request":
            return LIBRARY
        return without_native(host_for(agent.provider_model))

    async def plugins(self) -> tuple[Plugin, ...]:
        """Return every plugin that is configured, in the order of the catalog.

        Each has its ``name``, ``kind``, ``category``, ``description``, what of its ``tools`` is known, and why it is
        ``unavailable``. Plugins of this process are asked for their tools first; servers are not started.

        Returns:
            Values that never change; a plugin that changes is another one.
        """
        await discover_every(self.services, IN_PROCESS)
        return tuple(self.world.catalog.plugins.values())

    async def tools(self, agent: str | None = None, *, principal: str | None = None) -> tuple[Tool, ...]:
        """Return the tools that are known, of every plugin or of what an agent may use, loaded or not.

        Plugins of this process are asked for their tools first; those of servers and of what is constructed when it is
        loaded are known once they have answered (``ready``).

        Args:
            agent: whose, with the switches of now; None is everything that is configured.
            principal: with the switches for this one alone, too; None is without them.

        Returns:
            The tools in the order of the catalog, those too that cannot run now.

        Raises:
            UnknownAgentError: there is no such agent.
            StoreError: the stored switches cannot be read.
        """
        if agent is not None:
            agent_of(self.world, agent)
        await discover_every(self.services, IN_PROCESS)
        if agent is None:
            return tuple(self.world.catalog)
        await self.services.compiler.refresh()
        return self.services.compiler.permissions_of_agent(agent, principal).permitted

    async def ready(self, *plugins: str) -> None:
        """Start or construct plugins ahead of their first use; faults are in the catalog then.

        Args:
            plugins: their names; every plugin where none is named.
        """
        requests = [PluginRequest(plugin=name) for name in plugins or tuple(self.world.catalog.plugins)]
        await self.services.loader.ready(requests, retry=True, confirm=True)
        await self.services.loader.ready(requests, confirm=True)

    async def forget(self, *, principal: str | None = None, agent: str | None = None) -> int:
        """Forget what was called after which need, and the messages and searches of sessions opened by their id here.

        Args:
            principal: whose; None is everyone's.
            agent: which agent's, also one that is no longer configured; None is every agent's.

        Returns:
            How many uses were remembered.

        Raises:
            StoreError: they cannot be removed.
        """
        services = self.services
        services.conversations.forget(principal, agent)
        gone = await services.uses.forget(principal, agent)
        key = SessionKey(principal=principal or "", agent=agent or "", session="")
        await services.recorder.note(services.recorder.entry(key, 0, "forget", "uses", "allowed", outcome=str(gone)))
        return gone

    async def aclose(self) -> None:
        """Stop what was started; write what is still to be written."""
        if self._scheduled is not None:
            await self._scheduled.aclose()
        await self._tasks.aclose()
        await self.resources.aclose()
        await self.services.availability.aclose()
        await self.services.loader.aclose()
        await self.services.billing.aclose()
        await self.services.store.aclose()


__all__ = ["Board", "BoardAdapters", "Permissions"]
