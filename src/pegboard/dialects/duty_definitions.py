"""The managed tools of the host, for agents that list them: their definitions by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pegboard.core.access.host_duties import host_duties
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.tools import Frozen, Tool
from pegboard.dialects import delegate, self_config

_DEFINITIONS: Final[Mapping[str, Callable[[CompiledPermissions], Tool]]] = Frozen(
    {
        delegate.DELEGATE: delegate.definition,
        self_config.SELF_CONFIG: self_config.definition,
    }
)


def duty_tools(permissions: CompiledPermissions) -> tuple[Tool, ...]:
    """Return the managed tools that the agent lists and may use, in its order."""
    return tuple(_DEFINITIONS[name](permissions) for name in host_duties(permissions) if name in _DEFINITIONS)
