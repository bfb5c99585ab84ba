"""Which pool a connection to a server is taken from (G9)."""

from __future__ import annotations

from typing import Final

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.specs import PluginSpec, ServerSpec

LOCAL: Final = "local"
"""The principal of whoever started the process: connections that describe a server are its own."""


def pool_scope(permissions: CompiledPermissions, spec: PluginSpec, principal: str) -> str:
    """Return which pool a connection is taken from: never one of another principal's (G9)."""
    agent = permissions.agent
    scope = permissions.constraints.worker_scope or agent.worker_scope
    if scope == "user_agent":
        return f"user:{principal}:agent:{agent.name}"
    if scope == "user" or agent.private_per is not None:
        return f"user:{principal}"
    own = isinstance(spec, ServerSpec) and spec.command is not None and not spec.shared
    if own and principal != LOCAL:
        return f"user:{principal}"
    return "shared"
