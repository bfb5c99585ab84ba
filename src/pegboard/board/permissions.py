"""Switches at run time, and what else an operator decides of permissions (P2, P4, G6, T6)."""

from __future__ import annotations

from pegboard.board.services import Services
from pegboard.board.session_info import agent_of
from pegboard.core.access.panels import panel
from pegboard.core.access.switches import switchable
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.errors import UsageError
from pegboard.ports import SessionKey


class Permissions:
    """The switches that are set at run time; the next call of every session is bound by them (P2, P4)."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def set(self, agent: str, name: str, value: bool | None) -> None:
        """Store a switch for an agent.

        Args:
            agent: the agent's name.
            name: a toolkit, plugin or tool.
            value: True, False, or None to take the stored switch back, so that the file's counts again.

        Raises:
            UnknownAgentError: there is no such agent.
            UsageError: the name means nothing known.
        """
        services = self._services
        agent_of(services.world, agent)
        if not switchable(services.world, name) and value is not None:
            names = (*services.world.toolkits, *services.world.catalog.plugins)
            raise UsageError(
                f"'{name[:100]}' is not a toolkit, plugin or tool.",
                code="unknown_name",
                hint=did_you_mean(name, names),
            )
        key = SessionKey(principal="local", agent=agent, session="")
        state = "unset" if value is None else "on" if value else "off"
        record = services.recorder.entry(key, 0, "permission", name, state)
        await services.store.set_switch(agent, name, value, audit=[record])
        services.events.emit("permissions_changed", {"agent": agent, "subject": name})

    async def accept_claims(self) -> tuple[Tool, ...]:
        """Let every tool count as read-only of which a trusted server reports so only since later (G6).

        It takes effect at the next call, in every process.

        Returns:
            These tools.
        """
        services = self._services
        key = SessionKey(principal="local", agent="", session="")
        accepted: list[Tool] = []
        for plugin in services.world.catalog.plugins.values():
            tools = services.trust.pending(plugin)
            if tools:
                await services.trust.accept(plugin, tools)
            for tool in tools:
                reason = "It counts as read-only from now on."
                entry = services.recorder.entry(key, 0, "permission", tool.wire, "accepted", reason=reason)
                await services.recorder.note(entry)
            accepted += tools
        return tuple(accepted)

    async def panel(self, agent: str) -> tuple[JsonObject, ...]:
        """Return the toolkits of an agent as people switch them: labels, pictures, members, states (T6).

        Args:
            agent: the agent's name.

        Returns:
            Plain JSON without any secret or callable in it.

        Raises:
            UnknownAgentError: there is no such agent.
        """
        services = self._services
        await services.compiler.refresh()
        return panel(services.compiler.of_agent(agent), services.masker)

    async def show(self) -> dict[str, dict[str, bool]]:
        """Return the effective booleans of every agent by its name (P2)."""
        stored = await self._services.store.all_switches()
        agents = self._services.world.agents
        return {name: {**agent.switches, **stored.get(name, {})} for name, agent in agents.items()}
