"""Switches at run time, whether one grants what the file does not, and what else an operator decides of permissions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pegboard.board.catalog.loader import IN_PROCESS
from pegboard.board.discover import discover_every
from pegboard.board.services import Services
from pegboard.board.session_info import agent_of
from pegboard.core.access.permissions import LOCAL, CompiledPermissions
from pegboard.core.access.pins import PinName
from pegboard.core.access.settings.own_settings import (
    NO_SETTINGS,
    OwnSettings,
    names_off,
    with_own_off,
    with_switch,
    without_off,
)
from pegboard.core.access.switches import other_spellings, subjects_named, switchable
from pegboard.core.model.naming import did_you_mean, label_problem, one_line, some_of
from pegboard.core.model.selectors import find
from pegboard.core.model.tools import EMPTY, JsonObject, Plugin, Tool
from pegboard.core.principals.bearer_tokens import may_use_agent
from pegboard.errors import UsageError
from pegboard.ports import UNCHECKED, SessionKey, StoredPermissions, SwitchChange, Unchecked

GRANTS: Final = "It grants more than the file does."
"""What the audit trail says of such a switch."""


async def grants_more(
    services: Services, agent: str, name: str, value: bool | None, *, principal: str | None = None
) -> bool:
    """Return whether a switch would let an agent use what it may not now, and may not by the file alone.

    ``value`` None takes the stored switch back; ``principal`` None is everyone.
    """
    if value is False:
        return False
    await services.compiler.refresh()
    world, compiler = services.world, services.compiler
    if principal is not None:
        switches = with_switch(compiler.personal(agent, principal), name, value, world)
        own = without_off(compiler.own_settings(agent, principal), name, world)
        return _widens_use(services, agent, compiler.stored(agent), {principal: (switches, own)})
    return _widens_use(services, agent, with_switch(compiler.stored(agent), name, value, world), EMPTY)


async def first_agent_granted_more(services: Services, changes: Sequence[SwitchChange]) -> str | None:
    """Return the first agent that switches set together grant what its file does not, or None."""
    await services.compiler.refresh()
    switches = [one for one in changes if one.kind == "switch"]
    for agent in dict.fromkeys(one.agent for one in switches):
        then = dict(services.compiler.stored(agent))
        for one in switches:
            if one.agent == agent:
                then.pop(one.name, None)
                then.update({} if one.value is None else {one.name: one.value})
        if _widens_use(services, agent, then, EMPTY):
            return agent
    return None


def may_not_grant(agent: str, name: str, whose: str) -> UsageError:
    """Return the refusal of a switch that grants more than its operator may."""
    return UsageError(
        f"'{one_line(name, limit=100)}' is not granted to {agent} by the file, so to switch it on takes the right"
        f" 'configure', which {whose} does not have.",
        code="right_required",
        hint="Ask who may configure, or have it granted in the file.",
    )


_Personal = tuple[Mapping[str, bool], OwnSettings]
"""The switches for one principal, and what the agent has set for itself."""


def _widens_use(services: Services, agent: str, then: Mapping[str, bool], personal: Mapping[str, _Personal]) -> bool:
    """Return whether the agent may use more, for everyone or a principal with switches of its own.

    Pauses do not count: they end some time, and grant nothing.
    """
    compiler = services.compiler
    now, every = compiler.stored(agent), compiler.principals(agent)
    file = compiler.supposing_switches(agent, EMPTY).permissions_of_agent(agent)
    before, after = (compiler.supposing_switches(agent, one) for one in (now, then))
    for principal in {None, *every, *personal}:
        old: _Personal = (EMPTY, NO_SETTINGS)
        if principal is not None:
            old = compiler.personal(agent, principal), compiler.own_settings(agent, principal)
        new = old if principal is None else personal.get(principal, old)
        if _permits_more(after.permissions_with(agent, *new), before.permissions_with(agent, *old), file):
            return True
        if _names_unknown({**then, **new[0]}, {**now, **old[0]}, file):
            return True
    return False


def _names_unknown(then: Mapping[str, bool], now: Mapping[str, bool], file: CompiledPermissions) -> bool:
    """Return whether what is switched on newly names a tool, by itself or in a toolkit, of a plugin not seen yet."""
    world = file.world
    for name, value in then.items():
        if not value or now.get(name) or file.agent.switches.get(name):
            continue
        refs = subjects_named(world, name, on=True)
        kits = [ref.name for ref in refs if ref.kind == "toolkit" and ref.name not in file.entries.loadable_toolkits]
        names = [member.name for kit in kits for member in world.toolkits[kit].members] if refs else [name]
        if any(find(one, world.catalog) is None and any(world.catalog.unseen_owners(one)) for one in names):
            return True
    return False


def _permits_more(after: CompiledPermissions, *others: CompiledPermissions) -> bool:
    """Return whether something is permitted that is permitted in none of the others; what may still come too."""
    for plugin in after.world.catalog.plugins.values():
        had = {tool.id for one in others for tool in one.plugin_permissions.tools_of(plugin)}
        if any(tool.id not in had for tool in after.plugin_permissions.tools_of(plugin)):
            return True
        if _permits_later(after, plugin) and not any(_permits_later(one, plugin) for one in others):
            return True
    return False


def _permits_later(permissions: CompiledPermissions, plugin: Plugin) -> bool:
    """Return whether tools are permitted that a plugin has later: all of it is granted, not only tools by name."""
    switch, named = permissions.switches.plugins.get(plugin.name), permissions.entries.by_plugin.get(plugin.name, ())
    by_whole = any(entry.whole for entry in named) or (switch is not None and switch.on)
    by_whole = by_whole or next(permissions.decisions.plugin_grants(plugin), None) is not None
    return by_whole and permissions.grants_unseen(plugin)


class Permissions:
    """The switches that are set at run time; the next call of every session is bound by them (P2, P4)."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def _may_grant(self, agent: str, by: str) -> bool:
        owned = [token for token in self._services.tokens.in_force if token.principal == by]
        return not owned or any("configure" in token.rights and may_use_agent(token, agent) for token in owned)

    async def set(
        self,
        agent: str,
        name: str,
        value: bool | None,
        *,
        by: str = LOCAL,
        expected: bool | Unchecked | None = UNCHECKED,
        principal: str | None = None,
        may_grant: bool | None = None,
    ) -> None:
        """Store a switch for an agent; with it, in one transaction, who set it (X4).

        Where the name means nothing known yet, plugins that were never asked are asked for their tools first.

        Args:
            agent: the agent's name.
            name: a toolkit, plugin or tool.
            value: True, False, or None to take the stored switch back, so that the file's counts again.
            by: who sets it, for the audit trail.
            expected: the stored boolean that the person who decides was shown, None where none was stored; where it is
                another one by now, nothing is changed. Not given, whatever is stored is replaced.
            principal: for whom alone it counts, beside the agent's own: false of either denies. None is everyone.
            may_grant: whether it may grant what the file does not. None: where ``by`` names a principal of
                ``tokens:``, whether that has the right ``configure`` for the agent; else it may.

        Raises:
            UnknownAgentError: there is no such agent.
            UsageError: the name means nothing known, a value is no boolean, or ``by`` is no short text;
                ``switch_changed`` where someone else was first; ``right_required`` where it may not grant.
            StoreError: it cannot be stored.
        """
        services = self._services
        await ask_and_require_switch(services, agent, name, value)
        if expected is not UNCHECKED:
            _require_boolean(expected)
        require_name(by)
        key = SessionKey(principal=LOCAL if principal is None else principal, agent=agent, session="")
        state = "unset" if value is None else "on" if value else "off"
        grants = await grants_more(services, agent, name, value, principal=principal)
        if grants and not (self._may_grant(agent, by) if may_grant is None else may_grant):
            raise may_not_grant(agent, name, by)
        record = services.recorder.entry(key, 0, "permission", name, state, reason=GRANTS if grants else "", by=by)
        permissions = await services.store.stored_permissions()
        own = permissions.own_settings.get(agent, {}).get(principal, {}) if principal is not None else {}
        stored = {*_stored_of(permissions, agent, principal), *names_off(own)}
        replaces = other_spellings(services.world, name, stored)
        if not await services.store.set_switch(
            agent, name, value, expected=expected, replaces=replaces, principal=principal, audit=[record]
        ):
            raise await _changed_meanwhile_error(services, agent, name, principal)
        services.events.emit("permissions_changed", {"agent": agent, "subject": name, "by": by})

    async def accept_claims(self, *, by: str = LOCAL, tools: Collection[str] | None = None) -> tuple[Tool, ...]:
        """Let count what trusted servers say of tools only since later: that they only read, or destroy nothing (G6).

        It takes effect at the next call, in every process.

        Args:
            by: who accepts it, for the audit trail.
            tools: the ids of those that the person who accepts was shown; None is every one.

        Returns:
            These tools.

        Raises:
            UsageError: ``by`` is no short text.
            StoreError: it cannot be stored.
        """
        services = self._services
        require_name(by)
        accepted: list[Tool] = []
        for plugin in services.world.catalog.plugins.values():
            pending = {one.tool: one.digest for one in services.pins.tools(plugin) if one.claims}
            chosen = tuple(t for t in plugin.tools if t.name in pending and (tools is None or t.id in tools))
            if chosen:
                shown = {PinName("tool", tool.name): pending[tool.name] for tool in chosen}
                await services.pins.accept(plugin, shown, by=by)
            accepted += chosen
        return tuple(accepted)

    async def panel(self, agent: str, principal: str | None = None) -> tuple[JsonObject, ...]:
        """Return what people switch of an agent: toolkits, then plugins with the tools that stand in none (T6).

        Each has ``kind``, ``name``, ``label``, ``description``, ``default`` (on without any switch), ``switch`` (the
        boolean that is in force, or None), ``on`` and ``reason``; a toolkit has ``icon``, and what has tools has
        ``members``. Plugins written in Python are asked for their tools first; servers are not started.

        Args:
            agent: the agent's name.
            principal: for whom, with the switches for this one alone; None is without them.

        Returns:
            Plain JSON without any secret or callable in it.

        Raises:
            UnknownAgentError: there is no such agent.
            StoreError: the stored switches cannot be read.
        """
        from pegboard.core.access.settings.panels import panel

        services = self._services
        agent_of(services.world, agent)
        await discover_every(services, IN_PROCESS)
        await services.compiler.refresh()
        compiler = services.compiler
        return panel(compiler.permissions_of_agent(agent, principal), compiler.without_switches(agent), services.masker)

    async def show(self, principal: str | None = None) -> dict[str, dict[str, bool]]:
        """Return the effective booleans of every agent by its name (P2).

        Args:
            principal: whose, with those for this one alone; None is without them.
        """
        stored, switches, own, *_ = await self._services.store.stored_permissions()
        personal: dict[str, Mapping[str, bool]] = {}
        if principal is not None:
            personal = {
                name: with_own_off(switches.get(name, {}).get(principal, {}), own.get(name, {}).get(principal, {}))
                for name in (*switches, *own)
            }
        found: dict[str, dict[str, bool]] = {}
        for name, agent in self._services.world.agents.items():
            found[name] = {**agent.switches, **stored.get(name, {})}
            for switch, on in personal.get(name, {}).items():
                found[name][switch] = on and found[name].get(switch, True)
        return found


async def ask_and_require_switch(services: Services, agent: str, name: str, value: object) -> None:
    """Refuse a switch that cannot be set, once the plugins were asked that may have what it names.

    Raises:
        UnknownAgentError: there is no such agent.
        UsageError: the name means nothing known, or the value is no boolean.
    """
    _require_form(services, agent, name, value)
    for kinds in _ASKED_IN_TURN:
        if value is not None and not switchable(services.world, name):
            await discover_every(services, kinds)
    require_switch(services, agent, name, value)


_ASKED_IN_TURN: Final = (IN_PROCESS, frozenset({"server"}), frozenset({"agno"}))
"""The kinds of plugins that are asked for a name, those first that answer soonest."""


def require_switch(services: Services, agent: str, name: str, value: object) -> None:
    """Refuse a switch that cannot be set, as far as plugins are known.

    Raises:
        UnknownAgentError: there is no such agent.
        UsageError: the name means nothing known, or the value is no boolean.
    """
    _require_form(services, agent, name, value)
    if value is None or switchable(services.world, name):
        return
    plugins = services.world.catalog.plugins
    shown = one_line(name, limit=100)
    unseen = [plugin.name for plugin in plugins.values() if not plugin.tools]
    near = did_you_mean(name, (*services.world.toolkits, *plugins))
    if unseen:
        where = f"The tools of {some_of(unseen)} are not known: write {unseen[0]}/{shown} if it is one of them."
        near = f"{near} {where}".lstrip()
    raise UsageError(f"'{shown}' is not a toolkit, plugin or tool.", code="unknown_name", hint=near)


def _require_form(services: Services, agent: str, name: str, value: object) -> None:
    agent_of(services.world, agent)
    _require_boolean(value)
    if problem := label_problem(name):
        raise UsageError(f"The name of a switch {problem}", hint="Name a toolkit, plugin or tool.")


def _require_boolean(value: object) -> None:
    if value is not None and not isinstance(value, bool):
        raise UsageError(f"A switch is True, False or None, not {type(value).__name__}.")


_RECENT: Final = 100
"""How many of the newest changes of an agent's permissions are looked through for who set a switch."""


def _stored_of(stored: StoredPermissions, agent: str, principal: str | None) -> Mapping[str, bool]:
    """Return the stored switches of an agent, those for everyone or for one principal alone."""
    if principal is None:
        return stored.switches.get(agent, {})
    return stored.principal_switches.get(agent, {}).get(principal, {})


async def _changed_meanwhile_error(services: Services, agent: str, name: str, principal: str | None) -> UsageError:
    """Return the error that says who set a switch meanwhile, and to what."""
    stored = _stored_of(await services.store.stored_permissions(), agent, principal).get(name)
    state = "not set" if stored is None else "on" if stored else "off"
    newest = await services.store.entries(agent=agent, kind="permission", limit=_RECENT)
    subject = services.recorder.entry(
        SessionKey(principal=LOCAL, agent=agent, session=""), 0, "permission", name, ""
    ).subject
    by = next((record.by for record in newest if record.subject == subject and record.by), "")
    who = f"'{by}'" if by else "somebody else"
    return UsageError(
        f"The switch '{one_line(name, limit=100)}' of agent '{agent}' is {state} now: {who} set it in the meantime.",
        code="switch_changed",
        hint="Look at its current state, and decide again.",
    )


def require_name(by: object) -> None:
    """Refuse what cannot be the name of someone who decides."""
    if problem := label_problem(by):
        raise UsageError(f"`by` {problem}", hint="Give the name of the person who decides, as a short text.")
