"""The default dialect: search, load, unload, each over a list of names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from pegboard.core.model.agents import Activation
from pegboard.core.model.leases import IDLE_TURNS, TURN, UNLOAD, LeaseTerm
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.commands import SUCCEEDED, Item, Load, Outcome, Unload
from pegboard.core.state.subjects import leased_tools
from pegboard.core.surface.definitions import definitions
from pegboard.dialects.names import (
    DialectSteps,
    Found,
    MetaToolAnswer,
    View,
    lease_on,
    meta_tool,
    with_hints,
)
from pegboard.dialects.search_tool import search_definition, search_of, search_payload, strings

KEEP = {"turn": TURN, "idle": LeaseTerm("idle", IDLE_TURNS), "session": UNLOAD}
_STRINGS = {"type": "array", "items": {"type": "string"}}


class PegboardDialect:
    """The dialect with ``search_tools``, ``load_tools`` and ``unload_tools``."""

    name = "pegboard"
    activation: Activation | None = None
    lease = UNLOAD
    hints: Literal["toolkits", "plugins", "tools"] = "plugins"
    finds = "search"
    searches = True
    lists = frozenset[str]()

    def tools(self, view: View) -> tuple[Tool, ...]:
        """Return the three definitions; hints stand in that of ``load_tools``."""
        return (
            search_definition(),
            meta_tool(
                "load_tools",
                with_hints(
                    "Load tools, plugins or toolkits by name." + (" Available:" if view.hints else ""),
                    view.hints,
                ),
                {"names": _STRINGS, "keep": {"enum": list(KEEP)}},
                required=("names",),
            ),
            meta_tool(
                "unload_tools",
                "Unload tools that are no longer needed.",
                {"names": _STRINGS},
                required=("names",),
            ),
        )

    def run(self, view: View, name: str, arguments: JsonObject) -> DialectSteps:  # noqa: ARG002
        """Carry a call through."""
        match name:
            case "search_tools":
                return (yield from self._search(arguments))
            case "load_tools":
                names = strings(arguments["names"])
                until = KEEP[arguments["keep"]] if "keep" in arguments else None
                done = yield Load(names=names, until=until, siblings=True)
                return _load_payload(done.view, done.outcome)
            case _:
                done = yield Unload(names=strings(arguments["names"]))
                return _payload(done.outcome, [_item(i) for i in _items(done.outcome)])

    def _search(self, arguments: JsonObject) -> DialectSteps:
        """Search; load what answers a need best, as far as the view lets a search load (D1)."""
        search = search_of(arguments)
        done = yield search
        found, count = done.found or Found(query=search.queries, results=()), done.count
        to_load = _worth_loading(done.view, found)
        if not to_load:
            return search_payload(found, (), EMPTY, count)
        done = yield Load(names=to_load, until=min(done.view.permissions.agent.lease or self.lease, KEEP["idle"]))
        loaded = tuple(tool for item in _items(done.outcome) for tool in _tools_of(done.view, item))
        when = done.outcome.takes_effect if done.outcome is not None else None
        if done.view.revealed:
            found, loaded = _with_callable(found, frozenset(tool.wire for tool in loaded)), ()
        return search_payload(found, loaded, {"takes_effect": when} if loaded and when else EMPTY, count)


def _worth_loading(view: View, found: Found) -> tuple[str, ...]:
    """Return the names of what a search loads, of what is neither loaded nor unavailable."""
    wanted = {"nothing": (), "clear": found.clear, "likely": found.likely}[view.search_loads]
    names = {result.name for result in found.results if result.status == "loadable"}
    return tuple(f"tool:{name}" for name in wanted if name in names)


def _tools_of(view: View, item: Item) -> tuple[Tool, ...]:
    """Return the tools that an item of a load stands for and that are loaded now."""
    if item.status not in SUCCEEDED or item.subject is None:
        return ()
    active = active_tools(view.permissions, view.state)
    return tuple(tool for tool, _ in leased_tools(view.permissions, lease_on(item.subject)) if tool.id in active)


def _with_callable(found: Found, names: frozenset[str]) -> Found:
    """Return what was found, with the results of these names loaded."""
    results = (replace(one, loaded=True, status="callable") if one.name in names else one for one in found.results)
    return replace(found, results=tuple(results))


def _items(outcome: Outcome | None) -> tuple[Item, ...]:
    return outcome.items if outcome is not None else ()


def _item(item: Item) -> dict[str, Any]:
    """Return an entry; of what is loaded the status says all."""
    message = {} if item.status in ("loaded", "already_loaded") else {"message": item.message}
    return {"name": item.name, "status": item.status, **message, **item.details}


def _payload(
    outcome: Outcome | None, items: list[dict[str, Any]], *, schemas: tuple[Tool, ...] = (), more: JsonObject = EMPTY
) -> MetaToolAnswer:
    """Return the payload of a load or unload; ``more`` is behind what every payload has."""
    status = outcome.status if outcome is not None else "refused"
    value: dict[str, Any] = {"status": status, "items": items}
    if outcome is not None and outcome.takes_effect is not None:
        value["takes_effect"] = outcome.takes_effect
    return MetaToolAnswer(
        value={**value, **more}, is_error=status == "refused", schemas=schemas, inline=True, compact=True
    )


def _load_payload(view: View, outcome: Outcome | None) -> MetaToolAnswer:
    """Return the items, each with the schemas that no item before it has, then those that came beside.

    Where the host reveals them itself there are names in place of schemas (D4), as long as they are few.
    """
    items: list[dict[str, Any]] = []
    schemas: dict[str, Tool] = {}
    brought = {tool.id for item in _items(outcome) for tool in _tools_of(view, item)}
    few = view.at_most is None or len(brought) <= view.at_most
    shown = _names if view.revealed and few else definitions
    for item in _items(outcome):
        entry = _item(item)
        if item.status in SUCCEEDED and item.subject is not None:
            fresh = _tools_of(view, item)
            entry["tools"] = shown([tool for tool in fresh if tool.id not in schemas], schemas.values())
            schemas.update((tool.id, tool) for tool in fresh)
        items.append(entry)
    beside = [t for t in (outcome.added if outcome is not None else ()) if t.id not in schemas]
    ahead = _anticipated_ids(view, outcome)
    needed = [tool for tool in beside if tool.id not in ahead]
    required = shown(needed, schemas.values())
    siblings = shown([tool for tool in beside if tool.id in ahead], [*schemas.values(), *needed])
    more = {name: tools for name, tools in (("required_tools", required), ("also_loaded", siblings)) if tools}
    return _payload(outcome, items, schemas=(*schemas.values(), *beside), more=more)


def _names(tools: Iterable[Tool], _: Iterable[Tool] = ()) -> list[str]:
    return [tool.wire for tool in tools]


def _anticipated_ids(view: View, outcome: Outcome | None) -> frozenset[str]:
    """Return the ids of what a load brought ahead of being asked for (S5)."""
    subjects = outcome.anticipated if outcome is not None else ()
    return frozenset(tool.id for ref in subjects for tool, _ in leased_tools(view.permissions, lease_on(ref)))
