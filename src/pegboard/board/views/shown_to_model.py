"""What the newest surface and wire list of a session object bind its calls by (F3, D3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pegboard.board.observability.conversations import Request
from pegboard.board.snapshot import Snapshot
from pegboard.core.model.delivery import choose
from pegboard.core.model.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the model was shown last.

    ``focus`` are the wire names that the focus of the newest surface allows, None without one. ``wire_list`` is the
    tool list that was sent last, ``unloaded`` the wire names of what was unloaded by name since, ``answered`` the ids
    of what reached the model in the answer of its load, and waits for a boundary of the cache to be listed (D1).
    """

    focus: frozenset[str] | None = None
    wire_list: tuple[Tool, ...] = ()
    unloaded: frozenset[str] = frozenset()
    answered: frozenset[str] = frozenset()

    def after(self, snapshot: Snapshot, request: Request) -> Shown:
        """Return the same after a request: no list keeps what it unloaded, its answer has what it loaded (D1, D3)."""
        answered = request.brought if choose(snapshot.info.host) == "result" else frozenset[str]()
        return replace(self, unloaded=self.unloaded | snapshot.unloaded, answered=self.answered | answered)

    def still_lists(self, tool: Tool) -> bool:
        """Return whether the model still has the schema of a tool whose lease lapsed: a call renews it and runs."""
        return tool.wire not in self.unloaded and any(listed.wire == tool.wire for listed in self.wire_list)
