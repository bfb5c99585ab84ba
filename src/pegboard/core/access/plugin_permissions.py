"""May it have a plugin? Also where the plugin was not asked for its tools yet."""

from __future__ import annotations

from collections.abc import Container, Sequence

from pegboard.core.access.decisions import Decision, DecisionInputs, Decisions, Reason
from pegboard.core.model.tools import Plugin, Tool

_SCOPE_ALONE = ["denied_scope"]


class PluginPermissions:
    """The permissions of plugins as a whole; one that was not asked for its tools yet is decided by a nameless tool."""

    def __init__(self, given: DecisionInputs, decisions: Decisions, parent: PluginPermissions | None) -> None:
        self._given = given
        self._decisions = decisions
        self._parent = parent
        self._tools: dict[str, tuple[Tool, ...]] = {}
        self._unseen: dict[str, bool] = {}

    def carry_over(self, before: PluginPermissions, changed: Container[str]) -> None:
        """Take over what was found before, but of plugins that have changed or are named otherwise."""
        self._tools = {name: tools for name, tools in before._tools.items() if name not in changed}
        self._unseen = {name: found for name, found in before._unseen.items() if name not in changed}

    def tools_of(self, plugin: Plugin) -> tuple[Tool, ...]:
        """Return the permitted tools of a plugin of the catalog; the same object until something changes for it."""
        known = self._tools.get(plugin.name)
        if known is None:
            known = self._tools[plugin.name] = self._decisions.permitted_of(plugin)
        return known

    def may_have_tools_of(self, plugin: Plugin) -> bool:
        """Return whether something grants the plugin or a part of it, seen or not seen yet."""
        return bool(self.tools_of(plugin)) if plugin.tools else self.grants_unseen(plugin)

    def grants_unseen(self, plugin: Plugin) -> bool:
        """Return whether a plugin whose tools are not known yet would be granted and not denied."""
        known = self._unseen.get(plugin.name)
        if known is None:
            of_parent = self._parent is None or self._parent.grants_unseen(plugin)
            known = of_parent and self._names_whole(plugin) and not self._denial_codes(plugin)
            self._unseen[plugin.name] = known
        return known

    def decide_unseen(self, plugin: Plugin) -> Decision:
        """Return whether a plugin whose tools are not known yet would be permitted, and why (P1)."""
        agent, denials = self._given.agent, tuple(self._decisions.denials(_nameless(plugin), plugin))
        named = self._given.entries.by_plugin.get(plugin.name, ())
        where = plugin.place or next((entry.member.place for entry in named), agent.place)
        text = f"Plugin '{plugin.name}' is granted to agent '{agent.name}'."
        granted = Reason(code="granted", text=text, where=where)
        if self.grants_unseen(plugin):
            return Decision(permitted=True, reasons=(granted,))
        if denials and self._names_whole(plugin):
            return Decision(permitted=False, reasons=(*denials, granted))
        text = f"Plugin '{plugin.name}' is not granted to agent '{agent.name}'."
        reason = Reason(code="not_granted", text=text, where=where)
        return Decision(permitted=False, reasons=denials or (reason,))

    def scope_only(self, plugin: Plugin) -> bool:
        """Return whether only the scope stands between the agent and some of a plugin (P5)."""
        if not (plugin.shared_only and self._given.scope.isolating):
            return False
        if plugin.tools:
            return any(self.scope_alone(tool) for tool in plugin.tools)
        return self._denial_codes(plugin) == _SCOPE_ALONE and self._names_whole(plugin)

    def scope_alone(self, tool: Tool) -> bool:
        """Return whether only the scope stands between the agent and a tool (P5)."""
        reasons = self._decisions.decide(tool).reasons
        denials = [reason.code for reason in reasons if not reason.code.startswith("granted_")]
        return denials == _SCOPE_ALONE and (self._parent is None or self._parent._allows_but_scope(tool))  # noqa: SLF001

    def _allows_but_scope(self, tool: Tool) -> bool:
        return self._decisions.permits(tool) or self.scope_alone(tool)

    def _denial_codes(self, plugin: Plugin) -> Sequence[str]:
        return [reason.code for reason in self._decisions.denials(_nameless(plugin), plugin)]

    def _names_whole(self, plugin: Plugin) -> bool:
        """Return whether an entry or a switch names the plugin, or a loadout or pattern grants it."""
        switch = self._given.switches.plugins.get(plugin.name)
        if plugin.name in self._given.entries.by_plugin or (switch is not None and switch.on):
            return True
        return next(self._decisions.plugin_grants(plugin), None) is not None


def _nameless(plugin: Plugin) -> Tool:
    """Return the tool that stands for what a plugin may have that was not asked yet."""
    return Tool(plugin=plugin.name, name="")
