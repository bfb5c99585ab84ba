"""The managed tool through which an agent hands a task to another one (P8)."""

from __future__ import annotations

from typing import Final

from pegboard.core.access.host_duties import delegates
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.loadout_registry import SUBAGENTS
from pegboard.core.model.naming import first_sentence, one_line
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.dialects.names import meta_tool

DELEGATE: Final = "delegate"
_WORST: JsonObject = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}


def definition(permissions: CompiledPermissions) -> Tool:
    """Return the definition: it names the agents that this one may delegate to."""
    agents = [_described(permissions, name) for name in delegates(permissions)]
    properties: dict[str, JsonObject] = {
        "task": {"type": "string", "description": "Everything that it needs to know: it reads nothing else."},
        "kind": {"type": "string", "description": f"What its tools are for: {', '.join(SUBAGENTS)}."},
    }
    if agents:
        properties["agent"] = {"type": "string", "description": f"Who does it: {'; '.join(agents)}."}
    text = "Hand a task to a subagent, and return what it answers. It has at most your tools"
    text += ", or its own where you name an agent." if agents else "."
    return meta_tool(DELEGATE, text, properties, required=("task",), annotations=_WORST)


def _described(permissions: CompiledPermissions, name: str) -> str:
    role = first_sentence(permissions.world.agents[name].role)
    return f"{name} ({one_line(role, limit=100).removesuffix('.')})" if role else name
