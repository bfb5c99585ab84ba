"""Why can a tool not run now: it says so, a predicate does, or its plugin cannot run (P6, T12)."""

from __future__ import annotations

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.tools import Tool


def tool_fault(permissions: CompiledPermissions, tool: Tool, key: str | None = None) -> str:
    """Return why a permitted tool cannot run now, or nothing.

    Args:
        permissions: what the agent may use, with what its predicates last said.
        tool: the tool.
        key: the overrides under which it runs; by default those under which it would be loaded by its own name.
    """
    fault = own_fault(permissions, tool)
    variants = permissions.world.catalog.plugins[tool.plugin].variants
    if fault or not any(variant.unavailable for variant in variants.values()):
        return fault
    variant = variants.get(permissions.entries.of_tool(tool).key if key is None else key)
    return variant.unavailable if variant is not None else ""


def own_fault(permissions: CompiledPermissions, tool: Tool) -> str:
    """Return why a tool cannot run although its plugin may, or nothing."""
    return tool.unavailable or permissions.faults.get(tool.id, "")
