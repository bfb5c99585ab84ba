"""What servers offer besides tools: who sees it, and under which name (G7, G10, P9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote, unquote

from pegboard.core.access.decisions import Reason
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.naming import wire_name
from pegboard.core.model.tools import Frozen, JsonObject, Plugin, Tool

ListKind = Literal["resources", "templates", "prompts"]

KEYS: Final[Mapping[ListKind, str]] = {"resources": "uri", "templates": "uriTemplate", "prompts": "name"}
"""The key by which an item of a list is known."""
CAPABILITY: Final[Mapping[ListKind, str]] = {
    "resources": "resources",
    "templates": "resources",
    "prompts": "prompts",
}
"""The capability that a server declares which has such items."""
METHODS: Final[Mapping[ListKind, str]] = {
    "resources": "resources/list",
    "templates": "resources/templates/list",
    "prompts": "prompts/list",
}
PAGE_KEYS: Final[Mapping[ListKind, str]] = {
    "resources": "resources",
    "templates": "resourceTemplates",
    "prompts": "prompts",
}
"""The key of an answer to such a method under which the items stand."""
SCHEME: Final = "pegboard://"

Listing = tuple[Plugin, Sequence[JsonObject]]
"""A server and the items of its list, as they stood on the wire."""
Matches = Callable[[str, str], bool]
"""A function that tells whether a template (RFC 6570) gives a URI."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedItem:
    """One resource, template or prompt.

    ``name`` is how its server knows it, ``shown`` how clients do, ``wire`` the object for clients.
    """

    plugin: str
    name: str
    shown: str
    wire: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class NameClash:
    """Two items that clients would know by one name, as ``plugin/name``: the first has it, the second is excluded."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedList:
    """The offers of one kind by the name that clients know, and what was excluded because its name is taken."""

    offers: Mapping[str, ListedItem]
    clashes: tuple[NameClash, ...] = ()


Target = tuple[str, str]
"""A plugin, and a URI as its server knows it."""


def plugins_with_lists(permissions: CompiledPermissions) -> tuple[Plugin, ...]:
    """Return the servers whose offers an agent sees, in the order of the configuration (P3).

    That is where at least one tool is permitted, or the server as a whole where it has no tools.
    """
    servers = (plugin for plugin in permissions.world.catalog.plugins.values() if plugin.kind == "server")
    return tuple(plugin for plugin in servers if permissions.may_have_tools_of(plugin))


def why_not(permissions: CompiledPermissions, plugin: Plugin) -> Reason:
    """Return the reason that decided against a server's offers, for the audit log (P9)."""
    probe = plugin.tools[0] if plugin.tools else Tool(plugin=plugin.name, name="")
    return permissions.decide(probe).reasons[0]


def alias(plugin: str, uri: str) -> str:
    """Return the URI or template under which a server's is offered where another has the same.

    Nothing in it is encoded a second time: what a client puts into a template reaches the server as it is.

    >>> alias("my docs", "file:///a{?page}")
    'pegboard://my%20docs/file:///a{?page}'
    """
    return f"{SCHEME}{quote(plugin, safe='')}/{uri}"


def unalias(uri: str) -> Target | None:
    """Return the server and its own URI that an alias stands for.

    >>> unalias("pegboard://my%20docs/file:///a?page=2")
    ('my docs', 'file:///a?page=2')
    >>> unalias("file:///a")
    """
    plugin, slash, own = uri.removeprefix(SCHEME).partition("/")
    return (unquote(plugin), own) if uri.startswith(SCHEME) and plugin and slash else None


def merge_lists(kind: ListKind, listings: Iterable[Listing]) -> MergedList:
    """Return what is offered to clients, in the order of the listings.

    An item that its server lists twice counts once. Of two equal URIs the later gets an alias; of two equal prompt
    names the later is excluded (G10).
    """
    key = KEYS[kind]
    offers: dict[str, ListedItem] = {}
    clashes: list[NameClash] = []
    for plugin, items in listings:
        seen: set[str] = set()
        for item in items:
            own: str = item[key]
            if own in seen:
                continue
            seen.add(own)
            name = own
            if kind == "prompts":
                name = wire_name(plugin.name, name, prefix=plugin.prefix)
            if name in offers and kind != "prompts":
                name = alias(plugin.name, name)
            if name in offers:
                first = offers[name]
                clashes.append(
                    NameClash(name=name, first=f"{first.plugin}/{first.name}", second=f"{plugin.name}/{own}")
                )
                continue
            wire = item if name == own else Frozen({**item, key: name})
            offers[name] = ListedItem(plugin=plugin.name, name=own, shown=name, wire=wire)
    return MergedList(offers=offers, clashes=tuple(clashes))


def owners(
    uri: str, visible: Iterable[str], resources: MergedList, templates: MergedList, matches: Matches
) -> list[Target]:
    """Return which servers a URI is of, the likeliest first; none where only asking can tell.

    ``visible`` names the servers that the agent sees: an alias of another one is no one's (P9).
    """
    listed = resources.offers.get(uri)
    if listed is not None:
        return [(listed.plugin, listed.name)]
    aliased = unalias(uri)
    if aliased is not None and aliased[0] in visible:
        return [aliased]
    fitting = (offer for offer in templates.offers.values() if matches(offer.shown, uri))
    return list(dict.fromkeys((offer.plugin, uri) for offer in fitting))


def server_for_completion(
    reference: JsonObject, visible: Iterable[str], prompts: MergedList, resources: MergedList, templates: MergedList
) -> tuple[str, JsonObject] | None:
    """Return the server that completes for a reference, and the reference as it knows it."""
    match reference:
        case {"type": "ref/prompt", "name": str(name)}:
            found = prompts.offers.get(name)
            return None if found is None else (found.plugin, {**reference, "name": found.name})
        case {"type": "ref/resource", "uri": str(uri)}:
            found = templates.offers.get(uri) or resources.offers.get(uri)
            target = (found.plugin, found.name) if found is not None else unalias(uri)
            known = target is not None and target[0] in visible
            return (target[0], {**reference, "uri": target[1]}) if target is not None and known else None
        case _:
            return None
