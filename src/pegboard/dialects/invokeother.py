"""The dialect of seed 002: one meta-tool that loads, unloads and falls back to everything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from pegboard.core.model.agents import Activation
from pegboard.core.model.leases import IDLE_TURNS, LeaseTerm
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.state.commands import SUCCEEDED, Fallback, Item, Load, Outcome, Unload
from pegboard.dialects.names import DialectSteps, MetaToolAnswer, View, loaded_schemas, meta_tool, with_hints
from pegboard.dialects.search_tool import SEARCH, search_definition, search_steps

NAME = "invokeother_tool"
_DISABLED = frozenset({"denied_switch", "denied_default", "denied_loadout", "denied_pause"})


class InvokeOtherDialect:
    """The dialect with ``invokeother_tool``: names are separated by commas, leases are idle ones."""

    name = "invokeother"
    activation: Activation | None = None
    lease = LeaseTerm("idle", IDLE_TURNS)
    hints: Literal["toolkits", "plugins", "tools"] = "tools"
    finds = "search"
    searches = False
    lists = frozenset[str]()

    def tools(self, view: View) -> tuple[Tool, ...]:
        """Return the definition; hints stand in it, and a search beside it where they are cut."""
        text = (
            "Manage tools on demand. load: load tools by name, separated by commas; they are unloaded again after "
            "some turns without use. unload: unload tools. fallback: load everything for this turn only."
        )
        properties = {"mode": {"enum": ["load", "unload", "fallback"]}, "query": {"type": "string"}}
        described = with_hints(text + (" Not loaded:" if view.hints else ""), view.hints)
        search = (search_definition(),) if view.cut else ()
        return (meta_tool(NAME, described, properties, required=("mode",)), *search)

    def run(self, view: View, name: str, arguments: JsonObject) -> DialectSteps:  # noqa: ARG002
        """Carry a call through."""
        if name == SEARCH:
            return (yield from search_steps(arguments))
        mode = str(arguments["mode"])
        if mode == "fallback":
            done = yield Fallback()
            return _fallback(done.outcome)
        names = tuple(part.strip() for part in str(arguments.get("query", "")).split(",") if part.strip())
        if not names:
            message = f"No tools specified to {mode}. Give their names, separated by commas."
            return MetaToolAnswer(value={"success": False, "message": message}, is_error=True)
        done = yield Load(names=names) if mode == "load" else Unload(names=names)
        return _answer_payload(done.view, done.outcome, mode)


def _answer_payload(view: View, outcome: Outcome | None, mode: str) -> MetaToolAnswer:
    items = [_item_of_present_tool(item, mode) for item in outcome.items] if outcome is not None else []
    done = f"{mode}ed"
    succeeded = [item for item in items if item.status in SUCCEEDED]
    changed = [item.name for item in succeeded if item.status != "not_loaded"]
    errors = [_error(view, item) for item in items if item.status not in SUCCEEDED]
    value: dict[str, Any] = {"success": bool(succeeded), done: changed}
    if errors:
        value["errors"] = errors
    value["message"] = _message(mode, changed, succeeded, errors)
    return MetaToolAnswer(
        value=value, is_error=not succeeded, schemas=loaded_schemas(view, succeeded) if mode == "load" else ()
    )


def _item_of_present_tool(item: Item, mode: str) -> Item:
    """Return the answer for a name; this tool itself is an essential one, which no one lists (T4)."""
    if item.name != NAME or item.status != "not_found":
        return item
    return replace(item, status="already_loaded" if mode == "load" else "sticky")


def _message(mode: str, changed: list[str], succeeded: list[Item], errors: list[str]) -> str:
    if errors and not succeeded:
        return f"Failed to {mode} any tools"
    if errors:
        return f"{mode.capitalize()}ed {len(changed)} tools with {len(errors)} errors"
    if not changed:
        return f"Not loaded: {', '.join(item.name for item in succeeded)}"
    return f"Successfully {mode}ed: {', '.join(changed)}"


def _error(view: View, item: Item) -> str:
    match item.status:
        case "not_found" if _switched_off(view, item.name):
            return f"{item.name} is disabled in config (enabled=false)"
        case "not_found":
            return f"{item.name} not found"
        case "sticky" if "needed_by" in item.details:
            return f"{item.name} is needed by {item.details['needed_by']} and cannot be unloaded"
        case "sticky":
            return f"{item.name} is essential and cannot be unloaded"
        case _:
            return f"{item.name}: {item.message}"


def _switched_off(view: View, name: str) -> bool:
    """Return whether the agent is granted what is off; of anything else it must not learn (P9)."""
    switch = view.permissions.switches.toolkits.get(name)
    if switch is not None:
        return not switch.on and name in view.permissions.agent.allowed_toolkits
    catalog = view.permissions.world.catalog
    plugin = catalog.plugins.get(name)
    if plugin is not None and not plugin.tools:
        decision = view.permissions.decide_unseen(plugin)
    else:
        tool = catalog.find_tool(name) if plugin is None else next(iter(plugin.tools))
        if tool is None:
            return False
        decision = view.permissions.decide(tool)
    codes = {reason.code for reason in decision.reasons}
    return any(code.startswith("granted") for code in codes) and bool(codes & _DISABLED)


def _fallback(outcome: Outcome | None) -> MetaToolAnswer:
    if outcome is None or outcome.status == "refused":
        message = outcome.message if outcome is not None else "Nothing was done."
        return MetaToolAnswer(value={"success": False, "message": message}, is_error=True)
    item = outcome.items[0]
    value: dict[str, Any] = {
        "success": True,
        "loaded": [tool.wire for tool in outcome.added],
        "total_active": item.details["loaded"],
        "message": item.message,
    }
    if item.details["excluded"]:
        value["left_out"] = item.details["excluded"]
    return MetaToolAnswer(value=value, schemas=outcome.added)
