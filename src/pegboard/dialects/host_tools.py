"""The managed tools of the host, for agents that list them: delegate and self_config (P8, §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pegboard.core.access.permissions import CompiledPermissions, delegates, host_tools
from pegboard.core.model.loadout_registry import SUBAGENTS
from pegboard.core.model.naming import first_sentence, one_line
from pegboard.core.model.tools import Frozen, JsonObject, Tool
from pegboard.dialects.names import meta_tool

DELEGATE: Final = "delegate"
_WORST: JsonObject = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}


def delegate_tool(permissions: CompiledPermissions) -> Tool:
    """Return the definition of ``delegate``: it names the agents that this one may delegate to."""
    agents = [_describe_agent(permissions, name) for name in delegates(permissions)]
    properties: dict[str, JsonObject] = {
        "task": {"type": "string", "description": "Everything that it needs to know: it reads nothing else."},
        "kind": {"type": "string", "description": f"What its tools are for: {', '.join(SUBAGENTS)}."},
    }
    if agents:
        properties["agent"] = {"type": "string", "description": f"Who does it: {'; '.join(agents)}."}
    text = "Hand a task to a subagent, and return what it answers. It has at most your tools"
    text += ", or its own where you name an agent." if agents else "."
    return meta_tool(DELEGATE, text, properties, required=("task",), annotations=_WORST)


def _describe_agent(permissions: CompiledPermissions, name: str) -> str:
    role = first_sentence(permissions.world.agents[name].role)
    return f"{name} ({one_line(role, limit=100).removesuffix('.')})" if role else name


SELF_CONFIG: Final = "self_config"
_CHANGES: JsonObject = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_WHAT: Final = {
    "switches": "the name of a toolkit, plugin or tool (value: false takes it away, true gives it back)",
    "loadout": "'loadout' (value: the name of a loadout that narrows this session)",
    "initial_toolkits": "'initial_toolkits' (value: a list of allowed toolkits that are loaded from the start)",
    "lease": "'lease' (value: {kind: turn}, {kind: idle, turns: n} or {kind: unload})",
}


def self_config_tool(permissions: CompiledPermissions) -> Tool:
    """Return the definition of ``self_config``: it names what the operator lets the agent change."""
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


_DEFINITIONS: Final[Mapping[str, Callable[[CompiledPermissions], Tool]]] = Frozen(
    {
        DELEGATE: delegate_tool,
        SELF_CONFIG: self_config_tool,
    }
)


def host_tool_definitions(permissions: CompiledPermissions) -> tuple[Tool, ...]:
    """Return the managed tools that the agent lists and may use, in its order."""
    return tuple(_DEFINITIONS[name](permissions) for name in host_tools(permissions) if name in _DEFINITIONS)
