"""Board: agents over one world, one store and the sources that bring plugins in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pegboard.board.calls.decision_cache import DecisionCache
from pegboard.board.catalog.loader import IN_PROCESS, CatalogLoader, PluginRequest
from pegboard.board.catalog.read_only import ReadOnlyTrust
from pegboard.board.observability.events import Events, Recorder
from pegboard.board.observability.metrics import SessionMetrics
from pegboard.board.resources.aggregator import ResourceAggregator
from pegboard.board.session import Session
from pegboard.core.access.panels import panel
from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.agents import Agent, WorkerScope, World
from pegboard.core.model.delivery import LIBRARY, Host
from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject, Plugin, Tool, serialised
from pegboard.dialects.names import Dialect
from pegboard.errors import UnknownAgentError, UsageError, agent_required
from pegboard.ports import ArgumentValidator, FocusRules, Ranker, SessionKey, Source, Store, TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Hold the adapters that a board works with; assembly picks them."""

    store: Store
    sources: Sequence[Source]
    ranker: Ranker
    counter: TokenCounter
    validator: ArgumentValidator
    dialects: Mapping[str, Dialect]
    focus: FocusRules | None = None


class Board:
    """Hold the world, hand out sessions."""

    def __init__(self, parts: Parts, *, masker: Masker, env: Mapping[str, str]) -> None:
        self.parts = parts
        self.store = parts.store
        self.masker = masker
        self.events = Events()
        self.meter = SessionMetrics(self.events)
        self.recorder = Recorder(parts.store, self.events, masker)
        self.claims = ReadOnlyTrust(parts.store)
        self.keeper = CatalogLoader(
            parts.sources, parts.store, claims=self.claims, masker=masker, env=env, changed=self._catalog_changed
        )
        self.permissions = Permissions(self)
        self.offers = ResourceAggregator(self)
        self.world = World()
        self._accesses: dict[tuple[object, ...], CompiledPermissions] = {}
        self._switches: Mapping[str, Mapping[str, bool]] = {}
        self._revision: int | None = None
        self.pulse: Hashable = None
        self.routes = DecisionCache()
        self._prices: dict[str, tuple[Tool, int]] = {}

    async def adopt(self, world: World, specs: Mapping[str, PluginSpec], *, masker: Masker) -> None:
        """Take over a configuration whole; ``world`` comes without a catalog."""
        self.masker = self.recorder.masker = self.keeper.masker = masker
        await self.keeper.adopt(specs)
        self.world = replace(world, catalog=self.keeper.catalog)
        self._accesses.clear()
        self.events.emit("configuration_changed", {})

    def _catalog_changed(self, plugin: str) -> None:
        self.world = replace(self.world, catalog=self.keeper.catalog)
        self._accesses.clear()
        self.events.emit("catalog_changed", {"plugin": plugin})

    def on(self, event: str, callback: Callable[[Mapping[str, Any]], object]) -> Callable[[], None]:
        """Call back at every such event; returns the function that ends it.

        Events: loaded, unloaded, evicted, loadout_changed, denied, called, turn_ended,
        catalog_changed, configuration_changed, permissions_changed.
        """
        return self.events.on(event, callback)

    def metrics(self) -> list[dict[str, Any]]:
        """Return what every session did since the board was opened, and the tokens that it saves now (F4)."""
        return self.meter.report(self.price, self.parts.counter.count, self.world.catalog)

    def agent(self, name: str | None) -> Agent:
        """Return an agent; None means the default one. Raises ``UnknownAgentError``."""
        chosen = name if name is not None else self.world.default_agent()
        if chosen is None:
            raise agent_required(self.world.agents)
        agent = self.world.agents.get(chosen)
        if agent is None:
            hint = did_you_mean(chosen, self.world.agents)
            raise UnknownAgentError(f"There is no agent '{chosen[:100]}'.", hint=hint)
        return agent

    async def session(
        self,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        principal: str = "local",
        host: Host = LIBRARY,
        sub_app: str | None = None,
        worker_scope: WorkerScope | None = None,
    ) -> Session:
        """Return a session; nothing is stored before something changes.

        Without ``session_id`` it has static and initial tools only (S4). Raises
        ``UnknownAgentError``, and ``UsageError`` for an unknown sub-app.
        """
        profile = self.agent(agent)
        if sub_app is not None and sub_app not in self.world.sub_apps:
            hint = did_you_mean(sub_app, self.world.sub_apps)
            raise UsageError(f"There is no sub-app '{sub_app}'.", code="unknown_sub_app", hint=hint)
        key = SessionKey(principal=principal, agent=profile.name, session=session_id or "")
        return Session(
            self,
            key,
            stable=session_id is not None,
            host=host,
            circumstances=SessionConstraints(sub_app=sub_app, worker_scope=worker_scope),
        )

    # -- what sessions need ----------------------------------------------------------------------

    async def refresh(self, since: float | None = None) -> None:
        """Take up what any process had stored by ``since``, a time of ``time.monotonic()``, or by now (P4, G6)."""
        pulse = await self.store.pulse(since)
        if pulse == self.pulse:
            return
        self.routes.forget_states()
        revision = await self.store.revision()
        if revision != self._revision:
            self._switches = await self.store.all_switches()
            await self.claims.refresh()
            self._revision = revision
            self._accesses.clear()
        self.pulse = pulse

    def access_now(self, agent: str, circumstances: SessionConstraints) -> CompiledPermissions:
        """Return the compiled permissions as of the last look at the stored switches."""
        held = circumstances
        key = (agent, held.sub_app, held.worker_scope, held.narrowed, held.everything, held.parent)
        known = self._accesses.get(key)
        if known is None:
            stored = self._switches.get(agent, {})
            known = CompiledPermissions(self.world, self.agent(agent), replace(circumstances, stored=stored))
            self._accesses[key] = known
        return known

    def price(self, tools: Iterable[Tool]) -> int:
        """Return the tokens of the serialised tools; each is counted once in its life (F4)."""
        total = 0
        for tool in tools:
            known = self._prices.get(tool.wire)
            if known is None or known[0] is not tool:
                known = (tool, self.parts.counter.count(serialised(tool)))
                self._prices[tool.wire] = known
            total += known[1]
        return total

    async def ready(self, *plugins: str) -> None:
        """Start or construct plugins (all where none is named); faults are in the catalog then."""
        names = plugins or tuple(self.world.catalog.plugins)
        await self.keeper.ready([PluginRequest(plugin=name) for name in names], retry=True)
        await self.keeper.ready([PluginRequest(plugin=name) for name in names])

    async def look(self, access: CompiledPermissions, wants: Iterable[PluginRequest], *, wait: float) -> None:
        """Bring in what is out, and in the background or in-process what could be searched."""
        near = [
            PluginRequest(plugin=plugin.name)
            for plugin in self.world.catalog.plugins.values()
            if plugin.kind in IN_PROCESS and self._worth_asking(access, plugin)
        ]
        await self.keeper.ready(wants, wait=wait, patient=True)
        await self.keeper.ready(near, wait=wait)

    async def look_everywhere(self, *, wait: float) -> None:
        """Bring in whatever can be asked without being loaded; operators may see all of it (P9)."""
        asked = (*IN_PROCESS, "server")
        plugins = self.world.catalog.plugins.values()
        await self.keeper.ready([PluginRequest(plugin=p.name) for p in plugins if p.kind in asked], wait=wait)

    def look_in_background(self, access: CompiledPermissions) -> None:
        """Start asking the servers that could be searched; nobody waits for them."""
        for want in self.look_later(access):
            self.keeper.fetch(want)

    def look_later(self, access: CompiledPermissions) -> list[PluginRequest]:
        """Return the servers that could be searched and have not been asked yet."""
        return [
            PluginRequest(plugin=plugin.name)
            for plugin in self.world.catalog.plugins.values()
            if plugin.kind == "server" and self._worth_asking(access, plugin)
        ]

    @staticmethod
    def _worth_asking(access: CompiledPermissions, plugin: Plugin) -> bool:
        """Return whether a plugin that has not been seen may have something for the agent."""
        return not plugin.tools and (access.unresolved or access.grants_unseen(plugin))

    async def aclose(self) -> None:
        """Stop what was started; write what is still to be written."""
        await self.offers.aclose()
        await self.keeper.aclose()
        await self.store.aclose()


class Permissions:
    """Change switches at run time; the next call of every session is bound by them (P2, P4)."""

    def __init__(self, board: Board) -> None:
        self._board = board

    async def set(self, agent: str, name: str, value: bool | None) -> None:
        """Store a switch for an agent, or take the stored one back (None)."""
        board = self._board
        board.agent(agent)
        if not _switchable(board.world, name) and value is not None:
            names = (*board.world.toolkits, *board.world.catalog.plugins)
            raise UsageError(
                f"'{name[:100]}' is not a toolkit, plugin or tool.",
                code="unknown_name",
                hint=did_you_mean(name, names),
            )
        await board.store.set_switch(agent, name, value)
        key = SessionKey(principal="local", agent=agent, session="")
        state = "unset" if value is None else "on" if value else "off"
        await board.recorder.decided(key, 0, None, kind="permission", subject=name, decision=state)
        board.events.emit("permissions_changed", {"agent": agent, "subject": name})

    async def accept_claims(self) -> tuple[Tool, ...]:
        """Let every tool count as read-only of which a trusted server says so only since later (G6).

        It takes effect at the next call, in every process. Returns these tools.
        """
        board = self._board
        key = SessionKey(principal="local", agent="", session="")
        accepted: list[Tool] = []
        for plugin in board.world.catalog.plugins.values():
            tools = board.claims.pending(plugin)
            if tools:
                await board.claims.accept(plugin, tools)
            for tool in tools:
                reason = "It counts as read-only from now on."
                await board.recorder.decided(
                    key, 0, None, kind="permission", subject=tool.wire, decision="accepted", reason=reason
                )
            accepted += tools
        return tuple(accepted)

    async def panel(self, agent: str) -> tuple[JsonObject, ...]:
        """Return the toolkits of an agent as people switch them: labels, pictures, members, states (T6).

        Plain JSON without any secret or callable in it; see ``pegboard.core.access.panels``.
        """
        board = self._board
        await board.refresh()
        return panel(board.access_now(board.agent(agent).name, SessionConstraints()), board.masker)

    async def show(self) -> dict[str, dict[str, bool]]:
        """Return the effective booleans of every agent (P2)."""
        stored = await self._board.store.all_switches()
        return {name: {**agent.switches, **stored.get(name, {})} for name, agent in self._board.world.agents.items()}


def _switchable(world: World, name: str) -> bool:
    kind, colon, bare = name.partition(":")
    if colon and kind in ("toolkit", "plugin", "tool"):
        name = bare
    catalog = world.catalog
    if name in world.toolkits or name in catalog.plugins or catalog.find_tool(name) is not None:
        return True
    owner = name.partition("/")[0] if "/" in name else name.partition("__")[0]
    plugin = catalog.plugins.get(owner)
    return plugin is not None and owner != name and not plugin.tools


__all__ = ["Board", "Parts", "Permissions"]
