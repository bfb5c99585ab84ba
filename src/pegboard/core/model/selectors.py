"""Selectors: names, categories, patterns, minus exceptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from pegboard.core.model.catalog import Catalog, Ref, split_kind
from pegboard.core.model.tools import EMPTY, Frozen, JsonObject, Plugin, Tool, variant_key
from pegboard.problems import Place

INCLUDE = "include_tools"
EXCLUDE = "exclude_tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One entry of a list of tools, as written: a name, and inline overrides (T1).

    ``include`` (None: all) and ``exclude`` filter the functions of a plugin by their own names. ``written`` is the text
    of overrides that refer to variables, with the references, and nothing for others.
    """

    name: str
    overrides: JsonObject = field(default=EMPTY)
    include: frozenset[str] | None = None
    exclude: frozenset[str] = frozenset()
    place: Place | None = None
    written: str = ""

    @property
    def filtered(self) -> bool:
        """Return whether the entry excludes functions."""
        return self.include is not None or bool(self.exclude)

    def admits(self, tool: Tool) -> bool:
        """Return whether the function filter lets the tool through."""
        names = {tool.name, tool.wire}
        if self.include is not None and not (names & self.include):
            return False
        return not (names & self.exclude)


def member(name: str, overrides: JsonObject | None = None, *, place: Place | None = None, written: str = "") -> Member:
    """Return an entry with its function filters separated from the overrides."""
    rest = dict(overrides or {})
    include, exclude = rest.pop(INCLUDE, None), rest.pop(EXCLUDE, None)
    return Member(
        name=name,
        overrides=Frozen(rest) if rest else EMPTY,
        include=None if include is None else frozenset(include),
        exclude=frozenset(exclude or ()),
        place=place,
        written=written,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A member that was looked up: the plugin, its tools, and under which overrides.

    ``tools`` are those that stand here and pass the filter, in the order of the plugin; ``names``
    covers also what the filter excludes. ``whole`` says that the entry names the plugin itself.
    """

    member: Member
    plugin: str
    whole: bool
    tools: tuple[Tool, ...]
    names: frozenset[str]
    ids: frozenset[str]
    key: str
    overrides: JsonObject = field(init=False, repr=False, compare=False, default=EMPTY)

    def __post_init__(self) -> None:
        object.__setattr__(self, "overrides", self.member.overrides)


def find(name: str, catalog: Catalog) -> Ref | None:
    """Return what a name in a file means, whoever may use it: a plugin, then a tool (exact names only).

    A tool of a server that has not been asked yet is named ``plugin/tool`` or by its wire name;
    it is found when its manifest arrives.
    """
    kind, bare = split_kind(name)
    if bare in catalog.plugins and kind in (None, "plugin"):
        return Ref("plugin", bare)
    if kind == "category":
        return Ref("category", bare)
    if kind in (None, "tool"):
        tool = catalog.find_tool(bare)
        if tool is not None:
            return Ref("tool", tool.id)
    return None


def entry_of(plugin: Plugin, item: Member, *, only: frozenset[str] | None = None) -> Entry:
    """Return the entry for a plugin, or for some of its tools (``only``: ids)."""
    key = variant_key(item.overrides)
    known = plugin.variant(key).tools
    has = None if known is None else frozenset(known)
    stands = tuple(
        tool for tool in plugin.tools if (only is None or tool.id in only) and (has is None or tool.name in has)
    )
    tools = tuple(tool for tool in stands if item.admits(tool)) if item.filtered else stands
    return Entry(
        member=item,
        plugin=plugin.name,
        whole=only is None,
        tools=tools,
        names=frozenset(tool.id for tool in stands),
        ids=frozenset(tool.id for tool in tools),
        key=key,
    )


def entries(items: Iterable[Member], catalog: Catalog) -> Iterator[Entry]:
    """Yield the entry of every member that the catalog knows, in order; the rest is unknown yet."""
    for item in items:
        ref = find(item.name, catalog)
        if ref is None:
            continue
        yield from ref_entries(ref, item, catalog)


def ref_entries(ref: Ref, item: Member, catalog: Catalog) -> Iterator[Entry]:
    """Yield the entries that a plugin, tool or category stands for."""
    match ref.kind:
        case "plugin":
            yield entry_of(catalog.plugins[ref.name], item)
        case "tool":
            tool = catalog.by_id(ref.name)
            if tool is not None:
                only = frozenset({tool.id})
                yield entry_of(catalog.plugins[tool.plugin], item, only=only)
        case "category":
            for plugin in catalog.category(ref.name):
                yield entry_of(plugin, replace(item, name=plugin.name))
        case "toolkit":
            return
