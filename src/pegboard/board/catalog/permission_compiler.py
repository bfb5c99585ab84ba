"""The permissions of every agent, compiled for the world and the switches in force (P2, P4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Mapping
from copy import copy
from dataclasses import replace
from time import monotonic

from pegboard.board.catalog.pins import DefinitionPins
from pegboard.board.session_info import SessionInfo, agent_of
from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints, delegates
from pegboard.core.access.settings.own_settings import (
    NO_SETTINGS,
    OwnSettings,
    with_own_off,
    with_own_values,
    with_switch,
)
from pegboard.core.access.switches import NOTHING_PAUSED, Pauses, ToolkitEntries, with_pause
from pegboard.core.model.agents import World
from pegboard.core.model.tools import EMPTY
from pegboard.errors import StoreError
from pegboard.ports import ChangeToken, Store


class PermissionCompiler:
    """Compiled permissions, each made once for the world and the stored switches of now."""

    def __init__(self, store: Store, pins: DefinitionPins) -> None:
        self.world = World()
        self._store = store
        self._pins = pins
        self._token: ChangeToken | None = None
        self._as_of: object = object()
        self._taking_up = asyncio.Lock()
        self._other_pins = False  # some have changed that nothing was compiled with
        self._switches: Mapping[str, Mapping[str, bool]] = {}
        self._personal: Mapping[str, Mapping[str, Mapping[str, bool]]] = {}
        self._own: Mapping[str, Mapping[str, OwnSettings]] = {}
        self._pauses: Mapping[str, Pauses] = {}
        self._looked_up = ToolkitEntries(self.world)
        self._compiled: dict[tuple[object, ...], CompiledPermissions] = {}
        self._before: dict[tuple[object, ...], CompiledPermissions] = {}
        self._bare: dict[str, CompiledPermissions] = {}

    def adopt(self, world: World) -> None:
        """Take over a world whole."""
        configured = world.agents is not self.world.agents
        self.world = world
        self._looked_up = ToolkitEntries(world)
        self._mark_outdated()
        if configured:
            self._before.clear()
            self._bare.clear()
        self._as_of = object()

    async def refresh(self, since: float | None = None) -> object:
        """Take up what any process had stored by ``since``, a time of ``time.monotonic()``, or by now (P4, G6).

        Returns an object that is another one whenever a stored state, a switch, a pin or the world
        has changed.
        """
        asked = monotonic() if since is None else since
        token = await self._store.change_token(since)
        if self._is_news(token):
            async with self._taking_up:  # who asks at the same moment reads nothing again
                token = self._store.known_token(asked) or token  # others may have taken up what came since
                if self._is_news(token):
                    await self._take_permissions(token)
        return self._as_of

    def _is_news(self, token: ChangeToken) -> bool:
        return token is not self._token and (self._token is None or token[:2] != self._token[:2])

    async def _take_permissions(self, token: ChangeToken) -> None:
        if self._token is None or token.permissions != self._token.permissions:
            switches, personal, own, pauses, pins_revision = await self._store.stored_permissions()
            self._other_pins = await self._pins.refresh(pins_revision) or self._other_pins
            before = self._switches, self._personal, self._own, self._pauses
            now = switches, personal, own, pauses  # all of it was read, or nothing is taken
            self._switches, self._personal, self._own, self._pauses = now
            other_pins, self._other_pins = self._other_pins, False
            if other_pins or self._token is None:
                self._mark_outdated()
            else:
                agents = {agent for each in (*before, *now) for agent in each}
                pairs = tuple(zip(before, now, strict=True))
                self._mark_outdated({one for one in agents if any(old.get(one) != new.get(one) for old, new in pairs)})
        self._token = token
        self._as_of = object()

    def known(self, since: float) -> object | None:
        """Return what :meth:`refresh` would, where nothing has changed and nothing has to be read; else None."""
        token = self._store.known_token(since)
        return self._as_of if token is not None and (token is self._token or token == self._token) else None

    def _mark_outdated(self, agents: Container[str] | None = None) -> None:
        """Compile these agents again when they are asked for, out of what was compiled last; None is every one.

        Children are all compiled again: whose switches decide about them is not looked for.
        """
        alone = {
            key: permissions for key, permissions in self._compiled.items() if permissions.constraints.parent is None
        }
        outdated = {key: one for key, one in alone.items() if agents is None or one.agent.name in agents}
        self._before |= outdated
        self._compiled = {key: permissions for key, permissions in alone.items() if key not in outdated}

    def permissions(self, info: SessionInfo, narrowed_above: tuple[str | None, ...] = ()) -> CompiledPermissions:
        """Return what a session may, as of the last refresh.

        ``narrowed_above`` are the active loadouts of the sessions above it, the nearest first (L7, P8).
        """
        constraints = info.constraints
        if info.host.draws_ui:
            constraints = replace(constraints, draws_ui=True)
        if info.parent is not None:
            parent = self._parent(info.parent, narrowed_above)
            if not (info.delegated and info.key.agent in delegates(parent)):
                constraints = replace(constraints, parent=parent)
        agent, principal = info.key.agent, info.key.principal
        personal, own = self.personal(agent, principal), self.own_settings(agent, principal)
        return self._compile(agent, constraints, personal, own, info.settings)

    def note_settings(self) -> None:
        """Note that a child has set something for itself, which is stored nowhere."""
        self._as_of = object()

    def personal(self, agent: str, principal: str) -> Mapping[str, bool]:
        """Return the stored switches of an agent for one principal alone."""
        return self._personal.get(agent, EMPTY).get(principal, EMPTY)

    def own_settings(self, agent: str, principal: str) -> OwnSettings:
        """Return what an agent has set for itself for one principal."""
        return self._own.get(agent, {}).get(principal, NO_SETTINGS)

    def pauses(self, agent: str) -> Pauses:
        """Return what is paused of an agent, as of the last refresh."""
        return self._pauses.get(agent, NOTHING_PAUSED)

    def _parent(self, info: SessionInfo, narrowed: tuple[str | None, ...]) -> CompiledPermissions:
        own, *above = narrowed
        inner = replace(info, constraints=replace(info.constraints, narrowed=own))
        return self.permissions(inner, tuple(above))

    def permissions_of_agent(self, agent: str, principal: str | None = None) -> CompiledPermissions:
        """Return what an agent may outside of any session, for one principal or anyone, as of the last refresh."""
        if principal is None:
            return self._compile(agent, SessionConstraints())
        personal, own = self.personal(agent, principal), self.own_settings(agent, principal)
        return self._compile(agent, SessionConstraints(), personal, own)

    def permissions_with(
        self, agent: str, personal: Mapping[str, bool], own: OwnSettings = NO_SETTINGS
    ) -> CompiledPermissions:
        """Return what an agent may outside of any session, with these switches and own settings for one principal."""
        return self._compile(agent, SessionConstraints(), personal, own)

    def principals(self, agent: str) -> tuple[str, ...]:
        """Return the principals that have switches of an agent, or settings of its own, for themselves alone."""
        return tuple({**self._personal.get(agent, EMPTY), **self._own.get(agent, EMPTY)})

    def without_switches(self, agent: str) -> CompiledPermissions:
        """Return what an agent would be permitted without any switch, as of the last refresh."""
        profile = replace(agent_of(self.world, agent), switches=EMPTY, switch_places=EMPTY)
        known = self._bare.get(agent)
        if known is None or known.world is not self.world or known.agent != profile:
            known = self._bare[agent] = CompiledPermissions(
                self.world, profile, before=known, looked_up=self._looked_up
            )
        return known

    def supposing_switch(self, agent: str, name: str, value: bool | None) -> PermissionCompiler:
        """Return a compiler of the same moment for which an operator has set a switch; nothing is stored or noted."""
        stored = with_switch(self._switches.get(agent, {}), name, value, self.world)
        return self._for_supposed_switches(agent, stored, self.pauses(agent))

    def supposing_pause(self, agent: str, plugin: str | None, *, on: bool) -> PermissionCompiler:
        """Return a compiler of the same moment for which an agent, or a plugin of it, is paused or resumed."""
        return self._for_supposed_switches(agent, self.stored(agent), with_pause(self.pauses(agent), plugin, on=on))

    def supposing_switches(self, agent: str, stored: Mapping[str, bool]) -> PermissionCompiler:
        """Return a compiler of the same moment for which an agent has these stored switches alone, and no pause."""
        return self._for_supposed_switches(agent, stored, NOTHING_PAUSED)

    def _for_supposed_switches(self, agent: str, stored: Mapping[str, bool], pauses: Pauses) -> PermissionCompiler:
        before = {
            key: permissions for key, permissions in self._compiled.items() if permissions.constraints.parent is None
        }
        other = copy(self)
        other._pauses = {**self._pauses, agent: pauses}  # noqa: SLF001 - the same class
        other._reset_compiled({**self._switches, agent: stored}, before, self.world)  # noqa: SLF001 - the same class
        return other

    def supposing_world(self, world: World) -> PermissionCompiler:
        """Return a compiler of the same moment under another configuration; nothing is stored or noted."""
        other = copy(self)
        other._reset_compiled(self._switches, {}, world)  # noqa: SLF001 - the same class
        return other

    def _reset_compiled(
        self,
        switches: Mapping[str, Mapping[str, bool]],
        before: dict[tuple[object, ...], CompiledPermissions],
        world: World,
    ) -> None:
        self._switches, self._compiled, self._before = switches, {}, before
        self._bare, self.world = {}, world

    def stored(self, agent: str) -> Mapping[str, bool]:
        """Return the stored switches of an agent, as of the last refresh."""
        return self._switches.get(agent, {})

    def _compile(
        self,
        agent: str,
        constraints: SessionConstraints,
        personal: Mapping[str, bool] = EMPTY,
        settings: OwnSettings = NO_SETTINGS,
        of_child: OwnSettings = NO_SETTINGS,
    ) -> CompiledPermissions:
        c = constraints
        own = tuple(personal.items()), tuple(settings.items()), tuple(of_child.items())
        key = (
            agent,
            c.sub_app,
            c.worker_scope,
            c.narrowed,
            c.everything,
            c.draws_ui,
            c.most_at_start,
            c.parent,
            own,
        )
        known = self._compiled.get(key)
        if known is None:
            profile = with_own_values(agent_of(self.world, agent), {**settings, **of_child})
            stored = replace(
                constraints,
                stored=self.stored(agent),
                personal=with_own_off(personal, settings, of_child),
                pauses=self.pauses(agent),
            )
            known = self._compiled[key] = CompiledPermissions(
                self.world, profile, stored, before=self._before.pop(key, None), looked_up=self._looked_up
            )
        return known


class NarrowedCompiler(PermissionCompiler):
    """A compiler that follows another one, in a part of its world.

    ``narrow`` gets the other compiler and the part as it was, and returns the part of now; the same object where
    nothing has changed in it.
    """

    def __init__(self, whole: PermissionCompiler, narrow: Callable[[PermissionCompiler, World], World]) -> None:
        super().__init__(whole._store, whole._pins)  # noqa: SLF001 - the same class
        self._whole = whole
        self._narrow = narrow

    async def refresh(self, since: float | None = None) -> object:
        """Follow the whole compiler to what was stored by ``since``; return what its own refresh returns."""
        try:
            as_of = await self._whole.refresh(since)
        except StoreError:
            self._follow_compiler(self._whole)
            raise
        if as_of is not self._as_of:
            self._follow_compiler(self._whole)
            self._as_of = as_of
        return as_of

    def known(self, since: float) -> object | None:
        """Return what :meth:`refresh` would, where nothing has changed and nothing has to be read; else None."""
        as_of = self._whole.known(since)
        return as_of if as_of is self._as_of else None

    def note_settings(self) -> None:
        """Note that a child has set something for itself, which is stored nowhere."""
        self._whole.note_settings()

    def _follow_compiler(self, whole: PermissionCompiler) -> None:
        part = self._narrow(whole, self.world)
        if part is not self.world:
            self.adopt(part)
        else:
            self._mark_outdated()
        stored = whole._switches, whole._personal, whole._own, whole._pauses  # noqa: SLF001 - the same class
        self._switches, self._personal, self._own, self._pauses = stored
