"""The default dialect: search, load, unload, each over a list of names."""

from __future__ import annotations

from typing import Any, Literal

from pegboard.core.model.agents import Activation
from pegboard.core.model.leases import IDLE_TURNS, TURN, UNLOAD, LeaseReason, LeaseTerm
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.commands import SUCCEEDED, Item, Load, Outcome, Unload
from pegboard.core.state.subjects import leased_tools
from pegboard.core.surface.hints import first_sentence
from pegboard.dialects.names import (
    READ_ONLY,
    Conversation,
    Found,
    Payload,
    Search,
    View,
    lease_on,
    meta_tool,
    schema_of,
    with_hints,
)

KEEP = {"turn": TURN, "idle": LeaseTerm("idle", IDLE_TURNS), "session": UNLOAD}
_STRINGS = {"type": "array", "items": {"type": "string"}}
MOST_RESULTS = 20


class PegboardDialect:
    """The dialect with ``search_tools``, ``load_tools`` and ``unload_tools``."""

    name = "pegboard"
    activation: Activation | None = None
    lease = UNLOAD
    hints: Literal["plugins", "tools"] = "plugins"

    def tools(self, view: View) -> tuple[Tool, ...]:
        """Return the three definitions; hints stand in that of ``load_tools``."""
        return (
            meta_tool(
                "search_tools",
                "Find tools that are not listed. Search before saying that something cannot be done. "
                "One short query per thing needed.",
                {
                    "queries": _STRINGS,
                    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS},
                },
                required=("queries",),
                annotations=READ_ONLY,
            ),
            meta_tool(
                "load_tools",
                with_hints(
                    "Load tools, plugins or toolkits by name; answers with their schemas."
                    + (" Available:" if view.hints else ""),
                    view.hints,
                ),
                {"names": _STRINGS, "keep": {"enum": list(KEEP)}},
                required=("names",),
            ),
            meta_tool(
                "unload_tools",
                "Unload loaded tools that are no longer needed.",
                {"names": _STRINGS},
                required=("names",),
            ),
        )

    def run(self, view: View, name: str, arguments: JsonObject) -> Conversation:  # noqa: ARG002
        """Carry a call through."""
        match name:
            case "search_tools":
                done = yield Search(queries=_strings(arguments["queries"]), limit=arguments.get("limit", 5))
                return _found_payload(done.found)
            case "load_tools":
                names = _strings(arguments["names"])
                until = KEEP[arguments["keep"]] if "keep" in arguments else None
                done = yield Load(names=names, until=until)
                return _load_payload(done.view, done.outcome)
            case _:
                done = yield Unload(names=_strings(arguments["names"]))
                return _payload(done.outcome, [_item(i) for i in _items(done.outcome)])


def _strings(value: Any) -> tuple[str, ...]:
    """Return the names of a list; a plain string is taken too."""
    return (value,) if isinstance(value, str) else tuple(value)


def _items(outcome: Outcome | None) -> tuple[Item, ...]:
    return outcome.items if outcome is not None else ()


def _item(item: Item) -> dict[str, Any]:
    return {
        "name": item.name,
        "status": item.status,
        "message": item.message,
        **item.details,
    }


def _payload(
    outcome: Outcome | None, items: list[dict[str, Any]], *, schemas: tuple[Tool, ...] = (), more: JsonObject = EMPTY
) -> Payload:
    """Return the payload of a load or unload; ``more`` stands behind what every payload has."""
    status = outcome.status if outcome is not None else "refused"
    value: dict[str, Any] = {"status": status, "items": items}
    if outcome is not None and outcome.takes_effect is not None:
        value["takes_effect"] = outcome.takes_effect
    return Payload(value={**value, **more}, is_error=status == "refused", schemas=schemas, inline=True)


def _load_payload(view: View, outcome: Outcome | None) -> Payload:
    """Return the items, each with the schemas that no item before it has, then those that came as required."""
    items: list[dict[str, Any]] = []
    active = active_tools(view.access, view.state)
    schemas: dict[str, Tool] = {}
    for item in _items(outcome):
        entry = _item(item)
        if item.status in SUCCEEDED and item.subject is not None:
            fresh = [t for t, _ in leased_tools(view.access, lease_on(item.subject)) if t.id in active]
            entry["tools"] = [schema_of(t) for t in fresh if t.id not in schemas]
            schemas.update((tool.id, tool) for tool in fresh)
        items.append(entry)
    beside = [t for t in (outcome.added if outcome is not None else ()) if t.id not in schemas]
    ahead = [t for t in beside if t.id in active and active[t.id].because[0] is LeaseReason.ANTICIPATED]
    required = [t for t in beside if t not in ahead]
    more = {
        name: [schema_of(tool) for tool in tools]
        for name, tools in (("required_tools", required), ("also_loaded", ahead))
        if tools
    }
    return _payload(outcome, items, schemas=(*schemas.values(), *beside), more=more)


def _found_payload(found: Found | None) -> Payload:
    results = found.results if found is not None else ()
    value: dict[str, Any] = {
        "status": "ok",
        "results": [
            {
                "name": result.name,
                "description": first_sentence(result.description)[:200],
                **({"loaded": True} if result.loaded else {}),
            }
            for result in results
        ],
    }
    if found is not None and found.hint:
        value["hint"] = found.hint
    return Payload(value=value)
