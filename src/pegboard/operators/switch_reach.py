"""How far a switch reaches: which states cannot have any other tool loaded once it is set (P2)."""

from __future__ import annotations

from functools import cached_property

from pegboard.core.access.host_duties import host_duties
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref
from pegboard.core.state.active_tools import started
from pegboard.core.state.sessions import State


class Reach:
    """What differs between the permissions of one agent before and after a switch, plugin by plugin.

    It says "touched" where it is in doubt: what it rules out is certain, and spares most sessions a comparison.
    """

    def __init__(self, before: CompiledPermissions, after: CompiledPermissions) -> None:
        self._before = before
        self._after = after
        self._subjects: dict[Ref, bool] = {}
        self._starts: dict[str | None, bool] = {}

    def touches(self, state: State) -> bool:
        """Return whether a session in this state may have other tools loaded afterwards."""
        if self._before.budgeted or self._other_duties or self._other_start(state.loadout):
            return True
        return any(self._touches_subject(lease.subject) for lease in state.leases)

    @cached_property
    def _other_duties(self) -> bool:
        return host_duties(self._before) != host_duties(self._after)

    @cached_property
    def _plugins(self) -> frozenset[str]:
        """Return the plugins of which other tools are permitted, or which other entries name."""
        before, after = self._before, self._after
        was, then = before.entries.by_plugin, after.entries.by_plugin
        return frozenset(
            plugin.name
            for plugin in before.world.catalog.plugins.values()
            if before.plugin_permissions.tools_of(plugin) is not after.plugin_permissions.tools_of(plugin)
            or was.get(plugin.name) != then.get(plugin.name)
            or (not plugin.tools and before.grants_unseen(plugin) is not after.grants_unseen(plugin))
        )

    def _other_start(self, loadout: str | None) -> bool:
        """Return whether something else is loaded from the start under an active loadout."""
        known = self._starts.get(loadout)
        if known is None:
            state = State(loadout=loadout)
            before, after = started(self._before, state), started(self._after, state)
            known = self._starts[loadout] = before != after
        return known

    def _touches_subject(self, subject: Ref) -> bool:
        known = self._subjects.get(subject)
        if known is None:
            known = self._subjects[subject] = self._reaches(subject)
        return known

    def _reaches(self, subject: Ref) -> bool:
        catalog = self._before.world.catalog
        match subject.kind:
            case "tool":
                tool = catalog.by_id(subject.name)
                return tool is None or tool.plugin in self._plugins or bool(tool.requires)
            case "plugin":
                plugin = catalog.plugins.get(subject.name)
                return plugin is None or plugin.name in self._plugins or any(tool.requires for tool in plugin.tools)
            case "toolkit" | "category":
                return True
