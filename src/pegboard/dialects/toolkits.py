"""The dialect of seed 000: list, load and unload one toolkit at a time, next request."""

from __future__ import annotations

from typing import Any, Literal

from pegboard.core.model.agents import Activation
from pegboard.core.model.leases import UNLOAD
from pegboard.core.model.naming import one_line
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.state.active_tools import is_toolkit_from_start
from pegboard.core.state.commands import Load, Outcome, Unload
from pegboard.core.state.subjects import remove_dead_leases
from pegboard.dialects.names import (
    READ_ONLY,
    DialectSteps,
    MetaToolAnswer,
    View,
    loaded_schemas,
    meta_tool,
    with_hints,
)
from pegboard.dialects.search_tool import SEARCH, search_definition, search_steps

TOOL = "dynamic_tools"
_TAKES_EFFECT = frozenset({"already_loaded", "loaded", "not_loaded", "unloaded"})
_NAME = {"toolkit": {"type": "string", "description": "Name of the toolkit."}}


class ToolkitsDialect:
    """The dialect with ``list_toolkits``, ``load_tools`` and ``unload_tools``."""

    name = "toolkits"
    activation: Activation | None = "next_request"
    lease = UNLOAD
    hints: Literal["toolkits", "plugins", "tools"] = "toolkits"
    finds = "search"
    searches = False
    lists = frozenset({"list_toolkits"})

    def tools(self, view: View) -> tuple[Tool, ...]:
        """Return the three definitions; hints stand in that of ``load_tools``, and a search last where they are cut."""
        return (
            meta_tool(
                "list_toolkits",
                "List the toolkits that can be loaded: what they are for, their tools, and whether they are loaded.",
                annotations=READ_ONLY,
            ),
            meta_tool(
                "load_tools",
                with_hints("Load one toolkit; its tools come with the next request.", view.hints),
                _NAME,
                required=("toolkit",),
            ),
            meta_tool(
                "unload_tools",
                "Unload one toolkit; its tools go with the next request.",
                _NAME,
                required=("toolkit",),
            ),
            *((search_definition(),) if view.cut else ()),
        )

    def run(self, view: View, name: str, arguments: JsonObject) -> DialectSteps:
        """Carry a call through."""
        if name == "list_toolkits":
            return MetaToolAnswer(value=_list_payload(view), sort_keys=True)
        if name == SEARCH:
            return (yield from search_steps(arguments))
        toolkit = str(arguments["toolkit"])
        known = _resolve(view, toolkit)
        if known is None and _is_member(view, toolkit):
            known = subject = toolkit
        else:
            refused = _unreachable(view, toolkit, known)
            if refused is not None:
                return refused
            subject = f"toolkit:{known}"
        done = yield Load(names=(subject,)) if name == "load_tools" else Unload(names=(subject,))
        return _answer_payload(done.view, str(known), done.outcome)


def allowed_toolkits(view: View) -> tuple[str, ...]:
    """Return the toolkits that the agent may load, in the order in which they were allowed."""
    return view.permissions.entries.loadable_toolkits


def loaded_toolkits(view: View) -> tuple[str, ...]:
    """Return the toolkits that are loaded, in the order in which they were allowed."""
    state = remove_dead_leases(view.permissions, view.state)
    leased = {lease.subject.name for lease in state.leases if lease.subject.kind == "toolkit"}
    return tuple(name for name in allowed_toolkits(view) if name in leased or _is_loaded_from_start(view, name))


def _is_loaded_from_start(view: View, name: str) -> bool:
    """Return whether a toolkit is loaded from the start, and not out of the session's scope (P5)."""
    permissions = view.permissions
    return is_toolkit_from_start(permissions, name) and not permissions.out_of_scope(permissions.entries.toolkits[name])


def _list_payload(view: View) -> dict[str, Any]:
    now = loaded_toolkits(view)
    return {
        "status": "ok",
        "tool": TOOL,
        "loaded_toolkits": list(now),
        "toolkits": [
            {
                "name": name,
                "description": one_line(view.permissions.world.toolkits[name].description),
                "tool_names": _tool_names(view, name),
                "loaded": name in now,
                "sticky": is_toolkit_from_start(view.permissions, name),
            }
            for name in allowed_toolkits(view)
        ],
    }


def _tool_names(view: View, toolkit: str) -> list[str]:
    """Return the members as written, without those of which nothing is permitted (P9)."""
    return [entry.member.name for entry in _members(view, toolkit)]


def _members(view: View, toolkit: str) -> list[Entry]:
    plugins = view.permissions.world.catalog.plugins
    return [
        entry
        for entry in view.permissions.entries.toolkits[toolkit]
        if any(view.permissions.permits(tool) for tool in entry.tools)
        or (not entry.tools and view.permissions.grants_unseen(plugins[entry.plugin]))
    ]


def _resolve(view: View, name: str) -> str | None:
    """Return the declared toolkit of this name: exact, then the only one that differs in case."""
    toolkits = view.permissions.world.toolkits
    if name in toolkits:
        return name
    near = [known for known in toolkits if known.casefold() == name.casefold()]
    return near[0] if len(near) == 1 else None


def _is_member(view: View, name: str) -> bool:
    """Return whether a member of an allowed toolkit is named: what of it works is loaded so, if the whole cannot be."""
    members = (entry for toolkit in allowed_toolkits(view) for entry in _members(view, toolkit))
    return any(name in (entry.member.name, entry.plugin) for entry in members)


def _unreachable(view: View, asked: str, known: str | None) -> MetaToolAnswer | None:
    """Return the answer for a toolkit that does not exist or is not this agent's (seed 000)."""
    names = allowed_toolkits(view)
    if known is not None and known in names:
        return None
    choice = f" Allowed toolkits: {', '.join(names) or 'none'}."
    if known is None:
        shown = one_line(asked, limit=100)
        status, message = "unknown", f"Toolkit '{shown}' does not exist.{choice}"
    else:
        status, message = "not_allowed", f"Toolkit '{known}' is not allowed for this agent.{choice}"
    return _payload(view, asked, status, message, allowed_toolkits=list(names))


def _answer_payload(view: View, toolkit: str, outcome: Outcome | None) -> MetaToolAnswer:
    if outcome is None or not outcome.items:
        return _payload(view, toolkit, "error", "Nothing was done.")
    item = outcome.items[0]
    if item.status == "not_found":
        names = allowed_toolkits(view)
        message = f"Toolkit '{toolkit}' is not allowed for this agent."
        return _payload(view, toolkit, "not_allowed", message, allowed_toolkits=list(names))
    extra: dict[str, Any] = dict(item.details)
    if item.status in _TAKES_EFFECT:
        extra["takes_effect"] = outcome.takes_effect
    schemas: tuple[Tool, ...] = ()
    if item.status in ("loaded", "already_loaded"):
        schemas = loaded_schemas(view, [item])
    return _payload(view, toolkit, item.status, item.message, schemas=schemas, **extra)


def _payload(
    view: View,
    toolkit: str,
    status: str,
    message: str,
    *,
    schemas: tuple[Tool, ...] = (),
    **extra: Any,
) -> MetaToolAnswer:
    value = {
        "status": status,
        "tool": TOOL,
        "toolkit": one_line(toolkit, limit=100),
        "loaded_toolkits": list(loaded_toolkits(view)),
        "message": message,
        **extra,
    }
    failed = status not in _TAKES_EFFECT
    return MetaToolAnswer(value=value, is_error=failed, schemas=schemas, sort_keys=True)
