"""What the newest surface and wire list of a session object bind its calls by (F3, D3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pegboard.core.model.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the model was shown last.

    ``focus`` are the wire names that the focus of the newest surface allows, None without one. ``wire_list`` is the
    tool list that was sent last, ``unloaded`` the wire names of what was unloaded by name since.
    """

    focus: frozenset[str] | None = None
    wire_list: tuple[Tool, ...] = ()
    unloaded: frozenset[str] = frozenset()

    def without(self, unloaded: frozenset[str]) -> Shown:
        """Return the same once tools were unloaded by name: no wire list keeps them (D3)."""
        return replace(self, unloaded=self.unloaded | unloaded)

    def still_lists(self, tool: Tool) -> bool:
        """Return whether the model still has the schema of a tool whose lease lapsed: a call renews it and runs."""
        return tool.wire not in self.unloaded and any(listed.wire == tool.wire for listed in self.wire_list)
