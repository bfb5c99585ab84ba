"""Pegboard decides which tools a language model sees at each step, why, and what that costs.

The names here are the public ones; nothing is imported before it is used.
"""

from __future__ import annotations

from pegboard.support.version import __version__ as __version__

TYPE_CHECKING = False  # `typing` takes a thin client as long as all that it does
if TYPE_CHECKING:
    from typing import Any

    from pegboard.assembly import Pegboard as Pegboard
    from pegboard.board.blocking import SyncPegboard as SyncPegboard
    from pegboard.board.blocking import SyncSession as SyncSession
    from pegboard.board.permissions import Permissions as Permissions
    from pegboard.board.session import Session as Session
    from pegboard.core.access.approvals.approval import Approval as Approval
    from pegboard.core.model.delivery import Cache as Cache
    from pegboard.core.model.delivery import Host as Host
    from pegboard.core.model.loadout_registry import LoadoutBuilder as LoadoutBuilder
    from pegboard.core.model.loadout_registry import LoadoutRegistry as LoadoutRegistry
    from pegboard.core.model.loadouts import Loadout as Loadout
    from pegboard.core.model.model_hosts import host_for as host_for
    from pegboard.core.model.tools import CallResult as CallResult
    from pegboard.core.model.tools import Plugin as Plugin
    from pegboard.core.model.tools import Tool as Tool
    from pegboard.core.state.call_plans import CallAnswer as CallAnswer
    from pegboard.core.state.commands import Item as Item
    from pegboard.core.state.commands import Outcome as Outcome
    from pegboard.core.state.sessions import turn_of_messages as turn_of_messages
    from pegboard.core.surface.explanations import Explanation as Explanation
    from pegboard.core.surface.surfaces import Costs as Costs
    from pegboard.core.surface.surfaces import Surface as Surface
    from pegboard.dialects.names import Found as Found
    from pegboard.errors import ConfigError as ConfigError
    from pegboard.errors import PegboardError as PegboardError
    from pegboard.errors import StoreError as StoreError
    from pegboard.errors import ToolUnavailableError as ToolUnavailableError
    from pegboard.errors import UnknownAgentError as UnknownAgentError
    from pegboard.errors import UpstreamError as UpstreamError
    from pegboard.errors import UsageError as UsageError
    from pegboard.marks import tool as tool

_HOMES = {
    "Approval": "core.access.approvals.approval",
    "Cache": "core.model.delivery",
    "CallAnswer": "core.state.call_plans",
    "CallResult": "core.model.tools",
    "ConfigError": "errors",
    "Costs": "core.surface.surfaces",
    "Explanation": "core.surface.explanations",
    "Found": "dialects.names",
    "Host": "core.model.delivery",
    "Item": "core.state.commands",
    "Loadout": "core.model.loadouts",
    "LoadoutBuilder": "core.model.loadout_registry",
    "LoadoutRegistry": "core.model.loadout_registry",
    "Outcome": "core.state.commands",
    "Pegboard": "assembly",
    "PegboardError": "errors",
    "Permissions": "board.permissions",
    "Plugin": "core.model.tools",
    "Session": "board.session",
    "StoreError": "errors",
    "Surface": "core.surface.surfaces",
    "SyncPegboard": "board.blocking",
    "SyncSession": "board.blocking",
    "Tool": "core.model.tools",
    "ToolUnavailableError": "errors",
    "UnknownAgentError": "errors",
    "UpstreamError": "errors",
    "UsageError": "errors",
    "host_for": "core.model.model_hosts",
    "tool": "marks",
    "turn_of_messages": "core.state.sessions",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'pegboard' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"pegboard.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted((*_HOMES, "__version__"))
