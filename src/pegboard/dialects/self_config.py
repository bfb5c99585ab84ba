"""The managed tool through which an agent looks at and changes its own settings (§4)."""

from __future__ import annotations

from typing import Final

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.dialects.names import meta_tool

SELF_CONFIG: Final = "self_config"
_CHANGES: JsonObject = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_WHAT: Final = {
    "switches": "the name of a toolkit, plugin or tool (value: false takes it away, true gives it back)",
    "loadout": "'loadout' (value: the name of a loadout that narrows this session)",
    "initial_toolkits": "'initial_toolkits' (value: a list of allowed toolkits that are loaded from the start)",
    "lease": "'lease' (value: {kind: turn}, {kind: idle, turns: n} or {kind: unload})",
}


def definition(permissions: CompiledPermissions) -> Tool:
    """Return the definition: it names what the operator lets the agent change."""
    allowed = [_WHAT[name] for name in _WHAT if name in permissions.agent.self_config]
    names = "; ".join(allowed) or "nothing: you may only look"
    properties: dict[str, JsonObject] = {
        "action": {"type": "string", "enum": ["show", "set", "unset"]},
        "name": {"type": "string", "description": f"What to set or unset: {names}."},
        "value": {"description": "The value, for set."},
    }
    text = (
        "Show your own settings, set one, or unset what you have set. Nothing here gives you more than you were given."
    )
    return meta_tool(SELF_CONFIG, text, properties, required=("action",), annotations=_CHANGES)
