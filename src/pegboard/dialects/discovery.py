"""The dialect of seed 003: plugins are discovered, read about and activated, in text for people and models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pegboard.core.access.names import lookup
from pegboard.core.model.agents import Activation
from pegboard.core.model.catalog import Ref, split_kind
from pegboard.core.model.leases import UNLOAD
from pegboard.core.model.loadout_registry import PluginCategories, active_of, discoverable_of
from pegboard.core.model.loadouts import CATEGORIES, merge
from pegboard.core.model.naming import did_you_mean, first_sentence, one_line
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.state.active_tools import active_tools, toolkit_to_load
from pegboard.core.state.commands import Item, Load
from pegboard.core.state.subjects import excluded_by_loadout, may_bring, remove_dead_leases, tools_of_subject
from pegboard.core.surface.hinted import number_of_tools
from pegboard.dialects.names import READ_ONLY, DialectSteps, MetaToolAnswer, View, meta_tool, with_hints

PAGE = 10
"""Plugins on a page."""
FUNCTIONS = 5
DESCRIPTION = 80
OTHER = "Other"
"""What plugins without a category are listed under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverableSubject:
    """A toolkit or plugin of which the session can have something: what is loaded of it, and what is not."""

    kind: Literal["toolkit", "plugin"] = "plugin"
    name: str
    description: str
    category: str
    loaded: tuple[Tool, ...]
    rest: tuple[Tool, ...]
    members: tuple[str, ...] = ()
    unseen: bool = False
    fault: str = ""

    @property
    def active(self) -> bool:
        """Return whether all that the session can have of it is loaded."""
        return bool(self.loaded) and not self.rest and not self.unseen


class DiscoveryDialect:
    """The dialect with ``capability_list``, ``discover_tools``, ``activate_tool`` and two lists."""

    name = "discovery"
    activation: Activation | None = None
    lease = UNLOAD
    hints: Literal["toolkits", "plugins", "tools"] = "plugins"
    finds = "discover_tools"
    searches = True
    lists = frozenset({"capability_list", "discover_tools", "list_tool_categories", "list_toolbelts"})

    def tools(self, view: View) -> tuple[Tool, ...]:
        """Return the five definitions; hints stand in that of ``activate_tool``."""
        text = {"type": "string"}
        activate = "Activate one toolkit or plugin by its name." + (" Available:" if view.hints else "")
        return (
            meta_tool("capability_list", "List the plugins that are active, and how many more there are.",
                      annotations=READ_ONLY),
            meta_tool(
                "discover_tools",
                f"List toolkits and plugins that can be activated, {PAGE} a page. Look here before saying that "
                "something cannot be done.",
                {"category": text, "keyword": text, "page": {"type": "integer", "minimum": 1}},
                annotations=READ_ONLY,
            ),
            meta_tool(
                "activate_tool",
                with_hints(activate, view.hints),
                {"plugin": {**text, "description": "Name of the toolkit or plugin."}},
                required=("plugin",),
            ),
            meta_tool("list_tool_categories", "List the categories of plugins.", annotations=READ_ONLY),
            meta_tool("list_toolbelts", "List the loadouts: which plugins each makes active or discoverable.",
                      annotations=READ_ONLY),
        )  # fmt: skip

    def run(self, view: View, name: str, arguments: JsonObject) -> DialectSteps:
        """Carry a call through."""
        match name:
            case "capability_list":
                return MetaToolAnswer(value=_capabilities(view))
            case "discover_tools":
                return _discover_inactive(view, arguments)
            case "list_tool_categories":
                return MetaToolAnswer(value=_categories(view))
            case "list_toolbelts":
                return MetaToolAnswer(value=_toolbelts(view))
            case _:
                asked = str(arguments["plugin"])
                done = yield Load(names=(_subject(view, asked),))
                items = done.outcome.items if done.outcome is not None else ()
                return _activation_payload(done.view, asked, items[0] if items else None)


# -- what there is ---------------------------------------------------------------------------------


def plugins_by_name(view: View) -> tuple[DiscoverableSubject, ...]:
    """Return every plugin of which the session can have something, by name (P9)."""
    permissions, state = view.permissions, remove_dead_leases(view.permissions, view.state)
    active = active_tools(permissions, state)
    found: list[DiscoverableSubject] = []
    for plugin in permissions.world.catalog.plugins.values():
        if not may_bring(permissions, state, plugin) or not permissions.may_have_tools_of(plugin):
            continue
        tools = [
            tool
            for tool in plugin.tools
            if permissions.permits(tool) and not excluded_by_loadout(permissions, state, tool)
        ]
        if tools or not plugin.tools:
            found.append(
                DiscoverableSubject(
                    name=plugin.name,
                    description=plugin.description,
                    category=plugin.category or OTHER,
                    loaded=tuple(tool for tool in tools if tool.id in active),
                    rest=tuple(tool for tool in tools if tool.id not in active),
                    fault=plugin.unavailable,
                )
            )
    return tuple(sorted(found, key=lambda one: (one.name.casefold(), one.name)))


def toolkits_to_activate(view: View) -> tuple[DiscoverableSubject, ...]:
    """Return the toolkits that are not loaded whole, in the agent's order; not those of a plugin's own name."""
    permissions, state = view.permissions, remove_dead_leases(view.permissions, view.state)
    active, plugins = active_tools(permissions, state), permissions.world.catalog.plugins
    found: list[DiscoverableSubject] = []
    for name in permissions.entries.loadable_toolkits:
        if name in plugins or not toolkit_to_load(permissions, state, name):
            continue
        toolkit = permissions.world.toolkits[name]
        own = {tool.id: tool for entry in permissions.entries.toolkits[name] for tool in entry.tools}.values()
        tools = [
            tool for tool in own if permissions.permits(tool) and not excluded_by_loadout(permissions, state, tool)
        ]
        one = DiscoverableSubject(
            kind="toolkit",
            name=name,
            description=toolkit.description,
            category="toolkit",
            loaded=tuple(tool for tool in tools if tool.id in active),
            rest=tuple(tool for tool in tools if tool.id not in active),
            members=tuple(member.name for member in toolkit.members),
            unseen=number_of_tools(permissions, toolkit) is None,
        )
        found += [] if one.active else [one]
    return tuple(found)


def _capabilities(view: View) -> str:
    all_ = plugins_by_name(view)
    active = [one for one in all_ if one.loaded]
    plugins, toolkits = sum(not one.active for one in all_), len(toolkits_to_activate(view))
    more = " and ".join(_count(number, noun) for number, noun in ((toolkits, "toolkit"), (plugins, "plugin")) if number)
    lines = ["## Active plugins", *(_line(one, one.loaded) for one in active)] if active else ["No plugin is active."]
    lines.append("")
    lines.append(f"{more} more can be activated: see discover_tools." if more else "Nothing else is available.")
    return "\n".join(lines)


def _discover_inactive(view: View, arguments: JsonObject) -> MetaToolAnswer:
    """List what is not active, toolkits first, or say why there is nothing to list."""
    waiting = [*toolkits_to_activate(view), *(one for one in plugins_by_name(view) if not one.active)]
    category = one_line(str(arguments.get("category") or ""), limit=100)
    keyword = one_line(str(arguments.get("keyword") or ""), limit=100)
    page = int(arguments.get("page", 1))
    if category and category.casefold() not in (name.casefold() for name in _names_of_categories(view)):
        names = ", ".join(_names_of_categories(view))
        sentences = (f"There is no category '{category}'.", did_you_mean(category, _names_of_categories(view)))
        return MetaToolAnswer(value=" ".join((*filter(None, sentences), f"Categories: {names}.")), is_error=True)
    if not waiting:
        return MetaToolAnswer(value="Every plugin that is available is active already.")
    found = [one for one in waiting if _matches_query(one, category, keyword)]
    if not found:
        return MetaToolAnswer(
            value=f"No plugin that is not active fits{_query_text(category, keyword)}. Try other words."
        )
    pages = -(-len(found) // PAGE)
    if page > pages:
        return MetaToolAnswer(
            value=f"There is no page {page}: there {'is' if pages == 1 else 'are'} {_count(pages, 'page')}.",
            is_error=True,
        )
    shown = found[(page - 1) * PAGE : page * PAGE]
    more = f" Go on with page {page + 1}." if page < pages else ""
    nouns = " and ".join(f"{kind}s" for kind in dict.fromkeys(one.kind for one in found))
    lines = [f"## {nouns.capitalize()} that can be activated", *(line for one in shown for line in _entry(one))]
    number = _count(len(found), found[0].kind) if " and " not in nouns else f"{len(found)} {nouns}"
    lines += ["", f"Page {page}/{pages}, {number}.{more} Activate one with activate_tool."]
    return MetaToolAnswer(value="\n".join(lines))


def _matches_query(one: DiscoverableSubject, category: str, keyword: str) -> bool:
    if category and one.category.casefold() != category.casefold():
        return False
    texts = [one.name, one.description, *one.members]
    texts += [text for tool in one.rest for text in (tool.name, tool.description)]
    return all(word in " ".join(texts).casefold() for word in keyword.casefold().split())


def _query_text(category: str, keyword: str) -> str:
    return (f" category '{category}'" if category else "") + (f" keyword '{keyword}'" if keyword else "")


def _entry(one: DiscoverableSubject) -> Iterator[str]:
    """Yield a plugin and the first of its tools that are not loaded."""
    yield _line(one, one.rest)
    for tool in one.rest[:FUNCTIONS]:
        yield _function(tool)
    if len(one.rest) > FUNCTIONS:
        yield f"  - and {len(one.rest) - FUNCTIONS} more"


def _line(one: DiscoverableSubject, tools: Sequence[Tool]) -> str:
    total = len(one.loaded) + len(one.rest)
    if not total or one.unseen:
        count = "tools not known yet"
    elif len(tools) == total:
        count = _count(total, "tool")
    else:
        count = f"{len(one.loaded)} of {total} tools active"
    what = one_line(one.description, limit=DESCRIPTION) or ", ".join(one.members)
    gone = f" (not available now: {one_line(one.fault, limit=DESCRIPTION)})" if one.fault else ""
    return f"- **{one_line(one.name)}** ({one.category}, {count}){f': {what}' if what else ''}{gone}"


def _function(tool: Tool) -> str:
    what = one_line(first_sentence(tool.description), limit=DESCRIPTION)
    return f"  - `{tool.wire}`{f': {what}' if what else ''}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# -- activation ------------------------------------------------------------------------------------


def _subject(view: View, asked: str) -> str:
    """Return what a name stands for: a plugin, else a toolkit; a bare name is no tool's here."""
    if split_kind(asked)[0] in ("plugin", "toolkit"):
        return asked
    toolkit, plugin = f"toolkit:{asked}", f"plugin:{asked}"
    return (
        toolkit
        if lookup(view.permissions, plugin) is None and lookup(view.permissions, toolkit) is not None
        else plugin
    )


def _activation_payload(view: View, asked: str, item: Item | None) -> MetaToolAnswer:
    name = item.subject.name if item is not None and item.subject is not None else one_line(asked, limit=100)
    match item.status if item is not None else "error":
        case "loaded" | "already_loaded":
            active = active_tools(view.permissions, remove_dead_leases(view.permissions, view.state))
            subject = item.subject if item is not None and item.subject is not None else Ref("plugin", name)
            found = tools_of_subject(view.permissions, subject).tools
            tools = tuple({tool.id: tool for tool, _ in found if tool.id in active}.values())
            if item is not None and item.status == "already_loaded":
                return MetaToolAnswer(
                    value=f"{subject.kind.capitalize()} '{name}' is already loaded and available.", schemas=tools
                )
            lines = (f"Activated {subject.kind} '{name}' with {_count(len(tools), 'tool')}:", *map(_function, tools))
            return MetaToolAnswer(value="\n".join(lines), schemas=tools)
        case "not_found" if item is None or item.subject is None:
            return MetaToolAnswer(
                value=f"Plugin '{name}' was not found. See discover_tools for what there is.", is_error=True
            )
        case _:
            return MetaToolAnswer(value=item.message if item is not None else "Nothing was done.", is_error=True)


# -- categories and loadouts -----------------------------------------------------------------------


def _names_of_categories(view: View) -> tuple[str, ...]:
    """Return the 13 categories, then those of authors, then that of plugins without one."""
    own = sorted({one.category for one in plugins_by_name(view)} - {*CATEGORIES, OTHER})
    return (*CATEGORIES, *own, OTHER)


def _categories(view: View) -> str:
    all_ = plugins_by_name(view)
    lines = ["## Categories"]
    for name in _names_of_categories(view):
        group = [one for one in all_ if one.category.casefold() == name.casefold()]
        if group or name in CATEGORIES:
            active = sum(one.active for one in group)
            names = f": {_join_names(one.name for one in group)}" if group else ""
            lines.append(f"- **{one_line(name)}** ({_count(len(group), 'plugin')}, {active} active){names}")
    return "\n".join(lines)


def _toolbelts(view: View) -> str:
    """List the loadouts over the plugins that the agent may have; others are not named (P9)."""
    permissions = view.permissions
    plugins = {
        p.name: p.category for p in permissions.world.catalog.plugins.values() if permissions.may_have_tools_of(p)
    }
    listed = PluginCategories(plugins.items())
    folds = {name.casefold(): name for name in plugins}
    lines = ["## Loadouts"]
    for loadout in permissions.world.loadouts.values():
        merged = merge(loadout.name, permissions.world.loadouts)
        active = active_of(merged, listed)
        discoverable = discoverable_of(merged, listed)
        disabled = [folds[fold] for fold in merged.disabled if fold in folds]
        parent = f", extends {one_line(loadout.parent)}" if loadout.parent else ""
        now = ", active now" if (view.state.loadout or "").casefold() == loadout.name.casefold() else ""
        parts = (
            f"{len(active)} active",
            f"{len(discoverable)} discoverable",
            f"categories: {_join_names(loadout.categories)}" if loadout.categories else "",
            f"disabled: {_join_names(disabled)}" if disabled else "",
        )
        lines.append(f"- **{one_line(loadout.name)}**{parent}{now}: {'; '.join(filter(None, parts))}")
    return "\n".join(lines)


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(one_line(name) for name in names)
