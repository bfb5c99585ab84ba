"""Session: one conversation of one agent and one principal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pegboard.board import children
from pegboard.board.calls import meta_tools, pipeline
from pegboard.board.calls.decision_cache import CallerChannel
from pegboard.board.catalog.loader import SERVER_WAIT, PluginRequest
from pegboard.board.views import explain, search, surface, wire_list
from pegboard.core.access.lookup import lookup
from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.agents import Agent
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.delivery import Host, choose, takes_effect
from pegboard.core.model.leases import Lease
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.state.calls import CallAnswer, find_called
from pegboard.core.state.commands import (
    Command,
    CommandContext,
    EndTurn,
    Fallback,
    Item,
    Load,
    MarkTurn,
    Outcome,
    SetLoadout,
    Unload,
    Use,
)
from pegboard.core.state.narrowing import may_bring
from pegboard.core.state.sessions import DEFAULT, State, from_text, heal, lease_entries, to_text
from pegboard.core.state.shrinking import fit_to_budget
from pegboard.core.state.surfaces import Explanation, Surface
from pegboard.core.state.transitions import apply
from pegboard.dialects.names import Dialect, Found, Search, View
from pegboard.dialects.pegboard import KEEP
from pegboard.errors import StoreError, UsageError
from pegboard.ports import Client, Progress, SessionKey

if TYPE_CHECKING:
    from pegboard.board.board import Board


class Session:
    """Load, call, ask: every method reads the stored state afresh and stores what it changed."""

    def __init__(
        self,
        board: Board,
        key: SessionKey,
        *,
        stable: bool,
        host: Host,
        circumstances: SessionConstraints,
        parent: Session | None = None,
        start: State = DEFAULT,
    ) -> None:
        self.board = board
        self.key = key
        self.stable = stable
        self.host = host
        self.circumstances = circumstances
        self.parent = parent
        self.start = self.seen = start
        self.focus: frozenset[str] | None = None
        self.planned = False
        self.wired: tuple[Tool, ...] = ()
        self.unloaded: set[str] = set()
        self.own: tuple[CompiledPermissions, Host, Mapping[str, Tool]] | None = None

    @property
    def agent(self) -> Agent:
        """Return the agent's profile as it is configured now."""
        return self.board.agent(self.key.agent)

    # -- state -----------------------------------------------------------------------------------

    async def access(self) -> CompiledPermissions:
        """Return what this session may, as of now."""
        return await children.access(self)

    async def stored(self) -> tuple[State, int]:
        """Return the state as it is stored, and its version; that of a new session where nothing is."""
        board = self.board
        pulse = board.pulse
        stored = await board.store.load(self.key) if self.stable else None
        try:
            self.seen = from_text(stored.text) if stored is not None else self.start
        except ValueError as error:
            raise StoreError(
                f"The stored state of session '{self.key.session[:60]}' cannot be read: {error}",
                code="state_damaged",
                hint="Delete it with `pegboard session delete`.",
            ) from error
        if self.stable and board.pulse == pulse:
            board.routes.keep_state(self.key, self.seen)
        return self.seen, stored.version if stored is not None else 0

    def remembered(self) -> State | None:
        """Return the stored state if it was read since the store changed last; whoever asks has just looked (P4)."""
        known = self.board.routes.state(self.key) if self.stable else None
        if known is not None:
            self.seen = known
        return known

    async def state(self) -> State:
        """Return the state, healed, and within its budget where that can be (S3, S9)."""
        state, _ = await self.stored()
        return self.settled(await self.access(), state)

    def settled(self, access: CompiledPermissions, state: State) -> State:
        """Return a state healed, and within its budget where that can be (S3, S9)."""
        healed = heal(access, state)
        return fit_to_budget(access, healed, self.terms(access)) if access.agent.budget.shrink else healed

    def text_of(self, state: State) -> str | None:
        """Return the state as it is stored; None where it is that of a new session (S4)."""
        return to_text(state, start=self.start)

    async def change(self, command: Command) -> tuple[View, Outcome]:
        """Carry a command out: decide on the newest state, store it if nobody else did (S2)."""
        while True:
            access = await self.access()
            state, version = await self.stored()
            after, outcome = apply(access, state, command, self.terms(access))
            if after == state or not self.stable:
                break
            saved = await self.board.store.save(self.key, self.text_of(after), expected=version)
            if saved is not None:
                break
        await self._record(command, outcome)
        return meta_tools.view(self, access, after), outcome

    def terms(self, access: CompiledPermissions) -> CommandContext:
        """Return what the host and the dialect add to commands."""
        dialect = self.dialect
        budgeted = access.agent.budget.tokens is not None
        return CommandContext(
            until=access.agent.lease or dialect.lease,
            takes_effect=takes_effect(
                choose(self.host), activation=access.agent.activation, dialect=dialect.activation
            ),
            stable=self.stable,
            meta=meta_tools.tools(self, meta_tools.view(self, access, DEFAULT)) if access.agent.budget else (),
            price=self.board.price if budgeted else None,
            masker=self.board.masker,
        )

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of the agent."""
        return self.board.parts.dialects[self.agent.dialect]

    async def _record(self, command: Command, outcome: Outcome) -> None:
        recorder = self.board.recorder
        match command:
            case Load() | Fallback():
                kind, event = "load", "loaded"
            case Unload():
                kind, event = "unload", "unloaded"
            case SetLoadout():
                kind, event = "loadout", "loadout_changed"
            case EndTurn() | MarkTurn():
                kind, event = "evict", "evicted"
            case Use():
                return
        for item in outcome.items:
            decision = _decision(item)
            await recorder.decided(
                self.key,
                outcome.turn,
                event if decision == "allowed" else "denied" if decision == "refused" else None,
                kind=kind,
                subject=str(item.subject) if item.subject is not None else item.name,
                decision=decision,
                reason=item.message,
                outcome=item.status,
            )

    # -- the surface -----------------------------------------------------------------------------

    async def surface(self, *, message: str | None = None, loaded: bool = True) -> Surface:
        """Return what goes to the model at this step (F1).

        ``message`` is the newest user message, for focus rules; a focus binds calls until the next
        surface (F3). Without ``loaded`` it is the part that no load changes, fixed for an agent and
        principal (G4).
        """
        return await surface.surface(self, message, loaded=loaded)

    async def looked(self, state: State) -> CompiledPermissions:
        """Return the access once what is out has been brought in, as far as it answers in time."""
        access = await self.access()
        wants = [*self.out_wants(access, state)]
        await self.board.look(access, wants, wait=SERVER_WAIT)
        self.board.look_in_background(access)
        access = await self.access()
        wire_list.decide(self, access)
        return await self.access()

    def out_wants(self, access: CompiledPermissions, state: State) -> Iterator[PluginRequest]:
        """Yield the plugins that are out, under the overrides with which they are."""
        initial = (access.toolkits.get(name, ()) for name in access.agent.initial_toolkits)
        groups = (access.essential, access.static, *initial)
        leased = (entry for lease in state.leases for entry in lease_entries(access, lease))
        for entry in (*(e for group in groups for e in group), *leased):
            plugin = access.world.catalog.plugins[entry.plugin]
            if may_bring(access, state, plugin) and (entry.tools or access.grants_unseen(plugin)):
                yield PluginRequest(plugin=entry.plugin, overrides=entry.overrides)
        for plugin in access.world.catalog.plugins.values():
            merged = access.loadout
            switch = access.switches.plugins.get(plugin.name)
            switched = switch is not None and switch.on
            active = merged is not None and merged.includes(plugin.name, plugin.category)
            wanted = not plugin.tools and (switched or active) and may_bring(access, state, plugin)
            if wanted and access.grants_unseen(plugin):
                yield PluginRequest(plugin=plugin.name)

    async def wire(self) -> tuple[Tool, ...]:
        """Return the tool list for the next request of a host that sends one (D3).

        It is the surface, and behind a warm cache also what went idle as long as keeping it is
        cheaper; a call of such a tool renews its lease and runs.
        """
        return wire_list.wire(self, await self.surface())

    async def instructions(self) -> str:
        """Return what a client is told about Pegboard once, and the initial policy (F2, T6)."""
        return await surface.instructions(self)

    # -- what a model or a host asks for ---------------------------------------------------------

    async def load(self, *names: str, keep: str | None = None) -> Outcome:
        """Take out toolkits, plugins or tools.

        ``keep`` is turn, idle or session; None takes the agent's default.
        """
        if keep is not None and keep not in KEEP:
            raise UsageError(f"'{keep}' is not turn, idle or session.")
        return (await self.carry_out(Load(names=names, until=KEEP[keep] if keep else None)))[1]

    async def carry_out(self, command: Command) -> tuple[View, Outcome]:
        """Bring in what is out and what the command names, then change the state."""
        access = await self.looked(await self.state())
        if isinstance(command, Load):
            await self._bring_in(access, command)
        view, outcome = await self.change(command)
        if isinstance(command, Unload):
            self.unloaded.update(outcome.removed)
        return view, outcome

    async def _bring_in(self, access: CompiledPermissions, command: Load) -> None:
        """Ask for what the names stand for; a server may hold a tool that is written bare."""
        if access.unresolved:
            await self.board.look(access, self.board.look_later(access), wait=SERVER_WAIT)
            access = await self.access()
        await self.board.keeper.ready(self._named(access, command.names), retry=True)
        access = await self.access()
        await self.board.keeper.ready(self._named(access, command.names))

    def _named(self, access: CompiledPermissions, names: tuple[str, ...]) -> Iterator[PluginRequest]:
        for name in names:
            ref = lookup(access, name)
            if ref is None:
                owner = self.owner_of(access, name)
                if owner is not None:
                    yield PluginRequest(plugin=owner)
                continue
            for entry in lease_entries(access, Lease(subject=ref, until=self.dialect.lease)):
                if not access.scope_only(access.world.catalog.plugins[entry.plugin]):
                    yield PluginRequest(plugin=entry.plugin, overrides=entry.overrides)

    def owner_of(self, access: CompiledPermissions, name: str) -> str | None:
        """Return the plugin, not seen yet, to which a tool of this name would belong."""
        bare = split_kind(name)[1]
        for mark in ("/", "__"):
            plugin = access.world.catalog.plugins.get(bare.partition(mark)[0])
            if plugin is not None and not plugin.tools and access.grants_unseen(plugin):
                return plugin.name
        return None

    async def unload(self, *names: str) -> Outcome:
        """Hang back what was loaded."""
        return (await self.carry_out(Unload(names=names)))[1]

    async def fallback(self) -> Outcome:
        """Take out everything permitted for this turn, within the budget (S8)."""
        return (await self.carry_out(Fallback()))[1]

    async def use_loadout(self, name: str | None) -> Outcome:
        """Narrow the session to a loadout at once, essentials and meta-tools apart; None narrows nothing (L7)."""
        return (await self.change(SetLoadout(loadout=name)))[1]

    async def child(self, kind: str, *, agent: str | None = None) -> Session:
        """Return a session for a subagent: explore, task, plan, review, general (L8).

        It has at most what this one may, now and later, and cannot change it (P8). ``agent`` is the
        profile that it works with, by default this one's. Raises ``UsageError`` below three levels.
        """
        return children.begin(self, kind, agent)

    async def end_turn(self) -> Outcome:
        """End the turn: the counter grows, leases that lapse go (S6, S7)."""
        return await self._ended(EndTurn())

    async def mark_turn(self, label: str) -> Outcome:
        """Note a client's turn label; another one than before ends the turn (G3)."""
        return await self._ended(MarkTurn(label=label))

    async def _ended(self, command: EndTurn | MarkTurn) -> Outcome:
        before = await self.state()
        view, outcome = await self.change(command)
        if view.state.turn > before.turn:
            self.board.events.emit(
                "turn_ended",
                {
                    "principal": self.key.principal,
                    "agent": self.key.agent,
                    "session": self.key.session,
                    "turn": before.turn,
                },
            )
        return outcome

    async def search(self, *queries: str, limit: int = 5) -> Found:
        """Return the permitted tools that answer these needs best (P3)."""
        access = await self.access()
        await self.board.look(access, self.board.look_later(access), wait=SERVER_WAIT)
        access, state = await self.access(), await self.state()
        return search.find(self, access, state, Search(queries=queries, limit=limit))

    async def explain(self, name: str) -> Explanation:
        """Return the four predicates for a tool or plugin, and the chain of reasons (F5)."""
        state = await self.state()
        access = await self.looked(state)
        if access.world.catalog.find_tool(name) is None:
            await self.board.look_everywhere(wait=SERVER_WAIT)
            access = await self.access()
        return explain.explained(self, access, state, name)

    def schema_of(self, wire: str) -> JsonObject | None:
        """Return the input schema of a permitted tool or meta-tool, without waiting (P9)."""
        access = children.access_now(self)
        for tool in meta_tools.tools(self, meta_tools.view(self, access, DEFAULT)):
            if tool.wire == wire:
                return tool.input_schema
        tool = find_called(access, wire)
        return tool.input_schema if tool is not None else None

    # -- calls -----------------------------------------------------------------------------------

    async def call(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        progress: Progress | None = None,
        request_meta: JsonObject | None = None,
        client: Client | None = None,
        arrived: float | None = None,
    ) -> CallAnswer:
        """Call a tool or a meta-tool as the model does; refusals are answers, not exceptions.

        ``client`` takes what an upstream asks and says during the call; without one it is refused.
        ``arrived`` is when the call came (``time.monotonic()``): what binds it is what was stored by then.
        """
        given: JsonObject = arguments if arguments is not None else {}
        channel = CallerChannel(progress=progress, client=client, meta=request_meta or EMPTY)
        access = await children.access(self, arrived)
        tool = meta_tools.find(self, access, name)
        if tool is not None:
            return await meta_tools.call(self, access, tool, given, channel)
        return await pipeline.run(self, access, name, given, channel)


def _decision(item: Item) -> str:
    match item.status:
        case "loaded" | "unloaded":
            return "allowed"
        case "already_loaded" | "not_loaded":
            return "unchanged"
        case _:
            return "refused"
